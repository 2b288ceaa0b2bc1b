/// What one segment holds of each dataset, for statistics.
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

    /// Adds what was counted of the entries that follow.
    mutating func add(_ other: SegmentDatasets) {
        for row in other.rows {
            guard let last = rows.last, last.dataset == row.dataset else {
                rows.append(row)
                continue
            }
            rows[rows.count - 1].entryCount += row.entryCount
            rows[rows.count - 1].tombstoneCount += row.tombstoneCount
            rows[rows.count - 1].keyBytes += row.keyBytes
            rows[rows.count - 1].valueBytes += row.valueBytes
        }
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
}
