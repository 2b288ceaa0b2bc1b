import Tidemark

// Pages whose conflicts need nobody's word are compared and applied by the store as they lie in
// the message, under one lock and without making records. Everything else takes the general way,
// record by record: a page with a conflict that another policy than the last writer is to settle or
// that the journal is to keep, what comes after a conflict that cannot wait here, and an exchange
// after a store went back in time or was copied, in which versions are doubted.

extension SyncSession {
    /// What becomes of conflicts where no record must be made for it.
    private var mergeRule: MergeRule {
        if case .lastWriterWins = policy, !keepsConflicts { .lastWriterWins } else { .refuse }
    }

    /// That this exchange makes a batch of changes, for that batch.
    ///
    /// - Parameter counts: of the batch, where the store does not stamp it.
    func arrivalNotes(
        counts: (after: SyncCount, through: SyncCount)? = nil
    ) throws(StoreError) -> [SystemNote] {
        guard options.journal.exchangesMax > 0 else { return [] }
        return try ArrivalLog(dataset, options.journal).notes(
            from: peer, .asked, exchange: number, counts: counts)
    }

    /// Applies a page with the checkpoint behind it.
    ///
    /// - Returns: false if it must be applied record by record; then nothing has changed.
    func mergeAtOnce(_ page: RecordPage) throws(SyncError) -> Bool {
        guard doubts.isEmpty, !waiting.isFrozen, !late.judgesPeer,
            late.freshStart == nil || !page.isLast,
            !options.comparesOneByOne, options.validate == nil, !store.mergesRecordByRecord,
            let arrived = page.arrived
        else { return false }
        // What may have to be held is looked at record by record.
        if isHolding, arrived.latestTime > store.latestBelieved { return false }
        try checkIsWhole()
        let holdsBack = try holdsBackVectors()
        let joinsVector = store.joinsVector(atEnd: page.isLast) && !holdsBack
        let outcome: MergeOutcome
        do throws(SyncError) {
            outcome = try engine(dataset.name) { () throws(StoreError) -> MergeOutcome in
                var end = MergeEnd(
                    peer: peer, through: page.through, vector: page.knowledge.vector,
                    isLast: joinsVector)
                if let told = page.told {
                    (end.told, end.ours) = (told, try dataset.vectorWithoutHeld())
                }
                end.notes =
                    try BatonBook(dataset).notes(
                        taking: page.knowledge.batons, settling: []) + sweepNotes
                if !arrived.items.isEmpty { end.traces = try arrivalNotes() }
                end.meeting = meeting(page)
                return try dataset.merge(arrived, by: mergeRule, then: end)
            }
        } catch {
            // A record that can be stored nowhere is found when each is looked at by itself.
            guard error.storeError?.code == .invalidArgument else { throw error }
            return false
        }
        guard outcome.isApplied else { return false }
        result.pulled += outcome.replaced + outcome.conflicts.count
        // Nobody is shown more of them than the result has room for, unless somebody observes.
        let shown = options.observer == nil ? result.settlementsLeft : .max
        let settled = outcome.conflicts.prefix(shown).map { conflict in
            SyncResult.Settlement(
                key: arrived.key(at: conflict.index),
                decision: conflict.staysRemote ? .remote : .local)
        }
        result.note(settled, of: outcome.conflicts.count)
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
        guard !comparesOneByOne, !store.mergesRecordByRecord, let arrived = request.page.arrived,
            arrived.latestTime <= store.latestBelieved
        else { return nil }
        let joinsVector = store.joinsVector(atEnd: request.page.isLast)
        return try engine(dataset.name) { () throws(StoreError) -> Plan? in
            let book = try BatonBook(dataset)
            guard book.disputed.isEmpty else { return nil }
            // What is to be given anew is found on the general way.
            let holdsBack = try dataset.holdsBackVectors()
            if holdsBack, try !FailedBook(dataset, .incoming).isEmpty { return nil }
            // Before the page is applied: if it changes meanwhile, the plan claims less.
            let lifecycle = try dataset.knowledge().lifecycle
            var end = MergeEnd(
                peer: request.address.from, through: request.page.through,
                vector: request.page.knowledge.vector, isLast: joinsVector,
                acknowledged: request.acknowledged)
            if holdsBack { end.isLast = false }
            end.notes = try book.notes(taking: request.page.knowledge.batons, settling: [])
            if !arrived.items.isEmpty {
                end.traces = try ArrivalLog(dataset, journal).notes(
                    from: request.address.from, .answered, exchange: nil)
            }
            end.meeting = meeting(request)
            let outcome = try dataset.merge(arrived, by: .leave, then: end)
            guard outcome.isApplied else { return nil }
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
