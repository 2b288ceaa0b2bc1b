import Tidemark

extension SyncSession {
    /// Takes everything from the peer that is not known here, page by page.
    ///
    /// - Returns: false if there is more, and as many records have come as may come at a time.
    func pull() async throws(SyncError) -> Bool {
        waiting.isFrozen = false
        forgetPending()
        // What has been superseded since it began to wait holds up no dispute.
        if !doubts.isEmpty { try forgetSuperseded() }
        var isLast = false
        while !isLast {
            guard tally.recordsLeft > 0 else { return false }
            let request = try engine(dataset.name) { () throws(StoreError) in
                PullRequest(
                    address: address, since: positions.pull,
                    recordsMax: try dataset.recordsPerPage(
                        atMost: min(options.pageRecordsMax, tally.recordsLeft)),
                    bytesMax: options.pageBytesMax, vector: doubts.trusted(try dataset.vector),
                    batons: try BatonBook(dataset).batons, disputed: doubts.theirs.sorted(),
                    isAfresh: late.judgesPeer)
            }
            let page = try await counted { connection, traffic throws(SyncError) in
                try await connection.pull(request, &traffic)
            }.page
            if try noteFork(page.knowledge) { throw .forked }
            try await settleLifecycle(page.knowledge.lifecycle)
            try rewriteDoubtful(before: page)
            if page.isLast { try await settleWrittenMeanwhile() }
            sweepNotes = try notesEndingSweep(at: page.through)
            defer { sweepNotes = [] }
            try await apply(page)
            remote = page.knowledge
            positions.pull = page.through
            isLast = page.isLast
            report(.pulling, records: page.recordCount)
        }
        return true
    }

    /// Applies a page as a whole together with the checkpoint behind it, or leaves everything as
    /// it was and throws. Repeats the comparison if a record was written meanwhile.
    func apply(_ page: RecordPage) async throws(SyncError) {
        if try mergeAtOnce(page) { return }
        try await untilUnmoved { (settlement) async throws(SyncError) in
            try await self.plan(page, &settlement)
        }
    }

    /// Plans what is to be stored and stores it, until nothing was written in between.
    func untilUnmoved(
        _ makePlan: (inout ConflictSettlement) async throws(SyncError) -> PullPlan
    ) async throws(SyncError) {
        var settlement = ConflictSettlement(
            dataset: dataset, policy: policy, looksForAncestors: keepsConflicts)
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            var plan = try await makePlan(&settlement)
            if let writes = plan.batch?.writes, !writes.isEmpty {
                plan.batch?.notes += try engine(dataset.name) { () throws(StoreError) in
                    try arrivalNotes()
                }
            }
            try checkIsWhole()
            let moved = try engine(dataset.name) { () throws(StoreError) in
                try plan.batch.map { batch throws(StoreError) in
                    try replicate(batch.claimingNothingHeld(in: dataset))
                } ?? []
            }
            if moved.isEmpty {
                noteApplied(plan)
                if !plan.withholdsDead { try await bury(plan.dead) }
                return
            }
        }
        throw SyncError(
            .contended,
            "records were written here faster than they could be merged; repeat the exchange")
    }

    /// An exchange that began when the dataset was kept whole ends where only a part of it is kept:
    /// another one may have gone by that part meanwhile, and nobody would look at what comes now.
    func checkIsWhole() throws(SyncError) {
        guard part == nil else { return }
        let isPart = try engine(dataset.name) { () throws(StoreError) in
            try PartBook.isPart(dataset)
        }
        guard !isPart else { throw .scopeChanged }
    }

    private func noteApplied(_ plan: PullPlan) {
        result.pulled += plan.pulled
        for (outcome, _) in plan.settled {
            result.note(outcome.settlement)
            if let report = outcome.report { result.note(report) }
        }
        for (conflict, reason) in plan.pending {
            tellWaiting(conflict)
            if plan.isUnbooked { noteWaiting(conflict.key, reason) }
        }
        tellHeld(plan.held.map(\.key))
        noteFailed(plan.refused.map { (key: $0.record.key, error: $0.error) })
        waiting.isFrozen = waiting.isFrozen || plan.freezes
        late.leavesDead = late.leavesDead || plan.withholdsDead
        doubts.confirmed.formUnion(plan.confirmed)
        tellApplied(plan.batch, plan.settled.map { $0.outcome.settlement })
    }

    private func plan(
        _ page: RecordPage, _ settlement: inout ConflictSettlement
    ) async throws(SyncError) -> PullPlan {
        var plan = PullPlan()
        var batch = ReplicationBatch()
        batch.meeting = meeting(page)
        let records = page.records
        for record in records {
            try await compare(record, to: &plan, &batch, &settlement)
        }
        if !plan.dead.isEmpty { plan.withholdsDead = try waitsForMoved() }
        batch.notes += try notes(on: plan.settled)
        let toWait = try notesToWait(plan.pending)
        if let toWait { batch.notes += toWait }
        batch.notes += try notes(onRefused: plan.refused)
        batch.notes += try notes(onTaken: records, plan)
        let holdsBack =
            try holdsBackVectors() || !plan.pending.isEmpty || !plan.refused.isEmpty
        // What lies here under a doubted id is good only when all conflicts of it are settled.
        guard !waiting.isFrozen, toWait != nil, try !waitsInDoubt() else {
            // No position and no vector may claim a record that was not taken in: the next
            // exchange begins where this one did. Those that were stand for themselves.
            batch.notes += try engine(dataset.name) { () throws(StoreError) -> [SystemNote] in
                try BatonBook(dataset).notes(taking: page.knowledge.batons, settling: [])
            }
            plan.freezes = true
            plan.isUnbooked = toWait == nil
            plan.batch = batch.writes.isEmpty && batch.notes.isEmpty ? nil : batch
            return plan
        }
        plan.batch = try completed(batch, page, plan.held, holdsBack: holdsBack)
        return plan
    }

    /// What becomes of one record.
    ///
    /// - Parameters:
    ///   - isKnown: whether it came before, and was not refused.
    ///   - isLeftOver: whether it was left out or has waited since an earlier exchange, so that
    ///     deletions may have been forgotten that it would have had to meet.
    ///   - isInConflict: whether the peer says that it is in conflict with what is here, so that it
    ///     has not lost to that, whatever was seen.
    func compare(
        _ record: Record, isKnown: Bool = false, isLeftOver: Bool = false,
        isInConflict: Bool = false, to plan: inout PullPlan,
        _ batch: inout ReplicationBatch, _ settlement: inout ConflictSettlement
    ) async throws(SyncError) {
        let (local, knowledge) = try engine(dataset.name) { () throws(StoreError) in
            (
                try dataset.storedRecord(for: record.key),
                try dataset.knowledge()
            )
        }
        var circumstances = Circumstances(
            seen: doubts.trusted(knowledge.vector), wiped: knowledge.lifecycle.wiped)
        if isInConflict, local != nil { circumstances.seen = VersionVector() }
        circumstances.side = .asking(doubts)
        circumstances.isAhead = isHolding && dataset.holds(record, beside: local, knowledge)
        if late.judgesPeer || (isLeftOver && !knowledge.forgotten.isEmpty) {
            circumstances.unmet = try unmet(by: record, beside: local, knowledge)
        }
        let verdict = Verdict(on: record, beside: local, circumstances)
        if case .dead = verdict.outcome {
            if !isKnown { plan.dead.append(record) }
            return
        }
        if verdict.isNews, !isKnown, let error = try await refusal(of: record) {
            plan.refused.append((record, error))
            // It is compared with nothing.
            if let renewal = renewal(of: local) { batch.writes.append(renewal) }
            return
        }
        var outcome = verdict.outcome
        if case .hold(let otherwise) = outcome {
            // What is too large to be kept apart is compared like any other.
            if try hold(record, in: &batch, &plan.held) { return }
            outcome = otherwise
        }
        try await carryOut(outcome, record, local, in: &plan, &batch, &settlement)
    }

    /// Adds to a plan what a record comes to.
    func carryOut(
        _ outcome: Verdict.Outcome, _ incoming: Record, _ local: Record?, in plan: inout PullPlan,
        _ batch: inout ReplicationBatch, _ settlement: inout ConflictSettlement
    ) async throws(SyncError) {
        switch outcome {
        case .ignore, .dead, .hold:
            return
        case .confirmed:
            plan.confirmed.append(incoming.key)
        case .adopt(let write, let isTheirs):
            batch.writes.append(write)
            plan.pulled += isTheirs ? 1 : 0
            confirm(incoming, storedBy: write, in: &plan)
        case .outlive(let write):
            batch.writes.append(write)
            plan.pulled += incoming.isDeleted ? 0 : 1
        case .renew(let write, let isTheirs):
            batch.writes.append(write)
            plan.pulled += isTheirs ? 1 : 0
        case .rebury(let write):
            batch.writes.append(write)
        case .settle(let seen):
            guard let local else { return }
            let answer = try await settlement.settle(
                local: local, remote: incoming, mustRewrite: seen != nil)
            switch answer {
            case .settled(let outcome):
                batch.writes +=
                    seen.map { forkWrites(outcome, incoming, seen: $0) } ?? outcome.writes
                plan.settled.append((outcome, batch.writes.count - 1))
                plan.pulled += 1
                if seen == nil, let last = outcome.writes.last {
                    confirm(incoming, storedBy: last, in: &plan)
                }
            case .pending(let conflict, let reason):
                plan.pending.append((conflict, reason))
                if seen != nil { plan.confirmed.append(incoming.key) }
            }
        }
    }

    /// Of what is stored under a doubted id the peer has that very write, if it has just told of
    /// it: then it is not to be written anew with the last page.
    private func confirm(
        _ incoming: Record, storedBy write: ReplicatedWrite, in plan: inout PullPlan
    ) {
        guard case .adopt(_, let version, _) = write.content,
            version.dot == incoming.version.dot, doubts.ours.contains(version.dot.replica)
        else { return }
        plan.confirmed.append(incoming.key)
    }

    /// What the journal keeps of conflicts that are settled in a batch.
    func notes(
        on settled: [(outcome: ConflictSettlement.Outcome, write: Int)]
    ) throws(SyncError) -> [SystemNote] {
        guard !settled.isEmpty, keepsConflicts, let settler = policy.settler else { return [] }
        let source = ConflictJournal.Source(policy: settler, peer: peer, exchange: number)
        return try engine(dataset.name) { () throws(StoreError) in
            try ConflictJournal(dataset, options.journal).notes(of: settled, by: source)
        }
    }

    /// What a settlement comes to where one of the two versions has a dot that may name two
    /// writes: its last write, which says how it was settled, descends from just what is given.
    func forkWrites(
        _ outcome: ConflictSettlement.Outcome, _ incoming: Record, seen: VersionVector
    ) -> [ReplicatedWrite] {
        guard let last = outcome.writes.last else { return [] }
        let settled = ReplicatedWrite(
            key: last.key,
            content: .rewrite(
                value: last.value, of: incoming.version, seen: seen, keepsTime: false,
                expiresAt: last.expiresAt), expected: last.expected)
        // A doubtful version of the peer's takes no place in the history here.
        if doubts.theirs.contains(incoming.version.dot.replica) { return [settled] }
        return outcome.writes.dropLast() + [settled]
    }

    /// Adds the checkpoint and, with the last page, the peer's vector.
    ///
    /// - Parameters:
    ///   - held: what of the page is.
    ///   - holdsBack: whether anything of what the vector speaks of is not taken in.
    private func completed(
        _ batch: ReplicationBatch, _ page: RecordPage, _ held: [HeldArrival], holdsBack: Bool
    ) throws(SyncError) -> ReplicationBatch? {
        let (knowledge, stored, notes) = try engine(dataset.name) { () throws(StoreError) in
            (
                try dataset.knowledge(), try dataset.checkpoint(for: peer),
                try BatonBook(dataset).notes(
                    taking: page.knowledge.batons,
                    settling: page.isLast ? doubts.ours.sorted() : [])
            )
        }
        // What the peer claims to have seen under an id that is disputed is not here.
        let theirs = doubts.trusted(page.knowledge.vector)
        var checkpoint = stored
        // While the peer disputes an id, what was settled here does not descend from what lies
        // there. If the push is lost and somebody else ends the dispute, that has to come again.
        if doubts.theirs.isEmpty { checkpoint.pulledThrough = page.through }
        // Until all of it is settled, what the peer has under a doubted id may be other writes.
        checkpoint.vector.formUnion(
            page.isLast ? theirs : doubts.ours.reduce(theirs) { $0.removing($1) })
        var batch = batch
        batch.notes += notes + sweepNotes
        // An exchange that brings nothing leaves no trace: two idle replicas stay idle.
        let isNews =
            !batch.writes.isEmpty || checkpoint != stored || !batch.notes.isEmpty
            || !(holdsBack || knowledge.vector.covers(theirs))
        guard isNews else { return nil }
        batch.checkpoint = (peer, checkpoint)
        if page.isLast, late.freshStart != nil {
            let known = try engine(dataset.name) { () throws(StoreError) in
                try QuarantineBook(dataset).unforgotten()
            }
            let unread = held.reduce(into: known) { unread, write in
                if !write.isDeleted { unread[write.key, default: []].append(write.dot) }
            }
            batch.outlivers = Outlivers(
                since: late.settled.through, forgotten: late.settled.forgotten, unread: unread)
        }
        if store.joinsVector(atEnd: page.isLast), !holdsBack { batch.seen = theirs }
        if page.isLast {
            batch.disowned = doubts.ours.sorted()
            // Without the peer's vector, what lies here under them counts as in the middle of an
            // exchange, or a write would not descend from what it replaces.
            batch.isSettled = !holdsBack
        }
        return batch
    }
}

/// A write of a page that is held.
typealias HeldArrival = (key: [UInt8], dot: Dot, isDeleted: Bool)

/// What a page comes to, as things stand.
struct PullPlan {
    /// nil if there is nothing to store.
    var batch: ReplicationBatch?
    var pulled = 0
    /// Each with the place of its last write in the batch.
    var settled: [(outcome: ConflictSettlement.Outcome, write: Int)] = []
    /// What waits.
    var pending: [(conflict: Conflict, reason: PendingConflict.Reason)] = []
    /// What is left out.
    var refused: [(record: Record, error: SyncError)] = []
    /// What is held because of its date.
    var held: [HeldArrival] = []
    /// Of a late peer: what was seen and deleted here.
    var dead: [Record] = []
    /// Whether the peer is not to hear of that yet.
    var withholdsDead = false
    /// Whether the exchange must begin here again next time.
    var freezes = false
    /// Whether what waits is not in the book.
    var isUnbooked = false
    /// Of a fork: keys of which what is here, or is stored now, stays as it is, because the peer
    /// has it, too, or because it waits.
    var confirmed: [[UInt8]] = []
}
