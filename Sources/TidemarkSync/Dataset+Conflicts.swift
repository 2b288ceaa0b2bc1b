public import Tidemark

extension Dataset {
    /// Conflicts in this dataset that wait to be settled, those that have waited longest first.
    ///
    /// Left out is what has been settled by itself meanwhile: a version came here that descends
    /// from both. Of one key there may be several, each with another version of the other side.
    ///
    /// O(what waits up to the last one that is given), and for each that is given its value and the
    /// history of its key. Of what waits of other keys just the key is looked at.
    ///
    /// - Parameters:
    ///   - key: only those of this key; nil for all.
    ///   - limit: how many to give at most: 0...
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func pendingConflicts(
        of key: [UInt8]? = nil, limit: Int = .max
    ) throws(StoreError) -> [PendingConflict] {
        guard limit > 0 else { return [] }
        var waiting: [PendingConflict] = []
        try PendingBook.forEach(in: self, of: key) { (found) throws(StoreError) in
            let entry = found.entry
            guard let local = try storedRecord(for: entry.key), !local.isDropped,
                !local.version.vector.contains(entry.version.dot)
            else { return true }
            let remote = found.remote
            let ancestry = try self.ancestry(
                of: entry.key, local: local.version, remote: remote.version)
            let conflict = Conflict(
                dataset: name, key: entry.key, ancestry: ancestry, local: local, remote: remote)
            waiting.append(
                PendingConflict(
                    conflict: conflict, peer: entry.peer, since: entry.time,
                    reason: entry.reason))
            return waiting.count < limit
        }
        return waiting
    }

    /// Settles what waits of a key, by a write here that descends from the version that is here
    /// now and from all that wait. The next exchange hands it over.
    ///
    /// - Parameters:
    ///   - resolution: ``Resolution/keepRemote`` takes, of several versions that wait, the one
    ///     that was written last; ``Resolution/stop`` leaves all as it is.
    ///   - journal: what the journal keeps of it.
    /// - Returns: false if nothing of the key waits, or for ``Resolution/stop``.
    /// - Throws: what `put` throws; `versionMismatch` if the record is written faster than it can
    ///   be settled.
    @discardableResult
    public func settle(
        _ key: [UInt8], with resolution: Resolution,
        journal: SyncJournalOptions = SyncJournalOptions()
    ) throws(StoreError) -> Bool {
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            let waiting = try pendingConflicts(of: key).sorted {
                $1.conflict.remote.version.isLater(than: $0.conflict.remote.version)
            }
            // The ones that are no conflict any more go with the next exchange.
            guard let last = waiting.last,
                var outcome = last.conflict.settled(as: resolution)
            else { return false }
            let others = waiting.dropLast().map(\.conflict.remote)
            outcome = outcome.descending(from: others)
            if try apply(outcome, journal, last.peer) { return true }
        }
        throw Self.changedMeanwhile
    }

    /// Settles a conflict that waits, by a write here that descends from both versions. The next
    /// exchange hands it over.
    ///
    /// - Parameters:
    ///   - resolution: ``Resolution/stop`` leaves it as it is.
    ///   - journal: what the journal keeps of it.
    /// - Throws: `versionMismatch` if the record has been changed here since; the next exchange
    ///   tells the conflict as it is then. Otherwise what `put` throws.
    public func settle(
        _ conflict: Conflict, as resolution: Resolution,
        journal: SyncJournalOptions = SyncJournalOptions()
    ) throws(StoreError) {
        guard let outcome = conflict.settled(as: resolution) else { return }
        guard try apply(outcome, journal, nil) else { throw Self.changedMeanwhile }
    }

    /// - Returns: false if the record was changed meanwhile; then nothing has happened.
    private func apply(
        _ outcome: ConflictSettlement.Outcome, _ journal: SyncJournalOptions, _ peer: ReplicaID?
    ) throws(StoreError) -> Bool {
        let seen = outcome.seen
        let book = try PendingBook(self, of: outcome.conflict.key)
        var batch = ReplicationBatch()
        batch.writes = outcome.writes
        batch.notes = try ConflictJournal(self, journal.bounded).notes(
            of: [(outcome, batch.writes.count - 1)],
            by: ConflictJournal.Source(policy: .application, peer: peer))
        batch.notes += try book.notes(
            removing: book.entries.filter { seen.contains($0.version.dot) })
        return try replicate(batch.claimingNothingHeld(in: self)).isEmpty
    }

    private static var changedMeanwhile: StoreError {
        StoreError(
            .versionMismatch,
            "the record was changed here since the conflict was told; synchronise again and "
                + "settle the conflict as it is then")
    }
}

extension ConflictSettlement.Outcome {
    /// What it descends from of the other sides.
    fileprivate var seen: VersionVector {
        var seen = conflict.remote.version.vector
        for write in writes {
            if case .adopt(_, let version, _) = write.content { seen.formUnion(version.vector) }
        }
        return seen
    }

    /// The same descending from further versions, which are stored before it.
    fileprivate func descending(from others: [Record]) -> ConflictSettlement.Outcome {
        guard !others.isEmpty, let last = writes.last,
            case .resolve(let value, let seen, let expiresAt) = last.content
        else { return self }
        let vector = others.reduce(seen.vector) { $0.union($1.version.vector) }
        let adopted = others.map { record in
            ReplicatedWrite(
                key: last.key,
                content: .adopt(
                    value: record.value, version: record.version, expiresAt: record.expiresAt),
                expected: last.expected)
        }
        // The others are earlier, so the time of what is seen is the greatest of all.
        let all = Version(dot: seen.dot, vector: vector, time: seen.time, author: seen.author)
        let final = ReplicatedWrite(
            key: last.key, content: .resolve(value: value, seen: all, expiresAt: expiresAt),
            expected: last.expected)
        return ConflictSettlement.Outcome(
            conflict: conflict, writes: adopted + writes.dropLast() + [final],
            settlement: settlement, report: report)
    }
}
