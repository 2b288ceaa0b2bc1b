import Synchronization
import TestSupport
import Testing
import Tidemark

/// A store whose process ended while its first log was being sealed: it is two logs, of which the
/// first has ended, and has no mark.
struct StoppedWhileSealing {
    static let options = StoreOptions(durability: .process, segmentBytes: 1 << 20)

    /// The store as it was found, and restored in another directory, where the manifest notes that
    /// its logs are durable.
    let disk: SimulatedStorage
    let restoredPath = "/restored"
    let contents: StoreContents
    /// Paths of the logs of the restored store, oldest first.
    let logs: [String]

    /// Puts so many records, of which the number is the value, and the number + 100 the key.
    init(recordCount: Int) throws {
        let storage = SimulatedStorage(seed: Seed(4))
        let store = try openSimulated(storage, Self.options)
        let dataset = try store.dataset("main")
        for index in 0..<recordCount { try dataset.put("\(index)", for: "\(100 + index)") }
        contents = try StoreContents(store)
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
        disk = try #require(captured.withLock { $0 })
        try Store.restore(
            from: simulatedPath, to: restoredPath, linksFiles: false, storage: disk)
        let names = try disk.listDirectory(restoredPath).filter { $0.hasSuffix(".log") }
        try #require(names.count == 2)
        logs = [restoredPath + "/" + (names.min() ?? ""), restoredPath + "/" + (names.max() ?? "")]
    }
}
