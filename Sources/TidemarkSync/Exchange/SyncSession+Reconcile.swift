import Tidemark

// Two replicas that share no checkpoint, because one was repaired, restored, linked anew or has
// lost it, find out where they differ (`DifferenceSearch`) and exchange just that.
//
//   sums of ranges ─▶ keys that differ ─▶ their records pulled, conflicts settled
//      ─▶ ordinary pull ─▶ our records of these keys pushed ─▶ ordinary push
//
// What is agreed at the end is of the moments at which the search began: both sides' counts and
// vectors as they were then. Whatever either has changed since comes after these counts, and so
// with the ordinary pull and push, whether the search has met it already or not.
//
// Which version of a key stands, and whether one that the other side lacks was deleted there, the
// comparison of versions decides as ever: that it was found by a search says nothing about it.
//
// What was agreed holds only if nothing of it has gone meanwhile. If the peer's dataset was deleted
// or wiped, went back in time, or is another one, the exchange begins again.

extension SyncSession {
    /// Brings both sides to a common point if there is none, and it can be had for less than
    /// everything. Otherwise nothing has changed, and all is pulled that is not known to be here.
    func reconcile(_ remote: PeerKnowledge) async throws(SyncError) {
        guard try isReconcilable(remote), let found = try await search(remote) else { return }
        waiting.isFrozen = false
        forgetPending()
        try await pull(found.theirs, since: found.agreed)
        // What could not even wait here is yet to be pulled, and so is what has changed since: the
        // exchange ends because of that, but not before.
        guard !waiting.isFrozen else { return }
        try await checkPending()
        guard try agree(on: found) else { return }
        positions.pull = found.agreed.syncCount
        self.remote = found.agreed
        differences = found.ours
    }

    struct Found {
        /// What the peer told of itself when the search began.
        let agreed: PeerKnowledge
        /// Whether nothing had changed there when the search ended.
        let isSteady: Bool
        /// All that the peer had seen then, with what it holds because of its date.
        let seen: VersionVector
        /// Keys of records to pull.
        let theirs: [[UInt8]]
        /// Whether these, and ours, are all that differ.
        let isAll: Bool
        let ours: Differences
        /// Of our dataset when it was compared.
        let knowledge: DatasetKnowledge
    }

    /// - Parameter takesSome: whether, if too much differs, what was found until then is wanted.
    /// - Returns: nil if too much differs, or the peer cannot tell.
    func search(
        _ remote: PeerKnowledge, takesSome: Bool = false
    ) async throws(SyncError) -> Found? {
        guard let forgotten = try forgotten(by: remote) else { return nil }
        // Before anything is asked: what changes from now on is pushed as ever.
        let sums = try engine(dataset.name) { () throws(StoreError) in
            try dataset.recordSums(forgotten: forgotten)
        }
        var search = DifferenceSearch(sums)
        var agreed: PeerKnowledge?
        var isSteady = true
        while let claims = search.claims() {
            let answer = try await findings(
                claims, forgotten: forgotten, isFirst: agreed == nil)
            guard let answer else { return nil }
            try check(answer.knowledge, still: agreed ?? remote, isGreeting: agreed == nil)
            agreed = agreed ?? answer.knowledge
            isSteady = isSteady && agreed?.isStill(answer.knowledge) ?? false
            try engine(dataset.name) { () throws(StoreError) in
                try search.take(answer.findings, for: claims)
            }
            guard search.isTooMuch else { continue }
            guard takesSome else { return nil }
            break
        }
        guard let agreed else { return nil }
        return Found(
            agreed: agreed, isSteady: isSteady, seen: remote.vector.union(agreed.vector),
            theirs: search.theirs, isAll: !search.isTooMuch,
            ours: Differences(keys: search.ours, through: sums.knowledge.syncCount),
            knowledge: sums.knowledge)
    }

    /// What either side has forgotten. Its tombstones are there on one side and not on the other,
    /// and need not be told: both have seen them, so each has of every such key the tombstone, or
    /// something newer, or nothing.
    ///
    /// - Returns: nil if one of the two has not seen all of it, and must not be given what differs
    ///   as if nothing else were missing.
    private func forgotten(by remote: PeerKnowledge) throws(SyncError) -> VersionVector? {
        let ours = try engine(dataset.name) { () throws(StoreError) in try dataset.knowledge() }
        let both = ours.forgotten.vector.union(remote.forgotten.vector)
        return ours.vector.covers(both) && remote.vector.covers(both) ? both : nil
    }

    private func isReconcilable(_ remote: PeerKnowledge) throws(SyncError) -> Bool {
        // A bound to the records of an exchange could not be kept; and a part differs on purpose.
        guard part == nil, positions.pull == .zero, !isBeginningAfresh, !options.isDryRun,
            options.recordsPerRunMax == nil, doubts.isEmpty,
            !late.judgesPeer, late.freshStart == nil
        else { return false }
        let countMin = options.comparesFrom
        let (reached, count) = try engine(dataset.name) { () throws(StoreError) in
            (try dataset.reachedVector(), try dataset.syncCount.rawValue)
        }
        guard count >= countMin, remote.syncCount.rawValue >= countMin else { return false }
        // Of what is known to be missing nobody need search for where it is.
        var missing: UInt64 = 0
        for dot in remote.vector.dots where dot.counter > reached[dot.replica] {
            let (sum, isTooMuch) = missing.addingReportingOverflow(
                dot.counter - reached[dot.replica])
            missing = isTooMuch ? .max : sum
        }
        return countMin == 0
            || missing <= remote.syncCount.rawValue / SyncLimits.comparedMissingShare
    }

    func claims() throws(SyncError) -> AskerClaims {
        try engine(dataset.name) { () throws(StoreError) in
            AskerClaims(
                vector: doubts.trusted(try dataset.vector), batons: try BatonBook(dataset).batons,
                disputed: doubts.theirs.sorted())
        }
    }

    /// - Returns: nil if the peer does not understand the question, as one of an earlier version
    ///   does not.
    private func findings(
        _ claims: [RangeClaim], forgotten: VersionVector, isFirst: Bool
    ) async throws(SyncError) -> ReconcileAnswer? {
        var asker = try self.claims()
        asker.forgotten = forgotten
        let request = ReconcileRequest(address: address, asker: asker, ranges: claims)
        do throws(SyncError) {
            return try await counted { connection, traffic throws(SyncError) in
                try await connection.reconcile(request, &traffic)
            }
        } catch {
            guard isFirst, error.code == .badMessage else { throw error }
            return nil
        }
    }

    /// What the peer told at first must hold to the end.
    ///
    /// - Parameter isGreeting: whether that was its greeting. There it claims what it holds because
    ///   of its date, too, and here it does not.
    func check(
        _ now: PeerKnowledge, still before: PeerKnowledge, isGreeting: Bool = false
    ) throws(SyncError) {
        if try noteFork(now) { throw .forked }
        let isStillSeen =
            isGreeting
            ? now.vector[peer] >= before.vector[peer] : now.vector.covers(before.vector)
        guard now.lifecycle == before.lifecycle, now.syncCount >= before.syncCount, isStillSeen
        else {
            throw SyncError(
                .peerChanged,
                "the peer's dataset was deleted, or put back to an earlier state, while the two "
                    + "sides were compared; repeat the exchange")
        }
    }

    /// Pulls the records of some keys, without moving any position.
    private func pull(
        _ keys: [[UInt8]], since agreed: PeerKnowledge
    ) async throws(SyncError) {
        try await fetch(keys, still: agreed) { answer throws(SyncError) in
            var page = answer.page
            page.through = try pulledThrough()
            page.isLast = false
            // Of all that the peer has seen this is no more than a part.
            page.knowledge.vector = VersionVector()
            try await apply(page)
            report(.pulling, records: page.recordCount)
        }
    }

    /// Asks for the peer's records of some keys, in as many questions as that takes.
    ///
    /// - Parameters:
    ///   - keys: in their order.
    ///   - agreed: what the peer said of itself before; it must hold to the end.
    ///   - take: is handed each answer; its records are of the first keys that were left.
    func fetch(
        _ keys: [[UInt8]], still agreed: PeerKnowledge,
        _ take: (FetchAnswer) async throws(SyncError) -> Void
    ) async throws(SyncError) {
        var left = keys[...]
        while !left.isEmpty {
            let wanted = Self.fitting(left, countMax: options.pageRecordsMax)
            let request = FetchRequest(
                address: address, asker: try claims(), keys: wanted,
                bytesMax: options.pageBytesMax)
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.fetch(request, &traffic)
            }
            try check(answer.page.knowledge, still: agreed)
            try await take(answer)
            left = left.dropFirst(answer.lookedAt)
        }
    }

    /// As many keys as go into one request, and at least one.
    private static func fitting(_ keys: ArraySlice<[UInt8]>, countMax: Int) -> [[UInt8]] {
        var fitting: [[UInt8]] = []
        var bytes = 0
        for key in keys.prefix(countMax) {
            bytes += key.count
            guard fitting.isEmpty || bytes <= SyncLimits.comparedBytesMax else { break }
            fitting.append(key)
        }
        return fitting
    }

    /// Notes that all that the peer had when the search began is here now, or waits here.
    ///
    /// - Returns: false if our dataset was deleted, made anew or wiped meanwhile, so that what was
    ///   compared is no longer what is here.
    private func agree(on found: Found) throws(SyncError) -> Bool {
        try engine(dataset.name) { () throws(StoreError) in
            let lifecycle = try dataset.knowledge().lifecycle
            guard lifecycle == found.knowledge.lifecycle else { return false }
            var checkpoint = try dataset.checkpoint(for: peer)
            checkpoint.pulledThrough = found.agreed.syncCount
            checkpoint.vector.formUnion(found.agreed.vector)
            var batch = ReplicationBatch()
            batch.checkpoint = (peer, checkpoint)
            batch.meeting = Meeting(vector: found.seen, forgotten: found.agreed.forgotten)
            // What waits, or was left out, is claimed when it is settled, at the end of a pull.
            let holdsBack = try dataset.holdsBackVectors()
            if store.joinsVector(), !holdsBack { batch.seen = found.agreed.vector }
            batch.notes = try BatonBook(dataset).notes(taking: found.agreed.batons, settling: [])
            // No sweep goes on from a position that is no longer there.
            batch.notes += try SweepBook(dataset, peer).end()
            _ = try replicate(batch)
            return true
        }
    }

    /// Pushes what a search has found here and not there, before what has changed since. What of it
    /// is left then must not be pushed now.
    ///
    /// - Returns: false if the peer has versions that must be pulled and merged first.
    func pushDifferences() async throws(SyncError) -> Bool {
        guard let found = differences else { return true }
        var recordsMax = options.pageRecordsMax
        var left = found.keys[...]
        while !left.isEmpty {
            let wanted = Self.fitting(left, countMax: recordsMax)
            let (changes, lookedAt) = try engine(dataset.name) { () throws(StoreError) in
                try dataset.writtenPage(
                    of: Array(wanted.prefix(dataset.recordsPerPage(atMost: wanted.count))),
                    changedThrough: found.through, through: positions.push,
                    bytesMax: options.pageBytesMax, after: address.replicas)
            }
            guard changes.recordCount > 0 else {
                left = left.dropFirst(lookedAt)
                continue
            }
            guard try !waitsForMoved() else { return true }
            switch try await send(changes, &recordsMax) {
            case .accepted: left = left.dropFirst(lookedAt)
            case .again: continue
            case .conflicts, .late: return false
            case .gap(let syncCount): positions.push = syncCount
            }
        }
        differences = nil
        // What comes after that follows on all that the peer has.
        positions.adopted = max(positions.adopted, found.through)
        return true
    }
}

/// What a search has found on this side.
struct Differences: Sendable {
    /// In their order.
    let keys: [[UInt8]]
    /// Everything else up to here, in our order of change, is on both sides.
    let through: SyncCount
}
