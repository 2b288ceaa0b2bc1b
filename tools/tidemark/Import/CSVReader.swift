import Tidemark

/// Records from comma-separated values as RFC 4180 has them: the first row names the fields, and
/// each further row becomes a JSON object of strings.
///
/// Quoted fields may hold commas, doubled quotes and line ends; rows end with a line feed or with
/// carriage return and line feed.
struct CSVReader: RecordReader {
    /// A row is bounded like a value, so that a quote left open cannot swallow a file into memory.
    private static let rowBytesMax = Limits.valueBytesMax

    private var lines: LineReader
    private let keyIndex: Int
    /// nil: the value is the object of all fields.
    private let valueIndex: Int?
    /// `"name":` for each field.
    private let members: [[UInt8]]
    private var firstLine = 0

    /// Reads the first row.
    init(_ file: InputFile, keyField: String, valueField: String?) throws {
        lines = LineReader(file)
        var firstLine = 0
        guard let header = try Self.row(&lines, &firstLine) else {
            throw BadLine(line: 1, problem: "the file is empty; its first line must name fields")
        }
        func index(of field: String) throws -> Int {
            guard let index = header.firstIndex(of: Array(field.utf8)) else {
                let names = header.map { TerminalText.escaped($0) }.joined(separator: ", ")
                throw CommandFailure(
                    .usage,
                    "no field \"\(TerminalText.escaped(field))\" in the first line of "
                        + "\(file.name); it names "
                        + TerminalText.truncated(names, to: 200))
            }
            return index
        }
        guard Set(header).count == header.count else {
            throw BadLine(line: 1, problem: "two fields have the same name; rename one")
        }
        guard header.allSatisfy({ isUTF8($0.span) }) else {
            throw BadLine(line: 1, problem: "a field's name is not UTF-8; convert the file")
        }
        keyIndex = try index(of: keyField)
        valueIndex = try valueField.map(index(of:))
        members = header.map { name in
            var member: [UInt8] = []
            JSONLine.append(text: name.span, to: &member)
            return member + [UInt8(ascii: ":")]
        }
    }

    var bytesRead: UInt64 { lines.bytesRead }

    mutating func next() throws -> ImportedRecord? {
        guard let fields = try Self.row(&lines, &firstLine) else { return nil }
        guard fields.count == members.count else {
            throw BadLine(
                line: firstLine,
                problem: "\(Quantities.counted(fields.count, "field")) where the first line names "
                    + "\(members.count)")
        }
        let key = fields[keyIndex]
        if let valueIndex {
            return ImportedRecord(key: key, value: fields[valueIndex], line: firstLine)
        }
        var value: [UInt8] = []
        for (member, field) in zip(members, fields) {
            guard isUTF8(field.span) else {
                throw BadLine(line: firstLine, problem: "a field is not UTF-8; convert the file")
            }
            value.append(value.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
            value += member
            JSONLine.append(text: field.span, to: &value)
        }
        value.append(UInt8(ascii: "}"))
        return ImportedRecord(key: key, value: value, line: firstLine)
    }

    /// The fields of the next row that is not empty.
    private static func row(
        _ lines: inout LineReader, _ firstLine: inout Int
    ) throws -> [[UInt8]]? {
        var parser = CSVRowParser()
        while let line = try lines.next() {
            if parser.isBetweenRows {
                firstLine = lines.lineNumber
                if lines.buffer[line].allSatisfy({ $0 == 0x0D }) { continue }
            }
            guard parser.add(line: lines.buffer.span.extracting(line)) else {
                throw BadLine(
                    line: lines.lineNumber,
                    problem: "a quote within a field; quote the whole field and double the quote")
            }
            if let fields = parser.fields { return fields }
            guard parser.bytesHeld <= rowBytesMax else {
                throw CommandFailure(
                    .badData,
                    "the row at line \(firstLine) is longer than "
                        + "\(Quantities.bytes(rowBytesMax)); is a quote left open?")
            }
        }
        guard parser.isBetweenRows else {
            throw BadLine(line: firstLine, problem: "a quoted field has no closing quote")
        }
        return nil
    }
}

/// Takes the lines of one row, and tells its fields once the row is whole.
struct CSVRowParser {
    private enum State {
        case fieldStart
        case plain
        case quoted
        case quoteInQuoted
    }

    private var state = State.fieldStart
    private var done: [[UInt8]] = []
    private var field: [UInt8] = []
    private(set) var bytesHeld = 0
    /// The row, if the last line has ended it.
    private(set) var fields: [[UInt8]]?
    /// Whether no line was taken yet.
    private(set) var isBetweenRows = true

    /// Takes a line without its line feed. False if it breaks the rules.
    mutating func add(line: Span<UInt8>) -> Bool {
        isBetweenRows = false
        if state == .quoted {
            field.append(0x0A)
        }
        for index in line.indices {
            let byte = line[index]
            switch (state, byte) {
            case (.quoted, UInt8(ascii: "\"")):
                state = .quoteInQuoted
            case (.quoted, _):
                field.append(byte)
            case (.quoteInQuoted, UInt8(ascii: "\"")):
                field.append(byte)
                state = .quoted
            case (.fieldStart, UInt8(ascii: "\"")):
                state = .quoted
            case (_, UInt8(ascii: ",")):
                endField()
            case (_, 0x0D) where index == line.count - 1:
                break
            case (.quoteInQuoted, _), (.plain, UInt8(ascii: "\"")):
                return false
            default:
                field.append(byte)
                state = .plain
            }
        }
        bytesHeld += line.count
        if state != .quoted {
            endField()
            fields = done
        }
        return true
    }

    private mutating func endField() {
        done.append(field)
        field = []
        state = .fieldStart
    }
}
