import Tidemark

// Held writes in an exchange. Nothing of it looks at a dataset of which nothing is held.

extension SyncSession {
    /// Whether a date decides between two versions, so that one that is not believed is held.
    /// A part holds nothing: what of its key leaves the scope it is never told, so it could not say
    /// whether a held write still counts.
    var isHolding: Bool {
        guard case .lastWriterWins = policy else { return false }
        return part == nil
    }

    /// Lets in what is held and need not be any more.
    ///
    /// Under last writer wins that is what is believed by now. No other policy asks for a date, so
    /// under those everything that is held, because it came in a push, is taken in at once like
    /// any record that is pulled. So is in a part what was held while it was kept whole; the peer
    /// is then asked about it, as about all that others brought.
    func admitHeld() async throws(SyncError) {
        if case .lastWriterWins = policy, part == nil {
            let keys = try engine(dataset.name) { () throws(StoreError) in
                try dataset.admitDue()
            }
            if !keys.isEmpty {
                options.observer?(.localChanged(dataset: dataset.name, keys: keys))
            }
            return
        }
        // In another attempt: see `Dataset.admitDue()`.
        guard late.freshStart == nil else { return }
        waiting.firstHeld = nil
        let (book, names) = try engine(dataset.name) {
            () throws(StoreError) -> (QuarantineBook, [HeldName]) in
            let book = try QuarantineBook(dataset)
            return (book, try book.names())
        }
        var settlement = ConflictSettlement(
            dataset: dataset, policy: policy, looksForAncestors: keepsConflicts)
        for name in names {
            for _ in 0..<SyncLimits.comparisonRoundsMax {
                guard try await !admit(name, of: book, &settlement) else { break }
            }
        }
    }

    /// - Returns: false if the record was written meanwhile, so that it is to be compared again.
    private func admit(
        _ name: HeldName, of book: QuarantineBook, _ settlement: inout ConflictSettlement
    ) async throws(SyncError) -> Bool {
        let found = try engine(dataset.name) { () throws(StoreError) -> (Record, Record?)? in
            guard let held = try book.record(name) else { return nil }
            return (held, try dataset.storedRecord(for: held.key))
        }
        guard let (held, local) = found else { return true }
        let verdict = try engine(dataset.name) { () throws(StoreError) in
            try dataset.verdict(on: held, beside: local, try dataset.knowledge())
        }
        var settled: [(outcome: ConflictSettlement.Outcome, write: Int)] = []
        var batch = ReplicationBatch()
        batch.writes = verdict.outcome.writes
        if case .settle = verdict.outcome, let local {
            let isDoubtful = doubts.contain(held.version.dot)
            let answer = try await settlement.settle(
                local: local, remote: held, mustRewrite: isDoubtful)
            switch answer {
            case .settled(let outcome):
                // No settlement descends from a dot that may name another write.
                batch.writes =
                    isDoubtful
                    ? forkWrites(outcome, held, seen: doubts.seenForCertain(held, local))
                    : outcome.writes
                settled = [(outcome, batch.writes.count - 1)]
            case .pending(let conflict, let reason):
                tellWaiting(conflict)
                if waiting.firstHeld == nil { waiting.firstHeld = (held.key, reason) }
                return true
            }
        }
        batch.notes = try notes(on: settled)
        let isApplied = try engine(dataset.name) { () throws(StoreError) -> Bool in
            batch.notes.append(try book.note(dropping: held))
            if !batch.writes.isEmpty { batch.notes.append(try book.noteOfAdmission()) }
            // What else is held of the key has still to be met.
            let unheld = try batch.claimingNothingHeld(in: dataset)
            guard try dataset.replicate(unheld).isEmpty else { return false }
            if !batch.writes.isEmpty { try book.noteAdmitted() }
            return true
        }
        guard isApplied else { return false }
        for (outcome, _) in settled {
            result.note(outcome.settlement)
            if let report = outcome.report { result.note(report) }
        }
        tellApplied(batch, settled.map { $0.outcome.settlement })
        return true
    }

    /// Nothing is pushed as long as a conflict waits, also if it is with what is held.
    func checkHeldPending() throws(SyncError) {
        guard let first = waiting.firstHeld else { return }
        result.noteWaiting(first.key)
        options.observer?(.conflictsPending(dataset: dataset.name, keys: result.pending))
        throw .unsettled(first.key, first.reason)
    }

    /// Notes a record of a page as held.
    ///
    /// - Returns: false if it cannot be.
    func hold(
        _ record: Record, in batch: inout ReplicationBatch, _ held: inout [HeldArrival]
    ) throws(SyncError) -> Bool {
        let (note, isKnown) = try engine(dataset.name) {
            () throws(StoreError) -> (SystemNote?, Bool) in
            let book = try QuarantineBook(dataset)
            return (try book.note(holding: record), try book.holds(record))
        }
        guard let note else { return isKnown }
        batch.notes.append(note)
        held.append((record.key, record.version.dot, record.isDeleted))
        return true
    }

    /// After a push in which the peer found conflicts, since it takes for a record what is held
    /// here, or has a record that is concurrent with what is held here. Pulling would bring nothing
    /// new.
    ///
    /// What the peer wrote meanwhile another pull brings, and so that is tried first: the peer may
    /// hold what is held here, and have found a conflict with something else. If the conflict is
    /// still there then, and the peer has not our record, ours is written anew, having seen what is
    /// held: such a write loses to whatever it meets before its time, or the peer, whose clock
    /// believes it, could never be told anything of the key. Of several one is seen, and if that
    /// does not help the next: the conflict may be with something that one has superseded which the
    /// peer lacks, and which therefore counts as known here and never comes. Where the peer has our
    /// record, or there is none, and it lacks a held write, it was that which it refused, maybe for
    /// another one of the key that is held here and counts there: it is not handed over, and the
    /// peer may ask for it and settle it.
    ///
    /// - Returns: whether that accounts for all of the conflicts.
    func settleHeld(_ keys: [[UInt8]]) throws(SyncError) -> Bool {
        // A peer that finds conflicts and names none would be asked for ever.
        guard isHolding, !keys.isEmpty else { return false }
        let peerHas = doubts.trusted(remote?.vector ?? VersionVector())
        let held = try heldWrites(of: Set(keys), beside: peerHas)
        var batch = ReplicationBatch()
        var refused: [[UInt8]] = []
        try engine(dataset.name) { () throws(StoreError) in
            for key in keys {
                guard let held = held[key] else { continue }
                guard let local = try dataset.storedRecord(for: key), !local.isDropped else {
                    // Nothing else of the key was handed over.
                    if held.isLacking { refused.append(key) }
                    continue
                }
                guard !doubts.contain(local.version.dot) else { continue }
                let isOurs =
                    !peerHas.contains(local.version.dot) || !peerHas.covers(local.version.vector)
                let isMetAgain = !waiting.metConflicts.insert(key).inserted
                if !isOurs, held.isLacking {
                    refused.append(key)
                } else if isOurs, isMetAgain, let seen = held.unseen(by: local.version.vector) {
                    batch.writes.append(
                        ReplicatedWrite(
                            key: key,
                            content: .resolve(
                                value: local.value, seen: seen, expiresAt: local.expiresAt),
                            expected: local.version))
                }
                // Otherwise something else may be in the way, which another pull brings.
            }
        }
        let newlyRefused = refused.filter { waiting.withheld.insert($0).inserted }
        if !batch.writes.isEmpty {
            let moved = try engine(dataset.name) { () throws(StoreError) in
                // They have seen what was found above, and nothing else that is held.
                try dataset.replicate(batch.claimingNothingHeld(in: dataset))
            }
            guard moved.isEmpty else { return false }
        }
        return batch.writes.count + newlyRefused.count == keys.count
    }

    /// What is held of a key beside what the peer has.
    private struct HeldVersions {
        private var there: [Version] = []
        private var lacking: [Version] = []

        /// Whether the peer lacks any of it.
        var isLacking: Bool { !lacking.isEmpty }

        /// - Parameter isThere: whether the peer has it, as its record or held as it is here.
        mutating func add(_ version: Version, isThere: Bool) {
            if isThere { there.append(version) } else { lacking.append(version) }
        }

        /// What a record has to see next of which the peer cannot be told, one at a time: the
        /// earliest that the peer has, which its clock believes before the others. nil if it has
        /// seen all.
        func unseen(by vector: VersionVector) -> Version? {
            for versions in [there, lacking] {
                let unseen = versions.filter { !vector.covers($0.vector) }
                if let next = unseen.min(by: { $1.isLater(than: $0) }) { return next }
            }
            return nil
        }
    }

    /// What is held of some keys.
    private func heldWrites(
        of keys: Set<[UInt8]>, beside peerHas: VersionVector
    ) throws(SyncError) -> [[UInt8]: HeldVersions] {
        var held: [[UInt8]: HeldVersions] = [:]
        try engine(dataset.name) { () throws(StoreError) in
            try QuarantineBook(dataset).each { (record) throws(StoreError) in
                let version = record.version
                // No write may descend from a dot that may name another one.
                guard keys.contains(record.key), !doubts.contain(version.dot) else { return true }
                held[record.key, default: HeldVersions()]
                    .add(version, isThere: peerHas.contains(version.dot))
                return true
            }
        }
        return held
    }

    /// What was held of a page.
    func tellHeld(_ keys: [[UInt8]]) {
        guard !keys.isEmpty else { return }
        result.quarantined += keys.count
        options.observer?(.quarantined(dataset: dataset.name, keys: keys))
    }
}
