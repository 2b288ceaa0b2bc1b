import Tidemark

/// Records from a file with one JSON object on each line.
struct JSONLinesReader: RecordReader {
    private let keyField: [UInt8]
    /// nil: the value is the line itself.
    private let valueField: [UInt8]?
    /// nil: no record expires.
    private let expiryField: [UInt8]?
    private var lines: LineReader

    init(
        _ file: InputFile, keyField: String, valueField: String?, expiryField: String? = nil
    ) {
        lines = LineReader(file)
        self.keyField = Array(keyField.utf8)
        self.valueField = valueField.map { Array($0.utf8) }
        self.expiryField = expiryField.map { Array($0.utf8) }
    }

    var bytesRead: UInt64 { lines.bytesRead }

    mutating func next() throws -> ImportedRecord? {
        while let range = try lines.next() {
            let trimmed = trimmed(range)
            if trimmed.isEmpty { continue }
            do {
                return try record(lines.buffer.span.extracting(trimmed))
            } catch {
                let column = trimmed.lowerBound - range.lowerBound + error.position + 1
                throw BadLine(
                    line: lines.lineNumber, problem: "\(error.what) (byte \(column) of the line)")
            }
        }
        return nil
    }

    private func record(_ line: Span<UInt8>) throws(JSONProblem) -> ImportedRecord {
        var key: Range<Int>?
        var value: Range<Int>?
        var expiry: Range<Int>?
        var scanner = JSONScanner()
        try scanner.scanObject(line) { name, content throws(JSONProblem) in
            if try isName(line, name, keyField) {
                try assign(content, to: &key, at: name)
            } else if let valueField, try isName(line, name, valueField) {
                try assign(content, to: &value, at: name)
            } else if let expiryField, try isName(line, name, expiryField) {
                try assign(content, to: &expiry, at: name)
            }
        }
        guard let key else { throw missing(keyField) }
        guard let valueField else {
            return ImportedRecord(
                key: try JSONContent.key(line, key),
                value: JSONContent.copy(line, 0..<line.count),
                expiresAt: try milliseconds(line, expiry), line: lines.lineNumber)
        }
        guard let value else { throw missing(valueField) }
        return ImportedRecord(
            key: try JSONContent.key(line, key), value: try JSONContent.value(line, value),
            expiresAt: try milliseconds(line, expiry), line: lines.lineNumber)
    }

    /// When a record expires by what the field holds; 0 where there is no field, or null.
    ///
    /// A number is refused: one of seconds would be taken for milliseconds, and the record would
    /// count as deleted at once.
    private func milliseconds(
        _ line: Span<UInt8>, _ expiry: Range<Int>?
    ) throws(JSONProblem) -> UInt64 {
        guard let expiry, line[expiry.lowerBound] != UInt8(ascii: "n") else { return 0 }
        guard line[expiry.lowerBound] == UInt8(ascii: "\""),
            let milliseconds = Timestamp.milliseconds(try JSONContent.string(line, expiry)),
            (1...Limits.expiryMax).contains(milliseconds)
        else {
            throw JSONProblem(
                what: "the expiry must be a date in UTC like \"2026-11-21T06:30:00.125Z\"",
                position: expiry.lowerBound)
        }
        return milliseconds
    }

    /// A name that is there twice has no one meaning, so it is refused rather than guessed.
    private func assign(
        _ content: Range<Int>, to field: inout Range<Int>?, at name: Range<Int>
    ) throws(JSONProblem) {
        guard field == nil else {
            throw JSONProblem(what: "the field is there twice", position: name.lowerBound)
        }
        field = content
    }

    private func isName(
        _ line: Span<UInt8>, _ range: Range<Int>, _ field: [UInt8]
    ) throws(JSONProblem) -> Bool {
        var isPlain = range.count - 2 == field.count
        for index in range.lowerBound + 1..<range.upperBound - 1 {
            if line[index] == UInt8(ascii: "\\") {
                return try JSONContent.string(line, range) == field
            }
            isPlain = isPlain && line[index] == field[index - range.lowerBound - 1]
        }
        return isPlain
    }

    private func missing(_ field: [UInt8]) -> JSONProblem {
        let name = TerminalText.escaped(field, columnsMax: 40)
        return JSONProblem(what: "no field \"\(name)\"", position: 0)
    }

    /// Without the white space around the object: the carriage return of a DOS line, mostly.
    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isSpace(lines.buffer[start]) { start += 1 }
        while end > start, isSpace(lines.buffer[end - 1]) { end -= 1 }
        return start..<end
    }
}
