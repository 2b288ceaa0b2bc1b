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

/// What the scout is asked for, and the deletions that lead to it.
struct ScoutOrders {
    /// The deletions that came last.
    var row = DeletionRow()
    /// Of several requests the last, with what joins it.
    private var request: ScoutRequest?
    /// Whether the scout is on its way.
    private var isUnderWay = false

    /// Whether nothing is asked for and nothing is under way.
    var isIdle: Bool { request == nil && !isUnderWay }

    mutating func ask(for next: ScoutRequest) {
        if request == nil {
            request = next
        } else {
            request?.join(next)
        }
    }

    /// What is to be done now, after which comes ``end()``; nil if there is nothing.
    mutating func begin() -> ScoutRequest? {
        guard !isUnderWay, let next = request else { return nil }
        (request, isUnderWay) = (nil, true)
        return next
    }

    mutating func end() {
        precondition(isUnderWay, "the scout comes back and never went")
        isUnderWay = false
    }
}

extension EngineParts {
    /// Whether there is a thread for it: where merging does not go by itself, nor does this.
    var hasScout: Bool {
        options.compactsAutomatically && !options.runsInline && !options.isReadOnly
    }
}

extension EngineState {
    // MARK: - Asking

    /// Takes note of a deletion.
    @inline(__always)
    func noteDeletion(of key: ByteView, in dataset: DatasetID, _ memtable: Memtable) {
        if scouting.row.add(key, in: dataset) { lookAtRow(endingAt: key, in: dataset, memtable) }
    }

    @inline(never)
    private func lookAtRow(
        endingAt key: ByteView, in dataset: DatasetID, _ memtable: Memtable
    ) {
        guard let isInOrder = memtable.deletesInOrder(dataset) else { return scouting.row.wait() }
        if isInOrder {
            // Of a row that goes down the last is the first that a walk comes to.
            let isDownward = KeyRange.compare(key, scouting.row.start) < 0
            let request = ScoutRequest(
                dataset: dataset, start: isDownward ? key.array : scouting.row.start)
            scouting.ask(for: request)
            if hasScout { scoutChanged.broadcast() }
        }
        scouting.row.begin(at: key)
    }
}

extension Engine {
    // MARK: - The scout

    /// The body of the scout's thread.
    func runScouting() {
        withLock { held in
            while !held.isClosed {
                if !held.scoutOnce() { held.wait(for: held.scoutChanged) }
            }
        }
    }
}

extension EngineState {
    /// Does what was asked for last. It gives the lock up meanwhile. Returns false if nothing was.
    func scoutOnce() -> Bool {
        guard let request = scouting.begin() else { return false }
        // A block that cannot be read is for whoever wants what is in it.
        unlocked { engine in try? engine.scout(request) }
        scouting.end()
        scoutChanged.broadcast()
        return true
    }
}

extension Engine {
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
}

extension EngineParts {
    /// Dead records that are passed over in one go: what takes some ten milliseconds, for which it
    /// keeps its view. Not fewer, since a writer of batches lets nobody in between for as long as
    /// each takes.
    static let scoutedMax = 65_536
}

extension Engine {
    /// Returns where to go on; nil at a live record or at the end.
    private func scoutPart(
        of dataset: DatasetID, from key: [UInt8], countMax: Int
    ) throws(StoreError) -> [UInt8]? {
        let (moment, putCount) = try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return (momentNow(), held.counted.puts)
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
            if published.refusesReaders.load(ordering: .relaxed) { try checkReadable() }
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
        engine.withLock { held in held.scoutOnce() }
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
