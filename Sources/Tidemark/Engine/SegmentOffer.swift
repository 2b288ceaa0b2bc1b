/// What a replica that has nothing of a dataset may take over as it lies in the sealed segments of
/// another: which blocks, and what is known of the dataset once they are there.
///
/// All of it is of one moment, the end of the last log that was sealed. What came after that is
/// exchanged record by record, from `syncCount` on.
package struct SegmentOffer: Hashable, Sendable {
    /// A part of a dataset that lies in one segment.
    package struct Segment: Hashable, Sendable {
        package var number: UInt64
        /// A hash of the segment's footer: of another segment that came to have the number
        /// it would be another.
        package var identity: UInt64
        /// Entries of the dataset.
        package var entryCount: UInt64
        /// Blocks in which these lie.
        package var blockCount: Int
        /// About how many bytes these have as they are stored.
        package var byteCount: UInt64
        /// The tables by whose numbers the entries name their origins, in the form of a segment's
        /// block of kind `tables`. What only other datasets name is unrecognisable.
        package var tables: [UInt8]

        package init(
            number: UInt64, identity: UInt64, entryCount: UInt64, blockCount: Int,
            byteCount: UInt64, tables: [UInt8]
        ) {
            self.number = number
            self.identity = identity
            self.entryCount = entryCount
            self.blockCount = blockCount
            self.byteCount = byteCount
            self.tables = tables
        }
    }

    /// The number of the dataset in the entries, which it must have at the receiver, too.
    package var dataset: UInt32
    /// Of the moment: its vector has been applied whole among the entries.
    package var knowledge: DatasetKnowledge
    /// Of exchanges that had begun and not ended.
    package var outstanding: VersionVector
    /// See the state of a dataset in the file format.
    package var expiredThrough: UInt64
    package var wipedTime: UInt64
    /// What merges have dropped of the dataset: up to which count tombstones, and from which count
    /// and time on everything is there.
    package var collectedThrough: UInt64
    package var wholeFrom: UInt64
    package var wholeFromTime: UInt64
    /// Newest run first, within a run in the order of the entries; none of them empty.
    package var runs: [[Segment]]

    package init(
        dataset: UInt32, knowledge: DatasetKnowledge, outstanding: VersionVector,
        expiredThrough: UInt64, wipedTime: UInt64, collectedThrough: UInt64, wholeFrom: UInt64,
        wholeFromTime: UInt64, runs: [[Segment]]
    ) {
        self.dataset = dataset
        self.knowledge = knowledge
        self.outstanding = outstanding
        self.expiredThrough = expiredThrough
        self.wipedTime = wipedTime
        self.collectedThrough = collectedThrough
        self.wholeFrom = wholeFrom
        self.wholeFromTime = wholeFromTime
        self.runs = runs
    }

    package var byteCount: UInt64 {
        runs.joined().reduce(0) { sum, segment in
            let (total, isTooLarge) = sum.addingReportingOverflow(segment.byteCount)
            return isTooLarge ? .max : total
        }
    }

    var loss: HistoryLoss {
        HistoryLoss(
            collectedThrough: collectedThrough, wholeFrom: wholeFrom,
            wholeFromTime: wholeFromTime)
    }
}

/// Some data blocks as they are stored.
package struct StoredBlocks: Hashable, Sendable {
    /// Blocks one right after the other, each with its header, which tells its length.
    package var bytes: [UInt8]
    /// The first of the offered blocks that is not among them.
    package var next: Int

    package init(bytes: [UInt8], next: Int) {
        self.bytes = bytes
        self.next = next
    }
}

extension Dataset {
    /// What of the dataset lies in sealed segments, for a replica that has nothing of it; nil if
    /// there is less than that, or if it must be exchanged record by record: because values lie
    /// apart, or the dataset was deleted or made anew since the last log was sealed.
    ///
    /// If much of it is in the log only, that is sealed first, as it would be when it is full.
    /// O(segments), and O(entries) of segments that hold other datasets, too.
    ///
    /// - Parameter bytesMin: of stored blocks.
    package func segmentOffer(bytesMin: UInt64) throws(StoreError) -> SegmentOffer? {
        try engine.sealForOffer(of: state)
        return try engine.segmentOffer(of: state, bytesMin: bytesMin)
    }

    /// Blocks of an offer as they are stored; nil if the segment is no longer there, because it
    /// was merged with others. Then another offer has what took its place.
    ///
    /// - Parameters:
    ///   - first: 0 for the first block of the dataset in the segment.
    ///   - bytesMax: of blocks before the last one, which may be of any size.
    package func storedBlocks(
        of number: UInt64, identity: UInt64, from first: Int, countMax: Int, bytesMax: Int
    ) throws(StoreError) -> StoredBlocks? {
        let (view, id) = try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return (engine.currentView, state.recordsID)
        }
        guard id != 0,
            let segment = view.segments.first(where: { $0.number == number }),
            segment.offerIdentity == identity
        else { return nil }
        let parts = try segment.parts()
        let buffer = BlockBuffer()
        let range = try parts.blocks(of: id, buffer)
        guard first >= 0, first < range.blocks.count, segment.values.files.isEmpty else {
            return nil
        }
        let start = range.blocks.lowerBound + first
        let wanted = start..<(start + min(max(1, countMax), range.blocks.upperBound - start))
        var bytes: [UInt8] = []
        let end = Int(parts.directory.offset(of: wanted.upperBound))
        let most = end - Int(parts.directory.offset(of: start))
        bytes.reserveCapacity(min(most, max(0, bytesMax)))
        let next = try parts.appendStored(
            wanted, of: id, in: range, bytesMax: bytesMax, to: &bytes, buffer)
        return StoredBlocks(bytes: bytes, next: next - range.blocks.lowerBound)
    }
}

extension SealedSegment {
    /// Tells it from any other that came to have its number.
    var offerIdentity: UInt64 {
        let bytes = footer.fields
        return unsafe bytes.withUnsafeBytes { unsafe checksum64($0) }
    }
}

extension Store {
    /// Seals what is in the log. For tests.
    package func sealAll() throws(StoreError) {
        try engine.sealLog { _ in true }
    }
}
