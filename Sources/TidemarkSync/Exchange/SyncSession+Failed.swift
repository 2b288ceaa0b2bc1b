import Tidemark

// Records that cannot be exchanged: they are left out, noted, and tried again when somebody asks
// for it. What keeps them from being lost says `FailedBook`.

extension SyncSession {
    func failures(
        _ direction: FailedRecord.Direction
    ) throws(SyncError) -> FailedBook {
        try engine(dataset.name) { () throws(StoreError) in
            try FailedBook(dataset, direction)
        }
    }

    /// Why a record of the peer is refused; nil if it is not.
    func refusal(of record: Record) async throws(SyncError) -> SyncError? {
        if let refusal = dataset.refusal(of: record) { return refusal }
        guard let validate = options.validate else { return nil }
        do {
            try await validate(record)
            return nil
        } catch {
            guard !Task.isCancelled, !(error is CancellationError) else {
                throw .cancelled(dataset: dataset.name)
            }
            return SyncError(
                .recordRefused, "the record was refused here with \"\(error)\"",
                dataset: dataset.name, key: record.key)
        }
    }

    /// Notes that put records of the peer into the book.
    ///
    /// - Throws: the refusal itself if there is no room.
    func notes(
        onRefused refused: [(record: Record, error: SyncError)]
    ) throws(SyncError) -> [SystemNote] {
        guard let first = refused.first, !store.has(.refusedUnnoted) else { return [] }
        let failures = refused.map {
            (key: $0.record.key, write: $0.record.version.dot, error: $0.error)
        }
        let notes = try engine(dataset.name) { () throws(StoreError) in
            try FailedBook(dataset, .incoming).notes(adding: failures, with: peer)
        }
        guard let notes else { throw first.error }
        return notes
    }

    /// Notes that take out of the book what failed before and was taken in now. While ids are in
    /// doubt all that the peer has comes again, and what a version has seen under such an id says
    /// nothing, so that nothing else would show it.
    func notes(
        onTaken records: [Record], _ plan: PullPlan
    ) throws(SyncError) -> [SystemNote] {
        guard !doubts.isEmpty else { return [] }
        let book = try failures(.incoming)
        var taken = Set(records.map(\.key))
        for (record, _) in plan.refused { taken.remove(record.key) }
        for (conflict, _) in plan.pending { taken.remove(conflict.key) }
        let ended = book.entries.filter { $0.peer == peer && taken.contains($0.key) }
        return try engine(dataset.name) { () throws(StoreError) in
            try book.notes(removing: ended)
        }
    }

    /// Whether the peer has a version that was refused here and whose dot may name another write,
    /// too. Then it may not take that id for settled: it would keep the version under this dot, and
    /// whoever has seen the other write would never take it.
    func hasRefusedDisputed() throws(SyncError) -> Bool {
        guard !doubts.theirs.isEmpty else { return false }
        return try failures(.incoming).entries.contains {
            $0.peer == peer && doubts.theirs.contains($0.write.replica)
        }
    }

    /// Takes note of records that failed in this exchange, after that is stored.
    func noteFailed(_ failures: [(key: [UInt8], error: SyncError)]) {
        guard let first = failures.first else { return }
        for (key, _) in failures { result.noteFailed(key) }
        if tally.firstFailure == nil { tally.firstFailure = first.error }
        options.observer?(.recordsFailed(dataset: dataset.name, keys: failures.map { $0.key }))
    }

    // MARK: - Incoming

    /// Asks for what is due by its keys, and lets go of what has been superseded, or was had by a
    /// peer that was given up. Any peer is asked: the one that had the version may be gone, or have
    /// another id.
    ///
    /// What a deletion of the dataset has seen is due with the peer that had it, also if it was
    /// given up: mostly the peer has it no more. It may, since a version that has won over another
    /// one lives on if the deletion had not seen that one. And a deletion that has not seen it, as
    /// one made here, leaves it there.
    func reviewIncoming() async throws(SyncError) {
        try engine(dataset.name) { () throws(StoreError) in
            try FailedBook.forgetSuperseded(in: dataset, disputed: doubts.ids, peer: peer)
        }
        let book = try failures(.incoming)
        guard !book.entries.isEmpty else { return }
        // What this peer has of them was refused after somebody asked to try again.
        let refused = Set(
            book.entries.filter { $0.peer == peer && $0.state != .due }.map(\.key))
        let wiped = try engine(dataset.name) { () throws(StoreError) in
            try dataset.knowledge().lifecycle.wiped
        }
        var due: [FailedRecord] = []
        for entry in book.entries where !isOneWay {
            if entry.state == .due {
                if !refused.contains(entry.key) { due.append(entry) }
            } else if entry.peer == peer, wiped.contains(entry.write) {
                due.append(entry)
            }
        }
        // Versions of several peers may be due of one key.
        var keys: Set<[UInt8]> = []
        try await take(due.map(\.key).filter { keys.insert($0).inserted }, due: due)
    }

    /// Takes the peer's versions of some keys, wherever they stand in its order of change.
    ///
    /// - Parameters:
    ///   - keys: each once.
    ///   - due: what is in the book of them, and goes from there unless it fails again. If it is
    ///     empty, a push met conflicts with them.
    private func take(_ keys: [[UInt8]], due: [FailedRecord]) async throws(SyncError) {
        var left = keys[...]
        while !left.isEmpty {
            let request = RecordsRequest(
                address: address, keys: Array(left.prefix(SyncLimits.fetchedKeysMax)),
                bytesMax: options.pageBytesMax, disputed: doubts.theirs.sorted())
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.records(request, &traffic)
            }
            let answered = Set(left.prefix(answer.answered))
            left = left.dropFirst(answer.answered)
            let entries = due.filter { answered.contains($0.key) }
            try await untilUnmoved { (settlement) async throws(SyncError) in
                try await self.plan(answer.page, for: entries, &settlement)
            }
        }
    }

    /// After a push met conflicts although all was pulled: takes the peer's versions by their keys.
    /// They were left out of what the peer pushed here, and the position is past them.
    ///
    /// - Returns: false if there are none to ask for: they were refused here, or were asked for
    ///   before in this attempt, so that the peer wrote meanwhile.
    /// - Throws: `conflictPending` if any of them waits now.
    func takeLeftOut(_ keys: [[UInt8]]) async throws(SyncError) -> Bool {
        guard doubts.isEmpty else { return false }
        let refused = try failures(.incoming).held(from: peer)
        var wanted: [[UInt8]] = []
        for key in keys where refused[key] == nil && waiting.askedFor[key] != result.attempts {
            waiting.askedFor[key] = result.attempts
            wanted.append(key)
        }
        guard !wanted.isEmpty else { return false }
        try await take(wanted, due: [])
        try await reviewPending()
        try await checkPending()
        return true
    }

    /// What comes of records that were asked for by their keys.
    private func plan(
        _ page: RecordPage, for entries: [FailedRecord], _ settlement: inout ConflictSettlement
    ) async throws(SyncError) -> PullPlan {
        var plan = PullPlan()
        var batch = ReplicationBatch()
        batch.meeting = meeting(page)
        for record in page.records {
            // What was written here over a record of an id in doubt says nothing of that id. When
            // the id is claimed again, what was written over counts as seen, and is in no record.
            try await compare(
                record, isLeftOver: true, isInConflict: entries.isEmpty, to: &plan, &batch,
                &settlement)
        }
        if !plan.dead.isEmpty { plan.withholdsDead = try waitsForMoved() }
        let ended = self.ended(entries, by: page, plan)
        var notes = try self.notes(on: plan.settled)
        guard let waiting = try notesToWait(plan.pending) else {
            // Nothing is stored: all stay due, and come again when there is room.
            var left = PullPlan()
            (left.pending, left.isUnbooked) = (plan.pending, true)
            return left
        }
        notes += waiting
        notes += try self.notes(onRefused: plan.refused)
        notes += try engine(dataset.name) { () throws(StoreError) -> [SystemNote] in
            let book = try FailedBook(dataset, .incoming)
            return try book.notes(removing: ended)
                + BatonBook(dataset).notes(taking: page.knowledge.batons, settling: [])
        }
        batch.notes += notes
        plan.batch = batch.writes.isEmpty && batch.notes.isEmpty ? nil : batch
        return plan
    }

    /// Which entries end with the answer to a question about their keys. The peer that had the
    /// version says with any answer what it has now, also if that is nothing. Another one may have
    /// an older version: its answer counts if it descends from the one that is missing, or if that
    /// peer has seen it, and what came of it there is the answer.
    private func ended(
        _ entries: [FailedRecord], by page: RecordPage, _ plan: PullPlan
    ) -> [FailedRecord] {
        var refused = Set(plan.refused.map { $0.record.key })
        // What is yet to be told as dead is asked about again.
        if plan.withholdsDead { refused.formUnion(plan.dead.map(\.key)) }
        let brought = Dictionary(
            page.records.map { ($0.key, $0.version.vector) }, uniquingKeysWith: { $0.union($1) })
        return entries.filter { entry in
            guard !refused.contains(entry.key) else { return false }
            guard entry.peer != peer else { return true }
            let isBrought = brought[entry.key]?.contains(entry.write) ?? false
            let isSeen = page.knowledge.vector.contains(entry.write)
            return (isBrought || isSeen) && !doubts.contain(entry.write)
        }
    }

    // MARK: - Outgoing

    /// Of each key the version that is to be left out of what the peer is pushed, and whether it
    /// has all when it has come to a position in our order of change.
    func leftOut(
        at position: SyncCount
    ) throws(SyncError) -> (versions: [[UInt8]: Dot], isNothing: Bool) {
        let book = try failures(.outgoing)
        let holdsBack = try engine(dataset.name) { () throws(StoreError) in
            try book.holdsBack(from: peer, at: position)
        }
        return (book.leftOut(of: peer), !holdsBack)
    }

    /// Whether anything was left out of what the peer was pushed, and may not have arrived yet.
    func hasLeftOut() throws(SyncError) -> Bool {
        try failures(.outgoing).holdsBack(from: peer)
    }

    /// Leaves records out of this and later pushes.
    ///
    /// - Throws: the error itself if there is no room for another one.
    func leaveOut(_ records: [(key: [UInt8], write: Dot)], _ error: SyncError) throws(SyncError) {
        let failures = records.map { (key: $0.key, write: $0.write, error: error) }
        let isNoted = try engine(dataset.name) { () throws(StoreError) -> Bool in
            let notes = try FailedBook(dataset, .outgoing).notes(adding: failures, with: peer)
            guard let notes else { return false }
            var batch = ReplicationBatch()
            batch.notes = notes
            _ = try dataset.replicate(batch)
            return true
        }
        guard isNoted else { throw error }
        noteFailed(records.map { (key: $0.key, error: error.of($0.key)) })
    }

    /// Lets go of failures on the way to the peer that are over.
    ///
    /// - Returns: what is left.
    @discardableResult
    func forgetEndedFailures() throws(SyncError) -> FailedBook {
        let seen = doubts.trusted(remote?.vector ?? VersionVector())
        let (part, ownIDs) = (part?.record, store.ownIDs)
        return try engine(dataset.name) { () throws(StoreError) in
            try FailedBook.afterForgettingEnded(in: dataset, with: peer, seen: seen) { record in
                guard let part else { return true }
                return part.handsOn(record.version, ofWhom: ownIDs, to: seen)
                    || part.scope.keeps(record)
            }
        }
    }

    /// Before a push: lets go of what is over, and tries again what was in conflict with what has
    /// gone from the list since.
    func reviewOutgoing() throws(SyncError) {
        let left = try forgetEndedFailures().entries.filter {
            $0.peer == peer && $0.state == .waiting && $0.code == .conflictPending
        }
        guard !left.isEmpty else { return }
        let refused = try failures(.incoming).held(from: peer)
        for entry in left where refused[entry.key] == nil {
            _ = try engine(dataset.name) { () throws(StoreError) in
                try FailedBook.handOnAnew(entry, in: dataset)
            }
        }
    }

    /// After a push met conflicts: leaves out those of a page that are in conflict with what was
    /// refused here, since no pull brings the peer's version of them. A held write has no place in
    /// the order of change, and the book keeps it out of no page: it is withheld in this exchange.
    ///
    /// - Returns: whether these were all, so that the push can go on.
    func leaveOutRefused(_ keys: [[UInt8]], of page: RecordPage) throws(SyncError) -> Bool {
        let refused = Set(try failures(.incoming).held(from: peer).keys).intersection(keys)
        guard !refused.isEmpty else { return false }
        let pushed = Dictionary(
            page.writes.map { ($0.key, $0.write) }, uniquingKeysWith: { first, _ in first })
        var settled = 0
        for key in refused.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            let record = try engine(dataset.name) { () throws(StoreError) in
                try dataset.storedRecord(for: key)
            }
            if let record, !record.isDropped, record.version.dot == pushed[key] {
                try leaveOut([(key, record.version.dot)], .inConflict(key))
                settled += 1
            } else if waiting.withheld.insert(key).inserted {
                settled += 1
            }
        }
        return settled == keys.count && keys.count < SyncLimits.conflictKeysMax
    }

    /// Whether anything that failed with this peer was not given up.
    func hasFailures(
        _ directions: [FailedRecord.Direction] = FailedRecord.Direction.allCases
    ) throws(SyncError) -> Bool {
        for direction in directions {
            let book = try failures(direction)
            if book.entries.contains(where: { $0.peer == peer && $0.state != .dropped }) {
                return true
            }
        }
        return false
    }
}

extension SyncError {
    fileprivate static func inConflict(_ key: [UInt8]) -> SyncError {
        SyncError(
            .conflictPending,
            "the record is in conflict with a version of the peer that was refused here; retry "
                + "that one, or write the record anew", key: key)
    }

    /// The same as that of one record.
    fileprivate func of(_ key: [UInt8]) -> SyncError {
        SyncError(
            code, message, peer: peer, dataset: dataset, key: self.key ?? key,
            storeError: storeError)
    }
}
