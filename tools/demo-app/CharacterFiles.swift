import Glibc

/// The records that the demo works on: the Unicode Character Database, as Debian's package
/// `unicode-data` installs it.
struct CharacterFiles {
    struct Entry {
        /// The code point in hexadecimal digits: `20AC`.
        let key: String
        let value: String
    }

    /// A line of UnicodeData.txt for each character.
    let characters: [Entry]
    /// What NamesList.txt notes about a character, one note on each line, where it notes anything.
    let notes: [Entry]

    init(directory: String) throws {
        characters = try Self.lines(of: directory + "/UnicodeData.txt").map { line in
            Entry(key: String(line.prefix { $0 != ";" }), value: String(line))
        }
        notes = Self.notes(in: try Self.lines(of: directory + "/NamesList.txt"))
    }

    /// Characters begin with their code point and a tab; the notes about one follow, each after a
    /// tab. Headings and comments begin with `@` or `;`.
    private static func notes(in lines: [Substring]) -> [Entry] {
        var entries: [Entry] = []
        var key = ""
        var notes: [Substring] = []
        func finish() {
            if !key.isEmpty, !notes.isEmpty {
                entries.append(Entry(key: key, value: notes.joined(separator: "\n")))
            }
            notes = []
        }
        for line in lines {
            if line.hasPrefix("\t") {
                notes.append(line.dropFirst())
            } else {
                finish()
                let word = line.prefix { $0 != "\t" }
                key = word.allSatisfy(\.isHexDigit) ? String(word) : ""
            }
        }
        finish()
        return entries
    }

    static func lines(of path: String) throws -> [Substring] {
        guard let file = unsafe fopen(path, "r") else {
            throw DemoError("cannot open \(path); install the package unicode-data")
        }
        defer { unsafe fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            // The pointer is used only during the call, within the array's bounds.
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe fread(buffer.baseAddress, 1, buffer.count, file)
            }
            if count == 0 { break }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: true)
    }
}

/// Why the demo could not go on, or what did not come out as it promised.
struct DemoError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
