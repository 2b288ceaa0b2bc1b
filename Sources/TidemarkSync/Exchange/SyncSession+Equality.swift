import Tidemark

// Equality is looked at, and not only inferred. Vectors say that two replicas hold the same as long
// as no dot names two writes. Where one does, because a store went back in time or was copied and
// met nobody who knew, each side takes what it lacks for something that it has seen, and the two
// stay different for ever. So now and then, when an exchange is over and both sides have seen the
// same, the sums over their records are compared, with the messages of a search
// (`DifferenceSearch`). Mostly that is one message. What differs is settled at once:
//
// - The same write with other vectors: they are united, as by any search. That is no difference in
//   what either side holds.
// - A record of whose key the other side has nothing, or a deletion that either side has
//   forgotten: as for a late comer. If the other side has had it, and deleted it, it is buried; it
//   may just have been left out of that. If not it is written anew, above all that either side has
//   forgotten. So what comes of it does not depend on who compacts first.
// - Two versions: a conflict, also where one seems to descend from the other, since nobody can tell
//   whether it does. Under last writer wins the later one stands.
//
// What is written so has a dot of this store, so it goes to everyone like any write. Nothing is
// done if either side has changed since, for then the next exchange says more.

extension SyncSession {
    /// - Returns: whether anything was found that is now to be pushed.
    func settleOverlooked() async throws(SyncError) -> Bool {
        guard let remote, let pushedThrough = try toCompare(remote) else { return false }
        let found: Found?
        do throws(SyncError) {
            found = try await search(remote, takesSome: true)
        } catch {
            // Everything was exchanged. Who reads what is damaged is told.
            guard error.storeError?.code == .corruption else { throw error }
            return false
        }
        // What was written here since is yet to be pushed.
        guard let found, found.isSteady, found.agreed.isStill(remote),
            PeerKnowledge(found.knowledge).isSame(as: remote),
            found.knowledge.syncCount <= pushedThrough
        else { return false }
        guard !found.theirs.isEmpty || !found.ours.keys.isEmpty else {
            dataset.noteEquality(
                with: peer, at: (found.knowledge.syncCount, found.agreed.syncCount))
            return false
        }
        var overlooked = Overlooked(found)
        let keys = Set(found.theirs).union(found.ours.keys)
            .sorted { $0.lexicographicallyPrecedes($1) }
        var rest = keys[...]
        try await fetch(keys, still: found.agreed) { answer throws(SyncError) in
            let asked = rest.prefix(answer.lookedAt)
            rest = rest.dropFirst(answer.lookedAt)
            guard answer.page.knowledge.isStill(found.agreed) else {
                overlooked.isStale = true
                return
            }
            let theirs = Dictionary(
                answer.page.records.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
            try await settle(Array(asked), theirs, &overlooked)
        }
        // With the rest the next exchange goes on.
        if found.isAll, !overlooked.isStale { dataset.noteEquality(with: peer, at: nil) }
        if !overlooked.told.isEmpty {
            differences = Differences(
                keys: overlooked.told.sorted { $0.lexicographicallyPrecedes($1) },
                through: found.ours.through)
        }
        return overlooked.hasNews
    }

    /// Whether both sides have seen the same, hold nothing back, and were not compared lately.
    ///
    /// That the vectors are equal is not enough: records of an exchange that is under way, with
    /// whomever, are there before the vector claims them. So the positions must be at the end of
    /// what either side has counted.
    ///
    /// - Returns: how far the peer has what is here; nil if nothing is to be compared.
    private func toCompare(_ remote: PeerKnowledge) throws(SyncError) -> SyncCount? {
        guard result.isComplete, part == nil, !isOneWay, !doubts.isOfFile, !options.isDryRun,
            options.recordsPerRunMax == nil, doubts.isEmpty, !late.judgesPeer,
            late.freshStart == nil, differences == nil
        else { return nil }
        return try engine(dataset.name) { () throws(StoreError) -> SyncCount? in
            let (knowledge, checkpoint) = (
                try dataset.knowledge(), try dataset.checkpoint(for: peer)
            )
            guard PeerKnowledge(knowledge).isSame(as: remote),
                checkpoint.pulledThrough == remote.syncCount,
                checkpoint.pushedThrough == knowledge.syncCount,
                options.isFull
                    || dataset.isEqualityDue(
                        with: peer, at: (knowledge.syncCount, remote.syncCount),
                        every: options.comparesAllEvery)
            else { return nil }
            guard try !dataset.holdsBackVectors(), try QuarantineBook(dataset).names().isEmpty
            else { return nil }
            return checkpoint.pushedThrough
        }
    }

    /// Settles some keys, in batches of about a page each.
    ///
    /// - Parameter theirs: what the peer has of them; of the others it has nothing.
    private func settle(
        _ keys: [[UInt8]], _ theirs: [[UInt8]: Record], _ overlooked: inout Overlooked
    ) async throws(SyncError) {
        var rest = keys[...]
        while !rest.isEmpty, !overlooked.isStale {
            rest = rest.dropFirst(try await settleFirst(of: rest, theirs, &overlooked))
        }
    }

    /// - Returns: how many keys were looked at, at least one.
    private func settleFirst(
        of keys: ArraySlice<[UInt8]>, _ theirs: [[UInt8]: Record], _ overlooked: inout Overlooked
    ) async throws(SyncError) -> Int {
        let (through, seen) = (overlooked.through, overlooked.seen)
        var (differing, told): ([[UInt8]], [[UInt8]]) = ([], [])
        var lookedAt = 0
        try await untilUnmoved { (settlement) async throws(SyncError) in
            (differing, told, lookedAt) = ([], [], 0)
            var plan = PullPlan()
            var batch = ReplicationBatch()
            var bytes = 0
            for key in keys {
                guard bytes < self.options.pageBytesMax else { break }
                lookedAt += 1
                let (stored, now) = try self.state(of: key)
                let knowledge = now.forgetting(overlooked.forgotten)
                let local = knowledge.isNothing(stored) ? nil : stored
                // What came since is told, or was told, as any change.
                guard
                    local.map({ $0.syncCount <= through && seen.covers($0.version.vector) })
                        ?? true
                else { continue }
                let incoming = knowledge.isNothing(theirs[key]) ? nil : theirs[key]
                if let local, let incoming, local.isSameWrite(as: incoming) {
                    let writes = local.united(with: incoming, wiped: now.lifecycle.wiped)
                    batch.writes += writes
                    if writes.isEmpty { told.append(key) }
                    continue
                }
                if let local, incoming == nil,
                    overlooked.theirForgotten.haveEnded(local, beside: theirs[key])
                {
                    try self.bury(local, in: &batch)
                    plan.pulled += 1
                    continue
                }
                if let incoming, local == nil, now.forgotten.haveEnded(incoming, beside: stored) {
                    plan.dead.append(incoming)
                    continue
                }
                guard let record = incoming ?? local else { continue }
                // A deletion that one side has forgotten is no difference, whatever it has seen.
                if record.isDeleted, local == nil || incoming == nil { continue }
                differing.append(key)
                bytes += key.count + (record.value?.count ?? 0)
                guard let local, let incoming else {
                    plan.pulled += incoming == nil ? 0 : 1
                    batch.writes.append(
                        knowledge.forgotten.renewal(
                            of: record, beside: stored, latestBelieved: self.store.latestBelieved))
                    continue
                }
                let both = local.version.vector.union(incoming.version.vector)
                try await self.carryOut(
                    .between(local, incoming, seen: both), incoming, stored, in: &plan, &batch,
                    &settlement)
            }
            if try self.complete(&plan, with: batch) { return plan }
            // There is no room for what would have to wait.
            (differing, told) = ([], [])
            return PullPlan()
        }
        overlooked.told += told
        guard !differing.isEmpty else { return lookedAt }
        overlooked.hasWritten = true
        result.overlooked += differing.count
        options.observer?(.overlooked(dataset: dataset.name, keys: differing))
        return lookedAt
    }

    private func bury(_ record: Record, in batch: inout ReplicationBatch) throws(SyncError) {
        try engine(dataset.name) { () throws(StoreError) in
            try batch.bury(record.key, record.version, in: dataset)
        }
    }

    /// - Returns: false if there is no room for what would have to wait.
    private func complete(
        _ plan: inout PullPlan, with batch: ReplicationBatch
    ) throws(SyncError) -> Bool {
        guard let waiting = try notesToWait(plan.pending) else { return false }
        var batch = batch
        batch.notes += try notes(on: plan.settled) + waiting
        let isEmpty = batch.writes.isEmpty && batch.notes.isEmpty && batch.forgotten == nil
        plan.batch = isEmpty ? nil : batch
        return true
    }

    private func state(of key: [UInt8]) throws(SyncError) -> (Record?, DatasetKnowledge) {
        try engine(dataset.name) { () throws(StoreError) in
            (try dataset.storedRecord(for: key), try dataset.knowledge())
        }
    }
}

/// What a comparison of all records has found, while it is settled.
private struct Overlooked {
    /// What was counted, and seen, of the dataset here when the two sides were compared.
    let through: SyncCount
    let seen: VersionVector
    /// What either side had forgotten.
    let forgotten: ForgottenDeletions
    /// What the peer had.
    let theirForgotten: ForgottenDeletions
    /// Whether the peer has changed since.
    var isStale = false
    var hasWritten = false
    /// Keys of records that the peer is to be told of as they are.
    var told: [[UInt8]] = []

    init(_ found: SyncSession.Found) {
        (through, seen) = (found.ours.through, found.knowledge.vector)
        theirForgotten = found.agreed.forgotten
        forgotten = theirForgotten.union(found.knowledge.forgotten)
    }

    var hasNews: Bool { hasWritten || !told.isEmpty }
}

extension Record {
    /// Whether two records are one write, which may have been joined with different ones. One of
    /// them may have expired, and be a deletion by now.
    fileprivate func isSameWrite(as other: Record) -> Bool {
        guard version.dot == other.version.dot else { return false }
        return value == other.value || version.time == other.version.time
    }

    /// The same write with what both have seen; nothing if that is what is here.
    fileprivate func united(with other: Record, wiped: VersionVector) -> [ReplicatedWrite] {
        let circumstances = Circumstances(seen: VersionVector(), wiped: wiped)
        guard case .adopt(let write, _) = Verdict(on: other, beside: self, circumstances).outcome
        else {
            return []
        }
        return [write]
    }
}

extension ForgottenDeletions {
    /// Whether who has forgotten these, and has no more of a record's key than what is given, has
    /// had the record, and deleted it.
    fileprivate func haveEnded(_ record: Record, beside rest: Record?) -> Bool {
        if covers(record.version) { return true }
        guard let rest, rest.isDeleted, !rest.isDropped else { return false }
        return rest.version.vector.covers(record.version.vector)
    }

    /// A record of whose key the other side has nothing: written anew, above all of these. Its dot
    /// may name two writes, or there would be no difference.
    fileprivate func renewal(
        of record: Record, beside stored: Record?, latestBelieved: HybridTime
    ) -> ReplicatedWrite {
        let seen = record.version.vector.union(stored?.version.vector ?? VersionVector())
        return ReplicatedWrite(
            key: record.key,
            content: Outlivers.content(
                value: record.value, of: record.version, seen: seen, expiresAt: record.expiresAt,
                after: self, latestBelieved: latestBelieved, isDoubted: true),
            expected: stored?.version)
    }
}

extension DatasetKnowledge {
    fileprivate func forgetting(_ more: ForgottenDeletions) -> DatasetKnowledge {
        var knowledge = self
        knowledge.forgotten.formUnion(more)
        return knowledge
    }
}

extension PeerKnowledge {
    /// Whether both say the same, and nothing has changed or was forgotten from one to the other.
    func isStill(_ before: PeerKnowledge) -> Bool {
        syncCount == before.syncCount && forgotten == before.forgotten && isSame(as: before)
    }

    /// Whether both have seen the same and come through the same deletions of the whole dataset.
    /// Each forgets deletions in its own time.
    fileprivate func isSame(as other: PeerKnowledge) -> Bool {
        vector == other.vector && lifecycle.isDeleted == other.lifecycle.isDeleted
            && lifecycle.wiped == other.lifecycle.wiped
    }
}
