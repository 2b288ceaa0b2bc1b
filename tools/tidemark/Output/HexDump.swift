import Tidemark

/// Writes the parts of a file byte by byte, eight bytes to a line, each field with its name and
/// what it says beside it.
struct HexDump {
    private static let bytesPerLine = 8
    private static let nameColumns = 16
    private static let offsetColumns = 10
    private static let leftColumns = offsetColumns + 3 * bytesPerLine + 1 + nameColumns + 1
    /// Fields with more bytes than this are cut.
    private static let shownMax = 128

    private let output: OutputStream
    private let isFull: Bool

    /// - Parameter isFull: whether to show all bytes of long fields.
    init(_ output: OutputStream, isFull: Bool) {
        self.output = output
        self.isFull = isFull
    }

    func write(_ part: FilePart) throws {
        let count = part.endOffset - part.offset
        try output.writeLine(
            TerminalText.truncated(
                "\(part.title), \(Quantities.counted(count, "byte"))", to: output.columns))
        try write(part.fields, isContent: false)
        guard !part.content.isEmpty else { return try output.writeLine() }
        try output.writeLine("before compression:")
        try write(part.content, isContent: true)
        try output.writeLine()
    }

    private func write(_ fields: [ByteField], isContent: Bool) throws {
        var group = ""
        for field in fields {
            if field.group != group {
                group = field.group
                if !group.isEmpty { try output.writeLine("  \(TerminalText.escaped(group))") }
            }
            try write(field, isContent: isContent)
        }
    }

    private func write(_ field: ByteField, isContent: Bool) throws {
        let room = output.columns - Self.leftColumns
        let isLong = !isFull && field.bytes.count > 2 * Self.shownMax
        let shown = isLong ? field.shownBytes.prefix(Self.shownMax) : field.shownBytes
        let meanings =
            field.meaning.isEmpty
            ? [] : TerminalText.wrapped(TerminalText.oneLine(field.meaning), columnsMax: room)
        var line = 0
        var start = shown.startIndex
        while start < shown.endIndex || line < meanings.count {
            let bytes = shown[start..<min(start + Self.bytesPerLine, shown.endIndex)]
            let text =
                field.meaning.isEmpty
                ? Self.text(of: bytes) : line < meanings.count ? meanings[line] : ""
            let offset = field.offset + UInt64(start - shown.startIndex)
            let digits = bytes.isEmpty ? "" : Self.digits(offset, isContent: isContent)
            let rest = Self.line(bytes, line == 0 ? field.name : "", text)
            try output.writeLine(
                output.colored(Self.padded(digits, Self.offsetColumns), .faint) + rest)
            start = bytes.endIndex
            line += 1
        }
        let rest = field.count - UInt64(shown.count)
        guard rest > 0 else { return }
        let offset = Self.digits(field.offset + UInt64(shown.count), isContent: isContent)
        let hint = isLong ? "; --full shows them" : ""
        try output.writeLine(
            TerminalText.truncated(
                "\(offset)  \(Quantities.counted(rest, "more byte")) of \(field.name)\(hint)",
                to: output.columns))
    }

    private static func line(
        _ bytes: ArraySlice<UInt8>, _ name: String, _ text: String
    ) -> String {
        let pairs = bytes.map { byte -> String in
            let digits = String(byte, radix: 16)
            return digits.utf8.count == 1 ? "0\(digits)" : digits
        }.joined(separator: " ")
        let name = TerminalText.truncated(name, to: nameColumns)
        var line = padded(pairs, 3 * bytesPerLine + 1)
        line += padded(name, nameColumns + 1) + text
        while line.last == " " { line.removeLast() }
        return line
    }

    private static func padded(_ text: String, _ columns: Int) -> String {
        text + String(repeating: " ", count: max(0, columns - TerminalText.width(of: text)))
    }

    /// Eight digits of the file, or a plus and seven of what was compressed.
    private static func digits(_ offset: UInt64, isContent: Bool) -> String {
        let digits = String(offset, radix: 16)
        let columns = isContent ? 7 : 8
        let zeros = String(repeating: "0", count: max(0, columns - digits.utf8.count))
        return (isContent ? "+" : "") + zeros + digits
    }

    /// What can be printed as it is; a point for everything else.
    private static func text(of bytes: ArraySlice<UInt8>) -> String {
        String(
            bytes.map { byte -> Character in
                (0x20...0x7E).contains(byte) ? Character(Unicode.Scalar(byte)) : "."
            })
    }

    /// A line for each field, with all of its bytes.
    func writeJSON(_ part: FilePart) throws {
        for (fields, isContent) in [(part.fields, false), (part.content, true)] {
            for field in fields {
                var line = JSONLine()
                line.add("part", part.title)
                line.add("partOffset", part.offset)
                line.add("isContent", isContent)
                line.add("offset", field.offset)
                line.add("count", field.count)
                line.add("group", field.group)
                line.add("field", field.name)
                line.add("meaning", field.meaning)
                line.add("base64", Base64.encode(Array(field.shownBytes)))
                try output.write(line.line)
            }
        }
    }
}
