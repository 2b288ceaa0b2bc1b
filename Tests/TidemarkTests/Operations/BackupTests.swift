import Synchronization
import TestSupport
import Testing
import Tidemark

@Suite("Backup")
struct BackupTests {
    private func filled(_ options: StoreOptions = quickOptions()) throws -> StoreFixture {
        let fixture = try StoreFixture(options)
        for index in 0..<300 {
            try fixture.dataset.put("value \(index)", for: "key \(index % 90)")
        }
        try fixture.store.compact()
        try fixture.dataset.delete("key 7")
        try fixture.store.dataset("other").put("1", for: "a")
        return fixture
    }

    @Test("A backup is the store at the moment of the call, and nobody can write it")
    func equal() throws {
        let fixture = try filled()
        let backup = fixture.directory["backup"]
        let before = try StoreContents(fixture.store)
        var progress: [BackupProgress] = []
        let report = try fixture.store.backup(to: backup) { progress.append($0) }
        try fixture.dataset.put("later", for: "later")
        #expect(report.filesLinked == 1 && report.filesCopied == 1 && report.filesKept == 0)
        #expect(report.bytesCopied > 0 && report.bytesTotal > report.bytesCopied)
        #expect(progress.last.map { $0.bytesDone == $0.bytesTotal } == true)
        for (earlier, later) in zip(progress, progress.dropFirst()) {
            #expect(earlier.bytesDone <= later.bytesDone)
        }
        #expect(try StoreContents.read(at: backup) == before)
        let files = try Files.contents(backup)
        expectError(.readOnly) { try Store.open(at: backup, options: quickOptions()) }
        #expect(try Files.contents(backup) == files)
        try fixture.store.close()
        #expect(try StoreContents.read(at: backup) == before)
    }

    @Test("A second backup takes what is new and leaves what is old", arguments: [true, false])
    func incremental(linksFiles: Bool) throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        let fixture = try filled(options)
        let backup = fixture.directory["backup"]
        try fixture.store.backup(to: backup, linksFiles: linksFiles)
        var random = SeededGenerator(Seed(3))
        // Enough for two more sealed segments beside the one that is there.
        for index in 0..<50 {
            try fixture.dataset.put(random.bytes(50_000), for: bytes("\(index)"))
        }
        try fixture.store.waitForBackgroundWork()
        let second = try fixture.store.backup(to: backup, linksFiles: linksFiles)
        let valueFiles = try Files.list(backup).count { $0.hasSuffix(".val") }
        let new = try Files.list(backup).count { $0.hasSuffix(".seg") } - 1 + valueFiles
        #expect(second.filesKept == 1 && valueFiles >= 2 && new == 2 * valueFiles)
        #expect(second.filesLinked == (linksFiles ? new : 0))
        #expect(second.filesRemoved == 1, "the log of the first")
        #expect(try StoreContents.read(at: backup) == StoreContents(fixture.store))
        try fixture.store.compact()
        let third = try fixture.store.backup(to: backup, linksFiles: linksFiles)
        // The values of 50,000 bytes lie where they lay.
        #expect(third.filesKept == valueFiles && third.filesRemoved >= 4)
        #expect(try StoreContents.read(at: backup) == StoreContents(fixture.store))
        let fourth = try fixture.store.backup(to: backup, linksFiles: linksFiles)
        #expect(fourth.filesKept >= 1 && fourth.filesLinked == 0)
    }

    @Test("What is no backup of this store is refused and left as it is")
    func refusals() throws {
        let fixture = try filled()
        let other = try filled()
        let otherBackup = fixture.directory["other"]
        try other.store.backup(to: otherBackup)
        let strange = fixture.directory["strange"]
        try Files.createDirectory(strange)
        try Files.write(bytes("dear diary"), to: "\(strange)/notes.txt")
        for path in [otherBackup, strange, other.path, fixture.path, "\(strange)/notes.txt", ""] {
            let before = (try? Files.contents(path)) ?? [:]
            do {
                try fixture.store.backup(to: path)
                Issue.record("a backup was made at \(path)")
            } catch {
                #expect([.invalidArgument, .notAStore].contains(error.code), "\(error)")
            }
            #expect(((try? Files.contents(path)) ?? [:]) == before)
        }
        #expect(try other.store.verify().damages.isEmpty)
    }

    /// Batches write the same number under two keys; the backup sees both or neither.
    ///
    ///     writers:   (a: 1, b: 1) -- (a: 2, b: 2) -- (a: 3, b: 3) --
    ///     compaction:     [ seal, merge, remove ]  [ seal, merge
    ///     backups:        [ a: 2, b: 2 ]  [ a: 3, b: 3 ]               never a: 3, b: 2
    @Test("Beside writers and compaction it is one moment, not before the call")
    func concurrent() throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        let backup = fixture.directory["backup"]
        let padding = [UInt8](repeating: 7, count: 3_000)
        let shared = Shared()
        let writer: @Sendable () throws -> Void = {
            while !shared.isDone.load(ordering: .acquiring) {
                let number = shared.acknowledged.load(ordering: .relaxed) + 1
                var batch = WriteBatch()
                batch.put("\(number)", for: "a", in: dataset)
                batch.put(padding, for: bytes("\(number % 100)"), in: dataset)
                batch.put("\(number)", for: "b", in: dataset)
                try store.write(batch)
                shared.acknowledged.store(number, ordering: .releasing)
            }
        }
        let compactor: @Sendable () throws -> Void = {
            while !shared.isDone.load(ordering: .acquiring) { try store.compact() }
        }
        let backer: @Sendable () throws -> Void = {
            defer { shared.isDone.store(true, ordering: .releasing) }
            var last = 0
            for round in 0..<12 {
                let lowest = shared.acknowledged.load(ordering: .acquiring)
                try store.backup(to: backup, linksFiles: round % 3 != 2)
                let contents = try StoreContents.read(at: backup)
                let records = contents.datasets["main"]?.records ?? []
                let (a, b) = (number("a", records), number("b", records))
                try require(a == b && a >= lowest && a >= last, "\(a), \(b), \(lowest), \(last)")
                last = a
            }
            try require(last > 20, "the writer came to \(last) only")
        }
        try runOnThreads([writer, compactor, backer])
    }

    private func number(_ key: String, _ records: [Record]) -> Int {
        let value = records.first { $0.key == bytes(key) }?.value
        return value.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
    }
}

private final class Shared: Sendable {
    let acknowledged = Atomic<Int>(0)
    let isDone = Atomic<Bool>(false)
}
