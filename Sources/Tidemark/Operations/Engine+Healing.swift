// Damaged blocks are healed in two steps, and a crash between them only leaves the second undone.
//
// 1. Records that a block hides come back from elsewhere under their own versions, as new entries
//    of the log. A key is hidden if nothing newer than the block holds it, and the hash index says
//    that its newest entry may lie in the block. Whether that is so is asked under the writer lock,
//    so that what was written meanwhile stands.
// 2. When all that a block can have hidden is there, durably, the segments with the block are
//    written anew without it. Nothing else of them changes, and their run stays where it is in the
//    order of runs: so what was newer than an entry stays newer.
//
// A block goes only if the hash index names no key in it that nobody knows any more. What the block
// held of the past is gone: the segments note that history begins now.

extension EngineParts {
    // MARK: - What is hidden

    /// Whether the newest version of a key may lie in one of the blocks.
    func isHidden(
        _ key: ByteView, in dataset: DatasetID, by skipped: SkippedBlocks, _ view: ReadView
    ) throws(StoreError) -> Bool {
        let hash = view.keyHash.of(key, in: dataset)
        for memtable in view.memtables {
            let found = memtable.newest(
                of: key, in: dataset, hash: hash, sequenceMax: .max)
            if found != nil { return false }
        }
        for segment in view.segments {
            let standing = try segment.parts().standing(
                of: key, in: dataset, hash: hash, skipping: skipped[segment.number] ?? [])
            switch standing {
            case .absent: continue
            case .readable: return false
            case .hidden: return true
            }
        }
        return false
    }
}

extension Engine {
    /// Which of these keys are hidden, and in which places of the piece's block entries of any of
    /// them may lie.
    func examine(
        _ keys: [[UInt8]], of piece: DamageSurvey.Piece, in survey: DamageSurvey
    ) throws(StoreError) -> HiddenKeys {
        let view = try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return currentView
        }
        let parts = try parts(of: piece.place, in: view)
        var hidden = HiddenKeys()
        for key in keys {
            try examine(key, of: piece, in: survey, view, parts, &hidden)
        }
        return hidden
    }

    /// The same of all keys of the piece's range that can still be read here in some version.
    /// O(entries in the range).
    func examineReadable(
        of piece: DamageSurvey.Piece, in survey: DamageSurvey
    ) throws(StoreError) -> HiddenKeys {
        let view = try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return currentView
        }
        let parts = try parts(of: piece.place, in: view)
        var runs: [RunCursor] = []
        for run in view.runs { runs.append(try RunCursor(run, skipping: survey.skipped)) }
        let memtables = view.memtables.filter { !$0.isEmpty }.map { MemtableCursor($0) }
        var cursor = MergeCursor(memtables: memtables, runs: runs, order: .forward)
        let start = KeyPosition(dataset: piece.id, key: piece.keys.lowerBound ?? [])
        try start.withPosition { (position) throws(StoreError) in try cursor.seek(position) }
        var hidden = HiddenKeys()
        var last: [UInt8]?
        while let entry = cursor.entry, entry.dataset == piece.id, piece.keys.contains(entry.key) {
            // Whether it has the key of the one before an entry says only of its own segment.
            let key = entry.key.array
            if key != last {
                try examine(key, of: piece, in: survey, view, parts, &hidden)
                last = key
            }
            try cursor.advance()
        }
        return hidden
    }

    private func examine(
        _ key: [UInt8], of piece: DamageSurvey.Piece, in survey: DamageSurvey, _ view: ReadView,
        _ parts: SegmentParts?, _ hidden: inout HiddenKeys
    ) throws(StoreError) {
        try key.withBytes { (bytes) throws(StoreError) in
            if try isHidden(bytes, in: piece.id, by: survey.skipped, view) {
                hidden.keys.append(key)
            }
            // Without the index there are no places to be accounted for, either.
            let places = try unlessDamaged { () throws(StoreError) in
                try parts?.candidates(view.keyHash.of(bytes, in: piece.id)) ?? []
            }
            for place in places ?? [] where place.block == piece.place.block {
                hidden.places.insert(place.rawValue)
            }
        }
    }

    private func parts(
        of place: BlockPlace, in view: ReadView
    ) throws(StoreError) -> SegmentParts? {
        try view.segments.first { $0.number == place.segment }?.parts()
    }

    // MARK: - Restoring

    /// Writes records under their own versions, those of hidden keys. Returns how many.
    ///
    /// - Throws: `invalidArgument` if a record is out of bounds; what writing throws; `corruption`,
    ///   `inputOutput` if another block must be read and cannot. Then nothing was written.
    func restore(
        _ records: [Record], of id: DatasetID, into state: DatasetState,
        hiddenBy skipped: SkippedBlocks
    ) throws(StoreError) -> Int {
        var batch = ReplicationBatch()
        batch.writes = records.map { record in
            ReplicatedWrite(
                key: record.key,
                content: .adopt(
                    value: record.value, version: record.version, expiresAt: record.expiresAt),
                expected: nil)
        }
        try checkBounds(of: batch)
        let count = try commitBlock(nil, waking: state.name) { (held) throws(StoreError) in
            try held.bytesMax(of: batch, into: state)
        } write: { (held, block, memtable) throws(StoreError) -> Int? in
            guard state.recordsID == id else { return nil }
            var due: [ReplicatedWrite] = []
            for write in batch.writes
            where !state.lifecycle.wiped.covers(write.version.vector) {
                let isDue = try write.key.withBytes { (key) throws(StoreError) in
                    try isHidden(key, in: id, by: skipped, currentView)
                }
                if isDue { due.append(write) }
            }
            guard !due.isEmpty else { return nil }
            _ = try held.apply(due, to: state, &block, memtable)
            return due.count
        }
        return count ?? 0
    }
}

/// Keys of which the newest version is hidden.
package struct HiddenKeys: Sendable {
    package var keys: [[UInt8]] = []
    /// Places in the block in question.
    package var places: Set<UInt32> = []
}

extension Dataset {
    /// Which of these keys of a piece of this dataset are hidden by damage.
    package func examine(
        _ keys: [[UInt8]], of piece: DamageSurvey.Piece, in survey: DamageSurvey
    ) throws(StoreError) -> HiddenKeys {
        try engine.examine(keys, of: piece, in: survey)
    }

    /// The same of all keys in the piece's range of which anything can be read.
    package func examineReadable(
        of piece: DamageSurvey.Piece, in survey: DamageSurvey
    ) throws(StoreError) -> HiddenKeys {
        try engine.examineReadable(of: piece, in: survey)
    }

    /// Writes those of the records under their own versions that are hidden by damage.
    package func restore(
        _ records: [Record], of piece: DamageSurvey.Piece, in survey: DamageSurvey
    ) throws(StoreError) -> Int {
        try engine.restore(records, of: piece.id, into: state, hiddenBy: survey.skipped)
    }
}
