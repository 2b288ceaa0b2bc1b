import Synchronization
import TestSupport
import Testing
import Tidemark

@Suite("Restore")
struct RestoreTests {
    @Test(
        "A restored store has all of the backup, and a name of its own", arguments: [true, false])
    func restored(linksFiles: Bool) throws {
        let fixture = try StoreFixture()
        for index in 0..<100 { try fixture.dataset.put("\(index)", for: "\(index % 30)") }
        try fixture.store.compact()
        try fixture.dataset.delete("3")
        let backup = fixture.directory["backup"]
        try fixture.store.backup(to: backup)
        let before = try Files.contents(backup)
        let contents = try StoreContents(fixture.store)
        let former = fixture.store.replicaID
        var names: Set<ReplicaID> = [former]
        for number in 0..<2 {
            let path = fixture.directory["restored \(number)"]
            let report = try Store.restore(from: backup, to: path, linksFiles: linksFiles)
            #expect(report.filesLinked == (linksFiles ? 1 : 0) && report.bytesTotal > 0)
            #expect(try StoreContents.read(at: path) == contents)
            let store = try Store.open(at: path, options: quickOptions())
            #expect(store.formerReplicaIDs == [former])
            #expect(names.insert(store.replicaID).inserted, "an id was taken twice")
            let dot = try store.dataset("main").put("new", for: "1")
            #expect(dot == Dot(replica: store.replicaID, counter: 1))
            try store.compact()
            let id = store.replicaID
            try store.close()
            let again = try Store.open(at: path, options: quickOptions())
            #expect(again.replicaID == id && again.formerReplicaIDs == [former])
            #expect(try again.dataset("main").text("1") == "new")
            #expect(try again.verify().damages.isEmpty)
            try again.close()
        }
        #expect(try Files.contents(backup) == before)
    }

    @Test("It begins only in a missing or empty directory, and only from a store")
    func refusals() throws {
        let fixture = try StoreFixture()
        let backup = fixture.directory["backup"]
        try fixture.store.backup(to: backup)
        let taken = fixture.directory["taken"]
        try Files.createDirectory(taken)
        try Files.write(bytes("dear diary"), to: "\(taken)/notes.txt")
        for path in [taken, backup, fixture.path] {
            let before = try Files.contents(path)
            expectError(.invalidArgument) { try Store.restore(from: backup, to: path) }
            #expect(try Files.contents(path) == before)
        }
        expectError(.notAStore) {
            try Store.restore(from: fixture.directory["none"], to: fixture.directory["new"])
        }
        #expect(!Files.exists(fixture.directory["new"]))
        let empty = fixture.directory["empty"]
        try Files.createDirectory(empty)
        try Store.restore(from: backup, to: empty)
        #expect(try StoreContents.read(at: empty) == StoreContents(fixture.store))
    }

    /// The process ends while its first log is being sealed: the store is two logs, of which the
    /// first has ended.
    @Test("A store of several logs is restored whole, and damage to any of them is noticed")
    func severalLogs() throws {
        let storage = SimulatedStorage(seed: Seed(4))
        let options = StoreOptions(durability: .process, segmentBytes: 1 << 20)
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        for index in 0..<40 { try dataset.put("\(index)", for: "\(index)") }
        let contents = try StoreContents(store)
        let captured = Mutex<SimulatedStorage?>(nil)
        storage.observe { [unowned storage] call in
            guard call.kind == .openFile, call.path.hasSuffix(".seg") else { return }
            var random = SeededGenerator(Seed(5))
            let disk = storage.afterProcessEnd(using: &random)
            captured.withLock { if $0 == nil { $0 = disk } }
        }
        try store.compact()
        storage.observe(nil)
        try store.close()
        let disk = try #require(captured.withLock { $0 })
        try Store.restore(from: simulatedPath, to: "/restored", linksFiles: false, storage: disk)
        let logs = try disk.listDirectory("/restored").filter { $0.hasSuffix(".log") }.sorted()
        try #require(logs.count == 2)
        #expect(try StoreContents.read(at: "/restored", storage: disk) == contents)
        for name in logs {
            let path = "/restored/\(name)"
            let whole = try #require(disk.contents(of: path))
            let used = 1 + (whole.lastIndex { $0 != 0 } ?? 0)
            for offset in stride(from: 0, to: used, by: name == logs[0] ? 7 : 1) {
                var damaged = whole
                damaged[offset] ^= 1
                disk.setContents(of: path, to: damaged)
                do {
                    _ = try StoreContents.read(at: "/restored", storage: disk)
                    Issue.record("damage to byte \(offset) of \(name) went unnoticed")
                    break
                } catch {}
            }
            disk.setContents(of: path, to: whole)
        }
    }
}
