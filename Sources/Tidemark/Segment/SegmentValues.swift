/// Which value files the entries of one segment name, and how much of each: so how much of a file
/// is still in use is known without counting.
struct SegmentValueRows {
    struct Row: Hashable {
        /// Of the value file.
        var file: UInt64
        var fileSize: UInt64 = 0
        /// Entries of the segment that name it.
        var valueCount: UInt64 = 0
        /// Bytes of their blocks in the file.
        var storedBytes: UInt64 = 0
        /// Bytes of their values.
        var rawBytes: UInt64 = 0

        /// Bytes of the file that hold values, of whomever.
        var contentBytes: UInt64 { fileSize - UInt64(FileHeader.byteCount) }
    }

    /// In the order of their files.
    private(set) var rows: [Row] = []

    init() {}

    subscript(file: UInt64) -> Row? {
        let index = place(of: file)
        return index < rows.count && rows[index].file == file ? rows[index] : nil
    }

    private func place(of file: UInt64) -> Int {
        var low = 0
        var high = rows.count
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].file < file { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Where the row of a file is, which is made if there is none.
    private mutating func row(of file: UInt64) -> Int {
        let index = place(of: file)
        if index == rows.count || rows[index].file != file {
            rows.insert(Row(file: file), at: index)
        }
        return index
    }

    mutating func count(_ handle: ValueHandle) {
        let index = row(of: handle.file)
        rows[index].valueCount += 1
        rows[index].storedBytes += handle.footprint
        rows[index].rawBytes += UInt64(handle.block.rawCount)
    }

    mutating func note(fileSize: UInt64, of file: UInt64) {
        rows[row(of: file)].fileSize = fileSize
    }

    /// Adds what was counted elsewhere.
    mutating func add(_ other: SegmentValueRows) {
        for row in other.rows {
            let index = self.row(of: row.file)
            rows[index].fileSize = max(rows[index].fileSize, row.fileSize)
            rows[index].valueCount += row.valueCount
            rows[index].storedBytes += row.storedBytes
            rows[index].rawBytes += row.rawBytes
        }
    }

    /// Bytes of all values.
    var rawBytes: UInt64 { rows.reduce(0) { $0 + $1.rawBytes } }

    /// The rows as far as entries tell them.
    var counts: [Row] {
        rows.map { row in
            var row = row
            row.fileSize = 0
            return row
        }
    }

    // MARK: - As bytes

    /// The length of a table without rows, which nobody needs to read.
    static let emptyByteCount: UInt32 = 1

    /// The number of rows, then five varints each.
    func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: rows.count)
        for row in rows {
            writer.append(varint: row.file)
            writer.append(varint: row.fileSize)
            writer.append(varint: row.valueCount)
            writer.append(varint: row.storedBytes)
            writer.append(varint: row.rawBytes)
        }
        return writer.bytes
    }

    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        for _ in 0..<(try reader.count(eachAtLeast: 5)) {
            let row = Row(
                file: try reader.varintCount(), fileSize: try reader.varintCount(),
                valueCount: try reader.varintCount(), storedBytes: try reader.varintCount(),
                rawBytes: try reader.varintCount())
            guard rows.last.map({ $0.file < row.file }) ?? true else {
                throw Malformed("the table of value files is out of order")
            }
            guard row.fileSize >= UInt64(FileHeader.byteCount), row.valueCount > 0,
                row.valueCount <= row.storedBytes, row.storedBytes <= row.contentBytes,
                row.rawBytes / 255 <= row.storedBytes
            else { throw Malformed("the table of value files counts what cannot be") }
            rows.append(row)
        }
        guard reader.isAtEnd else { throw Malformed("the table of value files is too long") }
    }
}

/// The value files of a segment, open.
final class SegmentValues: Sendable {
    let table: SegmentValueRows
    /// In the order of the rows.
    let files: [ValueFile]
    private let segmentPath: String

    /// - Throws: `corruption` if one of them is missing, has another size or another header.
    init(
        _ table: SegmentValueRows, ofSegmentAt path: String, _ open: ValueFiles
    ) throws(StoreError) {
        self.table = table
        segmentPath = path
        var files: [ValueFile] = []
        for row in table.rows {
            files.append(
                try open.file(
                    row.file, at: FileName.values(row.file, besideSegmentAt: path),
                    fileSize: row.fileSize))
        }
        self.files = files
    }

    /// - Throws: `corruption` if the segment does not name the file in its table.
    func file(_ number: UInt64) throws(StoreError) -> ValueFile {
        var low = 0
        var high = files.count
        while low < high {
            let middle = (low + high) / 2
            if files[middle].number < number { low = middle + 1 } else { high = middle }
        }
        guard low < files.count, files[low].number == number else {
            throw Self.unknown(number, segmentPath)
        }
        return files[low]
    }

    fileprivate static func unknown(_ number: UInt64, _ path: String?) -> StoreError {
        let what = "an entry names value file \(number), which its segment does not know"
        guard let path else { return StoreError(.corruption, what) }
        return Malformed(what).error(in: path, at: nil)
    }
}

// MARK: - Values of entries

extension VersionTables {
    /// Hands out the value of an entry of this segment, wherever it lies; an empty one for a
    /// deletion. One comparison, unless it lies apart.
    ///
    /// - Throws: `corruption` with the place of the value, `inputOutput`.
    @inline(__always)
    func withValue<Result>(
        of entry: Entry, _ body: (ByteView) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        guard entry.isApart else { return try body(entry.valueField) }
        return try withValueApart(of: entry, body)
    }

    @inline(never)
    private func withValueApart<Result>(
        of entry: Entry, _ body: (ByteView) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let handle = try handle(of: entry)
        return try valueFile(handle).withValue(handle.block, body)
    }

    /// A copy of the value of an entry of this segment.
    /// - Throws: as ``withValue(of:_:)``.
    func value(of entry: Entry) throws(StoreError) -> [UInt8] {
        guard entry.isApart else { return entry.valueField.array }
        let handle = try handle(of: entry)
        return try valueFile(handle).value(handle.block)
    }

    func handle(of entry: Entry) throws(StoreError) -> ValueHandle {
        guard let handle = entry.valueHandle else {
            throw StoreError(
                .corruption, "an entry has changed since it was checked; run `verify`")
        }
        return handle
    }

    func valueFile(_ handle: ValueHandle) throws(StoreError) -> ValueFile {
        guard let values else { throw SegmentValues.unknown(handle.file, nil) }
        return try values.file(handle.file)
    }
}
