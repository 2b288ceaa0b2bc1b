import Glibc
import TestSupport
import Testing

@testable import Tidemark

/// What somebody does to the directory of an open store, who takes no lock: a cleaner, `rsync
/// --delete`, a move, a restore.
@Suite("A writer notices that its directory is not its own any more")
struct StoreOwnershipTests {
    let directory: TemporaryDirectory
    let path: String
    let store: Store
    let records: Dataset

    init() throws {
        directory = try TemporaryDirectory()
        path = directory["store"]
        var options = StoreOptions()
        options.durability = .disk
        options.segmentBytes = 1 << 20
        store = try Store.open(at: path, options: options)
        records = try store.dataset("records")
        try records.put("1", for: "before")
    }

    @Test("Removing the file LOCK lets no second writer in, and does no harm")
    func lockFileRemoved() throws {
        try Files.remove("\(path)/LOCK")
        expectError(.locked) { try Store.open(at: path) }
        try records.put("2", for: "after")
        try store.close()
        let reopened = try Store.open(at: path)
        #expect(try reopened.dataset("records").text("after") == "2")
        try reopened.close()
    }

    @Test("Replacing the file LOCK lets no second writer in")
    func lockFileReplaced() throws {
        try Files.remove("\(path)/LOCK")
        try Files.write(bytes("1"), to: "\(path)/LOCK")
        expectError(.locked) { try Store.open(at: path) }
        try store.close()
    }

    @Test("Without its manifest nothing is acknowledged", arguments: [Durability.disk, .process])
    func manifestRemoved(durability: Durability) throws {
        try records.put("1", for: "before", durability: durability)
        try Files.remove("\(path)/MANIFEST")
        // For what waits for no disk the writer looks every 100 ms.
        if durability == .process { usleep(150_000) }
        expectError(.writerStopped) {
            try records.put("2", for: "after", durability: durability)
        }
        expectError(.writerStopped) { try records.put("3", for: "later") }
        #expect(try records.text("before") == "1", "reading goes on")
    }

    @Test("With the manifest of somebody else, nothing is acknowledged")
    func manifestReplaced() throws {
        let copy = try Files.read("\(path)/MANIFEST")
        try Files.remove("\(path)/MANIFEST")
        try Files.write(copy, to: "\(path)/MANIFEST")
        expectError(.writerStopped) { try records.put("2", for: "after") }
    }

    @Test("A store made where the directory was moved from is left alone")
    func directoryReplaced() throws {
        let moved = directory["moved"]
        #expect(unsafe rename(path, moved) == 0)
        let other = try Store.open(at: path)
        try other.dataset("records").put("theirs", for: "before")
        expectError(.writerStopped) { try records.put("2", for: "after") }
        expectError(.writerStopped) { try store.compact() }
        try? store.close()
        try other.close()
        let theirs = try Store.open(at: path)
        #expect(try theirs.dataset("records").text("before") == "theirs")
        #expect(try theirs.verify().damages.isEmpty)
        try theirs.close()
        let ours = try Store.open(at: moved)
        #expect(try ours.dataset("records").text("before") == "1")
        try ours.close()
    }
}
