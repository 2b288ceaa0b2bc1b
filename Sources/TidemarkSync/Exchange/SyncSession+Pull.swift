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
                    bytesMax: options.pageBytesMax, vector: trusted(try dataset.vector),
                    batons: try BatonBook(dataset).batons, disputed: peerDisputed.sorted())
            }
            let page = try await counted { connection, traffic throws(SyncError) in
                try await connection.pull(request, &traffic)
            }.page
            if try noteFork(page.knowledge) { throw .forked }
            try await settleLifecycle(page.knowledge.lifecycle)
            try rewriteDoubtful(before: page)
            try await apply(page)
            remote = page.knowledge
            pullPosition = page.through
            isLast = page.isLast
            report(.pulling, records: page.recordCount)
        }
        try checkPending()
        // All that the peer has of them is here now. Of the peer's own the push is to say so.
        doubted = []
        confirmedKeys = []
        return true
    }

    /// Nothing is pushed, and nothing more is asked for, as long as a conflict waits.
    func checkPending() throws(SyncError) {
        guard let firstPending else { return }
        throw .unsettled(firstPending, "the merge policy leaves it to the application")
    }

    /// Applies a page as a whole together with the checkpoint behind it, or leaves everything as
    /// it was and throws. Repeats the comparison if a record was written meanwhile.
    func apply(_ page: RecordPage) async throws(SyncError) {
        if try mergeAtOnce(page) { return }
        var settlement = ConflictSettlement(dataset: dataset, policy: policy)
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            let plan = try await plan(page, &settlement)
            let moved = try engine(dataset.name) { () throws(StoreError) in
                try plan.batch.map { batch throws(StoreError) in
                    try replicate(batch)
                } ?? []
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
        /// Of a fork: keys of which what is here stays as it is, because the peer has it, too, or
        /// because the application is to settle it.
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
            if !knowledge.lifecycle.wiped.covers(record.version.vector),
                let verdict = verdict(on: record, beside: local)
            {
                try await add(verdict, record, local, comparison, to: &plan, &batch, &settlement)
                continue
            }
            switch comparison {
            case .conflict:
                guard let local else { continue }
                let answer = try await settlement.settle(
                    local: local, remote: record, mustRewrite: false)
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
            batch.notes = try engine(dataset.name) { () throws(StoreError) in
                try BatonBook(dataset).notes(taking: page.knowledge.batons, settling: [])
            }
            plan.batch = batch.writes.isEmpty && batch.notes.isEmpty ? nil : batch
            return plan
        }
        plan.batch = try completed(batch, page)
        return plan
    }

    /// What a fork comes to for one record.
    private func add(
        _ verdict: ForkVerdict, _ incoming: Record, _ local: Record?, _ comparison: Comparison,
        to plan: inout Plan, _ batch: inout ReplicationBatch,
        _ settlement: inout ConflictSettlement
    ) async throws(SyncError) {
        switch (verdict, local) {
        case (.confirmed, _):
            plan.confirmed.append(incoming.key)
        case (.rewrite(let record, let seen), _):
            batch.writes.append(
                ReplicatedWrite(
                    key: incoming.key,
                    content: .rewrite(
                        value: record.value, of: record.version, seen: seen, keepsTime: true,
                        expiresAt: record.expiresAt), expected: local?.version))
            plan.pulled += record == local ? 0 : 1
        case (.settle(let seen), .some(let local)):
            let answer = try await settlement.settle(
                local: local, remote: incoming, mustRewrite: true)
            switch answer {
            case .settled(let outcome):
                batch.writes += forkWrites(outcome, incoming, seen: seen)
                plan.settled.append(outcome)
                plan.pulled += 1
            case .pending(let conflict):
                plan.pending.append(conflict)
                plan.confirmed.append(incoming.key)
            }
        case (.superseded, _), (.settle, .none):
            guard case .adopt(let value, let version, let expiresAt) = comparison else { return }
            batch.writes.append(
                ReplicatedWrite(
                    key: incoming.key,
                    content: .adopt(value: value, version: version, expiresAt: expiresAt),
                    expected: local?.version))
            plan.pulled += 1
        }
    }

    /// What a settlement comes to where one of the two versions has a dot that may name two
    /// writes: its last write, which says how it was settled, descends from just what is given.
    private func forkWrites(
        _ outcome: ConflictSettlement.Outcome, _ incoming: Record, seen: VersionVector
    ) -> [ReplicatedWrite] {
        guard let last = outcome.writes.last else { return [] }
        let settled = ReplicatedWrite(
            key: last.key,
            content: .rewrite(
                value: last.value, of: incoming.version, seen: seen, keepsTime: false,
                expiresAt: last.expiresAt), expected: last.expected)
        // A doubtful version of the peer's takes no place in the history here.
        if peerDisputed.contains(incoming.version.dot.replica) { return [settled] }
        return outcome.writes.dropLast() + [settled]
    }

    /// Adds the checkpoint and, with the last page, the peer's vector.
    private func completed(
        _ batch: ReplicationBatch, _ page: RecordPage
    ) throws(SyncError) -> ReplicationBatch? {
        let (knowledge, stored, notes) = try engine(dataset.name) { () throws(StoreError) in
            (
                try dataset.knowledge(), try dataset.checkpoint(for: peer),
                try BatonBook(dataset).notes(
                    taking: page.knowledge.batons, settling: page.isLast ? doubted.sorted() : [])
            )
        }
        // What the peer claims to have seen under an id that is disputed is not here.
        let theirs = trusted(page.knowledge.vector)
        var checkpoint = stored
        checkpoint.pulledThrough = page.through
        // Until all of it is settled, what the peer has under a doubted id may be other writes.
        checkpoint.vector.formUnion(
            page.isLast ? theirs : doubted.reduce(theirs) { $0.removing($1) })
        // An exchange that brings nothing leaves no trace: two idle replicas stay idle.
        let isNews =
            !batch.writes.isEmpty || checkpoint != stored || !notes.isEmpty
            || !knowledge.vector.covers(theirs)
        guard isNews else { return nil }
        var batch = batch
        batch.checkpoint = (peer, checkpoint)
        batch.notes = notes
        if page.isLast || has(.joinVectorWithFirstPage), !has(.skipVectorJoin) {
            batch.seen = theirs
        }
        if page.isLast {
            batch.disowned = doubted.sorted()
            batch.isSettled = true
        }
        return batch
    }
}
