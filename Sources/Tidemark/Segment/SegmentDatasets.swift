/// What one segment holds of each dataset, for statistics and for cursors into the past.
struct SegmentDatasets {
    struct Row: Hashable {
        var dataset: DatasetID
        var entryCount: UInt64 = 0
        var tombstoneCount: UInt64 = 0
        var keyBytes: UInt64 = 0
        var valueBytes: UInt64 = 0
        /// Tombstones up to this sync count may have been dropped: nobody can be told any more
        /// what changed since an earlier one.
        var collectedThrough: UInt64 = 0
    }

    private(set) var rows: [DatasetID: Row] = [:]

    init() {}

    mutating func count(_ entry: Entry) {
        Self.count(entry, in: &rows[entry.dataset, default: Row(dataset: entry.dataset)])
    }

    private static func count(_ entry: Entry, in row: inout Row) {
        row.entryCount += 1
        row.tombstoneCount += entry.kind == .delete ? 1 : 0
        row.keyBytes += UInt64(entry.key.count)
        row.valueBytes += UInt64(entry.value.count)
    }

    mutating func noteCollected(_ dataset: DatasetID, through syncCount: UInt64) {
        var row = rows[dataset] ?? Row(dataset: dataset)
        row.collectedThrough = max(row.collectedThrough, syncCount)
        rows[dataset] = row
    }

    /// Rows in the order of their datasets, six varints each.
    func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: rows.count)
        for row in rows.values.sorted(by: { $0.dataset < $1.dataset }) {
            writer.append(varint: UInt64(row.dataset))
            for number in [
                row.entryCount, row.tombstoneCount, row.keyBytes, row.valueBytes,
                row.collectedThrough,
            ] {
                writer.append(varint: number)
            }
        }
        return writer.bytes
    }

    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        for _ in 0..<(try reader.count(eachAtLeast: 6)) {
            let row = Row(
                dataset: try reader.varint32(), entryCount: try reader.varint(),
                tombstoneCount: try reader.varint(), keyBytes: try reader.varint(),
                valueBytes: try reader.varint(), collectedThrough: try reader.varint())
            rows[row.dataset] = row
        }
        guard reader.isAtEnd else { throw Malformed("the table of datasets is too long") }
    }
}
