/// What verification counts up while it reads some of the data blocks of a segment.
struct TallyPart {
    /// Data blocks that were counted.
    private(set) var blockCount = 0
    fileprivate var entryCount: UInt64 = 0
    fileprivate var tombstoneCount: UInt64 = 0
    fileprivate var keyCount = 0
    fileprivate var rawBytes: UInt64 = 0
    fileprivate var storedBytes: UInt64 = 0
    fileprivate var datasets = SegmentDatasets()
    fileprivate var changes: [Change] = []
    fileprivate var values = SegmentValueRows()
    /// Bytes of the values that lie apart, as stored.
    private(set) var valueBytes: UInt64 = 0
    /// False once a block could not be read: then there is nothing to compare.
    fileprivate var isWhole = true

    /// Takes note of a block that was checked.
    mutating func add(_ view: DataBlockView, number: Int, _ handle: BlockHandle) {
        blockCount += 1
        rawBytes += UInt64(handle.rawCount)
        storedBytes += handle.endOffset - handle.offset
        for slot in 0..<view.count {
            guard let entry = view.entry(at: slot) else { continue }
            entryCount += 1
            tombstoneCount += entry.kind == .delete ? 1 : 0
            keyCount += entry.isSuperseded ? 0 : 1
            datasets.count(
                entry.dataset, isTombstone: entry.kind == .delete, key: entry.key.count,
                value: entry.valueCount)
            if let handle = entry.valueHandle {
                values.count(handle)
                valueBytes += handle.footprint
            }
            if entry.dataset != 0 {
                let place = EntryPlace(block: number, offset: view.offset(of: slot))
                changes.append(
                    Change(dataset: entry.dataset, syncCount: entry.syncCount, place: place))
            }
        }
    }

    /// The bytes of values that were checked since this was called last.
    mutating func takeValueBytes() -> UInt64 {
        defer { valueBytes = 0 }
        return valueBytes
    }

    mutating func noteUnreadable() {
        isWhole = false
    }
}

/// All of a segment's data blocks, counted up to hold them against what the segment says of itself:
/// its counts, its hash index and its change index.
///
/// Checksums tell what was stored from what is there now. This tells whether what was stored was
/// right, which no reader could otherwise notice: a key that the index does not name is silently
/// missing. Takes up to 70 bytes of memory for each entry of the segment, its parts included.
struct SegmentTally {
    private var sum = TallyPart()
    private var changes = ChangeIndexBuilder(countMax: 1 << 16)

    /// False once a block could not be read: then there is nothing to compare.
    var isWhole: Bool { sum.isWhole }

    /// Adds the blocks that follow on those added before.
    mutating func add(_ part: TallyPart) {
        sum.entryCount += part.entryCount
        sum.tombstoneCount += part.tombstoneCount
        sum.keyCount += part.keyCount
        sum.rawBytes += part.rawBytes
        sum.storedBytes += part.storedBytes
        sum.datasets.add(part.datasets)
        sum.values.add(part.values)
        sum.isWhole = sum.isWhole && part.isWhole
        for change in part.changes { changes.add(change) }
    }

    /// Compares it all, once every data block was added.
    mutating func check(_ parts: SegmentParts) throws(StoreError) {
        let footer = parts.footer
        guard sum.entryCount == footer.entryCount, sum.tombstoneCount == footer.tombstoneCount,
            sum.rawBytes == footer.rawBytes, sum.storedBytes == footer.storedBytes
        else { throw parts.damaged("the footer counts other entries", at: footer.dataEnd) }
        guard try parts.datasets().rows == sum.datasets.rows else {
            throw parts.damaged("the counts of datasets are wrong", at: footer.datasets.offset)
        }
        let table = try SealedSegment.valueRows(
            footer, in: parts.file, parts.identity, readingEmpty: true)
        guard table.counts == sum.values.counts else {
            throw parts.damaged(
                "the table of value files is wrong", at: footer.valueFiles.offset)
        }
        // A damaged part of the index was told as such, and counts anything.
        guard !parts.isIndexWhole || parts.indexedKeyCount == sum.keyCount else {
            throw parts.damaged("the hash index names other keys", at: footer.indexOffset)
        }
        changes.finish()
        try checkChanges(parts)
    }

    /// The change index names all entries, each at its place and in the order of change.
    private func checkChanges(_ parts: SegmentParts) throws(StoreError) {
        var expected: ArraySlice<Change> = []
        var blocks = changes.blocks[...]
        for row in 0..<parts.changeBlockCount {
            let row = parts.changeRow(row)
            for change in try parts.changes(row) {
                if expected.isEmpty, let block = blocks.popFirst() {
                    expected = decoded(block, parts)[...]
                }
                guard expected.popFirst() == change else {
                    throw parts.damaged("the change index names other entries", at: row.offset)
                }
            }
        }
        guard expected.isEmpty, blocks.isEmpty else {
            throw parts.damaged("the change index lacks entries", at: parts.footer.dataEnd)
        }
    }

    private func decoded(_ block: ChangeIndexBuilder.Block, _ parts: SegmentParts) -> [Change] {
        let lines = unsafe ByteView(
            UnsafeRawBufferPointer(rebasing: changes.bytes.bytes[block.range]))
        // An index that was just made from good entries cannot be read only if two of them have
        // one sync count; then none is expected, and the comparison fails.
        return (try? ChangeIndex.decode(lines, blockCount: parts.directory.blockCount)) ?? []
    }
}

extension SegmentParts {
    /// Whether each part of the hash index was found whole.
    fileprivate var isIndexWhole: Bool {
        (0..<chunkCount).allSatisfy { checkedChunks[$0] }
    }

    /// Keys that the hash index names. The index must have been checked.
    fileprivate var indexedKeyCount: Int {
        (0..<bucketCount).reduce(0) { $0 + keyCount(ofBucket: $1) }
    }
}
