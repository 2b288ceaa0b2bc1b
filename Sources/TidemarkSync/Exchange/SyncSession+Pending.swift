import Tidemark

// Conflicts that nobody settles: what is told of them, and how they come up again. Where they wait,
// and what keeps the other side's version from being lost, says `PendingBook`.

extension SyncSession {
    /// Whether conflicts wait while ids are in doubt. These stay so until all that lies under them
    /// was settled, and no position moves before.
    func waitsInDoubt() throws(SyncError) -> Bool {
        guard !doubts.isEmpty else { return false }
        return try engine(dataset.name) { () throws(StoreError) -> Bool in
            var waits = false
            try PendingBook.forEach(in: dataset) { (_) throws(StoreError) in
                waits = true
                return false
            }
            return waits
        }
    }

    func holdsBackVectors() throws(SyncError) -> Bool {
        try engine(dataset.name) { () throws(StoreError) in try dataset.holdsBackVectors() }
    }

    private func openBook() throws(SyncError) -> PendingBook {
        try engine(dataset.name) { () throws(StoreError) in try PendingBook(dataset) }
    }

    /// At the beginning of a pull, which finds everything that waits anew.
    func forgetPending() {
        waiting.first = nil
        result.forgetPending()
    }

    /// Notes that put conflicts into the book.
    ///
    /// - Returns: nil if they cannot wait there: it is full, or versions are in doubt, all of
    ///   which are to be compared in one exchange.
    func notesToWait(
        _ pending: [(conflict: Conflict, reason: PendingConflict.Reason)]
    ) throws(SyncError) -> [SystemNote]? {
        guard !pending.isEmpty else { return [] }
        guard doubts.isEmpty else { return nil }
        return try engine(dataset.name) { () throws(StoreError) in
            try PendingBook(dataset).notes(adding: pending, from: peer)
        }
    }

    /// Tells of a conflict that waits, once in the exchange.
    func tellWaiting(_ conflict: Conflict) {
        guard waiting.told.insert(conflict.remote.version.dot).inserted else { return }
        options.onPending?(conflict)
    }

    /// Takes note of a conflict that waits and is in the way of the push.
    func noteWaiting(_ key: [UInt8], _ reason: PendingConflict.Reason) {
        result.noteWaiting(key)
        if waiting.first == nil { waiting.first = (key, reason) }
    }

    // MARK: - After a pull

    /// Looks once more at what was refused here or waits, beside all that has come, and claims to
    /// have seen what the peer has if nothing of that is left.
    ///
    /// - Parameter hasAll: whether all has come that the peer has.
    /// - Returns: `pullAgain` if positions and vectors did not move because of what is gone now.
    /// - Throws: `conflictPending` if a conflict with the peer waits.
    func settle(hasAll: Bool) async throws(SyncError) -> ExchangeMachine.Event {
        // Who takes what a part has settles nothing of before.
        let isTakingOnly = part != nil && isOneWay
        if try !isTakingOnly ? holdsBackVectors() : false {
            if hasAll { try await reviewIncoming() }
            try await reviewPending()
            if hasAll, part == nil { try await claimIfNothingWaits() }
        }
        try await checkPending()
        guard hasAll else { return .done }
        guard part == nil else {
            try await noteAllIsTold()
            return .done
        }
        if waiting.isFrozen, !isOneWay {
            positions.pull = .zero
            return .pullAgain
        }
        if late.judgesPeer, !late.leavesDead { late.judged = (late.judging, positions.pull) }
        // All that the peer has of them is here now. Of the peer's own the push is to say so.
        doubts.ours = []
        doubts.confirmed = []
        return .done
    }

    private func claimIfNothingWaits() async throws(SyncError) {
        let holdsBack = try holdsBackVectors()
        guard !waiting.isFrozen, !holdsBack, let remote else { return }
        try await apply(
            RecordPage(records: [], through: positions.pull, isLast: true, knowledge: remote))
    }

    /// Compares what waits with what is here now, and asks the policy again about what was not
    /// asked in this exchange: the versions, or the policy, may be others by now.
    func reviewPending() async throws(SyncError) {
        guard try holdsBackVectors() else { return }
        // What came with the pages may have superseded what is certain without asking anybody.
        if !doubts.isEmpty { try forgetSuperseded() }
        let book = try openBook()
        var left = book.entries
        while !left.isEmpty {
            guard !Task.isCancelled else { throw .cancelled(dataset: dataset.name) }
            let round = nextRound(of: &left)
            var waiting: [Dot: PendingConflict.Reason] = [:]
            try await untilUnmoved { (settlement) async throws(SyncError) in
                let plan = try await self.review(round, in: book, &settlement)
                waiting = [:]
                for (conflict, reason) in plan.pending {
                    waiting[conflict.remote.version.dot] = reason
                }
                return plan
            }
            // What waits for another peer is not in the way of this exchange.
            for entry in round where entry.peer == peer {
                guard let reason = waiting[entry.version.dot] else { continue }
                noteWaiting(entry.key, reason)
            }
        }
    }

    /// As the book does, where neither side disputes an id.
    func forgetSuperseded() throws(SyncError) {
        try engine(dataset.name) { () throws(StoreError) in
            try PendingBook.forgetSuperseded(in: dataset, disputed: doubts.ids)
        }
    }

    /// Takes out what is reviewed in one batch: about as much as a page has, and of each key one
    /// version, since the outcome of the first is what the next one meets.
    private func nextRound(of left: inout [PendingBook.Entry]) -> [PendingBook.Entry] {
        var round: [PendingBook.Entry] = []
        var later: [PendingBook.Entry] = []
        var keys: Set<[UInt8]> = []
        var bytes = 0
        for entry in left {
            let hasRoom =
                round.isEmpty
                || round.count < options.pageRecordsMax
                    && bytes + entry.byteCount <= options.pageBytesMax
            if hasRoom, keys.insert(entry.key).inserted {
                round.append(entry)
                bytes += entry.byteCount
            } else {
                later.append(entry)
            }
        }
        left = later
        return round
    }

    private func review(
        _ entries: [PendingBook.Entry], in book: PendingBook,
        _ settlement: inout ConflictSettlement
    ) async throws(SyncError) -> PullPlan {
        var plan = PullPlan()
        var batch = ReplicationBatch()
        var settled: [PendingBook.Entry] = []
        var notes: [SystemNote] = []
        for entry in entries {
            let remote = try engine(dataset.name) { () throws(StoreError) in
                try book.remote(of: entry)
            }
            // Somebody settled it since the book was opened.
            guard let remote else { continue }
            if waiting.told.contains(entry.version.dot), let conflict = try conflict(with: remote) {
                plan.pending.append((conflict, entry.reason))
                continue
            }
            let count = plan.pending.count
            try await compare(
                !doubts.isEmpty ? withoutPlace(remote) : remote, isKnown: true, isLeftOver: true,
                to: &plan, &batch, &settlement)
            guard plan.pending.count > count else {
                settled.append(entry)
                continue
            }
            let reason = plan.pending[count].reason
            guard reason != entry.reason else { continue }
            notes.append(
                try engine(dataset.name) { () throws(StoreError) in
                    try book.note(remote, of: entry, waitingBecause: reason)
                })
        }
        notes += try self.notes(on: plan.settled)
        notes += try engine(dataset.name) { () throws(StoreError) in
            try book.notes(removing: settled)
        }
        // Behind those that hold what was to be compared.
        batch.notes += notes
        // What waits says nothing of what the peer has now.
        plan.confirmed = []
        plan.batch = batch.writes.isEmpty && batch.notes.isEmpty ? nil : batch
        return plan
    }

    /// A version that waits, as one of which no checkpoint says whether the peer had it: its place
    /// in an order of change is that of whoever had it then.
    private func withoutPlace(_ waiting: Record) -> Record {
        Record(
            key: waiting.key, value: waiting.value, version: waiting.version,
            syncCount: SyncCount(rawValue: .max), isDirty: false, expiresAt: waiting.expiresAt)
    }

    /// The conflict that a version still makes with what is here; nil if it makes none.
    private func conflict(with remote: Record) throws(SyncError) -> Conflict? {
        try engine(dataset.name) { () throws(StoreError) -> Conflict? in
            let knowledge = try dataset.knowledge()
            guard let local = try dataset.storedRecord(for: remote.key) else { return nil }
            let comparison = Comparison(
                local: local, incoming: remote, seen: knowledge.vector,
                wiped: knowledge.lifecycle.wiped)
            guard case .conflict = comparison else { return nil }
            return Conflict(
                dataset: dataset.name, key: remote.key, ancestry: .notKept, local: local,
                remote: remote)
        }
    }

    /// Nothing is pushed as long as a conflict with the peer waits. It is told how far we have
    /// come, or the next exchange would begin where this one did.
    func checkPending() async throws(SyncError) {
        if waiting.isFrozen, waiting.first == nil, let entry = try openBook().entries.first {
            // Ids are in doubt, and stay so until what waits is settled.
            noteWaiting(entry.key, entry.reason)
        }
        guard let first = waiting.first else { return }
        options.observer?(.conflictsPending(dataset: dataset.name, keys: result.pending))
        if !waiting.isFrozen { try await acknowledge() }
        throw .unsettled(first.key, first.reason)
    }

    /// The error to end with if all of these keys wait here: then the peer's conflicts are none
    /// that another pull would bring.
    func firstWaiting(of keys: [[UInt8]]) throws(SyncError) -> SyncError? {
        guard !keys.isEmpty, keys.count < SyncLimits.conflictKeysMax, try holdsBackVectors()
        else { return nil }
        let waiting = try openBook().entries
        let found = keys.map { key in waiting.first { $0.key == key } }
        guard let first = found.first ?? nil, found.allSatisfy({ $0 != nil }) else { return nil }
        return .unsettled(first.key, first.reason)
    }
}
