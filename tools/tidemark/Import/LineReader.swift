import Glibc
import Tidemark

/// Splits a file into lines with bounded memory: one buffer of 1 MiB, which grows only for a line
/// longer than that, up to what a value may have.
///
/// Lines are ranges of ``buffer``, not copies; a range is good until the next call.
struct LineReader {
    private static let chunkBytes = 1 << 20
    /// A line becomes a value, so it need not be longer than one, with room for its escapes.
    private static let lineBytesMax = 2 * Limits.valueBytesMax

    private let file: InputFile
    private(set) var buffer = [UInt8](repeating: 0, count: chunkBytes)
    private var unread = 0..<0
    private var isAtEnd = false
    /// Of the line returned last, counted from 1.
    private(set) var lineNumber = 0
    /// Read from the file so far.
    private(set) var bytesRead: UInt64 = 0

    init(_ file: InputFile) {
        self.file = file
    }

    /// The next line without its line feed, or nil at the end. A last line may lack the line feed.
    mutating func next() throws -> Range<Int>? {
        var searched = 0
        while true {
            if let end = lineFeed(in: unread.dropFirst(searched)) {
                let line = unread.lowerBound..<end
                unread = end + 1..<unread.upperBound
                lineNumber += 1
                return lineNumber == 1 ? withoutByteOrderMark(line) : line
            }
            if isAtEnd {
                guard !unread.isEmpty else { return nil }
                let line = unread
                unread = line.upperBound..<line.upperBound
                lineNumber += 1
                return lineNumber == 1 ? withoutByteOrderMark(line) : line
            }
            searched = unread.count
            try fill()
        }
    }

    /// Moves the unread bytes to the front and reads more behind them.
    private mutating func fill() throws {
        if unread.lowerBound > 0 {
            let range = unread
            // Both ranges lie within the buffer; memmove allows them to overlap.
            unsafe buffer.withUnsafeMutableBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                unsafe _ = memmove(base, base + range.lowerBound, range.count)
            }
            unread = 0..<unread.count
        }
        if unread.count == buffer.count {
            guard buffer.count < Self.lineBytesMax else {
                throw CommandFailure(
                    .badData,
                    "line \(lineNumber + 1) of \(file.name) is longer than "
                        + "\(Quantities.bytes(Self.lineBytesMax)); is it a file of lines?")
            }
            buffer += [UInt8](repeating: 0, count: buffer.count)
        }
        let count = try file.read(into: &buffer, from: unread.upperBound)
        isAtEnd = count == 0
        bytesRead += UInt64(count)
        unread = unread.lowerBound..<unread.upperBound + count
    }

    private func lineFeed(in range: Range<Int>) -> Int? {
        // The range lies within the buffer, and the pointer found within the range.
        unsafe buffer.withUnsafeBytes { bytes in
            guard !range.isEmpty, let base = bytes.baseAddress,
                let found = unsafe memchr(base + range.lowerBound, 0x0A, range.count)
            else { return nil }
            return unsafe UnsafeRawPointer(found) - base
        }
    }

    /// Spreadsheets begin their files with U+FEFF, which is no part of the data.
    private func withoutByteOrderMark(_ line: Range<Int>) -> Range<Int> {
        buffer[line].starts(with: [0xEF, 0xBB, 0xBF]) ? line.lowerBound + 3..<line.upperBound : line
    }
}
