/// What one segment holds of each dataset, for statistics; and up to where it has forgotten
/// deletions, for those who ask for changes.
struct SegmentDatasets {
    struct Row: Hashable {
        var dataset: DatasetID
        var entryCount: UInt64 = 0
        var tombstoneCount: UInt64 = 0
        var keyBytes: UInt64 = 0
        var valueBytes: UInt64 = 0
    }

    /// In the order of their datasets.
    private(set) var rows: [Row] = []

    init() {}

    /// Entries must come in their order.
    @inline(__always)
    mutating func count(_ dataset: DatasetID, isTombstone: Bool, key: Int, value: Int) {
        if rows.isEmpty || rows[rows.count - 1].dataset != dataset {
            rows.append(Row(dataset: dataset))
        }
        let last = rows.count - 1
        rows[last].entryCount += 1
        rows[last].tombstoneCount += isTombstone ? 1 : 0
        rows[last].keyBytes += UInt64(key)
        rows[last].valueBytes += UInt64(value)
    }

    /// The number of rows, then five varints each.
    func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: rows.count)
        for row in rows {
            writer.append(varint: UInt64(row.dataset))
            writer.append(varint: row.entryCount)
            writer.append(varint: row.tombstoneCount)
            writer.append(varint: row.keyBytes)
            writer.append(varint: row.valueBytes)
        }
        return writer.bytes
    }

    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        for _ in 0..<(try reader.count(eachAtLeast: 5)) {
            rows.append(
                Row(
                    dataset: try reader.varint32(), entryCount: try reader.varint(),
                    tombstoneCount: try reader.varint(), keyBytes: try reader.varint(),
                    valueBytes: try reader.varint()))
        }
        guard reader.isAtEnd else { throw Malformed("the table of datasets is too long") }
    }

    // MARK: - Forgotten deletions

    /// The number of datasets, then two varints each: dataset, and the sync count up to which
    /// tombstones were dropped, so that nobody can be told any more what changed since an earlier
    /// one.
    static func encode(collected: [DatasetID: UInt64]) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: collected.count)
        for (dataset, through) in collected.sorted(by: { $0.key < $1.key }) {
            writer.append(varint: UInt64(dataset))
            writer.append(varint: through)
        }
        return writer.bytes
    }

    static func decodeCollected(_ bytes: ByteView) throws(Malformed) -> [DatasetID: UInt64] {
        var reader = ByteReader(bytes)
        var collected: [DatasetID: UInt64] = [:]
        for _ in 0..<(try reader.count(eachAtLeast: 2)) {
            collected[try reader.varint32()] = try reader.varint()
        }
        guard reader.isAtEnd else { throw Malformed("the table of datasets is too long") }
        return collected
    }
}
