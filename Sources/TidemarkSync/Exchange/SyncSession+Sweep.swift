import Tidemark

// Much that a peer has and this store lacks is pulled in the order of keys: a sweep.
//
//   sweep from the first key ─▶ page ─▶ compared and stored with how far that is
//       ▲        │                                │
//       │        └─ the next page is asked for ───┤
//       └──────── what is left ◀──────────────────┘
//                                     at the end: all of it is claimed ─▶ ordinary pull
//
// In the order of change, which is no order of keys, each record is looked for anywhere: in the
// blocks of the peer, and in those here. In the order of keys both sides read block by block.
//
// What was swept is of no one moment of the peer's. It is claimed at the end, as of the moment of
// the first page: what changed later has a later sync count and comes with the ordinary pull,
// whether a page has brought it already or not. Until then no position and no vector moves. How far
// the sweep has come is stored with each page, so that one that is cut off goes on from there, if
// the peer still has all that it had, and nothing has gone from here: nothing was wiped, the store
// is still the one that wrote it down, which a repaired or restored one is not, no part of the
// dataset was chosen to be kept, and the position has not moved in another way meanwhile.
//
// No request says that what came before it was stored, so the next page is asked for before the one
// at hand is compared.
//
// Who is late, or is asking one that is, does not sweep. What the peer forgets while it is swept is
// held against what was seen here with each page that has records, and at the end.

extension SyncSession {
    /// Pulls what the peer has changed since the position, if that is much. Otherwise, and if it
    /// does not come to its end, the position stays.
    func sweep(_ remote: PeerKnowledge) async throws(SyncError) {
        guard isWorthSweeping(remote) else { return }
        let book = SweepBook(dataset, peer)
        var mark = try begin(remote, book)
        guard var swept = try await firstAnswer(mark) else { return }
        waiting.isFrozen = false
        forgetPending()
        while true {
            try agree(on: swept.page.knowledge, remote, &mark)
            let goesOn = !isSparse(swept, remote)
            let request = try (goesOn ? swept.next : nil).map { key throws(SyncError) in
                try sweepRequest(from: key)
            }
            let connection = connection
            async let ahead = Self.ask(request, connection)
            try await apply(swept, &mark, book)
            guard let arrived = await ahead else { break }
            result.bytesSent += arrived.traffic.sent
            result.bytesReceived += arrived.traffic.received
            guard !waiting.isFrozen else { break }
            swept = try arrived.answer.get()
        }
        // What could not even wait here is yet to be pulled, and so is what lies behind it: in the
        // order of change it comes as far as it can before the exchange ends because of that. So is
        // what is left of a sweep that was given up.
        guard !waiting.isFrozen, swept.next == nil else { return }
        try await checkPending()
        guard let agreed = mark.agreed, try claim(agreed, mark, book) else { return }
        positions.pull = agreed.syncCount
        self.remote = agreed
    }

    /// What the peer told at first must hold to the end; and nothing may be claimed of what it has
    /// seen as soon as it tells nothing of that, since it has left something out.
    private func agree(
        on now: PeerKnowledge, _ remote: PeerKnowledge, _ mark: inout SweepMark
    ) throws(SyncError) {
        let before = mark.agreed ?? remote
        let isGreeting = mark.agreed == nil
        var agreed = mark.agreed ?? now
        if now.vector.isEmpty {
            var whole = now
            whole.vector = before.vector
            try check(whole, still: before, isGreeting: isGreeting)
            agreed.vector = VersionVector()
        } else {
            try check(now, still: before, isGreeting: isGreeting)
        }
        agreed.forgotten.formUnion(now.forgotten)
        mark.agreed = agreed
    }

    /// Whether a page before the last has brought far fewer records than it might have: then there
    /// were many changes, and few keys that changed, and what is left is cheaper to be had in the
    /// order of change.
    private func isSparse(_ swept: SweepAnswer, _ remote: PeerKnowledge) -> Bool {
        guard swept.next != nil else { return false }
        // As many as both sides have in a page, for its vectors.
        let recordsMax = min(
            options.pageRecordsMax,
            SyncLimits.pageVectorEntriesMax / (remote.vector.count + 16))
        guard swept.page.recordCount < recordsMax / SyncLimits.sparsePageShare else {
            return false
        }
        let bytes = swept.page.records.reduce(0) { $0 + $1.key.count + ($1.value?.count ?? 0) }
        return bytes < options.pageBytesMax / SyncLimits.sparsePageShare
    }

    private func isWorthSweeping(_ remote: PeerKnowledge) -> Bool {
        // A bound to the records of an exchange could not be kept. And a fresh start must look at
        // more than what has changed.
        guard !late.judgesPeer, late.freshStart == nil, part == nil, !isOneWay, !options.isDryRun,
            options.recordsPerRunMax == nil, doubts.isEmpty,
            remote.syncCount > positions.pull
        else { return false }
        let changed = remote.syncCount.rawValue - positions.pull.rawValue
        if options.sweepsFrom == 0 { return true }
        return changed >= options.sweepsFrom
            && changed >= remote.syncCount.rawValue / SyncLimits.sweptShare
    }

    /// Whether a sweep that was cut off is to go on. Then nothing need be searched for before: what
    /// it had brought is known, and all that it has still to bring would be found to differ.
    func isSweepWaiting(_ remote: PeerKnowledge) throws(SyncError) -> Bool {
        guard isWorthSweeping(remote) else { return false }
        return try resumable(remote, SweepBook(dataset, peer)) != nil
    }

    /// Where one that was cut off goes on, or the beginning.
    private func begin(
        _ remote: PeerKnowledge, _ book: SweepBook
    ) throws(SyncError) -> SweepMark {
        if let mark = try resumable(remote, book) { return mark }
        return try engine(dataset.name) { () throws(StoreError) in
            SweepMark(
                replica: store.replicaID, since: positions.pull, start: [], agreed: nil,
                lifecycle: PeerLifecycle(try dataset.knowledge().lifecycle))
        }
    }

    /// The mark of one that was cut off, if all that it vouches for is still true.
    private func resumable(
        _ remote: PeerKnowledge, _ book: SweepBook
    ) throws(SyncError) -> SweepMark? {
        // Who looks at everything again trusts no mark, either.
        guard !isBeginningAfresh else { return nil }
        return try engine(dataset.name) { () throws(StoreError) -> SweepMark? in
            let lifecycle = PeerLifecycle(try dataset.knowledge().lifecycle)
            guard let mark = try book.mark(), mark.replica == store.replicaID,
                mark.since == positions.pull, mark.lifecycle == lifecycle,
                let agreed = mark.agreed, agreed.lifecycle == remote.lifecycle,
                remote.syncCount >= agreed.syncCount, remote.vector.covers(agreed.vector)
            else { return nil }
            return mark
        }
    }

    /// What ends the mark of a sweep as the position moves in another way: from then on it vouches
    /// for nothing that the position does not, until that falls back, and then not for what has
    /// gone with that.
    ///
    /// - Parameter through: where the position moves to.
    func notesEndingSweep(at through: SyncCount) throws(SyncError) -> [SystemNote] {
        guard through != positions.pull else { return [] }
        return try engine(dataset.name) { () throws(StoreError) in
            try SweepBook(dataset, peer).end()
        }
    }

    /// Records that were swept may go from here once somebody keeps no more than a part.
    private func checkWhole() throws(SyncError) {
        let isPart = try engine(dataset.name) { () throws(StoreError) in
            try PartBook.isPart(dataset)
        }
        guard !isPart else { throw .scopeChanged }
    }

    private func sweepRequest(from start: [UInt8]) throws(SyncError) -> SweepRequest {
        let since = positions.pull
        let asker = try claims()
        return try engine(dataset.name) { () throws(StoreError) in
            SweepRequest(
                address: address, asker: asker, since: since, start: start,
                recordsMax: try dataset.recordsPerPage(atMost: options.pageRecordsMax),
                bytesMax: options.pageBytesMax)
        }
    }

    /// - Returns: nil if the peer does not understand the question, as one of an earlier version
    ///   does not.
    private func firstAnswer(_ mark: SweepMark) async throws(SyncError) -> SweepAnswer? {
        let request = try sweepRequest(from: mark.start)
        do throws(SyncError) {
            return try await counted { connection, traffic throws(SyncError) in
                try await connection.sweep(request, &traffic)
            }
        } catch {
            guard error.code == .badMessage else { throw error }
            return nil
        }
    }

    private typealias Arrived = (
        answer: Result<SweepAnswer, SyncError>, traffic: PeerConnection.Traffic
    )

    @concurrent
    private static func ask(
        _ request: SweepRequest?, _ connection: PeerConnection
    ) async -> Arrived? {
        guard let request else { return nil }
        var traffic = PeerConnection.Traffic()
        do throws(SyncError) {
            let answer = try await connection.sweep(request, &traffic)
            return (.success(answer), traffic)
        } catch {
            return (.failure(error), traffic)
        }
    }

    /// Applies a page with the mark of how far it goes.
    private func apply(
        _ swept: SweepAnswer, _ mark: inout SweepMark, _ book: SweepBook
    ) async throws(SyncError) {
        try checkWhole()
        var page = swept.page
        page.through = try pulledThrough()
        page.isLast = false
        // Of all that the peer has seen this is no more than a part.
        page.told = page.knowledge.vector
        page.knowledge.vector = VersionVector()
        if let next = swept.next {
            mark.start = next
            sweepNotes = try engine(dataset.name) { () throws(StoreError) in
                [try book.note(mark)]
            }
        }
        defer { sweepNotes = [] }
        try await apply(page)
        report(.pulling, records: page.recordCount)
    }

    /// Notes that all that the peer had when the sweep began is here now, or waits here.
    ///
    /// - Returns: false if our dataset was deleted, made anew or wiped meanwhile.
    private func claim(
        _ agreed: PeerKnowledge, _ mark: SweepMark, _ book: SweepBook
    ) throws(SyncError) -> Bool {
        try checkWhole()
        return try engine(dataset.name) { () throws(StoreError) in
            let lifecycle = PeerLifecycle(try dataset.knowledge().lifecycle)
            guard lifecycle == mark.lifecycle else { return false }
            var checkpoint = try dataset.checkpoint(for: peer)
            checkpoint.pulledThrough = agreed.syncCount
            checkpoint.vector.formUnion(agreed.vector)
            var batch = ReplicationBatch()
            batch.checkpoint = (peer, checkpoint)
            batch.meeting = Meeting(
                vector: seenByPeer.union(agreed.vector), forgotten: agreed.forgotten)
            // What waits, or was left out, is claimed when it is settled, at the end of a pull.
            let holdsBack = try dataset.holdsBackVectors()
            if store.joinsVector(), !holdsBack { batch.seen = agreed.vector }
            batch.notes = try BatonBook(dataset).notes(taking: agreed.batons, settling: [])
            batch.notes += try book.end()
            _ = try replicate(batch)
            return true
        }
    }
}
