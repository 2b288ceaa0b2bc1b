import Tidemark

// Pages whose conflicts need nobody's word are compared and applied by the store as they lie in
// the message, under one lock and without making records. Everything else takes the general way,
// record by record: a page with a conflict that another policy than the last writer is to settle,
// what comes after a conflict that was left to the application, and an exchange after a store went
// back in time or was copied, in which versions are doubted.

extension SyncSession {
    /// What becomes of conflicts where no record must be made for it.
    private var mergeRule: MergeRule {
        if case .lastWriterWins = policy { .lastWriterWins } else { .refuse }
    }

    /// Applies a page with the checkpoint behind it.
    ///
    /// - Returns: false if it must be applied record by record; then nothing has changed.
    func mergeAtOnce(_ page: RecordPage) throws(SyncError) -> Bool {
        guard doubted.isEmpty, peerDisputed.isEmpty, firstPending == nil,
            !options.comparesOneByOne, !has(.checkpointApartFromRecords),
            let arrived = page.arrived
        else { return false }
        let joinsVector =
            (page.isLast || has(.joinVectorWithFirstPage)) && !has(.skipVectorJoin)
        let outcome = try engine(dataset.name) { () throws(StoreError) -> MergeOutcome in
            var end = MergeEnd(
                peer: peer, through: page.through, vector: page.knowledge.vector,
                isLast: joinsVector)
            end.notes = try BatonBook(dataset).notes(
                taking: page.knowledge.batons, settling: [])
            return try dataset.merge(arrived, by: mergeRule, then: end)
        }
        guard outcome.isApplied else { return false }
        result.pulled += outcome.replaced + outcome.conflicts.count
        let settled = outcome.conflicts.map { conflict in
            SyncResult.Settlement(
                key: arrived.key(at: conflict.index),
                decision: conflict.staysRemote ? .remote : .local)
        }
        for settlement in settled { result.note(settlement) }
        tellMerged(arrived, outcome, settled)
        return true
    }
}

extension SyncResponder {
    /// Applies a pushed page with the checkpoint behind it; conflicts are left for the asker.
    ///
    /// - Returns: nil if it must be applied record by record; then nothing has changed.
    func mergeAtOnce(
        _ request: PushRequest, _ dataset: Dataset
    ) throws(SyncError) -> Plan? {
        guard !comparesOneByOne, !has(.applyConflictUnasked), let arrived = request.page.arrived
        else { return nil }
        let joinsVector =
            (request.page.isLast || has(.joinVectorWithFirstPage)) && !has(.skipVectorJoin)
        return try engine(dataset.name) { () throws(StoreError) -> Plan? in
            let book = try BatonBook(dataset)
            guard book.disputed.isEmpty else { return nil }
            // Before the page is applied: if it changes meanwhile, the plan claims less.
            let lifecycle = try dataset.knowledge().lifecycle
            var end = MergeEnd(
                peer: request.address.from, through: request.page.through,
                vector: request.page.knowledge.vector, isLast: joinsVector,
                acknowledged: request.acknowledged)
            end.notes = try book.notes(taking: request.page.knowledge.batons, settling: [])
            let outcome = try dataset.merge(arrived, by: .leave, then: end)
            var plan = Plan(syncCount: outcome.syncCountBefore, lifecycle: lifecycle)
            plan.stored = outcome.stored
            plan.outcome = .accepted(changed: outcome.stored)
            if !outcome.conflicts.isEmpty {
                let keys = outcome.conflicts.prefix(SyncLimits.conflictKeysMax).map {
                    arrived.key(at: $0.index)
                }
                plan.outcome = .conflicts(keys: keys, changed: outcome.stored)
            }
            return plan
        }
    }
}
