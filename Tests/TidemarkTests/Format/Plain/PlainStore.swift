import TestSupport

/// A whole store or backup: its files by name, all of them read to the last byte.
struct PlainStore {
    private(set) var id: PlainID
    private(set) var formerIDs: [PlainID] = []
    private(set) var states: [String: PlainState] = [:]
    /// Names by number, as the store's own records have them.
    private(set) var names: [UInt64: String] = [:]
    /// All versions of each key of a dataset's number, the newest first.
    private(set) var versions: [UInt64: [[UInt8]: [PlainEntry]]] = [:]
    /// Which items the logs have.
    private(set) var itemCodes: Set<UInt8> = []
    private(set) var parts: [PlainPart] = []
    private(set) var roster: PlainRoster?

    private let files: [String: [UInt8]]
    private let manifest: PlainManifest
    private var unread: Set<String>
    private var timeMax: UInt64

    init(_ files: [String: [UInt8]]) throws {
        self.files = files
        unread = Set(files.keys)
        guard let bytes = files["MANIFEST"] else { throw Mismatch("no manifest") }
        manifest = try PlainManifest(bytes)
        unread.remove("MANIFEST")
        id = manifest.id
        formerIDs = manifest.formerIDs
        timeMax = manifest.clock
        if let mark = files["BACKUP"] {
            _ = try PlainFile(
                "BACKUP", mark, .backupMark, number: 0, identity: manifest.identity)
            try require(mark.count == PlainFile.headerBytes, "the mark of a backup is longer")
            unread.remove("BACKUP")
        }
        if let bytes = files["ROSTER"] {
            roster = try PlainRoster(bytes, identity: manifest.identity)
            unread.remove("ROSTER")
        }
        try readSegments()
        try readLogs()
        try readParts()
        try require(unread.isEmpty, "nothing names \(unread.sorted())")
        for (number, keys) in versions {
            for (key, entries) in keys {
                versions[number]![key] = entries.sorted { $0.syncCount > $1.syncCount }
            }
        }
    }

    private mutating func readParts() throws {
        for name in files.keys.sorted() where name.hasSuffix(".part") {
            guard let number = UInt64(name.dropLast(5)) else { throw Mismatch("part \(name)") }
            let (partName, part) = try file(number, ".part")
            let (originName, origin) = try file(number, ".from")
            parts.append(
                try PlainPart(
                    part: try PlainFile(
                        partName, part, .segment, number: number, identity: manifest.identity),
                    origin: try PlainFile(
                        originName, origin, .partOrigin, number: number,
                        identity: manifest.identity)))
        }
    }

    private mutating func file(_ number: UInt64, _ ending: String) throws -> (String, [UInt8]) {
        let digits = String(number)
        let zeros = String(repeating: "0", count: max(0, 6 - digits.count))
        let name = zeros + digits + ending
        guard let bytes = files[name] else { throw Mismatch("no \(name)") }
        unread.remove(name)
        return (name, bytes)
    }

    // MARK: - Segments

    private mutating func readSegments() throws {
        // Of each of the store's own records the newest, by the number of the log it is from.
        var newest: [[UInt8]: PlainEntry] = [:]
        var values: [UInt64: PlainValueFile] = [:]
        var before: PlainEntry?
        for (index, row) in manifest.segments.enumerated() {
            if index == 0 || manifest.segments[index - 1].run != row.run { before = nil }
            let (name, bytes) = try file(row.number, ".seg")
            try require(UInt64(bytes.count) == row.fileSize, "\(name) has \(bytes.count) bytes")
            let segment = try PlainSegment(
                name, bytes, number: row.number, identity: manifest.identity, before: before
            ) { number in
                if let known = values[number] { return known }
                let (name, bytes) = try file(number, ".val")
                let read = try PlainValueFile(
                    name, bytes, number: number, identity: manifest.identity)
                values[number] = read
                return read
            }
            before = segment.entries.last ?? before
            for entry in segment.entries {
                guard entry.dataset == 0 else {
                    versions[entry.dataset, default: [:]][entry.key, default: []].append(entry)
                    continue
                }
                try require(
                    entry.replica == .zero && entry.author.isEmpty && entry.time == 0
                        && entry.handle == nil, "\(name): a record of the store's own")
                if newest[entry.key].map({ $0.syncCount < entry.syncCount }) ?? true {
                    newest[entry.key] = entry
                }
            }
        }
        for (key, entry) in newest {
            guard let value = entry.value else { throw Mismatch("a state is a deletion") }
            if key.first == 0 {
                try require(key.count == 5, "a number's key has \(key.count) bytes")
                let number = key.dropFirst().reduce(0) { $0 << 8 | UInt64($1) }
                names[number] = String(decoding: value, as: UTF8.self)
            } else {
                states[String(decoding: key, as: UTF8.self)] = try PlainState(value)
            }
        }
    }

    // MARK: - Logs

    private mutating func readLogs() throws {
        var numbers: [UInt64] = []
        for name in files.keys where name.hasSuffix(".log") {
            guard let number = UInt64(name.dropLast(4)) else { throw Mismatch("log \(name)") }
            if number >= manifest.oldestLog { numbers.append(number) }
        }
        var previous: UInt64?
        for number in numbers.sorted() {
            let (name, bytes) = try file(number, ".log")
            let log = try PlainFile(
                name, bytes, .log, number: number, identity: manifest.identity)
            try require(
                previous == log.previousLog
                    || previous == nil && (manifest.oldestLog == 0 || manifest.oldestLog == number),
                "\(name) does not follow")
            let end = try read(log)
            try require(end.isEnded || number == numbers.max(), "\(name) did not end")
            if number == manifest.closedLog {
                try require(
                    UInt64(end.offset) >= manifest.closedThrough
                        && UInt64(bytes.count) >= manifest.closedSize, "\(name) was longer")
            }
            // Nothing of these stores was ever cut, and no log was used again.
            try log.requireZeros(end.offset..<bytes.count)
            previous = number
        }
        try require(
            manifest.closedLog < manifest.oldestLog || manifest.closedLog == 0
                || numbers.contains(manifest.closedLog), "the log that was closed is gone")
    }

    private mutating func read(_ log: PlainFile) throws -> (offset: Int, isEnded: Bool) {
        var tables = PlainTables()
        var offset = PlainFile.headerBytes
        var epoch: UInt64 = 0
        var mark = 0
        while let block = log.block(at: offset), block.kind == 1 || block.kind == 2,
            block.epoch >= epoch, block.stored.count % 8 == 0
        {
            epoch = block.epoch
            mark = max(mark, block.mark)
            offset = block.end
            if block.kind == 2 { return (offset, true) }
            try read(block, of: log, &tables)
        }
        try require(mark <= offset, "\(log.name) was durable up to \(mark) and ends at \(offset)")
        return (offset, false)
    }

    private mutating func read(
        _ block: PlainFile.Block, of log: PlainFile, _ tables: inout PlainTables
    ) throws {
        var reader = PlainBytes(block.stored)
        while !reader.isAtEnd {
            let code = try reader.byte()
            guard code != 0 else {
                let rest = try reader.take(reader.left)
                try require(rest.count <= 6 && rest.allSatisfy { $0 == 0 }, "after the end")
                return
            }
            itemCodes.insert(code)
            switch code {
            case 1: try tables.addID(&reader)
            case 2: try tables.addVector(&reader)
            case 3: try tables.addAuthor(&reader)
            case 4: try tables.addOrigin(&reader)
            case 11, 18: try rename(try reader.id())
            case 16: try add(try PlainEntry(&reader, base: log.madeAt, tables))
            // Of the clock alone, of which nothing is to be read.
            case 17: try require(!reader.isAtEnd, "no entry is dated")
            default: try readState(code, &reader)
            }
        }
    }

    private mutating func rename(_ newID: PlainID) throws {
        guard newID != id else { return }
        if !formerIDs.contains(id) { formerIDs.append(id) }
        id = newID
    }

    private mutating func add(_ entry: PlainEntry) throws {
        try require(
            entry.dataset > 0 && !entry.isSuperseded && entry.handle == nil
                && (entry.counter > 0 || entry.isDeletion && entry.seen.isEmpty),
            "an entry in a log is impossible")
        versions[entry.dataset, default: [:]][entry.key, default: []].append(entry)
        timeMax = max(timeMax, entry.time)
        for name in states.keys where states[name]!.number == entry.dataset {
            states[name]!.apply(entry, own: id)
        }
    }

    private mutating func readState(_ code: UInt8, _ reader: inout PlainBytes) throws {
        let name = try reader.text()
        var state = states[name] ?? PlainState()
        switch code {
        case 8:
            let number = try reader.varint()
            try state.applyDataset(number: number, &reader, timeMax: &timeMax)
        case 9: try state.applyCheckpoint(&reader)
        case 10: try state.applySeen(&reader)
        case 12: try state.applyAdopted(&reader, timeMax: &timeMax)
        case 13: try state.applyDisowned(&reader)
        case 14: try state.applyForgotten(&reader)
        case 15: try state.applyRetired(&reader)
        default: throw Mismatch("there is no item \(code)")
        }
        states[name] = state
        if state.number > 0 { names[state.number] = name }
    }
}

/// Which files make up the store.
struct PlainManifest {
    struct Segment {
        let number: UInt64
        let fileSize: UInt64
        let run: UInt64
    }

    let id: PlainID
    let formerIDs: [PlainID]
    let oldestLog: UInt64
    let clock: UInt64
    let closedLog: UInt64
    let closedThrough: UInt64
    let closedSize: UInt64
    let segments: [Segment]
    let identity: PlainIdentity

    init(_ bytes: [UInt8]) throws {
        var file = try PlainFile("MANIFEST", bytes, .manifest, number: 0, identity: nil)
        identity = file.identity
        let content = try file.content(at: PlainFile.headerBytes, kind: 32).bytes
        try file.requireAllRead(alignment: 1)
        var reader = PlainBytes(content)
        id = try reader.id()
        formerIDs = try (0..<(try reader.count())).map { _ in try reader.id() }
        oldestLog = try reader.varint()
        let nextNumber = try reader.varint()
        let nextDataset = try reader.varint()
        clock = try reader.varint()
        _ = try reader.varint()
        closedLog = try reader.varint()
        closedThrough = try reader.varint()
        closedSize = try reader.varint()
        segments = try (0..<(try reader.count())).map { _ in
            Segment(
                number: try reader.varint(), fileSize: try reader.varint(),
                run: try reader.varint())
        }
        let closedIDs =
            try reader.isAtEnd ? [] : (0..<(try reader.count())).map { _ in try reader.id() }
        try require(Set(closedIDs).isSubset(of: formerIDs), "an id was given up that it never had")
        try require(reader.isAtEnd, "the manifest is followed by \(reader.left) bytes")
        try require(
            Set(segments.map(\.number)).count == segments.count
                && segments.allSatisfy { $0.number < nextNumber } && nextDataset < 1 << 31,
            "the manifest has impossible numbers")
    }
}

/// Values that lie apart, by where their blocks begin.
struct PlainValueFile {
    struct Value {
        let bytes: [UInt8]
        let storedCount: Int
        /// With header and what fills up.
        let footprint: Int
    }

    let fileBytes: Int
    private(set) var values: [Int: Value] = [:]

    init(_ name: String, _ bytes: [UInt8], number: UInt64, identity: PlainIdentity) throws {
        fileBytes = bytes.count
        var file = try PlainFile(name, bytes, .valueFile, number: number, identity: identity)
        var offset = PlainFile.headerBytes
        while offset < bytes.count {
            let (value, next) = try file.content(at: offset, kind: 25)
            values[offset] = Value(
                bytes: value, storedCount: Int(bytes.number(at: offset + 8, 4)),
                footprint: next - offset)
            offset = next
        }
        try file.requireAllRead(alignment: 8)
    }
}
