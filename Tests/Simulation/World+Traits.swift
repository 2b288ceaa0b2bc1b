import TestSupport
import Tidemark
import TidemarkSync

// What only runs with traits do: see `SimulatedTraits`.

extension World {
    /// Keeps a part of a dataset, or all of it again. Durable, as whoever waits for it would wish.
    func setScope(_ at: Int, _ dataset: Int, _ scope: SimulatedScope?) {
        let replica = replicas[at]
        guard replica.isUp, replica.mayBePart, let store = replica.store else { return }
        if scope != nil { replica.scopedDatasets.insert(dataset) }
        do throws(StoreError) {
            guard
                let found = try store.datasetForSync(
                    SimulatedReplica.name(dataset), creating: true)
            else { return }
            let count = try found.setSyncScope(
                scope?.scope, leaving: settings.keepsOutside ? .keep : .drop)
            try store.sync()
            note("\(at): let go of \(count)")
        } catch {
            failed(error, "setting a scope", at)
        }
        // For a reader it is another dataset.
        replica.lastSeen = replica.lastSeen.filter { $0.key.dataset != dataset }
    }

    /// Whether the part that is kept may let go of a record: then it may come again as it was
    /// before, from somebody who has not heard of the change because of which it went.
    func mayLeave(
        _ key: ModelKey, _ replica: SimulatedReplica
    ) throws(StoreError) -> Bool {
        guard replica.mayBePart, let scope = try replica.scope(of: key.dataset),
            let part = SimulatedScope.all.first(where: { $0.scope == scope })
        else { return false }
        return part.decides(key.number) != true
    }

    // MARK: - Held writes

    /// Somebody decides about the first write that is held. What comes of it is a write like any
    /// other.
    func decideHeld(_ at: Int, _ dataset: Int, isReleased: Bool) {
        let replica = replicas[at]
        // Where values are united, whoever decides for one of two takes the other's numbers away.
        guard replica.isUp, !settings.policy.isUnion, let store = replica.store else { return }
        do throws(StoreError) {
            guard let found = try store.existingDataset(SimulatedReplica.name(dataset)),
                let held = try found.quarantined().min(by: {
                    $0.record.version.dot < $1.record.version.dot
                }), let number = SimulatedReplica.number(of: held.record.key)
            else { return }
            let key = ModelKey(dataset: dataset, number: number)
            let value = try isReleased ? held.record.value : replica.record(key)?.value
            let write: Int
            if let value {
                write = WriteModel.numbers(in: value).first ?? 0
            } else {
                write = model.begin(key, isDeletion: true)
            }
            if isReleased { try found.release(held) } else { try found.discard(held) }
            guard replica.remains == nil, let record = try replica.record(key) else { return }
            note("\(at): decided about \(held.record.version.dot): \(record.version.dot)")
            let index = model.acknowledge(
                ModelWrite(
                    number: write, key: key, isDeletion: value == nil, replica: at,
                    version: record.version, mustSurvive: false))
            replica.unsynced.append(index)
        } catch {
            failed(error, "deciding about a held write", at)
        }
    }

    /// Nobody else's write counts before its date is believed, where the last writer wins and
    /// nothing is in doubt. Parts hold nothing, and what a late comer has is looked at in another
    /// way.
    func checkBelief(_ at: Int) {
        let replica = replicas[at]
        guard settings.traits.contains(.clocks), settings.policy == .lastWriterWins, isOrderly,
            !settings.traits.contains(.lateComers), !replica.mayBePart, replica.isUp
        else { return }
        let latest = replica.latestClock + settings.clockAheadMax
        attempt("reading \(at)") { () throws(StoreError) in
            for key in allKeys {
                guard let version = try replica.record(key)?.version,
                    !replica.ids.contains(version.dot.replica),
                    version.time.milliseconds > latest
                else { continue }
                fail(.futureWins, "\(key) at \(at): \(version.dot) is dated \(version.time)")
            }
        }
    }

    // MARK: - Conflicts that wait

    /// Somebody settles what has waited longest, so that nothing of it is lost.
    func settle(_ at: Int, _ dataset: Int) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store else { return }
        do throws(StoreError) {
            guard
                let found = try store.datasetForSync(
                    SimulatedReplica.name(dataset), creating: false)
            else { return }
            let waiting = try found.pendingConflicts()
            guard let first = waiting.first else { return }
            let key = first.conflict.key
            var numbers = Set(WriteModel.numbers(in: first.conflict.local.value ?? []))
            for other in waiting where other.conflict.key == key {
                numbers.formUnion(WriteModel.numbers(in: other.conflict.remote.value ?? []))
            }
            let value = WriteModel.value(of: numbers.sorted(), padding: 0, settings.form)
            try found.settle(
                key, with: .value(value),
                journal: settings.keepsJournal ? SyncJournalOptions() : .off)
            note("\(at): settled \(numbers.sorted())")
        } catch {
            failed(error, "settling a conflict", at)
        }
    }

    /// Settles everything that waits.
    func settleAll(at place: Int) {
        attempt("reading what waits at \(place)") { () throws(StoreError) in
            for dataset in 0..<settings.datasetCount {
                let found = try replicas[place].store?.datasetForSync(
                    SimulatedReplica.name(dataset), creating: false)
                while violation == nil, try found?.pendingConflicts().isEmpty == false {
                    settle(place, dataset)
                }
            }
        }
    }

    // MARK: - Merged datasets

    /// The first dataset is to take in the second one: whoever exchanges it is told.
    func noteMerged(_ at: Int) {
        guard settings.traits.contains(.merging), replicas[at].isUp,
            let store = replicas[at].store
        else { return }
        do throws(StoreError) {
            guard try store.existingDataset(SimulatedReplica.name(1)) != nil else { return }
            try store.noteMerged(
                MergedDataset(name: SimulatedReplica.name(1), origin: "r\(at)"),
                into: SimulatedReplica.name(0))
            // From here on it may be deleted by any exchange.
            model.deletedDatasets.insert(1)
        } catch {
            failed(error, "noting a merged dataset", at)
        }
    }

    /// Whether what was written to the second dataset may be in the first one.
    var isMerging: Bool {
        settings.traits.contains(.merging) && model.deletedDatasets.contains(1)
    }

    // MARK: - The large dataset

    /// As many records as a dataset must have to be taken over as it lies in segments.
    private static let largeCount = 1_200

    private static func largeKey(_ number: Int) -> [UInt8] { Array("b\(10_000 + number)".utf8) }

    private func largeValue(_ number: Int) -> [UInt8] {
        var random = SeededGenerator(Seed(settings.seed.rawValue ^ UInt64(number)))
        return Array("row \(number): ".utf8) + random.bytes(12)
    }

    func fillLarge(_ at: Int) {
        let replica = replicas[at]
        guard let number = settings.largeDataset, replica.isUp, !replica.isDiskFull,
            let store = replica.store
        else { return }
        do throws(StoreError) {
            let dataset = try store.dataset(SimulatedReplica.name(number))
            var batch = WriteBatch()
            for number in 0..<Self.largeCount {
                batch.put(largeValue(number), for: Self.largeKey(number), in: dataset)
            }
            try store.write(batch, durability: .disk)
            hasLarge = replica.remains == nil
        } catch {
            failed(error, "filling the large dataset", at)
        }
    }

    /// Everywhere the same, record for record what was written, and all of it.
    func checkLarge() throws(StoreError) {
        guard let number = settings.largeDataset else { return }
        let first = replicas[0]
        let digest = try first.digest(number)
        let vector = try first.knowledge(number)?.vector
        for other in replicas.dropFirst() {
            let (theirs, seen) = (try other.digest(number), try other.knowledge(number)?.vector)
            guard theirs == digest, seen == vector else {
                return fail(.divergence, "the large dataset on 0 and \(other.index)")
            }
        }
        var count = 0
        if let dataset = try first.store?.existingDataset(SimulatedReplica.name(number)) {
            let cursor = try dataset.records()
            while let record = try cursor.next() {
                let name = String(decoding: record.key.dropFirst(), as: UTF8.self)
                guard let row = Int(name).map({ $0 - 10_000 }), record.value == largeValue(row)
                else {
                    return fail(.inventedValue, "\(name) of the large dataset")
                }
                count += 1
            }
        }
        if hasLarge, isOrderly, count != Self.largeCount {
            fail(.lostWrite, "\(count) of \(Self.largeCount) records of the large dataset")
        }
    }
}

extension SimulatedReplica {
    /// The part of a dataset that it keeps; nil if it keeps all of it.
    func scope(of dataset: Int) throws(StoreError) -> SyncScope? {
        guard let store, let found = try store.datasetForSync(Self.name(dataset), creating: false)
        else { return nil }
        return try found.syncScope()
    }

    /// nil if the dataset is not there.
    func digest(_ dataset: Int) throws(StoreError) -> ConvergenceDigest? {
        try store?.existingDataset(Self.name(dataset))?.digest()
    }

    /// The number of a key; nil if it has none.
    static func number(of key: [UInt8]) -> Int? {
        guard key.first == UInt8(ascii: "k") else { return nil }
        return Int(String(decoding: key.dropFirst(), as: UTF8.self))
    }
}
