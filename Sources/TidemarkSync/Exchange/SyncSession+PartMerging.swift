import Tidemark

// How what a peer tells of a part is compared with what is here and applied. Records are compared
// by their own versions alone; see the invariants in `SyncSession+Part`.

/// What a peer tells, of a run of changes or of single keys.
struct PartNews {
    let records: [Record]
    let outside: [OutsideNotice]
    /// Keys of which the peer has nothing.
    var missing: [[UInt8]] = []
    /// The same of keys of which it does not take what is here.
    var refused: [[UInt8]] = []
    let knowledge: PeerKnowledge
    /// In the peer's order of change: everything up to here was told; nil if it is about keys.
    var through: SyncCount?
}

extension SyncSession {
    /// Applies it as a whole together with the checkpoint behind it, or leaves everything as it was
    /// and throws.
    func apply(_ news: PartNews) async throws(SyncError) {
        try check(news)
        try await joinUntold(news.outside)
        var settlement = ConflictSettlement(
            dataset: dataset, policy: policy, looksForAncestors: keepsConflicts)
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            guard let part,
                try engine(dataset.name, { () throws(StoreError) in try part.book.isCurrent() })
            else { throw .scopeChanged }
            let before = try syncCount()
            let plan = try await plan(news, &settlement)
            try noteLost(plan.lost, to: peer)
            try noteLost(plan.lostToNobody, to: .nobody)
            let (batch, noted) = try completed(plan, news)
            let moved = try engine(dataset.name) { () throws(StoreError) in
                try batch.map { batch throws(StoreError) in
                    // From when the dataset was kept whole, if the policy left it.
                    try dataset.replicate(batch.claimingNothingHeld(in: dataset))
                } ?? []
            }
            guard moved.isEmpty else { continue }
            if let noted {
                self.part?.stored = noted
                self.part?.progress = noted
            }
            let count = UInt64(plan.batch.writes.count + plan.batch.drops.count)
            try noteBrought(count, after: before)
            note(plan)
            return
        }
        throw .writtenTooFast
    }

    /// A peer that tells of what cannot belong to the scope has not understood it.
    private func check(_ news: PartNews) throws(SyncError) {
        guard news.through != nil, let part else { return }
        let scope = part.scope
        guard news.records.allSatisfy({ scope.verdict(onKey: $0.key) != false }),
            news.outside.allSatisfy({ scope.verdict(onKey: $0.key) != false })
        else {
            throw .badMessage("the peer tells of keys that were not asked for")
        }
    }

    /// If nothing else was written meanwhile, all of it came from the peer itself, and need not be
    /// asked for by key.
    private func noteBrought(_ count: UInt64, after before: SyncCount) throws(SyncError) {
        let now = try syncCount()
        guard now.rawValue == before.rawValue + count,
            part?.progress.checkedThrough == before
        else { return }
        part?.progress.checkedThrough = now
    }

    /// Asks for what the peer has in place of records that are about to go untold, so that these
    /// are joined with it and handed on before they go.
    private func joinUntold(_ notices: [OutsideNotice]) async throws(SyncError) {
        var items: [LookupRequest.Item] = []
        for notice in notices {
            guard let local = try stored(notice.key), local.version.dot != notice.dot,
                try isUntold(local, outrunBy: notice.version)
            else { continue }
            items.append(LookupRequest.Item(key: notice.key))
        }
        var rest = items[...]
        while !rest.isEmpty {
            try await lookUp(Array(rest.prefix(SyncLimits.lookupKeysMax)), in: nil)
            rest = rest.dropFirst(SyncLimits.lookupKeysMax)
        }
    }

    private func note(_ plan: PartPlan) {
        result.pulled += plan.pulled + plan.batch.drops.count
        for (outcome, _) in plan.settled {
            result.note(outcome.settlement)
            if let report = outcome.report { result.note(report) }
        }
        for (conflict, reason) in plan.pending {
            tellWaiting(conflict)
            noteWaiting(conflict.key, reason)
        }
        // It waits at the peer: no position may move past it.
        waiting.isFrozen = waiting.isFrozen || !plan.pending.isEmpty
        tellApplied(plan.batch, plan.settled.map { $0.outcome.settlement })
        guard !plan.batch.drops.isEmpty else { return }
        options.observer?(
            .localChanged(dataset: dataset.name, keys: plan.batch.drops.map(\.key)))
    }

    // MARK: - What it comes to

    private struct PartPlan {
        var batch = ReplicationBatch()
        var pulled = 0
        /// Each with the place of its last write in the batch.
        var settled: [(outcome: ConflictSettlement.Outcome, write: Int)] = []
        /// Left to the application.
        var pending: [(conflict: Conflict, reason: PendingConflict.Reason)] = []
        /// What the dropped records had seen that the peer has, too.
        var lost = VersionVector()
        /// What others had seen that were joined here with what the peer does not know.
        var lostToNobody = VersionVector()

        /// - Parameter peerHas: what the peer is known to have seen of the key.
        mutating func drop(_ record: Record, peerHas theirs: VersionVector) {
            let seen = record.version.vector
            batch.drops.append(LocalDrop(key: record.key, expected: record.version))
            if theirs.covers(seen) { lost.formUnion(seen) } else { lostToNobody.formUnion(seen) }
        }
    }

    private func plan(
        _ news: PartNews, _ settlement: inout ConflictSettlement
    ) async throws(SyncError) -> PartPlan {
        var plan = PartPlan()
        let theirs = doubts.trusted(news.knowledge.vector)
        for record in news.records {
            try await add(record, peerHas: theirs, to: &plan, &settlement)
        }
        for notice in news.outside {
            guard let local = try stored(notice.key), isOutrun(local, by: notice.version) else {
                continue
            }
            guard try isUntold(local, outrunBy: notice.version) else {
                plan.drop(local, peerHas: theirs.union(notice.version.vector))
                continue
            }
            // Joined with it already, it goes with the push; or it changed just now.
            if local.version.dot != notice.dot { throw .writtenTooFast }
        }
        let unsent = try engine(dataset.name) { () throws(StoreError) in try UnsentWrites(dataset) }
        for key in news.missing {
            // What the peer has seen and has no more was deleted there, and that forgotten.
            guard let local = try stored(key), !local.isDeleted, !unsent.contains(local),
                theirs.covers(local.version.vector)
            else { continue }
            plan.drop(local, peerHas: theirs)
        }
        for key in news.refused {
            // Also what is not known to have been handed over: the peer has it from somebody else.
            guard let local = try stored(key), !local.isDeleted,
                theirs.contains(local.version.dot)
            else { continue }
            plan.drop(local, peerHas: theirs)
        }
        return plan
    }

    private func stored(_ key: [UInt8]) throws(SyncError) -> Record? {
        try engine(dataset.name) { () throws(StoreError) in try dataset.storedRecord(for: key) }
    }

    /// Whether a record is to go, since the peer's version of it does not belong to the scope. If
    /// neither descends from the other, the push will find out.
    private func isOutrun(_ local: Record, by version: Version) -> Bool {
        guard !local.isDeleted, part?.record.action == .drop else { return false }
        switch version.relation(to: local.version) {
        case .same, .descendant: return true
        case .ancestor, .concurrent: return false
        }
    }

    /// Whether a record that is to go for a version of the peer has seen more than that one, of
    /// writes of this store that no peer is known to have: that they have lost would be told to
    /// nobody.
    private func isUntold(
        _ local: Record, outrunBy version: Version
    ) throws(SyncError) -> Bool {
        guard !version.vector.covers(local.version.vector), isOutrun(local, by: version) else {
            return false
        }
        return try engine(dataset.name) { () throws(StoreError) in
            try UnsentWrites(dataset).contains(local)
        }
    }

    private func add(
        _ record: Record, peerHas theirs: VersionVector, to plan: inout PartPlan,
        _ settlement: inout ConflictSettlement
    ) async throws(SyncError) {
        let local = try stored(record.key)
        let knowledge = try engine(dataset.name) { () throws(StoreError) in
            try dataset.knowledge()
        }
        // It may be dead, and only a peer that keeps everything can tell. If it is not, that one
        // tells of it.
        if isOneWay, knowledge.isNothing(local),
            knowledge.forgotten.vector.contains(record.version.dot)
        {
            return
        }
        var circumstances = Circumstances(
            seen: VersionVector(), wiped: knowledge.lifecycle.wiped)
        circumstances.side = .part
        let verdict = Verdict(on: record, beside: local, circumstances)
        if case .adopt = verdict.outcome, verdict.isNews, try isOutside(record, beside: local) {
            if let local, isOutrun(local, by: record.version) {
                plan.drop(local, peerHas: theirs.union(record.version.vector))
            }
            return
        }
        // A part has no place to leave a record out: no position may move past it.
        if verdict.isNews, let error = try await refusal(of: record) { throw error }
        switch verdict.outcome {
        case .ignore, .dead, .confirmed, .hold, .outlive:
            return
        // What is written anew is a write of this store, which the peer is to have, outside of the
        // scope, too.
        case .adopt(let write, let isTheirs), .renew(let write, let isTheirs):
            plan.batch.writes.append(write)
            plan.pulled += isTheirs ? 1 : 0
        case .rebury(let write):
            plan.batch.writes.append(write)
        case .settle:
            guard let local else { return }
            let answer = try await settlement.settle(
                local: local, remote: record, mustRewrite: false)
            switch answer {
            case .settled(let outcome):
                plan.batch.writes += outcome.writes
                plan.settled.append((outcome, plan.batch.writes.count - 1))
                plan.pulled += 1
            case .pending(let conflict, let reason):
                plan.pending.append((conflict, reason))
            }
        }
    }

    /// Whether a version that came because it was asked for by key, whatever it holds, does not
    /// belong here: it counts as if it had been told that it does not. One that is joined with what
    /// is here, and says something by that which no peer knows, is handed on first.
    private func isOutside(_ record: Record, beside local: Record?) throws(SyncError) -> Bool {
        guard let part, !part.scope.keeps(record) else { return false }
        guard let local, !local.isDropped else { return true }
        guard record.version.relation(to: local.version) != .concurrent else { return false }
        return try !isUntold(local, outrunBy: record.version)
    }

    /// Adds the checkpoint and what was noted of the peer.
    ///
    /// - Returns: nil for a batch if there is nothing to store; with it the progress that it notes.
    private func completed(
        _ plan: PartPlan, _ news: PartNews
    ) throws(SyncError) -> (batch: ReplicationBatch?, noted: PartProgress?) {
        guard let part else { throw .scopeChanged }
        var batch = plan.batch
        batch.notes = try notes(on: plan.settled)
        let stored = try engine(dataset.name) { () throws(StoreError) in
            if !batch.writes.isEmpty { batch.notes += try arrivalNotes() }
            batch.notes += try BatonBook(dataset).notes(
                taking: news.knowledge.batons, settling: [])
            return try dataset.checkpoint(for: peer)
        }
        var noted: PartProgress?
        // No position may claim a record that was not taken in.
        if let through = news.through, plan.pending.isEmpty, waiting.first == nil {
            var progress = part.progress
            if isOneWay {
                progress.takenThrough = through
            } else {
                let theirs = doubts.trusted(news.knowledge.vector)
                var checkpoint = stored
                checkpoint.pulledThrough = through
                checkpoint.vector.formUnion(theirs)
                if checkpoint != stored { batch.checkpoint = (peer, checkpoint) }
                if store.has(.claimVectorInPart) { batch.seen = theirs }
            }
            if progress != part.stored {
                batch.notes.append(part.book.note(progress, with: peer))
                noted = progress
            }
        }
        let isEmpty =
            batch.writes.isEmpty && batch.drops.isEmpty && batch.notes.isEmpty
            && batch.checkpoint == nil
        return (isEmpty ? nil : batch, noted)
    }
}

extension SyncError {
    fileprivate static let writtenTooFast = SyncError(
        .contended,
        "records were written here faster than they could be merged; repeat the exchange")
}
