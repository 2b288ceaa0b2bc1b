// Records that expire.
//
// From its time of expiry on a record counts as deleted for every reader, by the wall clock of the
// store that it is read from. Nothing has to happen for that. A sweep later puts a tombstone in
// the place of the value, so that its space comes back and followers of changes are told.
//
// The tombstone has the version of the record itself: the same dot, vector, time and author, and
// the time of expiry. To replicate an expiry no write is needed that has a dot of its own: whoever
// has the version knows when it ends. So two replicas that sweep the same record cannot conflict;
// a peer that has the version is sent nothing, since its vector says so; one that lacks it adopts
// either form, and both mean the same once its clock has passed the time; and the digest counts
// both alike.

extension EngineParts {
    /// Whether the record of an entry has expired by now. Costs a comparison where nothing expires.
    @inline(__always)
    func hasExpired(_ entry: Entry) -> Bool {
        entry.hasExpiry && isPast(entry.expiresAt)
    }

    @inline(never)
    private func isPast(_ milliseconds: UInt64) -> Bool {
        milliseconds <= storage.wallClockMilliseconds()
    }
}

extension EngineState {
    func noteExpiry(of kind: EntryKind, _ expiresAt: UInt64, in state: DatasetState) {
        state.noteExpiry(of: kind, expiresAt)
        guard expiry.note(state.expiresFrom) else { return }
        // Whoever sleeps until the first record expires must not sleep past this one.
        if options.compactsAutomatically { broadcast() }
    }
}

extension Engine {
    /// Learns when the first record expires that has not yet, and which datasets have some that
    /// have. O(datasets).
    private func datasetsDue() throws(StoreError) -> [String] {
        let now = withLock { held in
            held.expiry.beginWalk()
            return storage.wallClockMilliseconds()
        }
        var found: UInt64?
        defer { withLock { held in held.expiry.endWalk(found: found) } }
        var walk = try DatasetWalk(self, .known)
        var due: [String] = []
        var first = UInt64.max
        while let dataset = try walk.next() {
            let state = try walk.state(of: dataset)
            let expiresFrom = withLock { held in state.expiresFrom }
            if expiresFrom <= now { due.append(dataset.name) }
            first = min(first, expiresFrom)
        }
        found = first
        return due
    }
}

extension EngineState {
    // MARK: - In the background

    /// Sweeps if there is anything to sweep and it is time. It gives the lock up meanwhile.
    /// Returns false if nothing was due.
    func sweepIfDue() -> Bool {
        let now = storage.wallClockMilliseconds()
        guard options.compactsAutomatically, failure == nil, !turn.isTaken, expiry.isDue(at: now)
        else { return false }
        turn.take()
        let result = unlocked { engine in
            Result { () throws(StoreError) in try engine.sweepAll() }
        }
        turn.giveBack()
        expiry.rest(afterSweepFrom: now, to: storage.wallClockMilliseconds())
        // What only this attempt could not read is tried again when it is time.
        if case .failure(let error) = result, !error.isOfEnvironment {
            events.tellDamage(error)
            // What stops a writer was noted where it happened. A damaged block is reported by
            // whoever reads it, and sweeping rests until the store is opened again.
            expiry.restForGood()
        }
        broadcast()
        return true
    }

    /// Waits for a broadcast, or until a sweep may be due.
    func waitForWorkOrExpiry() {
        guard options.compactsAutomatically, failure == nil,
            let pause = expiry.pause(at: storage.wallClockMilliseconds())
        else { return wait() }
        wait(milliseconds: pause)
    }
}

extension Engine {
    // MARK: - Sweeping

    /// Deletes all that has expired, for a caller who does not wait for the background.
    func deleteExpired() throws(StoreError) -> Int {
        try withLock { (held) throws(StoreError) in
            try held.checkWritable()
            try held.checkIsNoCompactor()
            while held.turn.isTaken {
                held.wait()
                try held.checkWritable()
            }
            held.turn.take()
        }
        defer { endCompaction() }
        return try sweepAll()
    }

    /// Returns how many records were deleted. By one thread at a time.
    fileprivate func sweepAll() throws(StoreError) -> Int {
        let start = ticks
        let isAnyDue = withLock { held in
            held.expiry.hasExpired(at: storage.wallClockMilliseconds())
        }
        guard isAnyDue else { return 0 }
        var count = 0
        let due = try datasetsDue()
        for name in due {
            if let state = try existingState(named: name) { count += try sweep(state) }
        }
        if !due.isEmpty { _ = try datasetsDue() }
        noteSweep(datasets: due.count, records: count, since: start)
        return count
    }

    /// Walks over a dataset and deletes what has expired. O(n).
    private func sweep(_ state: DatasetState) throws(StoreError) -> Int {
        let (moment, id) = try withLock { (held) throws(StoreError) in
            try held.checkWritable()
            state.beginSweep()
            return (momentAsStored(), state.recordsID)
        }
        let now = storage.wallClockMilliseconds()
        var next: UInt64?
        defer {
            withLock { held in
                let isSame = state.recordsID == id
                state.endSweep(next: isSame ? next : nil)
                if isSame { held.touch(state) }
            }
        }
        guard id != 0 else {
            next = .max
            return 0
        }
        var first = UInt64.max
        var expired: [[UInt8]] = []
        var count = 0
        var passedCount = 0
        var steps = try ScanSteps(
            moment, dataset: id, range: .all, order: .forward, includingDeleted: false)
        while let isExpiring = try steps.next({ entry, _ in
            guard entry.hasExpiry else { return false }
            if entry.expiresAt <= now {
                expired.append(entry.key.array)
            } else {
                first = min(first, entry.expiresAt)
            }
            return true
        }) {
            passedCount += 1
            // Closing waits for this thread.
            if passedCount % SegmentMerge.stepsMax == 0, withLock({ held in held.isClosing }) {
                throw .closed(path)
            }
            guard isExpiring, expired.count >= Self.sweepBatchCount else { continue }
            count += try bury(expired, in: state, id: id, now: now)
            expired.removeAll(keepingCapacity: true)
        }
        if !expired.isEmpty { count += try bury(expired, in: state, id: id, now: now) }
        next = first
        return count
    }

    /// Records deleted at a time, so that writers never wait long.
    private static let sweepBatchCount = 128

    /// Puts tombstones in the place of those records that are still there and have expired.
    private func bury(
        _ keys: [[UInt8]], in state: DatasetState, id: DatasetID, now: UInt64
    ) throws(StoreError) -> Int {
        var found: [Expired] = []
        let count = try commitBlock(.memory, waking: state.name) { (held) throws(StoreError) in
            found = state.recordsID == id ? try held.expired(keys, in: id, now: now) : []
            let changed = StateItem.dataset(state, state.lifecycle).byteCount
            return found.reduce(changed) { sum, record in
                sum + LogBlockWriter.byteCountMax(key: record.key.count, value: 0)
                    + LogBlockWriter.definitionBytesMax(record.version.vector)
            }
        } write: { (held, block, memtable) throws(StoreError) -> Int? in
            guard !found.isEmpty else { return nil }
            // Of a deleted dataset these may be all that is left.
            var isEmptied = false
            if state.lifecycle.isDeleted, state.isVisible {
                isEmptied = try !held.hasLiveRecords(state, besides: Set(found.map(\.key)))
            }
            for record in found {
                let expiresAt = options.make(.sweepForgetsExpiry) ? 0 : record.expiresAt
                try record.key.withBytes { (key) throws(StoreError) in
                    held.adopt(
                        record.version, .delete, key, .empty, expiresAt: expiresAt,
                        into: state, &block, memtable)
                }
            }
            if isEmptied {
                held.change(state, to: state.lifecycle, id: id, isVisible: false, &block)
            }
            return found.count
        }
        return count ?? 0
    }
}

extension EngineState {
    fileprivate func expired(
        _ keys: [[UInt8]], in id: DatasetID, now: UInt64
    ) throws(StoreError) -> [Expired] {
        var found: [Expired] = []
        for key in keys {
            let record = try key.withBytes { (bytes) throws(StoreError) -> Expired? in
                try currentView.withNewest(of: bytes, in: id, sequenceMax: .max) {
                    (entry, tables) throws(StoreError) -> Expired? in
                    guard let entry, let tables, entry.kind == .put, !entry.isLive(at: now)
                    else { return nil }
                    return Expired(
                        key: key, version: tables.version(of: entry), expiresAt: entry.expiresAt)
                }
            }
            if let record { found.append(record) }
        }
        return found
    }
}

private struct Expired {
    let key: [UInt8]
    let version: Version
    let expiresAt: UInt64
}
