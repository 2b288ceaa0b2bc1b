public import Tidemark

/// What another policy makes of a conflict that was settled before.
public struct ReplayedConflict: Hashable, Sendable {
    public enum Verdict: Hashable, Sendable {
        /// The outcome that it has.
        case same
        /// Another one.
        case other(decision: SyncResult.Settlement.Decision, value: [UInt8]?)
        /// The policy decides nothing.
        case undecided(PendingConflict.Reason)
        /// A value that it would be decided by is neither in the journal nor in the history of the
        /// key any more.
        case notKept
    }

    public enum Effect: Hashable, Sendable {
        /// Nothing was written: nobody asked for it, or there is nothing to write.
        case nothing
        /// The outcome was written, by this write.
        case written(Dot)
        /// The record has been changed since the conflict was settled, and is left as it is.
        case changedSince
    }

    /// As the journal has it.
    public let settled: SettledConflict
    public let verdict: Verdict
    /// Whether the record still is what the conflict came to.
    public let isCurrent: Bool
    public let effect: Effect
}

extension Dataset {
    /// Puts settled conflicts to another policy: dry, to see what would have come of them, or in
    /// earnest.
    ///
    /// ```swift
    /// let dry = try await notes.replayConflicts(with: .autoMerge(AutoMerge()))
    /// print("\(dry.count { $0.verdict != .same }) would be different")
    /// ```
    ///
    /// Each conflict is decided by what met then, with the ancestor that was known then. In
    /// earnest, an outcome that is different is written where the record still is what the conflict
    /// came to, as a new write that descends from it, with an entry of its own in the journal. A
    /// record that was changed since is left alone. Each key is written once at most, by its newest
    /// conflict.
    ///
    /// O(settled conflicts), and for each the history of its key. Handlers are asked one at a time,
    /// while no lock is held. Interrupted, it has written some outcomes and others not at all.
    ///
    /// - Parameters:
    ///   - policy: ``MergePolicy/leavePending`` decides nothing.
    ///   - key: only conflicts of this key; nil for all.
    ///   - start: none that were settled before.
    ///   - isApplied: whether outcomes are written.
    ///   - journal: what the journal keeps of outcomes that are written.
    /// - Returns: one for each conflict in the journal, the newest first.
    /// - Throws: `store`; `cancelled`. A handler that throws leaves its conflict undecided.
    public func replayConflicts(
        with policy: MergePolicy, of key: [UInt8]? = nil, since start: HybridTime = .zero,
        isApplied: Bool = false, journal: SyncJournalOptions = SyncJournalOptions()
    ) async throws(SyncError) -> [ReplayedConflict] {
        let entries = try TidemarkSync.engine(name) { () throws(StoreError) in
            try settledConflicts(of: key, since: start)
        }
        let replay = ConflictReplay(
            dataset: self, policy: policy, isApplied: isApplied, journal: journal.bounded)
        var replayed: [ReplayedConflict] = []
        var keys: Set<[UInt8]> = []
        for entry in entries {
            guard !Task.isCancelled else { throw .cancelled(dataset: name) }
            let isNewest = keys.insert(entry.key).inserted
            replayed.append(try await replay.run(entry, isNewest: isNewest))
        }
        return replayed
    }
}

/// Decides settled conflicts anew.
private struct ConflictReplay {
    let dataset: Dataset
    let policy: MergePolicy
    let isApplied: Bool
    let journal: SyncJournalOptions

    func run(
        _ entry: SettledConflict, isNewest: Bool
    ) async throws(SyncError) -> ReplayedConflict {
        let (conflict, past) = try engine(dataset.name) { () throws(StoreError) in
            (try whole(entry), try dataset.value(of: entry.outcome, entry.key, entry.write))
        }
        let current = try engine(dataset.name) { () throws(StoreError) in
            try dataset.storedRecord(for: entry.key)
        }
        let isCurrent = isNewest && current?.version.dot == entry.write
        func replayed(
            _ verdict: ReplayedConflict.Verdict, _ effect: ReplayedConflict.Effect = .nothing
        ) -> ReplayedConflict {
            ReplayedConflict(
                settled: entry, verdict: verdict, isCurrent: isCurrent, effect: effect)
        }
        guard let conflict, let past else { return replayed(.notKept) }
        switch try await policy.answer(
            to: conflict, latestBelieved: dataset.store.latestBelieved)
        {
        case .pending(_, let reason):
            return replayed(.undecided(reason))
        case .settled(let outcome):
            guard outcome.value != past || outcome.expiresAt != entry.outcomeExpiresAt else {
                return replayed(.same)
            }
            let verdict = ReplayedConflict.Verdict.other(
                decision: outcome.settlement.decision, value: outcome.value)
            guard isApplied else { return replayed(verdict) }
            guard isCurrent, let current, let written = try write(outcome, over: current, entry)
            else { return replayed(verdict, .changedSince) }
            return replayed(verdict, .written(written))
        }
    }

    /// The conflict as it was; nil if a side's value is not kept.
    private func whole(_ entry: SettledConflict) throws(StoreError) -> Conflict? {
        guard let local = try record(entry.local, entry.key),
            let remote = try record(entry.remote, entry.key)
        else { return nil }
        var ancestry = Conflict.Ancestry.notKept
        switch entry.ancestry {
        case .known(let side):
            if let ancestor = try record(side, entry.key) { ancestry = .known(ancestor) }
        case .nonexistent: ancestry = .nonexistent
        case .notKept: break
        }
        return Conflict(
            dataset: dataset.name, key: entry.key, ancestry: ancestry, local: local,
            remote: remote)
    }

    private func record(
        _ side: SettledConflict.Side, _ key: [UInt8]
    ) throws(StoreError) -> Record? {
        guard let value = try dataset.value(of: side.content, key, side.version.dot) else {
            return nil
        }
        return Record(
            key: key, value: value, version: side.version, syncCount: .zero, isDirty: false,
            expiresAt: side.expiresAt)
    }

    /// Writes an outcome over what the conflict came to before; nil if that has been changed
    /// meanwhile.
    private func write(
        _ outcome: ConflictSettlement.Outcome, over current: Record, _ entry: SettledConflict
    ) throws(SyncError) -> Dot? {
        let final = ConflictSettlement.Outcome(
            conflict: outcome.conflict,
            writes: [
                ReplicatedWrite(
                    key: entry.key,
                    content: .resolve(
                        value: outcome.value, seen: current.version,
                        expiresAt: outcome.expiresAt),
                    expected: current.version)
            ],
            settlement: outcome.settlement)
        return try engine(dataset.name) { () throws(StoreError) -> Dot? in
            var source = ConflictJournal.Source(policy: .replay)
            source.peer = entry.peer
            var batch = ReplicationBatch()
            batch.writes = final.writes
            batch.notes = try ConflictJournal(dataset, journal).notes(of: [(final, 0)], by: source)
            // The record may have been written again by the time at which it could be read.
            let unheld = try batch.claimingNothingHeld(in: dataset)
            return try dataset.replicated(unheld)?.last
        }
    }
}

extension Dataset {
    /// A value that a version had, nil in it for a tombstone; nil if it is not kept.
    fileprivate func value(
        of content: SettledConflict.Content, _ key: [UInt8], _ dot: Dot
    ) throws(StoreError) -> [UInt8]?? {
        switch content {
        case .value(let bytes): return .some(bytes)
        case .deleted: return .some(nil)
        case .leftOut:
            do throws(StoreError) {
                let version = try storedVersions(of: key).first { $0.version.dot == dot }
                return version.map { $0.value }
            } catch {
                // Deleted with the whole dataset.
                guard error.code == .datasetNotFound else { throw error }
                return .none
            }
        }
    }
}
