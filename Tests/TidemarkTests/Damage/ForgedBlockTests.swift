import Synchronization
import TestSupport
import Testing
import Tidemark

/// A value may have any bytes, also those of blocks with the checksum that everybody can make. They
/// are never taken for blocks of the store: not where an opening looks for what is left of a log,
/// nor where a repair looks for what is whole in a damaged file.
@Suite("Forged blocks in values")
struct ForgedBlockTests {
    // MARK: - Empty blocks

    /// 24 KiB of empty blocks, of log after log, each of which says that nearly all of its log was
    /// durable.
    private static let emptyBlocks: [UInt8] = {
        var bytes: [UInt8] = []
        var number: UInt32 = 0
        while bytes.count < 24 << 10 {
            number = number % 127 + 1
            unsafe bytes += forgedBlock(1, of: number, mark: 0x7FFF_FFF8, epoch: 1, []) {
                unsafe checksum64($0)
            }
        }
        return bytes
    }()

    /// As the number of a put says it, at each distance from a multiple of eight in turn.
    private func value(_ index: Int) -> [UInt8] {
        [UInt8](repeating: 0x2E, count: index % 8) + Self.emptyBlocks
    }

    /// A file of a log that was sealed becomes the next log, and holds its old bytes still.
    @Test("Values that look like blocks of every log are no damage after a kill")
    func emptyBlocksInUsedLogs() throws {
        let storage = SimulatedStorage(seed: Seed(31))
        let options = StoreOptions(
            durability: .process, segmentBytes: 1 << 20, compactsAutomatically: false,
            compression: .none)
        let store = try openSimulated(storage, options)
        let reused = Mutex(0)
        storage.observe { call in
            guard call.kind == .rename, call.path.hasSuffix(".log") else { return }
            reused.withLock { $0 += 1 }
        }
        let dataset = try store.dataset("main")
        var expected: [[UInt8]: [UInt8]] = [:]
        var (index, rest) = (0, 20)
        while index < 3_000, rest > 0 {
            let key = bytes("key \(index % 50)")
            try dataset.put(value(index), for: key)
            expected[key] = value(index)
            index += 1
            if reused.withLock({ $0 >= 3 }) { rest -= 1 }
        }
        storage.observe(nil)
        let reusedCount = reused.withLock { $0 }
        try #require(reusedCount >= 3, "no log was used again")
        var random = SeededGenerator(Seed(32))
        let disk = storage.afterProcessEnd(using: &random)
        try store.close()

        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let path = directory["killed"]
        try Files.createDirectory(path)
        for name in try disk.listDirectory(simulatedPath) {
            let file = try #require(disk.contents(of: "\(simulatedPath)/\(name)"))
            try Files.write(file, to: "\(path)/\(name)")
        }
        let damages = try Store.verify(at: path).damages
        #expect(damages.isEmpty, "\(damages)")
        let report = try Store.repair(at: path, to: directory["repaired"])
        #expect(report.isComplete && report.losses.isEmpty, "\(report.losses)")
        // Twice, since an opening leaves something behind for the next one.
        for path in [path, path, directory["repaired"]] {
            let store = try Store.open(at: path, options: options)
            #expect(try store.verify(threads: 1).damages.isEmpty)
            let records = try store.dataset("main").records().collect()
            #expect(records.count == expected.count)
            for record in records {
                #expect(Bytes.areEqual(record.value, expected[record.key]))
            }
            try store.close()
        }
    }

    // MARK: - Entries

    private static let options = StoreOptions(
        durability: .memory, segmentBytes: 1 << 20, compactsAutomatically: false,
        compression: .none, largeValueBytes: 1 << 20)
    private static let forgedKey = bytes("forged")

    /// A closed store with forged values in its segment and in its log, and what it holds.
    private func store(
        in directory: TemporaryDirectory, knowingSecret: Bool
    ) throws -> (path: String, records: [[UInt8]: [UInt8]]) {
        let path = directory["store"]
        let store = try Store.open(at: path, options: Self.options)
        let main = try store.dataset("main")
        let other = try store.dataset("other")
        var records: [[UInt8]: [UInt8]] = [:]
        func put(_ value: [UInt8], _ key: String, _ dataset: Dataset) throws {
            try dataset.put(value, for: bytes(key))
            records[bytes(key)] = value
        }
        let file = knowingSecret ? try Files.read("\(path)/MANIFEST") : nil
        let forged = try unsafe ForgedEntries().blocks { part in
            guard let file else { return unsafe checksum64(part) }
            return unsafe storeChecksum64(part, inFile: file)
        }
        try put([1], "a", main)
        try put([2], "b", other)
        for index in 0..<8 {
            try put([UInt8](repeating: 0x2E, count: index) + forged, "evil \(index)", main)
        }
        try store.compact()
        try put([3], "c", other)
        for index in 8..<16 {
            try put([UInt8](repeating: 0x2E, count: index - 8) + forged, "evil \(index)", main)
        }
        try put([4], "d", other)
        try store.close()
        return (path, records)
    }

    /// Changes a bit in each key of a forged value, so that the blocks around the values are
    /// damaged, and the values are looked through for others.
    private func damaged(_ file: [UInt8]) -> [UInt8] {
        var file = file
        let needle = bytes("evil ")
        for offset in file.indices
        where file[offset] == needle[0] && file[offset...].starts(with: needle) {
            file[offset] ^= 1
        }
        return file
    }

    /// Whether the forged record is in a store. Otherwise everything in it must be as it was put.
    private func isForged(_ path: String, _ records: [[UInt8]: [UInt8]]) throws -> Bool {
        let store = try Store.open(at: path, options: Self.options)
        defer { try? store.close() }
        var found: [Record] = []
        for dataset in try store.datasets() {
            found += try dataset.records(includingDeleted: true).collect()
        }
        if found.contains(where: { $0.key == Self.forgedKey }) { return true }
        for record in found {
            try require(
                Bytes.areEqual(record.value, records[record.key]),
                "\(Bytes.summary(record.key)) is another")
        }
        return false
    }

    @Test("No repair takes what a value holds for a record", arguments: [false, true])
    func repairWithoutManifest(isDamaged: Bool) throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let (path, records) = try store(in: directory, knowingSecret: false)
        try Files.remove("\(path)/MANIFEST")
        if isDamaged {
            for name in try Files.list(path) where !name.hasSuffix("LOCK") {
                try Files.write(damaged(Files.read("\(path)/\(name)")), to: "\(path)/\(name)")
            }
        }
        let target = directory["repaired"]
        let report = try Store.repair(at: path, to: target)
        let saved = report.datasets.reduce(0) { $0 + $1.entriesSaved }
        #expect(isDamaged ? (1...4).contains(saved) : saved == 20)
        #expect(try !isForged(target, records))
    }

    /// What is saved out of the log and the segment of a store, each of them alone and damaged.
    private func areForged(_ path: String, _ records: [[UInt8]: [UInt8]]) throws -> [Bool] {
        try [".log", ".seg"].map { ending in
            let name = try #require(try Files.list(path).first { $0.hasSuffix(ending) })
            let directory = try TemporaryDirectory()
            defer { withExtendedLifetime(directory) {} }
            try Files.write(damaged(Files.read("\(path)/\(name)")), to: directory[name])
            let target = directory["saved"]
            try Store.salvage(fileAt: directory[name], to: target)
            return try isForged(target, records)
        }
    }

    @Test("Nobody who saves what is in one file takes what a value holds for a record")
    func salvage() throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let (path, records) = try store(in: directory, knowingSecret: false)
        #expect(try areForged(path, records) == [false, false])
    }

    /// Or the others would find nothing wrong because the forgery is a bad one.
    @Test("Who knows the secret of a store can forge a record")
    func withSecret() throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let (path, records) = try store(in: directory, knowingSecret: true)
        #expect(try areForged(path, records).contains(true))
    }
}

/// A block, with the checksum that somebody makes for it.
private func forgedBlock(
    _ kind: UInt8, of number: UInt32, mark: UInt32, epoch: UInt16, _ stored: [UInt8],
    checksum: (UnsafeRawBufferPointer) -> UInt64
) -> [UInt8] {
    func little(_ number: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
    }
    var rest = little(UInt64(stored.count), 4) + little(UInt64(mark), 4)
    rest += little(UInt64(number), 4) + [kind, 0]
    rest += little(UInt64(epoch), 2) + stored
    let sum = unsafe rest.withUnsafeBytes { unsafe checksum($0) }
    return little(sum, 8) + rest
}

/// Blocks of a log and of a segment with a record of the second dataset, as another store has them.
private struct ForgedEntries {
    private struct Part {
        let kind: UInt8
        let stored: [UInt8]
    }

    private var parts: [Part] = []

    init() throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let options = StoreOptions(
            durability: .memory, segmentBytes: 1 << 20, compactsAutomatically: false,
            compression: .none)
        let path = directory["store"]
        let store = try Store.open(at: path, options: options)
        _ = try store.dataset("main")
        try store.dataset("other").put("forged", for: "forged")
        try store.close()
        try add(kind: 1, ofFileIn: path, ending: ".log")
        let again = try Store.open(at: path, options: options)
        try again.compact()
        try again.close()
        try add(kind: 16, ofFileIn: path, ending: ".seg")
        try #require(parts.contains { $0.kind == 1 } && parts.contains { $0.kind == 16 })
    }

    private mutating func add(kind: UInt8, ofFileIn path: String, ending: String) throws {
        let name = try #require(try Files.list(path).first { $0.hasSuffix(ending) })
        let file = try Files.read("\(path)/\(name)")
        var offset = 80
        while offset + 24 <= file.count, file[offset + 20] == kind {
            let count = file[(offset + 8)..<(offset + 12)].reversed().reduce(0) {
                $0 << 8 | Int($1)
            }
            let stored = Array(file[(offset + 24)..<(offset + 24 + count)])
            if count > 0 { parts.append(Part(kind: kind, stored: stored)) }
            offset = (offset + 24 + count + 7) & ~7
        }
    }

    /// The blocks under the numbers that a file of a small store may have, each at a multiple of
    /// eight.
    func blocks(checksum: (UnsafeRawBufferPointer) -> UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in UInt32(1)...24 {
            for part in parts {
                unsafe bytes += forgedBlock(
                    part.kind, of: number, mark: part.kind == 1 ? 0 : UInt32(part.stored.count),
                    epoch: part.kind == 1 ? 1_000 : 0, part.stored, checksum: checksum)
                bytes += [UInt8](repeating: 0, count: (8 - bytes.count % 8) % 8)
            }
        }
        return bytes
    }
}
