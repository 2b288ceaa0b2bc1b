import Tidemark
import TidemarkSync

extension World {
    typealias ExchangeOutcome = Result<[SyncResult], SyncError>

    /// How many exchanges may be under way at once.
    private static let activeMax = 12

    /// Begins an exchange of all datasets; it goes on as time passes.
    func startExchange(
        from: Int, to: Int, pageRecordsMax: Int, _ weather: Weather,
        completion: ((ExchangeOutcome) -> Void)? = nil
    ) {
        let asker = replicas[from]
        guard asker.isUp, let store = asker.store, from != to, activeExchanges < Self.activeMax
        else {
            completion?(.failure(SyncError(.unreachable, "down")))
            return
        }
        activeExchanges += 1
        exchangeCount += 1
        // A large dataset record by record would take all the time there is.
        let isLarge = settings.largeDataset != nil
        let pageRecordsMax = isLarge ? max(pageRecordsMax, 200) : pageRecordsMax
        let incarnation = asker.incarnation
        let openCount = replicas[to].openCount
        let link = SimulatedLink(
            self, from: from, to: to, weather, pageRecordsMax: pageRecordsMax)
        let options = exchangeOptions(pageRecordsMax: pageRecordsMax, from)
        let ended = Ended { [self] outcome in
            activeExchanges -= 1
            let isAlive = asker.incarnation == incarnation && asker.remains == nil
            note("\(from) > \(to) ended: \(Self.summary(outcome))\(isAlive ? "" : ", dead")")
            followHeld(from, isAnswering: false)
            followHeld(to, isAnswering: true)
            if isAlive { check(outcome, from: from, to: to, weather, since: openCount) }
            completion?(outcome)
        }
        Task(executorPreference: executor) {
            let outcome: ExchangeOutcome
            do throws(SyncError) {
                outcome = .success(
                    try await store.synchronize(
                        with: SimulatedTransport(link: link), options: options))
            } catch {
                outcome = .failure(error)
            }
            ended.body(outcome)
        }
    }

    /// Exchanges in fair weather and waits for the end.
    func exchangeNow(from: Int, to: Int, pageRecordsMax: Int = 3) -> ExchangeOutcome {
        var outcome: ExchangeOutcome?
        startExchange(from: from, to: to, pageRecordsMax: pageRecordsMax, .fair) { outcome = $0 }
        if !pump(while: { outcome == nil }), violation == nil {
            fail(.neverRests, "an exchange from \(from) to \(to) waits for ever")
        }
        return outcome ?? .failure(SyncError(.unreachable, "never ended"))
    }

    /// A closure that only the thread of the simulation calls.
    struct Ended: @unchecked Sendable {
        // Unchecked: the task that calls it runs on that thread.
        let body: (ExchangeOutcome) -> Void
    }

    static func summary(_ outcome: ExchangeOutcome) -> String {
        switch outcome {
        case .success(let results):
            let all = results.map { "\($0.dataset) \($0.pulled)/\($0.pushed)/\($0.conflicts)" }
            return all.joined(separator: " ")
        case .failure(let error): return "\(error.code): \(error.message)"
        }
    }

    func exchangeOptions(pageRecordsMax: Int, _ from: Int) -> SyncOptions {
        var options = SyncOptions(
            policy: mergePolicy(at: from), pageRecordsMax: pageRecordsMax,
            onDatasetDeleted: settings.recreatesDatasets ? .keepAndRecreate : .discardLocal)
        // A journal draws numbers and takes up room in the logs, which would make another run of
        // each seed that is known to find something.
        if !settings.keepsJournal { options.journal = .off }
        options.comparesAllEvery = .zero
        if let refusal { options.validate = { record in try refusal(record) } }
        if settings.forgetsCheckpoints { options.comparesFrom = 0 }
        if settings.largeDataset != nil { options.segmentBytesMin = 0 }
        if settings.traits.contains(.merging) {
            let policy = mergePolicy(at: nil)
            options.mergedDatasetsHandler = { _ in .merge(policy) }
        }
        return options
    }

    /// Refuses every fifth version, by its dot alone: so a record that is written anew may pass.
    /// nil where nobody refuses anything.
    var refusal: (@Sendable (Record) throws -> Void)? {
        guard settings.traits.contains(.refusals), !isHealing else { return nil }
        return { record in
            let dot = record.version.dot
            if (dot.replica.low &+ dot.counter &* 7) % 5 == 0 { throw HandlerFailure() }
        }
    }

    // MARK: - What may come of it

    /// What must hold on a side of an exchange whenever one has ended.
    func checkAfterExchange(_ index: Int) {
        checkIDs(index)
        checkBelief(index)
        checkJournal(index)
        noteHandedOver(index)
    }

    /// - Parameter openCount: how often the asked side had been opened when the exchange began.
    private func check(
        _ outcome: ExchangeOutcome, from: Int, to: Int, _ weather: Weather,
        since openCount: Int
    ) {
        for index in [from, to] { checkAfterExchange(index) }
        switch outcome {
        case .success(let results):
            for result in results { conflictCount += result.conflicts }
            checkDots(from, to)
            checkOverlooked(results)
            if !settings.traits.isEmpty { keepDigests(from, to) }
        case .failure(let error):
            failedExchangeCount += 1
            if !isExplained(error, from, to, weather, since: openCount) {
                fail(.syncFailure, "\(from) > \(to): \(error.code): \(error)")
            }
        }
    }

    private func isExplained(
        _ error: SyncError, _ from: Int, _ to: Int, _ weather: Weather, since openCount: Int
    ) -> Bool {
        switch error.code {
        case .unreachable, .contended, .peerChanged: return true
        case .badMessage: return weather.damagePercent > 0
        case .sameReplica: return model.hasRolledBack
        // Of a part nobody asks, and who may have become whole again is not known here.
        case .partialReplica: return replicas[to].mayBePart
        // A version that was refused is in conflict with what is here, too.
        case .conflictPending:
            return (settings.policy.leavesConflicts || refusal != nil) && !isHealing
        case .recordRefused: return settings.traits.contains(.refusals) && !isHealing
        // Its own store failed, or the peer's did.
        case .store: return replicas[from].isDiskFull
        case .peerFailed:
            // While the exchange was under way the peer lost its power, or its disk was put back,
            // to before it had the dataset. It says so, and the next exchange makes it there.
            let lackedAt = error.dataset.flatMap { replicas[to].lackedAt[$0] } ?? 0
            return replicas[to].hasBeenFull || lackedAt > openCount
        default: return false
        }
    }

    /// What a part made of a conflict is known from whom it was handed to.
    func noteHandedOver(_ index: Int) {
        guard settings.policy.isUnion, settings.traits.contains(.parts) else { return }
        attempt("reading \(index)") { () throws(StoreError) in
            for key in allKeys { try noteHandedOver(replicas[index], key) }
        }
    }

    /// A store takes a new id only when its disk went back in time.
    private func checkIDs(_ index: Int) {
        let replica = replicas[index]
        guard replica.isUp, let store = replica.store, let last = replica.lastID,
            store.replicaID != last
        else { return }
        note("\(index): new id \(store.replicaID)")
        replica.lastID = store.replicaID
        model.noteFoundOut(last)
        if !replica.mayRenew {
            fail(.needlessRenewal, "replica \(index) gave up the id \(last)")
        }
    }

    /// Two replicas that have seen the same hold the same, as long as no disk went back in time and
    /// no clock is so far ahead that one holds a deletion which another has forgotten.
    private func checkOverlooked(_ results: [SyncResult]) {
        guard !model.hasRolledBack, !model.hasFarClock else { return }
        for result in results where result.overlooked > forgottenAlone(in: result.dataset) {
            fail(
                .divergence,
                "\(result.dataset): \(result.overlooked) records differed behind equal vectors")
        }
    }

    /// Of how many keys a copy of a store may have what was forgotten there without a note.
    private func forgottenAlone(in dataset: String) -> Int {
        guard restoreCount > 0 else { return 0 }
        return model.forgottenAlone.count { SimulatedReplica.name($0.dataset) == dataset }
    }

    /// No dot names two writes on two replicas.
    private func checkDots(_ one: Int, _ other: Int) {
        // A store that went back in time may hold such dots until it has met those who know.
        guard replicas[one].isUp, replicas[other].isUp, !model.hasRolledBack else { return }
        attempt("reading \(one) and \(other)") { () throws(StoreError) in
            for key in allKeys {
                guard let here = try replicas[one].record(key),
                    let there = try replicas[other].record(key),
                    here.version.dot == there.version.dot
                else { continue }
                // What outlived forgotten deletions is dated anew, or deleted, under its dot.
                let (early, late) =
                    here.version.time < there.version.time ? (here, there) : (there, here)
                let hasOutlived =
                    early.version.time < late.version.time && late.version.time.isOutliving
                    && (late.value == nil || late.value == early.value)
                // One clock may have come by its expiry, and the other one not; and what was dead
                // elsewhere is buried without it.
                let isDead = here.value == nil && there.value == nil
                let isSame =
                    here.version.time == there.version.time
                    && (isDead
                        || here.expiresAt == there.expiresAt
                            && (here.value == there.value || here.expiresAt != nil))
                if !isSame, !hasOutlived {
                    fail(
                        .dotUsedTwice,
                        "\(key): \(Self.text(here)) on \(one), \(Self.text(there))")
                }
            }
        }
    }

    /// Has both keep their digests up with the changes, so that they need not be made anew at the
    /// end, when each is held against one that is.
    private func keepDigests(_ one: Int, _ other: Int) {
        attempt("digesting \(one) and \(other)") { () throws(StoreError) in
            for index in [one, other] where replicas[index].isUp {
                for dataset in 0..<settings.datasetCount {
                    _ = try replicas[index].digest(dataset)
                }
            }
        }
    }

    var allKeys: [ModelKey] {
        (0..<settings.datasetCount).flatMap { dataset in
            (0..<settings.keyCount).map { ModelKey(dataset: dataset, number: $0) }
        }
    }

    /// Runs what may not fail on a healthy disk.
    func attempt(_ what: String, _ body: () throws(StoreError) -> Void) {
        do throws(StoreError) {
            try body()
        } catch {
            fail(.storeFailure, "\(what): \(error.code) \(error.message)")
        }
    }
}
