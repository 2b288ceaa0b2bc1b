/// What one line or row of an imported file becomes.
struct ImportedRecord {
    let key: [UInt8]
    let value: [UInt8]
    /// In milliseconds since 1970; 0 for never.
    var expiresAt: UInt64 = 0
    /// Where it was, counted from 1.
    let line: Int
}

/// A line that is no record. The reader stands behind it and can go on.
struct BadLine: Error {
    /// Counted from 1; where a row of CSV spans several lines, its first.
    let line: Int
    let problem: String
}

/// A file taken apart into records.
protocol RecordReader {
    /// Bytes of the file taken in so far, for progress.
    var bytesRead: UInt64 { get }
    /// The next record, or nil at the end.
    /// - Throws: ``BadLine`` for one that can be skipped, ``CommandFailure`` for the end of all.
    mutating func next() throws -> ImportedRecord?
}
