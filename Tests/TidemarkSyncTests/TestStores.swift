import Foundation
import Synchronization
import Testing
import Tidemark
import TidemarkSync

/// A directory that is gone when the test is over. In memory where there is such a file system:
/// these tests are about what is sent, not about the disk.
final class TemporaryDirectory: Sendable {
    let path: String

    init() {
        let base = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
        path = "\(base)/tidemark-sync-\(UUID().uuidString)"
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func copy(_ name: String, to copy: String) throws {
        try? FileManager.default.removeItem(atPath: "\(path)/\(copy)")
        try FileManager.default.copyItem(atPath: "\(path)/\(name)", toPath: "\(path)/\(copy)")
    }
}

/// A store that can be closed, restored from a backup and opened again.
final class TestReplica {
    let name: String
    let directory: TemporaryDirectory
    let clock = TestClock()
    private(set) var store: Store
    private let tombstoneAge: Duration
    private let clockAheadMax: Duration
    private let tellsCopies: Bool

    /// - Parameter tellsCopies: see ``ClockedStorage``.
    init(
        _ name: String, in directory: TemporaryDirectory,
        tombstoneAge: Duration = StoreOptions().tombstoneAge,
        clockAheadMax: Duration = StoreOptions().clockAheadMax, tellsCopies: Bool = false
    ) throws {
        self.name = name
        self.tellsCopies = tellsCopies
        self.directory = directory
        self.tombstoneAge = tombstoneAge
        self.clockAheadMax = clockAheadMax
        try FileManager.default.createDirectory(
            atPath: directory.path, withIntermediateDirectories: true)
        store = try Self.open(
            name, directory, clock, tombstoneAge, clockAheadMax, tellsCopies)
    }

    /// "a" and "b", in a directory of their own.
    static func two() throws -> (TestReplica, TestReplica) {
        let directory = TemporaryDirectory()
        return (try TestReplica("a", in: directory), try TestReplica("b", in: directory))
    }

    /// "a", "b" and "c", in a directory of their own.
    static func three() throws -> (TestReplica, TestReplica, TestReplica) {
        let (a, b) = try two()
        return (a, b, try TestReplica("c", in: a.directory))
    }

    private static func open(
        _ name: String, _ directory: TemporaryDirectory, _ clock: TestClock,
        _ tombstoneAge: Duration, _ clockAheadMax: Duration, _ tellsCopies: Bool
    ) throws -> Store {
        var options = StoreOptions(
            durability: .memory, author: name, segmentBytes: 1 << 20, blockCacheBytes: 1 << 20,
            tombstoneAge: tombstoneAge, compactsAutomatically: false,
            clockAheadMax: clockAheadMax)
        // So that states are let go and read again wherever that is allowed.
        options.keptDatasetStatesMax = 0
        return try Store.open(
            at: "\(directory.path)/\(name)", options: options,
            storage: ClockedStorage(clock, tellsCopies: tellsCopies))
    }

    var responder: SyncResponder { SyncResponder(store: store) }

    var transport: InMemoryTransport { InMemoryTransport(responder) }

    func dataset(_ name: String = "notes") throws -> Dataset {
        try store.dataset(name)
    }

    /// - Parameter meanwhile: is done while the store is closed.
    func reopen(_ meanwhile: () throws -> Void = {}) throws {
        try store.close()
        try meanwhile()
        store = try Self.open(
            name, directory, clock, tombstoneAge, clockAheadMax, tellsCopies)
    }

    /// A copy of its files under another name, opened beside it.
    func copied(as name: String) throws -> TestReplica {
        try store.close()
        try directory.copy(self.name, to: name)
        store = try Self.open(
            self.name, directory, clock, tombstoneAge, clockAheadMax, tellsCopies)
        return try TestReplica(
            name, in: directory, tombstoneAge: tombstoneAge, clockAheadMax: clockAheadMax,
            tellsCopies: tellsCopies)
    }

    func backUp() throws {
        try store.close()
        try directory.copy(name, to: "\(name).backup")
        store = try Self.open(
            name, directory, clock, tombstoneAge, clockAheadMax, tellsCopies)
    }

    func restore() throws {
        try store.close()
        try directory.copy("\(name).backup", to: name)
        store = try Self.open(
            name, directory, clock, tombstoneAge, clockAheadMax, tellsCopies)
    }
}

/// Writes into "notes".
func put(_ value: String, _ replica: TestReplica, _ key: String = "key") throws {
    try replica.dataset().put(value, for: key)
}

/// Writes so many records into "notes", each with its number in its key and in its value.
func fill(_ replica: TestReplica, _ range: Range<Int>, _ text: String) throws {
    for number in range {
        try replica.dataset().put("\(text) \(number)", for: "key \(number)")
    }
}

/// The same at once, with one value for so many records.
func fill(_ replica: TestReplica, _ count: Int) throws {
    let dataset = try replica.dataset()
    var batch = WriteBatch()
    for number in 0..<count {
        batch.put(Array("first".utf8), for: Array("key \(number)".utf8), in: dataset)
    }
    try replica.store.write(batch)
}

/// Checks that the records are there as ``fill(_:_:_:)`` writes them.
func expectText(
    _ replica: TestReplica, _ range: Range<Int>, _ text: String,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    for number in range {
        #expect(
            try replica.dataset().text("key \(number)") == "\(text) \(number)",
            sourceLocation: sourceLocation)
    }
}

/// What a replica holds of a dataset, tombstones included, as one comparable value.
struct Contents: Equatable, CustomStringConvertible {
    struct Line: Equatable {
        let key: [UInt8]
        let value: [UInt8]?
        let dot: Dot
        let time: HybridTime
    }

    let lines: [Line]

    init(_ dataset: Dataset, includingDeleted: Bool = true) throws {
        let records = try dataset.records(includingDeleted: includingDeleted).collect()
        lines = records.map {
            Line(key: $0.key, value: $0.value, dot: $0.version.dot, time: $0.version.time)
        }
    }

    var description: String {
        lines.map { line in
            let value = line.value.map { String(decoding: $0, as: UTF8.self) } ?? "(deleted)"
            return "\(String(decoding: line.key, as: UTF8.self))=\(value) \(line.dot) \(line.time)"
        }.joined(separator: "\n")
    }
}

/// Checks that all hold the same, by bytes and by digest: tombstones, too, unless one has forgotten
/// some, which each does in its own time.
func expectEqual(
    _ replicas: [TestReplica], dataset: String = "notes", _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    try expectEqual(
        try replicas.map { try $0.dataset(dataset) }, comment, sourceLocation: sourceLocation)
}

func expectEqual(
    _ datasets: [Dataset], _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    guard let first = datasets.first else { return }
    let isWhole = try datasets.allSatisfy { try $0.knowledge().forgotten.isEmpty }
    let expected = try Contents(first, includingDeleted: isWhole)
    let digest = try first.digest()
    for dataset in datasets.dropFirst() {
        #expect(
            try Contents(dataset, includingDeleted: isWhole) == expected, comment,
            sourceLocation: sourceLocation)
        #expect(try dataset.digest() == digest, comment, sourceLocation: sourceLocation)
    }
}

/// What both sides of a conflict consist of, each once, with "+" in between: to merge twice is to
/// merge once.
func unitedText(of conflict: Conflict) -> [UInt8] {
    let parts = [conflict.local, conflict.remote].compactMap(\.value).flatMap {
        String(decoding: $0, as: UTF8.self).split(separator: "+")
    }
    return Array(Set(parts).sorted().joined(separator: "+").utf8)
}

/// The texts of both sides of a conflict with "+" in between, also what they have in common: it
/// shows what was merged twice.
func joinedText(of conflict: Conflict) -> [UInt8] {
    let texts = [conflict.local, conflict.remote].compactMap(\.valueText)
    return Array(texts.sorted().joined(separator: "+").utf8)
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// The base seed of random runs: `TIDEMARK_SEED` if set, else a new one each time.
let baseSeed: UInt64 =
    ProcessInfo.processInfo.environment["TIDEMARK_SEED"].flatMap { UInt64($0) }
    ?? UInt64.random(in: 0..<1_000_000)
