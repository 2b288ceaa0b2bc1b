import Glibc
import TestSupport
import Testing
import Tidemark

/// A whole store on real files behind the real door, whose calls are interrupted, cut short, or
/// fail: what ``FaultTests`` is for the simulated disk.
@Suite("A store on a failing system")
struct FailingSystemTests {
    private func options() -> StoreOptions {
        var options = quickOptions()
        options.durability = .disk
        options.compactsAutomatically = false
        options.historyVersions = 1
        options.largeValueBytes = 4_096
        return options
    }

    private func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

    /// Every third one lies apart once it is sealed.
    private func value(_ number: Int) -> [UInt8] {
        var random = SeededGenerator(Seed(UInt64(number)))
        return random.bytes(number % 3 == 0 ? 6_000 : 40)
    }

    @Test("It lives through a signal at every call, and transfers that come in parts")
    func interruptions() throws {
        let directory = try TemporaryDirectory()
        let faults = PlannedFaults()
        faults.interruptAndShorten()
        let storage = SystemStorage(faults: faults)
        let path = directory["store"]
        var store = try Store.open(at: path, options: options(), storage: storage)
        var dataset = try store.dataset("main")
        for round in 0..<3 {
            for number in (10 * round)..<(10 * round + 20) {
                try dataset.put(value(number), for: key(number))
            }
            try dataset.delete(key(5 * round))
            try store.compact()
            try dataset.put("in the log", for: "round \(round)")
            try store.close()
            store = try Store.open(at: path, options: options(), storage: storage)
            dataset = try store.dataset("main")
        }
        for number in 11..<40 { #expect(try dataset.get(key(number)) == value(number)) }
        let contents = try StoreContents(store)
        let backup = directory["backup"]
        #expect(try store.backup(to: backup).filesLinked > 0)
        try store.close()
        try Store.restore(
            from: backup, to: directory["restored"], linksFiles: false, storage: storage)
        for copy in ["store", "backup", "restored"] {
            #expect(
                try StoreContents.read(at: directory[copy], storage: storage) == contents,
                "\(copy)")
        }
        // Without any of it, there is the same to read.
        #expect(try StoreContents.read(at: path) == contents)
        for call in SystemCall.allCases {
            #expect(faults.count(of: call) > 0, "\(call.rawValue) was never made")
        }
    }

    @Test("Whichever call fails, the error is typed and nothing acknowledged is lost")
    func everyCall() throws {
        let directory = try TemporaryDirectory()
        let whole = PlannedFaults()
        let life = try live(SystemStorage(faults: whole), directory["whole"])
        try require(life.failure == nil && life.acknowledged == 9, "\(life)")
        let callCount = whole.callCount
        try require(callCount > 50, "a life of only \(callCount) calls")
        var failureCount = 0
        for passes in 0..<callCount {
            let number = passes % 2 == 0 ? EIO : ENOSPC
            let faults = PlannedFaults()
            faults.fail(Set(SystemCall.allCases), with: number, after: passes)
            let path = directory["store \(passes)"]
            let life = try live(SystemStorage(faults: faults), path)
            do {
                if let failure = life.failure {
                    failureCount += 1
                    try require(
                        [.inputOutput, .diskFull, .writerStopped].contains(failure.code),
                        "\(failure.code): \(failure)")
                }
                try check(path, acknowledged: life.acknowledged)
            } catch {
                throw Mismatch("errno \(number) at call \(passes): \(error)")
            }
            Files.removeTree(path)
        }
        try require(failureCount > callCount / 3, "only \(failureCount) of \(callCount) failed")
        print("real door: a failure at each of \(callCount) calls, \(failureCount) told, no loss")
    }

    @Test("A sync that fails is told, wherever it is made")
    func everySync() throws {
        let directory = try TemporaryDirectory()
        let whole = PlannedFaults()
        _ = try live(SystemStorage(faults: whole), directory["whole"])
        let syncs = whole.count(of: .fdatasync)
        try require(syncs > 9, "a life of only \(syncs) syncs")
        for passes in 0..<syncs {
            let faults = PlannedFaults()
            faults.fail([.fdatasync], with: EIO, after: passes)
            let life = try live(SystemStorage(faults: faults), directory["store \(passes)"])
            #expect(life.failure?.systemError == EIO, "sync \(passes)")
        }
    }

    /// A segment is handed to the disk a megabyte at a time while it is written. The system tells
    /// only once of what the disk does not take, and then the sync at the end knows of nothing.
    @Test(
        "A segment of which the disk refused a piece never takes the place of its log",
        arguments: [0: "the first megabyte is begun", 8: "the first eight are waited for"])
    func refusedPiece(passes: Int, _: String) throws {
        let directory = try TemporaryDirectory()
        let path = directory["store"]
        let faults = PlannedFaults()
        faults.fail([.syncFileRange], of: ".seg", with: EIO, after: passes)
        let store = try Store.open(
            at: path, options: StoreOptions(durability: .disk, segmentBytes: 32 << 20),
            storage: SystemStorage(faults: faults))
        let records = try store.dataset("main")
        var random = SeededGenerator(Seed(9))
        let values = (0..<4_000).map { _ in random.bytes(3_000) }
        var batch = WriteBatch()
        for (number, value) in values.enumerated() {
            batch.put(value, for: key(number), in: records)
        }
        try store.write(batch)
        let error = expectError(.writerStopped) { try store.sealAll() }
        #expect(error?.systemError == EIO)
        #expect(faults.failuresLeft == 0)
        try? store.close()
        let again = try Store.open(at: path, options: options())
        for (number, value) in values.enumerated() {
            #expect(try again.dataset("main").get(key(number)) == value)
        }
        try again.close()
    }

    /// Opens, writes, merges, writes and closes, up to the first error. Tells how many records were
    /// acknowledged as durable.
    private func live(
        _ storage: SystemStorage, _ path: String
    ) throws -> (acknowledged: Int, failure: StoreError?) {
        let store: Store
        do throws(StoreError) {
            store = try Store.open(at: path, options: options(), storage: storage)
        } catch {
            return (0, error)
        }
        var acknowledged = 0
        var failure: StoreError?
        do throws(StoreError) {
            let dataset = try store.dataset("main")
            for number in 0..<9 {
                if number == 6 { try store.compact() }
                try dataset.put(value(number), for: key(number))
                acknowledged += 1
            }
        } catch {
            failure = error
        }
        do throws(StoreError) {
            try store.close()
        } catch {
            failure = failure ?? error
        }
        return (acknowledged, failure)
    }

    /// On a system that is well again.
    private func check(_ path: String, acknowledged: Int) throws {
        let store = try Store.open(at: path, options: options())
        let damages = try store.verify().damages
        try require(damages.isEmpty, "damages: \(damages)")
        let dataset = try store.dataset("main")
        let count = try dataset.count()
        // One more may have arrived before what made it fail.
        try require((acknowledged...(acknowledged + 1)).contains(count), "\(count) records")
        for number in 0..<count {
            try require(try dataset.get(key(number)) == value(number), "key \(number) is another")
        }
        try dataset.put("works", for: "after")
        try store.close()
    }
}
