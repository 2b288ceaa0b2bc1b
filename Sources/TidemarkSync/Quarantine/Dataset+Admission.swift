import Tidemark

extension Store {
    /// Whether a write is dated further ahead than this store believes.
    func isAhead(_ version: Version) -> Bool { version.time > latestBelieved }
}

extension Record {
    /// Whether a held write of the key counts no more beside this record: it is this one, or was
    /// overwritten by what had seen it.
    ///
    /// Not if it has outlived deletions elsewhere since, and would have this record dated anew,
    /// maybe by a clock that is ahead: that still has to wait for its date.
    func hasOverwritten(_ held: Record) -> Bool {
        if version.dot == held.version.dot { return version.time >= held.version.time }
        return version.vector.contains(held.version.dot)
            && (!held.version.time.isOutliving || version.supersedesAsItIs(held.version))
    }
}

extension Dataset {
    /// Whether an arriving write is to be held rather than compared.
    ///
    /// - Parameters:
    ///   - local: the record of its key.
    ///   - knowledge: of the dataset.
    func holds(
        _ arrived: Record, beside local: Record?, _ knowledge: DatasetKnowledge
    ) -> Bool {
        guard store.isAhead(arrived.version),
            !knowledge.lifecycle.wiped.covers(arrived.version.vector)
        else { return false }
        // What has no later date, or was overwritten, is nothing new.
        return !(local?.hasOverwritten(arrived) ?? false)
    }

    /// What may be claimed of the dataset to whoever is given its records and none that is held: of
    /// each replica no more than what came before the first write of it that is held. To be asked
    /// for before the records are read, so that what is let in meanwhile is among them. O(held).
    func vectorWithoutHeld() throws(StoreError) -> VersionVector {
        // In this order: what the vector claims is held, or is among the records by now.
        let vector = try vector
        return try vector.before(QuarantineBook(self).dots())
    }

    /// Lets those held writes meet the record of their key whose date is believed by now, and
    /// forgets those that were overwritten by something that had seen them. O(held).
    ///
    /// So it does, whatever the date, with those under an id that is disputed here: as records they
    /// are compared with what others have, and written anew, before the id is settled. Held on,
    /// they would go to nobody afterwards who claims to have seen their dots, and count here.
    ///
    /// Not during a fresh start, whose peer was asked about what is held: until its end it is not
    /// known here what its peer holds of a key, and not all is forgotten that a held write has to
    /// outlive where there is nothing.
    ///
    /// - Returns: the keys of records that were stored.
    @discardableResult
    func admitDue() throws(StoreError) -> [[UInt8]] {
        guard !store.options.isReadOnly else { return [] }
        let book = try QuarantineBook(self)
        let names = try book.names()
        guard !names.isEmpty else { return [] }
        let disputed = try BatonBook(self).disputed
        var stored: [[UInt8]] = []
        for name in names {
            let isDisputed = disputed.contains(name.dot.replica)
            for _ in 0..<SyncLimits.comparisonRoundsMax {
                guard try !isStartingAfresh(), let held = try book.record(name) else { break }
                let local = try storedRecord(for: held.key)
                let knowledge = try knowledge()
                guard
                    let writes = try admission(
                        of: held, beside: local, knowledge, isDisputed: isDisputed)
                else { break }
                var batch = ReplicationBatch()
                batch.writes = writes
                batch.notes = [try book.note(dropping: held)]
                if !writes.isEmpty { batch.notes.append(try book.noteOfAdmission()) }
                // What else is held of the key has still to be met.
                let unheld = try batch.claimingNothingHeld(in: self)
                guard try replicate(unheld).isEmpty else { continue }
                if !writes.isEmpty { stored.append(held.key) }
                break
            }
        }
        if !stored.isEmpty { try book.noteAdmitted() }
        return stored
    }

    /// Has what is held outlast a deletion of the dataset whose maker had seen it.
    ///
    /// It waits on under its own dot and with its own date. Its version is joined with a count of
    /// this store that names no write: so the deletion no longer covers it, and whoever had it
    /// before is told of it once more. O(held).
    ///
    /// - Parameter wiped: what the deletion had seen.
    /// - Returns: false if records were written faster than it could be noted; then some of it may
    ///   have been.
    func keepHeld(beside wiped: VersionVector) throws(StoreError) -> Bool {
        let book = try QuarantineBook(self)
        for name in try book.names() {
            var isKept = false
            for _ in 0..<SyncLimits.comparisonRoundsMax where !isKept {
                let own = store.replicaID
                let count = Dot(replica: own, counter: try vector[own] + 1)
                var batch = ReplicationBatch()
                batch.drawn = count
                if let note = try noteKeeping(name, of: book, beside: wiped, as: count) {
                    batch.notes = [note]
                    isKept = try replicate(batch).isEmpty
                } else {
                    isKept = true
                }
            }
            guard isKept else { return false }
        }
        return true
    }

    /// nil if there is nothing to be kept: it is held no more, or was overwritten, or outlasts the
    /// deletion as it is; or if it has no room for more that it has seen.
    private func noteKeeping(
        _ name: HeldName, of book: QuarantineBook, beside wiped: VersionVector, as count: Dot
    ) throws(StoreError) -> SystemNote? {
        guard let held = try book.record(name), wiped.covers(held.version.vector),
            try !knowledge().lifecycle.wiped.covers(held.version.vector)
        else { return nil }
        let local = try storedRecord(for: held.key)
        guard !(local?.hasOverwritten(held) ?? false) else { return nil }
        let version = held.version.joined(with: VersionVector([count]))
        return try book.note(
            holding: Record(
                key: held.key, value: held.value, version: version, syncCount: .zero,
                isDirty: false, expiresAt: held.expiresAt))
    }

    /// What a held write and the record of its key come to. That the dataset's vector knows of it
    /// says nothing about it: that it does is why it is held.
    func verdict(
        on held: Record, beside local: Record?, _ knowledge: DatasetKnowledge
    ) throws(StoreError) -> Verdict {
        var circumstances = Circumstances(seen: VersionVector(), wiped: knowledge.lifecycle.wiped)
        let isOverwritten = local?.hasOverwritten(held) ?? false
        if !knowledge.forgotten.isEmpty, knowledge.isNothing(local), !isOverwritten {
            circumstances.unmet = try unmet(by: held, knowledge)
        }
        return Verdict(on: held, beside: local, circumstances)
    }

    /// What a held write comes to; nil if it stays held.
    ///
    /// - Parameter isDisputed: whether its dot may name another write, so that it waits no longer.
    private func admission(
        of held: Record, beside local: Record?, _ knowledge: DatasetKnowledge, isDisputed: Bool
    ) throws(StoreError) -> [ReplicatedWrite]? {
        let verdict = try verdict(on: held, beside: local, knowledge)
        let isDue =
            isDisputed || !store.isAhead(held.version)
            || store.has(.releaseHeldEarly)
        guard isDue || !verdict.isNews || local?.hasOverwritten(held) ?? false else { return nil }
        guard case .settle = verdict.outcome, let local else { return verdict.outcome.writes }
        let outcome = Comparison.lastWriter(local: local, incoming: held)
        guard case .adopt(let value, let version, let expiresAt) = outcome else { return [] }
        let write = ReplicatedWrite(
            key: held.key,
            content: .adopt(value: value, version: version, expiresAt: expiresAt),
            expected: local.version)
        guard version.dot == held.version.dot else {
            // What stands here must not seem to have seen a dot that may name another write.
            return isDisputed ? [] : [write]
        }
        guard held.isDeleted else { return [write] }
        // Who believed the deletion may have forgotten it, and have taken the record that it meets
        // here since. There both are known: so that they have met is told as what nobody has seen.
        return [
            ReplicatedWrite(
                key: held.key,
                content: .outlive(value: value, version: version, expiresAt: expiresAt),
                expected: local.version)
        ]
    }
}
