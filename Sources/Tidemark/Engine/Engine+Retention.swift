// What merges may drop, and what must be noted before they do.
//
// Deletions are forgotten in this order:
// 1. A merge meets a tombstone that has no work left (`TombstoneRule`) and leaves it out.
// 2. What it left out is noted, durably, in the log and the dataset's state (`noteForgotten`): from
//    here on whoever lacks one of these deletions is late.
// 3. The segments without the tombstones take the place of the old ones.
// A crash between 2 and 3 leaves tombstones that count as forgotten and go with the next merge.

extension EngineParts {
    /// What was superseded at this time or later is kept for its age: milliseconds since 1970.
    fileprivate var agedBefore: UInt64 {
        let age = options.historyAge.millisecondsClamped
        guard age > 0 else { return .max }
        let now = storage.wallClockMilliseconds()
        return now > age ? now - age + 1 : 0
    }
}

extension Engine {
    /// What of a dataset is still needed.
    func retention(of dataset: DatasetID) throws(StoreError) -> Retention {
        let isSystem = Limits.systemDatasetNumbers.contains(dataset)
        let agedBefore = isSystem ? .max : agedBefore
        let (kept, name, isAwaited) = try withState(numbered: dataset) { held, state in
            let own = ownIDs
            let retention = Retention(
                isLive: state?.recordsID == dataset || held.datasetNumbers.isRetiring(dataset),
                historyVersions: isSystem ? 0 : options.historyVersions, agedBefore: agedBefore,
                dirtiness: state?.dirtiness(ownIDs: own)
                    ?? Dirtiness(ownIDs: own, acknowledged: VersionVector()),
                tombstones: isSystem
                    ? TombstoneRule(isSolitary: true)
                    : state.map { held.tombstoneRule(for: $0) } ?? .keepAll)
            return (retention, state?.name, state?.peers.isEmpty == false)
        }
        guard let name, !kept.tombstones.isSolitary else { return kept }
        var retention = kept
        if try keepsAnything(of: name, in: .quarantine) {
            // Of a key to which a write is held, a tombstone says whether that still counts.
            retention.tombstones = .keepAll
        } else if !isAwaited, try keepsAnything(of: name, in: .scopes) {
            // Who keeps a part tells nobody what is forgotten here. So that no peer is waited for
            // is not enough: one must have a deletion before it goes.
            retention.tombstones.passed = nil
            retention.tombstones.isAllPassed = false
        }
        return retention
    }

    /// Whether one of the store's own datasets has anything about a dataset: that a write to it is
    /// held because of its date, that only a part of it is kept. One look.
    private func keepsAnything(
        of name: String, in system: SystemDataset
    ) throws(StoreError) -> Bool {
        // Most stores have neither.
        guard try withState(numbered: system.number, { $1 != nil }) else { return false }
        var steps = try ScanSteps(
            momentAsStored(), dataset: system.number,
            range: .prefix(SystemDataset.prefix(of: name)), order: .forward,
            includingDeleted: false)
        return try steps.next { _, _ in true } ?? false
    }

    /// While a log is sealed nothing can be noted in another, so what must be noted before it is
    /// forgotten stays until a merge.
    func retentionInSealing(of dataset: DatasetID) throws(StoreError) -> Retention {
        var retention = try retention(of: dataset)
        if !retention.tombstones.isSolitary { retention.tombstones = .keepAll }
        return retention
    }
}

extension EngineState {
    fileprivate func tombstoneRule(for state: DatasetState) -> TombstoneRule {
        guard !options.make(.collectTombstonesEarly) else {
            return TombstoneRule(isSolitary: true)
        }
        // What a tombstone was written over it does not say while that is in doubt.
        guard doubtedIDs(in: state).isEmpty else { return .keepAll }
        var rule = TombstoneRule()
        // What was written under a former id others may have, though a backup from which this store
        // came knows nothing of them.
        rule.isSolitary =
            state.peers.isEmpty && state.retired.isEmpty && state.outstanding.isEmpty
            && state.vector.dots.allSatisfy { $0.replica == replicaID }
        rule.seen = state.vector
        rule.passed = state.seenByAllPeers
        rule.isAllPassed =
            state.outstanding.isEmpty && rule.passed?.covers(state.vector) ?? false
        let now = storage.wallClockMilliseconds()
        let age = options.tombstoneAge.millisecondsClamped
        rule.agedBefore = now > age ? now - age : 0
        rule.latestBelieved = latestBelieved
        return rule
    }
}

extension Engine {
    /// Notes, durably, of which deletions nothing will be left, before their tombstones go: so that
    /// whoever lacks one of them is known for it from then on.
    func noteForgotten(_ forgotten: [DatasetID: ForgottenDeletions]) throws(StoreError) {
        guard !forgotten.isEmpty else { return }
        for (id, deletions) in forgotten.sorted(by: { $0.key < $1.key }) {
            var name = withLock { held in held.catalog.state(numbered: id)?.name }
            if name == nil { name = try records.name(ofNumber: id) }
            guard let name, let state = try existingState(named: name) else { continue }
            _ = try commitBlock(.memory) { held in
                StateItem.forgotten(deletions, name: name).byteCount
            } write: { (held, block, _) throws(StoreError) -> Void? in
                guard state.recordsID == id else { return nil }
                held.note(deletions, in: state, &block)
                return ()
            }
        }
        try syncAll()
    }
}

extension EngineState {
    func note(
        _ forgotten: ForgottenDeletions, in state: DatasetState, _ block: inout LogBlockWriter
    ) {
        // One clock that is years ahead would date what outlives on all replicas.
        let forgotten = forgotten.believed(until: latestBelieved)
        guard !state.forgotten.covers(forgotten) else { return }
        block.append(.forgotten(forgotten, name: state.name))
        see(forgotten.time)
        state.forget(forgotten)
        // No change that another peer need be told of.
        catalog.touch(state)
    }
}
