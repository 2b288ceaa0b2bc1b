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
// - A record of whose key the other side has nothing: it is written anew. That it was deleted
//   there both sides would know.
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
        try await fetch(found.theirs, still: found.agreed) { answer throws(SyncError) in
            guard answer.page.knowledge.isStill(found.agreed) else {
                overlooked.isStale = true
                return
            }
            for record in answer.page.records { overlooked.theirs[record.key] = record }
            guard overlooked.isFull else { return }
            try await settle(&overlooked)
        }
        try await settle(&overlooked)
        // With the rest the next exchange goes on.
        if found.isAll { dataset.noteEquality(with: peer, at: nil) }
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
        guard result.isComplete, part == nil, !isOneWay, !isFile, !options.isDryRun,
            options.recordsPerRunMax == nil, doubted.isEmpty, peerDisputed.isEmpty, !judgesPeer,
            freshStart == nil, differences == nil
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

    /// Settles what was fetched so far, and with the rest what the peer has nothing of.
    private func settle(_ overlooked: inout Overlooked) async throws(SyncError) {
        guard !overlooked.isStale else { return }
        let work = overlooked.takeNext()
        guard !work.keys.isEmpty else { return }
        let (through, seen) = (overlooked.through, overlooked.seen)
        var outcome = OverlookedOutcome()
        try await untilUnmoved { (settlement) async throws(SyncError) in
            outcome = OverlookedOutcome()
            var plan = PullPlan()
            var batch = ReplicationBatch()
            for key in work.keys {
                let (local, knowledge) = try self.engineState(of: key)
                // What came since is told, or was told, as any change.
                guard
                    local.map({ $0.syncCount <= through && seen.covers($0.version.vector) })
                        ?? true
                else { continue }
                try await self.settle(
                    key, local, work.theirs[key], knowledge, to: &plan, &batch, &settlement,
                    &outcome)
            }
            guard let waiting = try self.notesToWait(plan.pending) else {
                // There is no room for what would have to wait.
                return PullPlan()
            }
            batch.notes += try self.notes(on: plan.settled) + waiting
            plan.batch = batch.writes.isEmpty && batch.notes.isEmpty ? nil : batch
            return plan
        }
        overlooked.told += outcome.told
        overlooked.hasWritten = overlooked.hasWritten || outcome.hasWritten
        guard !outcome.differing.isEmpty else { return }
        result.overlooked += outcome.differing.count
        options.observer?(.overlooked(dataset: dataset.name, keys: outcome.differing))
    }

    private func engineState(
        of key: [UInt8]
    ) throws(SyncError) -> (Record?, DatasetKnowledge) {
        try engine(dataset.name) { () throws(StoreError) in
            let knowledge = try dataset.knowledge()
            let stored = try dataset.storedRecord(for: key)
            // The mark of a dropped record is none, nor is a deletion that counts as forgotten.
            guard let stored, !stored.isDropped,
                !stored.isDeleted || !knowledge.forgotten.covers(stored.version)
            else { return (nil, knowledge) }
            return (stored, knowledge)
        }
    }

    /// What becomes of one key.
    private func settle(
        _ key: [UInt8], _ local: Record?, _ incoming: Record?, _ knowledge: DatasetKnowledge,
        to plan: inout PullPlan, _ batch: inout ReplicationBatch,
        _ settlement: inout ConflictSettlement, _ outcome: inout OverlookedOutcome
    ) async throws(SyncError) {
        switch (local, incoming) {
        case (nil, nil):
            return
        case (let record?, nil), (nil, let record?):
            outcome.add(key)
            let stored = try engine(dataset.name) { () throws(StoreError) in
                try dataset.storedRecord(for: key)
            }
            batch.writes.append(
                record.anew(seen: record.version.vector, expected: stored?.version))
            plan.pulled += local == nil && !record.isDeleted ? 1 : 0
        case (let local?, let incoming?):
            let comparison = Comparison(
                local: local, incoming: incoming, seen: VersionVector(),
                wiped: knowledge.lifecycle.wiped)
            if local.isSameWrite(as: incoming) {
                if case .adopt = comparison {
                    batch.writes += comparison.writes(for: incoming, beside: local)
                } else {
                    outcome.told.append(key)
                }
                return
            }
            outcome.add(key)
            let both = local.version.vector.union(incoming.version.vector)
            if local.value == incoming.value, local.expiresAt == incoming.expiresAt {
                let later = incoming.version.time > local.version.time ? incoming : local
                batch.writes.append(later.anew(seen: both, expected: local.version))
                return
            }
            try await add(
                .settle(seen: both), incoming, local, comparison, to: &plan, &batch, &settlement)
        }
    }
}

/// What a comparison of all records has found, while it is settled.
private struct Overlooked {
    /// What was counted, and seen, of the dataset here when the two sides were compared.
    let through: SyncCount
    let seen: VersionVector
    /// Keys that are on this side alone.
    private var ours: ArraySlice<[UInt8]>
    /// What the peer has, as it comes.
    var theirs: [[UInt8]: Record] = [:]
    /// Whether the peer has changed since.
    var isStale = false
    var hasWritten = false
    /// Keys of records that the peer is to be told of as they are.
    var told: [[UInt8]] = []

    /// So many keys are settled at once.
    private static let keysAtOnce = 1_024

    init(_ found: SyncSession.Found) {
        (through, seen) = (found.ours.through, found.knowledge.vector)
        let there = Set(found.theirs)
        ours = found.ours.keys.filter { !there.contains($0) }[...]
    }

    var isFull: Bool { theirs.count >= Self.keysAtOnce }

    var hasNews: Bool { hasWritten || !told.isEmpty }

    mutating func takeNext() -> (keys: [[UInt8]], theirs: [[UInt8]: Record]) {
        defer { theirs = [:] }
        let alone = ours.prefix(isFull ? 0 : .max)
        ours = ours.dropFirst(alone.count)
        let keys = theirs.keys + alone
        return (keys.sorted { $0.lexicographicallyPrecedes($1) }, theirs)
    }
}

/// What settling some keys came to.
private struct OverlookedOutcome {
    var differing: [[UInt8]] = []
    var told: [[UInt8]] = []

    var hasWritten: Bool { !differing.isEmpty }

    mutating func add(_ key: [UInt8]) { differing.append(key) }
}

extension Record {
    /// Whether two records are one write, which may have been joined with different ones. One of
    /// them may have expired, and be a deletion by now.
    fileprivate func isSameWrite(as other: Record) -> Bool {
        guard version.dot == other.version.dot else { return false }
        return value == other.value || version.time == other.version.time
    }

    /// The record under a dot of this store, with its time.
    fileprivate func anew(seen: VersionVector, expected: Version?) -> ReplicatedWrite {
        ReplicatedWrite(
            key: key,
            content: .rewrite(
                value: value, of: version, seen: seen, keepsTime: true, expiresAt: expiresAt),
            expected: expected)
    }
}

extension PeerKnowledge {
    /// Whether both say the same, and nothing has changed from one to the other.
    func isStill(_ before: PeerKnowledge) -> Bool {
        syncCount == before.syncCount && isSame(as: before)
    }

    /// Whether both have seen the same, forgotten the same deletions and come through the same
    /// deletions of the whole dataset.
    fileprivate func isSame(as other: PeerKnowledge) -> Bool {
        vector == other.vector && forgotten.vector == other.forgotten.vector
            && lifecycle.isDeleted == other.lifecycle.isDeleted
            && lifecycle.wiped == other.lifecycle.wiped
    }
}
