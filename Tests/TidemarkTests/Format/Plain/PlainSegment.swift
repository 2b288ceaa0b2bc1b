import TestSupport

/// A sealed segment, all of it read, and everything that it says twice compared.
struct PlainSegment {
    private static let footerBytes = 208

    /// In their order.
    private(set) var entries: [PlainEntry] = []

    private var file: PlainFile
    private let footer: [UInt8]
    private var tables = PlainTables()

    /// What the footer leads to, in its order.
    private enum Part: Int, CaseIterable {
        case directory, changeDirectory, indexChecksums, tables, datasets, collected, valueFiles

        var kind: UInt8 {
            switch self {
            case .directory: 21
            case .changeDirectory: 22
            case .indexChecksums: 23
            case .tables: 18
            case .datasets: 19
            case .collected: 20
            case .valueFiles: 24
            }
        }
    }

    /// - Parameter before: the last entry of the segment before in the same run.
    init(
        _ name: String, _ bytes: [UInt8], number: UInt64, identity: PlainIdentity,
        before: PlainEntry?, valueFile: (UInt64) throws -> PlainValueFile
    ) throws {
        file = try PlainFile(name, bytes, .segment, number: number, identity: identity)
        try require(bytes.count >= PlainFile.headerBytes + Self.footerBytes, "\(name) is short")
        let footerStart = bytes.count - Self.footerBytes
        footer = Array(bytes[footerStart...])
        file.note(footerStart..<bytes.count)
        try require(Array(footer[..<8]) == Array("MARKTIDE".utf8), "\(name) has no footer")
        try require(footer.number(at: 8, 8) == number, "\(name) ends as another segment")
        try require(
            identity.checksum(footer[..<200]) == footer.number(at: 200, 8),
            "\(name) has a damaged footer")
        var contents: [Part: [UInt8]] = [:]
        for part in Part.allCases {
            contents[part] = try content(of: part)
        }
        tables = try PlainTables(contents[.tables]!)
        var end = try readData(contents[.directory]!)
        try checkOrder(after: before)
        try readValues(valueFile, table: contents[.valueFiles]!)
        end = try checkChanges(contents[.changeDirectory]!, from: end)
        try checkHashIndex(contents[.indexChecksums]!, behind: end)
        try checkDatasets(contents[.datasets]!)
        try checkCollected(contents[.collected]!)
        try file.requireAllRead(alignment: 64)
    }

    private mutating func content(of part: Part) throws -> [UInt8] {
        let row = 88 + 16 * part.rawValue
        let offset = try footer.place(at: row, of: file.bytes.count)
        let content = try file.content(at: offset, kind: part.kind).bytes
        try require(
            file.bytes.number(at: offset + 8, 4) == footer.number(at: row + 8, 4)
                && UInt64(content.count) == footer.number(at: row + 12, 4),
            "\(file.name): the footer has other lengths for \(part)")
        return content
    }

    private func count(at offset: Int) throws -> Int {
        try footer.place(at: offset, of: file.bytes.count)
    }

    // MARK: - Data

    /// Returns where the data blocks end.
    private mutating func readData(_ bytes: [UInt8]) throws -> Int {
        let directory = try PlainDirectory(bytes)
        try require(directory.count == (try count(at: 48)), "\(file.name): blocks of data")
        var offset = PlainFile.headerBytes
        var rawBytes = 0
        var storedBytes = 0
        for number in 0..<directory.count {
            try require(directory.offset(of: number) == offset, "\(file.name): block \(number)")
            let (content, next) = try file.content(at: offset, kind: 16)
            let stored = Int(file.bytes.number(at: offset + 8, 4))
            try require(
                directory.isCompressed(number) == (stored < content.count),
                "\(file.name): whether block \(number) is compressed")
            rawBytes += content.count
            storedBytes += 24 + stored
            let first = entries.count
            try readBlock(content, number: number)
            try directory.check(number, begins: entries[first])
            offset = next
        }
        try directory.checkEnd(at: offset, last: entries.last)
        let deletions = entries.filter(\.isDeletion).count
        let counted = [entries.count, deletions, rawBytes, storedBytes, offset]
        let told = [16, 24, 32, 40, 64].map { footer.number(at: $0, 8) }
        try require(told == counted.map { UInt64($0) }, "\(file.name): the footer counts otherwise")
        return offset
    }

    private mutating func readBlock(_ content: [UInt8], number: Int) throws {
        let count = Int(content.number(at: content.count - 2, 2))
        let offsets = content.count - 2 - 2 * count
        try require(count > 0 && offsets > 8, "\(file.name): block \(number) has no room")
        try require(
            content.count <= 4_352 || count == 1, "\(file.name): block \(number) is too long")
        let base = content.number(at: 0, 8)
        var reader = PlainBytes(content, from: 8, upTo: offsets)
        for slot in 0..<count {
            try require(
                content.number(at: offsets + 2 * slot, 2) == UInt64(reader.place)
                    && reader.place < 4_096, "\(file.name): an offset in block \(number)")
            let place = UInt64(number << 12 | reader.place)
            var entry = try PlainEntry(&reader, base: base, tables)
            entry.place = place
            entries.append(entry)
        }
        try require(reader.isAtEnd, "\(file.name): block \(number) has bytes between its parts")
    }

    private func checkOrder(after before: PlainEntry?) throws {
        var before = before
        for entry in entries {
            let isSameKey = before?.dataset == entry.dataset && before?.key == entry.key
            try require(
                isSameKey == entry.isSuperseded, "\(file.name): whether an entry is superseded")
            if let before {
                try require(before.precedes(entry), "\(file.name): entries are out of order")
            }
            before = entry
        }
    }

    // MARK: - Values

    private mutating func readValues(
        _ valueFile: (UInt64) throws -> PlainValueFile, table: [UInt8]
    ) throws {
        var rows: [UInt64: [Int]] = [:]
        for index in entries.indices {
            guard let handle = entries[index].handle else { continue }
            guard let value = try valueFile(handle.file).values[handle.offset] else {
                throw Mismatch("\(file.name): no value at \(handle)")
            }
            try require(
                value.bytes.count == handle.count && handle.count > 0
                    && value.storedCount == handle.count - handle.saved,
                "\(file.name): the lengths of a value that lies apart")
            entries[index].value = value.bytes
            let row = rows[handle.file] ?? [0, 0, 0]
            rows[handle.file] = [
                row[0] + 1, row[1] + value.footprint, row[2] + value.bytes.count,
            ]
        }
        var reader = PlainBytes(table)
        var numbers: [UInt64] = []
        for _ in 0..<(try reader.count()) {
            let number = try reader.varint()
            let fileBytes = try reader.count()
            let row = try (0..<3).map { _ in try reader.count() }
            let knownBytes = try valueFile(number).fileBytes
            try require(
                rows[number] == row && knownBytes == fileBytes,
                "\(file.name): the row of value file \(number)")
            numbers.append(number)
        }
        try require(reader.isAtEnd && numbers == rows.keys.sorted(), "\(file.name): value files")
    }

    // MARK: - Indexes

    /// Returns where the blocks of changes end.
    private mutating func checkChanges(_ directory: [UInt8], from start: Int) throws -> Int {
        let count = try count(at: 56)
        try require(directory.count == 16 * count + 8, "\(file.name): the change directory")
        var offset = start
        var lines: [[UInt64]] = []
        for row in stride(from: 0, to: 16 * count, by: 16) {
            try require(
                8 * directory.number(at: row + 4, 4) == UInt64(offset),
                "\(file.name): where changes begin")
            let (content, next) = try file.content(at: offset, kind: 17)
            let first = lines.count
            try Self.readChanges(content, into: &lines)
            try require(
                lines.count - first <= 1_024 && lines[first][0] == directory.number(at: row, 4)
                    && lines[first][1] == directory.number(at: row + 8, 8),
                "\(file.name): the first line of changes")
            offset = next
        }
        try require(
            directory.number(at: 16 * count, 4) == 0
                && 8 * directory.number(at: 16 * count + 4, 4) == UInt64(offset),
            "\(file.name): where changes end")
        let expected = entries.filter { $0.dataset > 0 }
            .map { [$0.dataset, $0.syncCount, $0.place] }
            .sorted { $0.lexicographicallyPrecedes($1) }
        try require(lines == expected, "\(file.name): the changes are not those of the entries")
        return offset
    }

    /// Lines of dataset, sync count and place.
    private static func readChanges(_ content: [UInt8], into lines: inout [[UInt64]]) throws {
        var reader = PlainBytes(content)
        var line: [UInt64] = [0, 0, 0]
        var isFirst = true
        repeat {
            let step = try reader.varint()
            if step == 0 {
                line[0] = try reader.varint()
                line[1] = try reader.varint()
            } else {
                try require(!isFirst, "a block of changes begins in the middle of a dataset")
                line[1] += step
            }
            line[2] = (line[2] &+ (try reader.zigzag())) & 0xFFFF_FFFF
            lines.append(line)
            isFirst = false
        } while !reader.isAtEnd
    }

    /// Every key is found by its hash, at its newest entry, and nothing else is in the index.
    private mutating func checkHashIndex(_ checksums: [UInt8], behind end: Int) throws {
        let start = try count(at: 72)
        let bucketCount = try count(at: 80)
        try require(
            start == (end + 63) / 64 * 64 && bucketCount > 0, "\(file.name): the hash index")
        let range = start..<(start + 64 * bucketCount)
        try require(range.upperBound <= file.bytes.count, "\(file.name): the hash index is short")
        file.note(range)
        let chunk = 64 * 1_024
        try require(
            checksums.count == 8 * ((range.count + chunk - 1) / chunk),
            "\(file.name): checksums of the hash index")
        for (number, offset) in stride(from: start, to: range.upperBound, by: chunk).enumerated() {
            let part = file.bytes[offset..<min(range.upperBound, offset + chunk)]
            try require(
                Plain.hash(part) == checksums.number(at: 8 * number, 8),
                "\(file.name): part \(number) of the hash index is damaged")
        }
        let index = PlainHashIndex(buckets: Array(file.bytes[range]))
        let newest = entries.filter { !$0.isSuperseded }
        for entry in newest {
            try require(
                index.places(of: file.identity.hash(of: entry.key, in: entry.dataset))
                    .contains(entry.place),
                "\(file.name): the hash index does not lead to \(Bytes.summary(entry.key))")
        }
        try require(
            try index.keyCount() == newest.count, "\(file.name): the hash index has more keys")
    }

    // MARK: - Tables

    private func checkDatasets(_ table: [UInt8]) throws {
        var expected: [UInt64: [Int]] = [:]
        for entry in entries {
            let row = expected[entry.dataset] ?? [0, 0, 0, 0]
            expected[entry.dataset] = [
                row[0] + 1, row[1] + (entry.isDeletion ? 1 : 0), row[2] + entry.key.count,
                row[3] + (entry.value?.count ?? 0),
            ]
        }
        var reader = PlainBytes(table)
        var numbers: [UInt64] = []
        for _ in 0..<(try reader.count()) {
            let number = try reader.varint()
            let row = try (0..<4).map { _ in try reader.count() }
            try require(expected[number] == row, "\(file.name): the row of dataset \(number)")
            numbers.append(number)
        }
        try require(
            reader.isAtEnd && numbers == expected.keys.sorted(), "\(file.name): the datasets")
    }

    /// What was dropped nobody can count any more; here it is only read.
    private func checkCollected(_ table: [UInt8]) throws {
        var reader = PlainBytes(table)
        var last: UInt64?
        for _ in 0..<(try reader.count()) {
            let number = try reader.varint()
            try require(last.map { $0 < number } ?? true, "\(file.name): the order of losses")
            last = number
            for _ in 0..<3 { _ = try reader.varint() }
        }
        try require(reader.isAtEnd, "\(file.name): losses are followed by \(reader.left) bytes")
    }
}

extension PlainEntry {
    var isDeletion: Bool { value == nil }

    /// By dataset, key, and from the greatest sync count down.
    fileprivate func precedes(_ other: PlainEntry) -> Bool {
        if dataset != other.dataset { return dataset < other.dataset }
        if key != other.key { return Bytes.precedes(key, other.key) }
        return syncCount > other.syncCount
    }
}

extension [UInt8] {
    /// A number of eight bytes that counts something in a file of so many bytes.
    fileprivate func place(at offset: Int, of fileBytes: Int) throws -> Int {
        let number = number(at: offset, 8)
        try require(number <= UInt64(fileBytes), "\(number) is beyond \(fileBytes) bytes")
        return Int(number)
    }
}
