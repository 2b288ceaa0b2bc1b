/// Text that is safe and measurable on a terminal.
///
/// Keys, values, names and authors are arbitrary bytes from anywhere. Written raw, they could move
/// the cursor, recolour the screen, reorder what is read or forge a line of output; so every
/// character that does more than show a glyph is written as an escape:
///
/// | bytes | shown as |
/// | --- | --- |
/// | tab, line feed, carriage return | `\t`, `\n`, `\r` |
/// | a backslash | `\\`, so that no key can pass for an escape |
/// | control, format (bidirectional marks too), unassigned, separators but the space | `\u{202E}` |
/// | bytes that are not UTF-8 | `\xFF` |
enum TerminalText {
    /// The bytes as printable text of at most so many columns; an ellipsis marks what was cut.
    ///
    /// Stops reading once the columns are filled, so that previewing a value of 256 MiB costs
    /// as little as a short one.
    static func escaped(_ bytes: [UInt8], columnsMax: Int = .max) -> String {
        let span = bytes.span
        var text = ""
        var columns = 0
        var position = 0
        // Where to cut if an ellipsis is needed: the last place that leaves room for it.
        var cut = text.endIndex
        while position < span.count {
            let piece: String
            let length = utf8SequenceLength(in: span, at: position)
            if length == 0 {
                piece = "\\x" + hexadecimal(UInt32(span[position]), digits: 2)
                position += 1
            } else {
                piece = escaped(utf8Scalar(in: span, at: position, length: length))
                position += length
            }
            let pieceColumns = width(of: piece)
            if pieceColumns > columnsMax - columns {
                return columnsMax > 0 ? text[..<cut] + "…" : ""
            }
            columns += pieceColumns
            text += piece
            if columns < columnsMax {
                cut = text.endIndex
            }
        }
        return text
    }

    static func escaped(_ text: String, columnsMax: Int = .max) -> String {
        escaped(Array(text.utf8), columnsMax: columnsMax)
    }

    /// A message of our own, into which names and keys may have been woven, as one safe line.
    ///
    /// Backslashes stay: they are our escapes or the user's, and nothing is read back from here.
    static func oneLine(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { line, scalar in
            switch scalar {
            case "\n": line += " "
            case "\\": line += "\\"
            default: line += escaped(scalar)
            }
        }
    }

    /// Printable text cut to at most so many columns, with an ellipsis in place of what was cut.
    static func truncated(_ text: String, to columnsMax: Int) -> String {
        guard width(of: text) > columnsMax else { return text }
        guard columnsMax > 0 else { return "" }
        var kept = ""
        var columns = 0
        for character in text {
            let characterColumns = width(of: String(character))
            if columns + characterColumns > columnsMax - 1 { break }
            columns += characterColumns
            kept.append(character)
        }
        return kept + "…"
    }

    /// Printable text cut into lines of at most so many columns; one empty line for no text.
    static func wrapped(_ text: String, columnsMax: Int) -> [String] {
        var lines = [""]
        var columns = 0
        for character in text {
            let characterColumns = width(of: String(character))
            if columns + characterColumns > columnsMax, columns > 0 {
                lines.append("")
                columns = 0
            }
            lines[lines.count - 1].append(character)
            columns += characterColumns
        }
        return lines
    }

    /// Printable text broken at blanks into lines of at most so many columns, and within a word
    /// only where it is longer than a line; one empty line for no text.
    static func wrappedWords(_ text: String, columnsMax: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            for part in wrapped(String(word), columnsMax: columnsMax) {
                if line.isEmpty {
                    line = part
                } else if width(of: line) + 1 + width(of: part) <= columnsMax {
                    line += " " + part
                } else {
                    lines.append(line)
                    line = part
                }
            }
        }
        return line.isEmpty && !lines.isEmpty ? lines : lines + [line]
    }

    /// The columns that printable text takes on a terminal with a fixed-width font.
    static func width(of text: String) -> Int {
        text.unicodeScalars.reduce(0) { $0 + width(of: $1) }
    }

    /// Two columns for the ranges that UAX #11 calls wide, none for combining marks, else one.
    private static func width(of scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        default: break
        }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
            0x16FE0...0x18D08, 0x1AFF0...0x1B2FB, 0x1F200...0x1F2FF, 0x20000...0x3FFFD:
            return 2
        default:
            return scalar.properties.isEmojiPresentation ? 2 : 1
        }
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case " "..."[", "]"..."~": return String(scalar)
        case "\\": return "\\\\"
        case "\t": return "\\t"
        case "\n": return "\\n"
        case "\r": return "\\r"
        default: break
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .surrogate,
            .privateUse, .unassigned:
            return "\\u{\(hexadecimal(scalar.value, digits: 4))}"
        default:
            return String(scalar)
        }
    }

    private static func hexadecimal(_ value: UInt32, digits: Int) -> String {
        let text = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
