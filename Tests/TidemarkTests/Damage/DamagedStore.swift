import TestSupport
import Testing
import Tidemark

/// A small closed store of every kind of file and record, and what may be read of it.
struct DamagedStore {
    /// Everything that was in one dataset.
    struct Contents: Equatable {
        var records: [Record] = []
        var changes: [Record] = []
    }

    let directory: TemporaryDirectory
    let path: String
    private(set) var contents: [String: Contents] = [:]
    private(set) var files: [String: [UInt8]] = [:]

    /// - Parameters:
    ///   - logWrites: how many writes follow the last sealing.
    ///   - largeValueBytes: from how many bytes on values lie apart.
    init(logWrites: Int = 6, largeValueBytes: Int = 4_096) throws {
        directory = try TemporaryDirectory()
        path = directory["store"]
        var options = quickOptions()
        options.durability = .disk
        options.historyVersions = 1
        options.compactsAutomatically = false
        options.largeValueBytes = largeValueBytes
        let store = try Store.open(at: path, options: options)
        let names = ["main", "other"]
        var random = SeededGenerator(Seed(11))
        for name in names {
            let dataset = try store.dataset(name)
            for index in 0..<16 {
                let value =
                    switch index % 4 {
                    case 0: random.bytes(60)
                    case 1: random.compressibleBytes(1_500)
                    case 2: [UInt8]()
                    default: random.bytes(300)
                    }
                try dataset.put(value, for: bytes("key \(index)"))
            }
            try dataset.put("second version", for: "key 2")
            try dataset.delete("key 3")
            try dataset.delete("key 5")
            try dataset.put("expires one day", for: "key 7", expiresAt: 1 << 47)
        }
        try store.dataset("gone").put("1", for: "a")
        try store.deleteDataset("gone")
        try store.compact()
        let dataset = try store.dataset("main")
        for index in 0..<logWrites {
            // Two of them expire one day.
            try dataset.put(
                "in the log \(index)", for: "log \(index)",
                expiresAt: index % 3 == 1 ? 1 << 47 : 0)
        }
        for name in names { contents[name] = try Self.read(store.dataset(name)) }
        try store.close()
        files = try Files.contents(path)
    }

    static func read(_ dataset: Dataset) throws -> Contents {
        Contents(
            records: try dataset.records(includingDeleted: true).collect(),
            changes: try dataset.changes(since: 0).collect())
    }

    /// The one file with that ending or name.
    func file(_ ending: String) throws -> String {
        let matching = files.keys.filter { $0.hasSuffix(ending) }
        return try #require(matching.count == 1 ? matching.first : nil, "\(files.keys.sorted())")
    }

    /// Puts everything back as it was.
    func restore() throws {
        for name in try Files.list(path) where files[name] == nil {
            try Files.remove("\(path)/\(name)")
        }
        for (name, bytes) in files { try Files.write(bytes, to: "\(path)/\(name)") }
    }

    /// What came of reading a damaged store.
    struct Outcome {
        /// Something threw a typed error, or `verify` listed a damage.
        var isReported = false
    }

    /// Reads everything there is to read. A wrong value, a record too many or one too few that no
    /// error accounts for is a ``Mismatch``.
    func outcome(isReadOnly: Bool = true) throws -> Outcome {
        var outcome = Outcome()
        var options = quickOptions()
        options.isReadOnly = isReadOnly
        options.createsIfMissing = false
        options.compactsAutomatically = false
        do throws(StoreError) {
            outcome.isReported = try !Store.verify(at: path).damages.isEmpty
        } catch {
            outcome.isReported = true
        }
        let store: Store
        do throws(StoreError) {
            store = try Store.open(at: path, options: options)
        } catch {
            outcome.isReported = true
            return outcome
        }
        for (name, expected) in contents {
            do {
                guard let dataset = try store.existingDataset(name) else {
                    throw Mismatch("dataset \(name) is silently gone")
                }
                try check(dataset, expected)
            } catch is StoreError {
                outcome.isReported = true
            }
        }
        do throws(StoreError) {
            if try !store.verify().damages.isEmpty { outcome.isReported = true }
        } catch {
            outcome.isReported = true
        }
        try? store.close()
        return outcome
    }

    /// Each way of reading by itself, so that one error does not hide another's silence. Throws
    /// the last typed error at the end.
    private func check(_ dataset: Dataset, _ expected: Contents) throws {
        var typed: StoreError?
        func attempt(_ body: () throws -> Void) throws {
            do { try body() } catch let error as StoreError { typed = error }
        }
        let records = expected.records
        try attempt {
            let changes = try dataset.changes(since: 0).collect()
            try require(
                changes == expected.changes,
                "\(changes.count) changes, not these \(expected.changes.count)")
        }
        for order in [ScanOrder.forward, .backward] {
            try attempt {
                let found = try dataset.records(order: order, includingDeleted: true).collect()
                let wanted = order == .forward ? records : records.reversed()
                try require(found == wanted, "a scan gives other records")
            }
        }
        try attempt {
            let count = try dataset.count()
            try require(count == records.count { !$0.isDeleted }, "count \(count)")
        }
        for record in records {
            try attempt {
                let value = try dataset.get(record.key)
                try require(
                    value == record.value,
                    "\(Bytes.summary(record.key)) is \(Bytes.summary(value))")
            }
            try attempt {
                let found = try dataset.record(for: record.key, includingDeleted: true)
                try require(found == record, "\(Bytes.summary(record.key)) has another version")
            }
        }
        if let typed { throw typed }
    }
}
