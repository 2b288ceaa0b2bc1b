import Glibc
import TestSupport
import Testing
import Tidemark

@Suite("Store")
struct StoreTests {
    @Test("A store is created once, keeps its id, and says where it is")
    func creation() throws {
        let directory = try TemporaryDirectory()
        let first = try Store.open(at: directory["store"], options: quickOptions())
        #expect(first.path == directory["store"])
        #expect(first.options == quickOptions())
        #expect(try first.datasets().isEmpty)
        let replica = first.replicaID
        #expect(replica != ReplicaID(high: 0, low: 0))
        try first.close()
        let second = try Store.open(at: directory["store"], options: quickOptions())
        #expect(second.replicaID == replica)
        let other = try Store.open(at: directory["other"], options: quickOptions())
        #expect(other.replicaID != replica)
        try second.close()
        try other.close()
    }

    @Test("A path with a byte 0 names nothing, and nothing is made of what comes before it")
    func zeroInPath() throws {
        let directory = try TemporaryDirectory()
        let store = try Store.open(at: directory["store"], options: quickOptions())
        let path = directory["a\0b"]
        expectError(.invalidArgument) { try Store.open(at: path, options: quickOptions()) }
        expectError(.invalidArgument) { try store.backup(to: path) }
        expectError(.invalidArgument) { try Store.verify(at: path) }
        try store.close()
        #expect(try Files.list(directory.path) == ["store"])
    }

    @Test("An empty directory becomes a store, a missing one does not unless asked to")
    func createsIfMissing() throws {
        let directory = try TemporaryDirectory()
        var options = quickOptions()
        options.createsIfMissing = false
        expectError(.notAStore) { try Store.open(at: directory["none"], options: options) }
        #expect(!Files.exists(directory["none"]))
        try Files.createDirectory(directory["empty"])
        expectError(.notAStore) { try Store.open(at: directory["empty"], options: options) }
        #expect(try Files.list(directory["empty"]).isEmpty)
        options.createsIfMissing = true
        try Store.open(at: directory["empty"], options: options).close()
        options.createsIfMissing = false
        try Store.open(at: directory["empty"], options: options).close()
    }

    @Test(
        "No store begins beside one that was damaged, or that is being made",
        arguments: [".damaged", ".damaged-2", ".partial-1"])
    func nothingBeginsBeside(ending: String) throws {
        let directory = try TemporaryDirectory()
        let (path, beside) = (directory["s"], directory["s\(ending)"])
        try Files.createDirectory(beside)
        for isThere in [false, true] {
            if isThere { try Files.createDirectory(path) }
            let error = expectError(.notAStore) {
                try Store.open(at: path, options: quickOptions())
            }
            #expect(error?.message.contains("s\(ending)") == true)
            #expect(Files.exists(path) == isThere)
        }
        #expect(try Files.list(path).isEmpty)
        // It is only the beginning of a store that is refused, and only at that name.
        for other in [beside, directory["S"], directory["s\(ending)0-"]] {
            try Store.open(at: other, options: quickOptions()).close()
        }
        try Store.restore(from: beside, to: path)
        try Store.open(at: path, options: quickOptions()).close()
    }

    @Test("No store begins in a directory that another is being made in")
    func nothingBeginsAround() throws {
        let directory = try TemporaryDirectory()
        let path = directory["s"]
        try Files.createDirectory(path)
        try Files.createDirectory("\(path)/.partial")
        let error = expectError(.notAStore) { try Store.open(at: path, options: quickOptions()) }
        #expect(error?.message.contains(".partial") == true)
        #expect(try Files.list(path) == [".partial"])
    }

    @Test("A second writer is refused and told which process has the store")
    func lock() throws {
        let fixture = try StoreFixture()
        let error = expectError(.locked) {
            try Store.open(at: fixture.path, options: quickOptions())
        }
        #expect(error?.message.contains(String(getpid())) == true, "\(String(describing: error))")
        try fixture.dataset.put("1", for: "still works")
        try fixture.store.close()
        try Store.open(at: fixture.path, options: quickOptions()).close()
    }

    @Test("A store that was let go without closing gives up its lock")
    func lockOfForgottenStore() throws {
        let directory = try TemporaryDirectory()
        func write() throws {
            let store = try Store.open(at: directory["store"], options: quickOptions())
            try store.dataset("main").put("1", for: "a")
        }
        try write()
        let store = try Store.open(at: directory["store"], options: quickOptions())
        #expect(try store.dataset("main").text("a") == "1")
        try store.close()
    }

    @Test("A closed store refuses everything, and may be closed again")
    func closed() throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        try dataset.put("1", for: "a")
        let snapshot = try store.snapshot()
        try store.close()
        try store.close()
        expectError(.closed) { try store.dataset("main") }
        expectError(.closed) { try store.existingDataset("main") }
        expectError(.closed) { try store.datasets() }
        expectError(.closed) { try store.deleteDataset("main") }
        expectError(.closed) { try store.snapshot() }
        expectError(.closed) { try store.sync() }
        expectError(.closed) { try store.compact() }
        expectError(.closed) { try store.verify() }
        expectError(.closed) { try store.statistics() }
        expectError(.closed) { try store.operations() }
        var batch = WriteBatch()
        batch.put("1", for: "a", in: dataset)
        expectError(.closed) { try store.write(batch) }
        expectError(.closed) { try dataset.put("1", for: "a") }
        expectError(.closed) { try dataset.delete("a") }
        expectError(.closed) { try dataset.clear() }
        expectError(.closed) { try dataset.get("a") }
        expectError(.closed) { try dataset.contains("a") }
        expectError(.closed) { try dataset.record(for: "a") }
        expectError(.closed) { try dataset.records() }
        expectError(.closed) { try dataset.count() }
        expectError(.closed) { try dataset.size() }
        expectError(.closed) { try dataset.history(of: bytes("a")) }
        expectError(.closed) { try dataset.syncCount }
        expectError(.closed) { try dataset.changes(since: 0) }
        expectError(.closed) { try dataset.digest() }
        expectError(.closed) { try snapshot.get(bytes("a"), in: dataset) }
    }

    @Test("Options out of their bounds are refused before anything is created")
    func options() throws {
        let directory = try TemporaryDirectory()
        func expectRefused(_ change: (inout StoreOptions) -> Void) {
            var options = quickOptions()
            change(&options)
            expectError(.invalidArgument) {
                try Store.open(at: directory["store"], options: options)
            }
        }
        expectRefused { $0.segmentBytes = (1 << 20) - 1 }
        expectRefused { $0.segmentBytes = (1 << 30) + 1 }
        expectRefused { $0.segmentBytes = -1 }
        expectRefused { $0.largeValueBytes = 63 }
        expectRefused { $0.largeValueBytes = Limits.valueBytesMax + 2 }
        expectRefused { $0.blockCacheBytes = -1 }
        expectRefused { $0.historyVersions = -1 }
        expectRefused { $0.historyVersions = 1_000_001 }
        expectRefused { $0.author = String(repeating: "é", count: 128) }
        #expect(!Files.exists(directory["store"]))
        var largest = quickOptions()
        largest.author = String(repeating: "a", count: 255)
        largest.blockCacheBytes = 0
        largest.historyVersions = 1_000_000
        let store = try Store.open(at: directory["store"], options: largest)
        let dataset = try store.dataset("main")
        try dataset.put("1", for: "a")
        #expect(try dataset.record(for: "a")?.version.author == largest.author)
        try store.close()
    }

    @Test(
        "What was acknowledged under any durability is there after close and reopen",
        arguments: Durability.allCases)
    func durabilities(durability: Durability) throws {
        var options = quickOptions()
        options.durability = durability
        let fixture = try StoreFixture(options)
        for index in 0..<50 { try fixture.dataset.put("\(index)", for: "key \(index % 20)") }
        try fixture.dataset.put("own", for: "own", durability: .disk)
        let digest = try fixture.dataset.digest()
        let (store, dataset) = try fixture.reopened(options)
        #expect(try dataset.count() == 21)
        #expect(try dataset.digest() == digest)
        #expect(digest.description.utf8.count == 32)
        #expect(try dataset.text("key 3") == "43")
        try store.close()
    }

    @Test("Many small datasets share the same few files")
    func manyDatasets() throws {
        let fixture = try StoreFixture()
        for index in 0..<2_000 {
            try fixture.store.dataset("d\(index)").put("\(index)", for: "key")
        }
        #expect(try Files.list(fixture.path).count < 10)
        let (store, _) = try fixture.reopened()
        #expect(try store.datasets().count == 2_001)
        #expect(try store.existingDataset("d1234")?.text("key") == "1234")
        try store.close()
    }
}
