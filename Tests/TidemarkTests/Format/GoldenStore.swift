import TestSupport
import Testing
import Tidemark

/// A small store that is made by the same steps each time, on a simulated disk with its clock and
/// randomness, so that its files are the same to the byte.
struct GoldenStore: Sendable, CustomTestStringConvertible {
    let name: String
    let compression: Compression
    /// Whether the files are those of a backup of the store, which nobody writes.
    let isBackup: Bool
    private let make: @Sendable (GoldenMaker) throws -> Void

    var testDescription: String { name }

    private init(
        _ name: String, _ compression: Compression = .none, isBackup: Bool = false,
        _ make: @escaping @Sendable (GoldenMaker) throws -> Void
    ) {
        self.name = name
        self.compression = compression
        self.isBackup = isBackup
        self.make = make
    }

    /// Makes the store and gives its files, by name.
    func made() throws -> [String: [UInt8]] {
        let maker = GoldenMaker(seed: Seed(UInt64(name.utf8.reduce(7) { $0 * 31 + Int($1) })))
        maker.options.compression = compression
        try make(maker)
        return try maker.files(in: isBackup ? GoldenMaker.backupPath : simulatedPath)
    }

    static let all: [GoldenStore] = [
        GoldenStore("logs-closed") { maker in
            try maker.writeFruits()
            try maker.close()
        },
        GoldenStore("logs-killed") { maker in
            try maker.writeFruits()
            try maker.kill()
        },
        GoldenStore("sealed") { try sealed($0) },
        GoldenStore("sealed-lz4", .lz4) { try sealed($0) },
        GoldenStore("expiry") { try expiring($0) },
        GoldenStore("replicas") { try replicated($0) },
        GoldenStore("deleted") { try deleted($0) },
        GoldenStore("apart") { try apart($0) },
        GoldenStore("apart-lz4", .lz4) { try apart($0) },
        GoldenStore("runs") { try runs($0) },
        GoldenStore("history") { try history($0) },
        GoldenStore("datasets") { try datasets($0) },
        GoldenStore("adopted") { try adopted($0) },
        GoldenStore("part") { try part($0) },
        GoldenStore("backup", isBackup: true) { try backup($0) },
        GoldenStore("exchanged") { try exchanged($0) },
        GoldenStore("unfinished") { try unfinished($0) },
    ]

    /// Two segments that are one run, with superseded versions and tombstones, and a log behind.
    private static func sealed(_ maker: GoldenMaker) throws {
        maker.options.historyVersions = 1
        maker.options.segmentEntriesMax = 50
        let store = try maker.open()
        let records = try store.dataset("records")
        for round in 0..<2 {
            for index in 0..<36 {
                let value = String(repeating: "round \(round) ", count: 1 + index % 9)
                try records.put("\(value)\(index)", for: maker.key(index))
                maker.wait(3)
            }
        }
        for index in stride(from: 0, to: 36, by: 7) { try records.delete(maker.key(index)) }
        try store.dataset("empty-value").put("", for: "k")
        try store.compact()
        try maker.writeFruits()
        try maker.close()
    }

    /// Records that expire: later, and before a sweep; in segments and in the log.
    private static func expiring(_ maker: GoldenMaker) throws {
        maker.options.historyVersions = 1
        let store = try maker.open()
        let sessions = try store.dataset("sessions")
        for index in 0..<12 {
            let end = maker.now + 1_000 + UInt64(index % 3) * 1_000
            try sessions.put("session \(index)", for: maker.key(index), expiresAt: end)
        }
        try sessions.put("stays", for: "stays")
        try sessions.put("far", for: "far", expiresAt: Limits.expiryMax)
        maker.wait(1_500)
        try store.deleteExpired()
        try store.compact()
        maker.wait(1_000)
        try sessions.put("log", for: "in the log", expiresAt: maker.now + 10_000)
        try store.deleteExpired()
        try maker.close()
    }

    /// Versions by three replicas, concurrent ones settled, a checkpoint, and a store that was
    /// renamed.
    private static func replicated(_ maker: GoldenMaker) throws {
        let others = ["ada", "grace"].enumerated().map { index, author in
            GoldenMaker(seed: Seed(UInt64(100 + index)), author: author)
        }
        var sources: [Dataset] = []
        for (index, other) in others.enumerated() {
            other.wait(UInt64(10 * index))
            let notes = try other.open().dataset("notes")
            for number in 0..<6 {
                try notes.put("by \(other.options.author)", for: maker.key(number + 4 * index))
                other.wait(7)
            }
            try notes.delete(maker.key(5))
            sources.append(notes)
        }
        let store = try maker.open()
        let notes = try store.dataset("notes")
        try notes.put("mine", for: maker.key(0))
        maker.wait(100)
        for source in sources { try maker.pull(source, into: notes) }
        try store.compact()
        try store.renewReplicaID()
        try notes.put("by another name", for: maker.key(1))
        for other in others { try other.close() }
        try maker.close()
    }

    /// Values that lie apart: in two value files that one segment names, some of them replaced.
    private static func apart(_ maker: GoldenMaker) throws {
        maker.options.historyVersions = 1
        maker.options.largeValueBytes = 64
        let texts = try maker.open().dataset("texts")
        for index in 0..<9 {
            let value = String(repeating: "text \(index) ", count: 6 + 3 * index)
            try texts.put(value, for: maker.key(index))
            maker.wait(2)
        }
        try maker.open().compact()
        try texts.put("short", for: maker.key(1))
        try texts.delete(maker.key(2))
        let end = maker.now + 86_400_000
        let value = String(repeating: "expires ", count: 20)
        try texts.put(value, for: maker.key(3), expiresAt: end)
        try texts.put(String(repeating: "another ", count: 11), for: maker.key(4))
        try maker.open().compact()
        maker.wait(5)
        try texts.put(String(repeating: "in the log ", count: 9), for: maker.key(5))
        try maker.close()
    }

    /// Datasets that were deleted, made again, and deleted in the log.
    private static func deleted(_ maker: GoldenMaker) throws {
        let store = try maker.open()
        for name in ["gone", "again", "later", "kept"] {
            let dataset = try store.dataset(name)
            for index in 0..<4 { try dataset.put("\(name) \(index)", for: maker.key(index)) }
            maker.wait(5)
        }
        try store.deleteDataset("gone")
        try store.deleteDataset("again")
        try store.dataset("again").put("new", for: "new")
        try store.compact()
        maker.wait(5)
        try store.deleteDataset("later")
        try store.dataset("kept").clear()
        try store.dataset("kept").put("last", for: "last")
        try maker.close()
    }

    /// Three runs that were never merged, newer ones superseding and deleting what older ones have,
    /// and a log above them.
    private static func runs(_ maker: GoldenMaker) throws {
        maker.options.historyVersions = 2
        let store = try maker.open()
        let records = try store.dataset("records")
        let others = try store.dataset("others")
        for round in 0..<3 {
            for index in stride(from: round, to: 24, by: round + 1) {
                try records.put("round \(round), \(index)", for: maker.key(index))
                maker.wait(2)
            }
            for index in stride(from: 5 * round, to: 24, by: 11) {
                try records.delete(maker.key(index))
            }
            try others.put("\(round)", for: "k")
            try store.sealAll()
        }
        try records.put("log", for: maker.key(0))
        try records.delete(maker.key(7))
        try maker.close()
    }

    /// Many versions of a few records: those that count and age have left of them, and newer ones.
    private static func history(_ maker: GoldenMaker) throws {
        maker.options.historyVersions = 2
        maker.options.historyAge = .seconds(100)
        let store = try maker.open()
        let records = try store.dataset("records")
        for version in 0..<12 {
            for index in 0..<3 {
                if (version + index) % 5 == 4 {
                    try records.delete(maker.key(index))
                } else {
                    try records.put("version \(version)", for: maker.key(index))
                }
                maker.wait(10_000)
            }
            if version == 7 { try store.compact() }
            if version == 10 { try store.sealAll() }
        }
        try maker.close()
    }

    /// As many datasets as fit into one small segment, some of them empty.
    private static func datasets(_ maker: GoldenMaker) throws {
        let store = try maker.open()
        let names = (0..<40).map { "d\($0)" + String(repeating: ".more", count: $0 % 4) }
        for (number, name) in names.enumerated() {
            let dataset = try store.dataset(name)
            if number % 7 != 3 { try dataset.put("\(number)", for: "k") }
            maker.wait(1)
        }
        try store.compact()
        for name in names.prefix(3) { try store.dataset(name).put("again", for: "k") }
        try maker.close()
    }

    /// Records that were taken over as blocks of another store's segments, and some written since.
    private static func adopted(_ maker: GoldenMaker) throws {
        let other = GoldenMaker(seed: Seed(200), author: "ada")
        let source = try other.open().dataset("notes")
        for index in 0..<20 {
            try source.put("by ada \(index % 3)", for: other.key(index % 16))
            other.wait(4)
        }
        let end = other.now + 86_400_000
        try source.put("expires", for: "expires", expiresAt: end)
        try source.delete(other.key(6))
        try other.open().sealAll()
        maker.wait(1_000)
        let store = try maker.open()
        let notes = try store.dataset("notes")
        try require(try adoptWhole(source, into: notes) != nil, "nothing was taken over")
        maker.wait(10)
        try notes.put("here", for: maker.key(2))
        try notes.delete(maker.key(3))
        try store.dataset("own").put("1", for: "a")
        try other.close()
        try maker.close()
    }

    /// A replica that keeps a part of a dataset and has let the rest go, with notes of its own
    /// beside the records: in a segment and in the log.
    private static func part(_ maker: GoldenMaker) throws {
        let other = GoldenMaker(seed: Seed(300), author: "ada")
        let source = try other.open().dataset("notes")
        for index in 0..<12 {
            try source.put("by ada \(index)", for: other.key(index))
            other.wait(5)
        }
        maker.wait(500)
        let store = try maker.open()
        let notes = try store.dataset("notes")
        try maker.pull(source, into: notes)
        for (number, index) in [1, 4, 7].enumerated() {
            let key = bytes(maker.key(index))
            guard let record = try notes.record(for: key) else { throw Mismatch("no \(index)") }
            var batch = ReplicationBatch()
            batch.drops = [LocalDrop(key: key, expected: record.version)]
            batch.notes = [
                SystemNote(
                    in: try store.systemDataset(number == 0 ? .peers : .scopes),
                    key: [UInt8(number)], value: bytes("dropped \(index)"))
            ]
            try require(try notes.replicate(batch).isEmpty, "a record has moved on")
            if number == 1 { try store.sealAll() }
        }
        try notes.put("new", for: maker.key(5))
        try other.close()
        try maker.close()
    }

    /// The second of two backups: of a run, of a value that lies apart, and of a log.
    private static func backup(_ maker: GoldenMaker) throws {
        maker.options.largeValueBytes = 64
        let store = try maker.open()
        let records = try store.dataset("records")
        for index in 0..<10 { try records.put("first \(index)", for: maker.key(index)) }
        try store.compact()
        try store.backup(to: GoldenMaker.backupPath)
        maker.wait(60_000)
        let value = String(repeating: "lies apart ", count: 10)
        try records.put(value, for: maker.key(3))
        try store.sealAll()
        try records.delete(maker.key(4))
        try records.put("second", for: maker.key(5))
        try store.backup(to: GoldenMaker.backupPath)
        try records.put("later", for: maker.key(6))
        try maker.close()
    }
}

/// One store under way, and the disk that it is on.
final class GoldenMaker {
    static let backupPath = "/backup"

    private var storage: SimulatedStorage
    var options: StoreOptions
    private var store: Store?

    init(seed: Seed, author: String = "maker") {
        storage = SimulatedStorage(seed: seed)
        // The stores lie in other files wherever they are checked out.
        storage.tellsPlaces = false
        options = StoreOptions(
            durability: .process, author: author, segmentBytes: 1 << 20,
            compactsAutomatically: false, compression: .none)
    }

    func open() throws -> Store {
        if let store { return store }
        let opened = try openSimulated(storage, options)
        store = opened
        return opened
    }

    var now: UInt64 { storage.clockMilliseconds }

    func wait(_ milliseconds: UInt64) {
        storage.clockMilliseconds += milliseconds
    }

    func key(_ number: Int) -> String { "key/\(100 + number)" }

    func writeFruits() throws {
        let store = try open()
        let fruits = try store.dataset("fruits")
        let herbs = try store.dataset("herbs")
        try fruits.put("green", for: "apple")
        try fruits.put("yellow", for: "pear")
        wait(1)
        try fruits.put("red", for: "apple")
        var batch = WriteBatch()
        batch.put("fresh", for: "mint", in: herbs)
        batch.delete("pear", in: fruits)
        batch.put([0, 255, 10], for: [0, 1], in: herbs)
        try store.write(batch)
        try store.sync()
        wait(86_400_000)
        try herbs.put("dried", for: "mint")
    }

    /// Takes over what another replica has, the later side winning where both have written.
    func pull(_ source: Dataset, into target: Dataset) throws {
        let page = try source.changesPage(
            since: 0, recordsMax: 1_000, bytesMax: 1 << 20, excluding: target.vector)
        var batch = ReplicationBatch()
        for record in page.records {
            let local = try target.record(for: record.key, includingDeleted: true)
            if let local, local.version.relation(to: record.version) == .concurrent {
                batch.writes.append(
                    ReplicatedWrite(
                        key: record.key,
                        content: .resolve(value: record.value, seen: record.version),
                        expected: local.version))
            } else {
                batch.writes.append(
                    ReplicatedWrite(
                        key: record.key,
                        content: .adopt(value: record.value, version: record.version),
                        expected: local?.version))
            }
        }
        batch.seen = page.knowledge.vector
        batch.checkpoint = (
            source.store.replicaID,
            PeerCheckpoint(
                pulledThrough: page.through, pushedThrough: 0, vector: page.knowledge.vector)
        )
        let moved = try target.replicate(batch)
        try require(moved.isEmpty, "a record has moved on with nobody there to move it")
        wait(11)
    }

    func close() throws {
        try store?.close()
        store = nil
    }

    /// Ends as a process that is killed: nothing more is written.
    func kill() throws {
        var random = SeededGenerator(Seed(1))
        let left = storage.afterProcessEnd(using: &random)
        try close()
        storage = left
    }

    /// All files but the lock. Of a log that nobody closed the space that it had in reserve is left
    /// out, which is zeros.
    func files(in directory: String) throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in try storage.listDirectory(directory) where name != "LOCK" {
            var bytes = storage.contents(of: "\(directory)/\(name)") ?? []
            if bytes.count > 65_536 {
                let end = bytes.lastIndex { $0 != 0 } ?? 0
                bytes.removeLast(bytes.count - (end / 4_096 + 1) * 4_096)
            }
            files[name] = bytes
        }
        return files
    }
}
