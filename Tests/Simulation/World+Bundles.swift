import TestSupport
import Tidemark
import TidemarkSync

// Changes that go from hand to hand in files: whatever is cut off, they arrive, late, twice, out of
// order, or damaged.

/// What of a dataset goes into a bundle.
package enum BundleKind: Hashable, Sendable, CaseIterable {
    case whole
    /// What has changed since the last bundle for the same replica.
    case next
    /// What the receiver is not known to have.
    case forReceiver
}

/// One bundle on its way.
package struct Carriage: Hashable, Sendable, CustomStringConvertible {
    package let from: Int
    package let to: Int
    package let dataset: Int
    package let kind: BundleKind
    /// Milliseconds that it is on its way: fewer than pass before a disk is put back.
    package let duration: UInt64
    /// Where a bit of it turns over; nil if it arrives as it was made.
    package let damage: UInt64?

    static let durationMax = 2_000

    package var description: String {
        "\(from) > \(to): bundle of d\(dataset), \(kind), in \(duration) ms"
            + (damage == nil ? "" : ", damaged")
    }
}

/// For whom bundles were made, and of what.
struct BundlePair: Hashable {
    let receiver: Int
    let dataset: Int
}

extension World {
    func carry(_ carriage: Carriage) {
        let sender = replicas[carriage.from]
        guard carriage.from != carriage.to, sender.isUp, let store = sender.store else { return }
        let (name, pair) = (
            SimulatedReplica.name(carriage.dataset),
            BundlePair(receiver: carriage.to, dataset: carriage.dataset)
        )
        bundleCount += 1
        do throws(SyncError) {
            let path = try bundlePath(bundleCount)
            let summary: BundleSummary
            switch carriage.kind {
            case .whole: summary = try store.exportBundle(of: name, to: path)
            case .next:
                summary = try store.exportBundle(
                    of: name, to: path, since: sender.bundledThrough[pair] ?? .zero)
            case .forReceiver:
                guard let id = replicas[carriage.to].lastID, id != store.replicaID else { return }
                summary = try store.exportBundle(of: name, to: path, for: id)
            }
            guard sender.remains == nil else { return }
            sender.bundledThrough[pair] = summary.through
            note("\(carriage.from): bundle of \(summary.since)...\(summary.through)")
            var hasForgotten = false
            attempt("reading \(carriage.from)") { () throws(StoreError) in
                let knowledge = try sender.knowledge(carriage.dataset)
                hasForgotten = knowledge.map { !$0.forgotten.isEmpty } ?? false
            }
            time.schedule(after: carriage.duration) { [self, hasForgotten] in
                deliver(carriage, path, hasForgotten: hasForgotten)
            }
        } catch {
            note("\(carriage.from): no bundle: \(error.code)")
            if !isExplained(export: error, sender, carriage) {
                fail(.syncFailure, "exporting at \(carriage.from): \(error.code): \(error)")
            }
        }
    }

    private func bundlePath(_ number: Int) throws(SyncError) -> String {
        do {
            let directory = try bundles ?? TemporaryDirectory()
            bundles = directory
            return directory["bundle-\(number)"]
        } catch {
            throw SyncError(.unreachable, "no directory for bundles: \(error)")
        }
    }

    private func isExplained(
        export error: SyncError, _ sender: SimulatedReplica, _ carriage: Carriage
    ) -> Bool {
        if sender.remains != nil || sender.isDiskFull { return true }
        switch error.code {
        case .partialReplica: return sender.mayBePart
        // It went back, and has met nobody since.
        case .peerChanged: return !isOrderly
        case .store:
            // Nothing is known of the dataset, or nothing any more.
            let code = error.storeError?.code
            return code == .datasetNotFound
                || code == .invalidArgument && carriage.kind == .next && !isOrderly
        default: return false
        }
    }

    /// - Parameter hasForgotten: whether its maker had forgotten deletions by then.
    private func deliver(_ carriage: Carriage, _ path: String, hasForgotten: Bool) {
        let receiver = replicas[carriage.to]
        guard receiver.isUp, let store = receiver.store, !isOver else { return }
        if let place = carriage.damage, !turnBit(of: path, at: place) { return }
        activeExchanges += 1
        exchangeCount += 1
        let incarnation = receiver.incarnation
        let options = exchangeOptions(pageRecordsMax: 3, carriage.to)
        let ended = Ended { [self] outcome in
            activeExchanges -= 1
            let isAlive = receiver.incarnation == incarnation && receiver.remains == nil
            note("\(carriage) ended: \(Self.summary(outcome))\(isAlive ? "" : ", dead")")
            followHeld(carriage.to, isAnswering: false)
            if isAlive { check(outcome, of: carriage, hasForgotten: hasForgotten) }
        }
        Task(executorPreference: executor) {
            let outcome: ExchangeOutcome
            do throws(SyncError) {
                outcome = .success([try await store.importBundle(from: path, options: options)])
            } catch {
                outcome = .failure(error)
            }
            ended.body(outcome)
        }
    }

    /// Returns false if the file cannot be changed, which is no finding.
    private func turnBit(of path: String, at place: UInt64) -> Bool {
        guard let bytes = try? Files.read(path), !bytes.isEmpty else { return false }
        let index = Int(place % UInt64(bytes.count))
        let turned = bytes[index] ^ 1 << UInt8(place >> 40 & 7)
        return (try? Files.overwrite([turned], in: path, at: index)) != nil
    }

    private func check(
        _ outcome: ExchangeOutcome, of carriage: Carriage, hasForgotten: Bool
    ) {
        checkAfterExchange(carriage.to)
        switch outcome {
        case .success(let results):
            for result in results { conflictCount += result.conflicts }
            importCount += 1
            if carriage.damage != nil {
                fail(.syncFailure, "\(carriage): a damaged bundle was taken in")
            }
        case .failure(let error):
            failedExchangeCount += 1
            if !isExplained(import: error, carriage, hasForgotten: hasForgotten) {
                fail(.syncFailure, "\(carriage): \(error.code): \(error)")
            }
        }
    }

    private func isExplained(
        import error: SyncError, _ carriage: Carriage, hasForgotten: Bool
    ) -> Bool {
        let receiver = replicas[carriage.to]
        switch error.code {
        case .damagedBundle: return carriage.damage != nil
        case _ where carriage.damage != nil: return false
        // Something before it is missing, shows that a store went back, or may be dead here.
        case .wrongBundle: return carriage.kind != .whole || !isOrderly || hasForgotten
        case .contended: return true
        case .peerChanged, .sameReplica: return !isOrderly
        case .partialReplica: return receiver.mayBePart
        case .conflictPending:
            return (settings.policy.leavesConflicts || refusal != nil) && !isHealing
        case .recordRefused: return settings.traits.contains(.refusals) && !isHealing
        case .store: return receiver.isDiskFull
        default: return false
        }
    }
}
