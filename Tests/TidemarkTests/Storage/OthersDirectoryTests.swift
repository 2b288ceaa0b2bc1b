import Glibc
import TestSupport
import Testing
import Tidemark

/// A directory of one's own in a directory of somebody else's, which may be passed and not read.
@Suite("Directories in those of others")
struct OthersDirectoryTests {
    @Test("An own directory can be filled where the one around it may not be read")
    func filled() throws {
        let directory = try TemporaryDirectory()
        let storage = SystemStorage(faults: UnreadableDirectory(directory.path))
        for name in ["store", "backup", "restored", "repaired", "then"] {
            try Files.createDirectory(directory[name])
        }
        let store = try Store.open(
            at: directory["store"], options: quickOptions(), storage: storage)
        try store.dataset("main").put("1", for: "a")
        let records = try store.dataset("main").records(includingDeleted: true).collect()
        let time = try #require(records.first).version.time
        try store.backup(to: directory["backup"])
        try store.close()
        let backup = directory["backup"]
        try Store.restore(
            from: backup, to: directory["restored"], linksFiles: false, storage: storage)
        try Store.repair(at: directory["store"], to: directory["repaired"], storage: storage)
        try Store.restore(
            from: backup, to: directory["then"], at: time, storage: storage)
        let contents = try StoreContents.read(at: directory["store"])
        for name in ["backup", "restored"] {
            #expect(try StoreContents.read(at: directory[name]) == contents, "\(name)")
        }
        for name in ["repaired", "then"] {
            let made = try Store.open(at: directory[name], options: quickOptions())
            #expect(try made.dataset("main").text("a") == "1", "\(name)")
            try made.close()
        }
        // The name of a new one cannot be made durable.
        let error = expectError(.inputOutput) {
            try Store.restore(
                from: backup, to: directory["new"], linksFiles: false, storage: storage)
        }
        #expect(error?.systemError == EACCES)
    }
}

/// Has the system keep one directory from being opened.
private final class UnreadableDirectory: SystemCallFaults {
    private let path: String

    init(_ path: String) {
        self.path = path
    }

    func failure(of call: SystemCall, path: String) -> Int32 {
        (call == .open || call == .opendir) && path == self.path ? EACCES : 0
    }

    func count(of call: SystemCall, path: String, wanted: Int) -> Int { wanted }
}
