import Tidemark

extension SyncSession {
    /// Takes everything from the peer that is not known here, page by page.
    ///
    /// - Returns: false if there is more, and as many records have come as may come at a time.
    func pull() async throws(SyncError) -> Bool {
        firstPending = nil
        var isLast = false
        while !isLast {
            guard recordsLeft > 0 else {
                try checkPending()
                return false
            }
            let request = try engine(dataset.name) { () throws(StoreError) in
                PullRequest(
                    address: address, since: pullPosition,
                    recordsMax: try dataset.recordsPerPage(
                        atMost: min(options.pageRecordsMax, recordsLeft)),
                    bytesMax: options.pageBytesMax, vector: trusted(try dataset.vector))
            }
            let page = try await counted { connection, traffic throws(SyncError) in
                try await connection.pull(request, &traffic)
            }.page
            if try renewIfRolledBack(page.knowledge.vector) {
                throw SyncError(
                    .peerChanged, "this store took a new replica id; repeat the exchange")
            }
            try await settleLifecycle(page.knowledge.lifecycle)
            try rewriteDoubtful(before: page)
            try await apply(page)
            remote = page.knowledge
            pullPosition = page.through
            isLast = page.isLast
            report(.pulling, records: page.records.count)
        }
        try checkPending()
        // All that the peer has of them is here now.
        doubted = []
        confirmedKeys = []
        return true
    }

    /// Nothing is pushed, and nothing more is asked for, as long as a conflict waits.
    private func checkPending() throws(SyncError) {
        guard let firstPending else { return }
        throw .unsettled(firstPending, "the merge policy leaves it to the application")
    }

    /// Applies a page as a whole together with the checkpoint behind it, or leaves everything as
    /// it was and throws. Repeats the comparison if a record was written meanwhile.
    private func apply(_ page: RecordPage) async throws(SyncError) {
        var settlement = ConflictSettlement(dataset: dataset, policy: policy)
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            let plan = try await plan(page, &settlement)
            let moved = try engine(dataset.name) { () throws(StoreError) in
                try plan.batch.map { batch throws(StoreError) in try dataset.replicate(batch) }
                    ?? []
            }
            if moved.isEmpty {
                result.pulled += plan.pulled
                for outcome in plan.settled {
                    result.note(outcome.settlement)
                    if let report = outcome.report { result.note(report) }
                }
                for conflict in plan.pending {
                    options.onPending?(conflict)
                }
                firstPending = firstPending ?? plan.pending.first?.key
                confirmedKeys.formUnion(plan.confirmed)
                tellApplied(plan.batch, plan.settled.map(\.settlement))
                return
            }
        }
        throw SyncError(
            .contended,
            "records were written here faster than they could be merged; repeat the exchange")
    }

    /// What a page comes to, as things stand.
    private struct Plan {
        /// nil if there is nothing to store.
        var batch: ReplicationBatch?
        var pulled = 0
        var settled: [ConflictSettlement.Outcome] = []
        /// Left to the application.
        var pending: [Conflict] = []
        /// After a rollback: keys of which the peer has the write that is here.
        var confirmed: [[UInt8]] = []
    }

    private func plan(
        _ page: RecordPage, _ settlement: inout ConflictSettlement
    ) async throws(SyncError) -> Plan {
        var plan = Plan()
        var batch = ReplicationBatch()
        for record in page.records {
            let (local, knowledge) = try engine(dataset.name) { () throws(StoreError) in
                (
                    try dataset.storedRecord(for: record.key),
                    try dataset.knowledge()
                )
            }
            let comparison = Comparison(
                local: local, incoming: record, seen: trusted(knowledge.vector),
                wiped: knowledge.lifecycle.wiped)
            if isConfirmed(local, by: record) {
                plan.confirmed.append(record.key)
            }
            switch comparison {
            case .adopt where isDoubtful(local, beside: record), .conflict,
                _ where isJoined(local, with: record):
                guard let local else { continue }
                let answer = try await settlement.settle(
                    local: local, remote: record, mustRewrite: comparison != .conflict)
                switch answer {
                case .settled(let outcome):
                    batch.writes += outcome.writes
                    plan.settled.append(outcome)
                    plan.pulled += 1
                case .pending(let conflict):
                    plan.pending.append(conflict)
                }
            case .ignore:
                continue
            case .adopt(let value, let version, let expiresAt):
                batch.writes.append(
                    ReplicatedWrite(
                        key: record.key,
                        content: .adopt(value: value, version: version, expiresAt: expiresAt),
                        expected: local?.version))
                plan.pulled += version.dot == local?.version.dot ? 0 : 1
            }
        }
        guard firstPending == nil, plan.pending.isEmpty else {
            // No position and no vector may claim a record that was not taken in: the next
            // exchange begins where this one did. Those that were stand for themselves.
            plan.batch = batch.writes.isEmpty ? nil : batch
            return plan
        }
        plan.batch = try completed(batch, page)
        return plan
    }

    /// Adds the checkpoint and, with the last page, the peer's vector.
    private func completed(
        _ batch: ReplicationBatch, _ page: RecordPage
    ) throws(SyncError) -> ReplicationBatch? {
        let (knowledge, stored) = try engine(dataset.name) { () throws(StoreError) in
            (try dataset.knowledge(), try dataset.checkpoint(for: peer))
        }
        var checkpoint = stored
        checkpoint.pulledThrough = page.through
        checkpoint.vector.formUnion(page.knowledge.vector)
        // An exchange that brings nothing leaves no trace: two idle replicas stay idle.
        let isNews =
            !batch.writes.isEmpty || checkpoint != stored
            || !knowledge.vector.covers(page.knowledge.vector)
        guard isNews else { return nil }
        var batch = batch
        batch.checkpoint = (peer, checkpoint)
        if page.isLast {
            batch.seen = page.knowledge.vector
        }
        return batch
    }
}
