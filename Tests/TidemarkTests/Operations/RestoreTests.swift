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

    @Test("A store of several logs is restored whole, and damage to any of them is noticed")
    func severalLogs() throws {
        let store = try StoppedWhileSealing(recordCount: 40)
        let disk = store.disk
        func read() throws -> StoreContents {
            try StoreContents.read(at: store.restoredPath, storage: disk)
        }
        #expect(try read() == store.contents)
        for path in store.logs {
            let whole = try #require(disk.contents(of: path))
            let used = 1 + (whole.lastIndex { $0 != 0 } ?? 0)
            for offset in stride(from: 0, to: used, by: path == store.logs[0] ? 7 : 1) {
                var damaged = whole
                damaged[offset] ^= 1
                disk.setContents(of: path, to: damaged)
                do {
                    _ = try read()
                    Issue.record("damage to byte \(offset) of \(path) went unnoticed")
                    break
                } catch {}
            }
            disk.setContents(of: path, to: whole)
        }
    }
}
