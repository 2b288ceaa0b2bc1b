internal import Synchronization

// Who finds gaps before a reader needs them.
//
// After a million deletions at the front of a dataset the first walk would have to pass over all of
// them. So whoever deletes in the order of keys is followed by a thread of the store, the scout. It
// passes over what was deleted, a thousand deletions behind the writer, and notes the span as a
// walk would (`GapMemory.swift`). Each dead record costs it a step, once, and a reader is left with
// those that were deleted last.
//
//     writer   delete ······ 1,024th in a row, in order: asks ··········· 2,048th: asks
//     scout                  └─ from the first of the row to the first live record ─┘
//
// It does what it was asked for last. What it did not come to, since it was asked for something
// else, the store was closed or a block could not be read, the first walk finds that comes there:
// nothing depends on the scout but time. Deletions in no order are not followed, since a walk over
// them comes to a live record at once.
//
// Thread rule: it holds no lock while it walks, and keeps its view for a bounded number of steps.

/// Where the scout is to begin.
struct ScoutRequest {
    let dataset: DatasetID
    let start: [UInt8]

    /// Takes another place in, as far as one walk can come by both.
    mutating func join(_ other: ScoutRequest) {
        let comesByBoth =
            other.dataset == dataset && start.lexicographicallyPrecedes(other.start)
        if !comesByBoth { self = other }
    }
}

extension Engine {
    /// Whether there is a thread for it: where merging does not go by itself, nor does this.
    var hasScout: Bool {
        options.compactsAutomatically && !options.runsInline && !options.isReadOnly
    }

    // MARK: - Asking

    /// Takes note of a deletion. Under `monitor`.
    @inline(__always)
    func noteDeletion(of key: ByteView, in dataset: DatasetID, _ memtable: Memtable) {
        if deletionRow.add(key, in: dataset) { lookAtRow(endingAt: key, in: dataset, memtable) }
    }

    /// Under `monitor`.
    @inline(never)
    private func lookAtRow(
        endingAt key: ByteView, in dataset: DatasetID, _ memtable: Memtable
    ) {
        guard let isInOrder = memtable.deletesInOrder(dataset) else { return deletionRow.wait() }
        if isInOrder {
            // Of a row that goes down the last is the first that a walk comes to.
            let isDownward = KeyRange.compare(key, deletionRow.start) < 0
            let request = ScoutRequest(
                dataset: dataset, start: isDownward ? key.array : deletionRow.start)
            if scoutRequest == nil {
                scoutRequest = request
            } else {
                scoutRequest?.join(request)
            }
            if hasScout { scoutChanged.broadcast() }
        }
        deletionRow.begin(at: key)
    }

    // MARK: - The scout

    /// The body of the scout's thread.
    func runScouting() {
        monitor.lock()
        defer { monitor.unlock() }
        while !isClosed {
            if !scoutOnce() { monitor.wait(for: scoutChanged) }
        }
    }

    /// Does what was asked for last. Under `monitor`, which it gives up meanwhile. Returns false if
    /// nothing was.
    func scoutOnce() -> Bool {
        guard let request = scoutRequest else { return false }
        scoutRequest = nil
        isScouting = true
        do {
            monitor.unlock()
            defer { monitor.lock() }
            // A block that cannot be read is for whoever wants what is in it.
            try? scout(request)
        }
        isScouting = false
        scoutChanged.broadcast()
        return true
    }

    /// Passes over dead records from a key on, up to the first live one, and notes that nothing
    /// lives there. O(dead records that are in no gap yet).
    ///
    /// - Parameter partMax: of them are passed over in one go; 1 or more.
    /// - Throws: `closed`, also while it walks; `corruption`, `inputOutput`.
    func scout(
        _ request: ScoutRequest, partMax: Int = Engine.scoutedMax
    ) throws(StoreError) {
        var start: [UInt8]? = request.start
        while let first = start {
            start = try scoutPart(of: request.dataset, from: first, countMax: partMax)
        }
    }

    /// Dead records that are passed over in one go: what takes some ten milliseconds, for which it
    /// keeps its view. Not fewer, since a writer of batches lets nobody in between for as long as
    /// each takes.
    static let scoutedMax = 65_536

    /// Returns where to go on; nil at a live record or at the end.
    private func scoutPart(
        of dataset: DatasetID, from key: [UInt8], countMax: Int
    ) throws(StoreError) -> [UInt8]? {
        let (moment, putCount) = try monitor.withLock { () throws(StoreError) in
            try checkOpen()
            return (momentNow(), counted.puts)
        }
        var start = key
        let known = unsafe key.withUnsafeBytes {
            unsafe gaps.gap(around: ByteView($0), in: dataset, at: moment)
        }
        if let known {
            guard let upperBound = known.upperBound else { return nil }
            start = upperBound
        }
        var cursor = try MergeCursor(moment.view, order: .forward)
        try KeyPosition(dataset: dataset, key: start).withPosition {
            (position) throws(StoreError) in try cursor.seek(position)
        }
        var count = 0
        defer { gaps.noteScouted(count) }
        var end: [UInt8]?
        var isCut = false
        walk: while let entry = cursor.entry, entry.dataset == dataset {
            if entry.sequence > moment.sequenceMax {
                try cursor.advance()
                continue
            }
            let isLive = entry.isLive(at: moment.now)
            isCut = count == countMax && !isLive
            if isLive || isCut {
                end = entry.key.array
                break walk
            }
            count += 1
            guard count % GapMemory.passedMin == 0 else {
                try cursor.advancePastKey()
                continue
            }
            // Closing waits for this thread.
            if refusesReaders.load(ordering: .relaxed) { try checkReadable() }
            if let next = gaps.gap(around: entry.key, in: dataset, at: moment) {
                guard let upperBound = next.upperBound else { break walk }
                try KeyPosition(dataset: dataset, key: upperBound).withPosition {
                    (position) throws(StoreError) in try cursor.seek(position)
                }
            } else {
                try cursor.advancePastKey()
            }
        }
        // What goes on from a gap takes no place of its own, however short.
        if count >= GapMemory.passedMin || known != nil && count > 0 {
            note(
                KeyGap(dataset: dataset, from: start, upTo: end, at: moment), order: .forward,
                putCount: putCount)
        }
        return isCut ? end : nil
    }
}

extension Store {
    /// Does what the scout was asked for, as its thread does, and returns whether it was asked. For
    /// stores without that thread.
    package func scoutStep() -> Bool {
        engine.monitor.withLock { engine.scoutOnce() }
    }

    /// For tests: has the dead records of a dataset passed over from a key on.
    ///
    /// - Parameter partMax: how many in one go; 1 or more.
    package func scout(
        _ dataset: Dataset, from key: [UInt8], partMax: Int = .max
    ) throws(StoreError) {
        let scope = try engine.momentAndScope(of: dataset.state).scope
        try engine.scout(
            ScoutRequest(dataset: scope.id, start: key),
            partMax: min(partMax, Engine.scoutedMax))
    }

    /// For tests: dead records that the scout has passed over.
    package var deadRecordsScouted: UInt64 { engine.gaps.scoutedCount }
}
