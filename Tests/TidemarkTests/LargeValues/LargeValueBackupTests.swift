import TestSupport
import Testing
import Tidemark

@Suite("Backup of large values")
struct LargeValueBackupTests {
    @Test(
        "A backup has the value files, takes only new ones, and drops old ones",
        arguments: [true, false])
    func incremental(linksFiles: Bool) throws {
        let fixture = try LargeValueStore(valueBytes: 5_000)
        let backup = fixture.directory["backup"]
        try fixture.put(0..<10)
        try fixture.store.compact()
        let first = try fixture.store.backup(to: backup, linksFiles: linksFiles)
        // A segment and a value file, and a copy of the log.
        #expect(first.filesLinked == (linksFiles ? 2 : 0))
        #expect(first.filesCopied == (linksFiles ? 1 : 3))
        #expect(try StoreContents.read(at: backup) == StoreContents(fixture.store))
        try fixture.put(20..<24)
        try fixture.store.compact()
        let second = try fixture.store.backup(to: backup, linksFiles: linksFiles)
        #expect(second.filesKept == 1, "the value file of the first")
        #expect(second.filesLinked == (linksFiles ? 2 : 0))
        #expect(second.bytesTotal > 40_000)
        #expect(try StoreContents.read(at: backup) == StoreContents(fixture.store))
        try fixture.put(0..<10, round: 1)
        try fixture.store.compact()
        let third = try fixture.store.backup(to: backup, linksFiles: linksFiles)
        #expect(third.filesRemoved == 3, "a segment, a value file and a log")
        #expect(try StoreContents.read(at: backup) == StoreContents(fixture.store))
        #expect(
            try Files.list(backup).filter { $0.hasSuffix(".val") } == fixture.valueFiles)
        try fixture.store.close()
    }

    @Test("A restored store has its values and goes on", arguments: [true, false])
    func restored(linksFiles: Bool) throws {
        let fixture = try LargeValueStore(valueBytes: 5_000)
        try fixture.put(0..<10)
        try fixture.store.compact()
        try fixture.store.backup(to: fixture.directory["backup"])
        let target = fixture.directory["restored"]
        try Store.restore(
            from: fixture.directory["backup"], to: target, linksFiles: linksFiles)
        let store = try Store.open(at: target, options: apartOptions())
        let dataset = try store.dataset("main")
        for number in 0..<10 {
            #expect(try dataset.get(fixture.key(number)) == fixture.value(number))
        }
        for number in 0..<8 { try dataset.delete(fixture.key(number)) }
        try store.compact()
        #expect(try store.verify().damages.isEmpty)
        try store.close()
        #expect(
            try StoreContents.read(at: fixture.directory["backup"])
                == StoreContents(fixture.store))
        try fixture.store.close()
    }

    @Test("A backup of another line of the same store is not written over", arguments: [1, 2])
    func otherLine(compactions: Int) throws {
        var fixture = try LargeValueStore(valueBytes: 5_000)
        let copy = fixture.directory["copy"]
        try fixture.store.close()
        try Files.copyDirectory(fixture.path, to: copy)
        try fixture.reopen()
        try fixture.put(0..<10)
        try fixture.store.compact()
        let backup = fixture.directory["backup"]
        try fixture.store.backup(to: backup)
        let other = try Store.open(at: copy, options: apartOptions(), storage: ClonedDisk())
        let dataset = try other.dataset("main")
        for number in 0..<10 {
            try dataset.put(fixture.value(number, round: 1), for: fixture.key(number))
        }
        // Merged again, the segment has a number that the backup does not know, and its value
        // file one that it knows.
        for number in 0..<compactions {
            try dataset.put("\(number)", for: "small")
            try other.compact()
        }
        let before = try Files.contents(backup)
        expectError(.invalidArgument) { try other.backup(to: backup) }
        let after = try Files.contents(backup)
        for (name, bytes) in before { #expect(after[name] == bytes, "\(name)") }
        try other.close()
        try fixture.store.close()
    }
}

/// On which a copy of a store cannot know that it is one.
private struct ClonedDisk: WrappedStorage {
    let base = SystemStorage()

    func wallClockMilliseconds() -> UInt64 { base.wallClockMilliseconds() }

    func monotonicNanoseconds() -> UInt64 { base.monotonicNanoseconds() }
}
