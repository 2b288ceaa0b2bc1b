import Glibc
import TestSupport
import Testing
import Tidemark

/// The operating system says no. Each refusal is a typed error, reads go on, nothing acknowledged
/// is lost, and after a failed sync nothing more is accepted.
@Suite("Failing disks")
struct FaultTests {
    private let options = StoreOptions(
        durability: .disk, segmentBytes: 1 << 20, compactsAutomatically: false)

    private func filled(_ storage: SimulatedStorage, _ count: Int) throws -> (Store, Dataset) {
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        for index in 0..<count { try dataset.put("\(index)", for: "key \(index)") }
        return (store, dataset)
    }

    private func checkReads(_ dataset: Dataset, _ count: Int) throws {
        for index in 0..<count { #expect(try dataset.text("key \(index)") == "\(index)") }
        let found = try dataset.records(in: .prefix("key ")).collect().count
        #expect(found == count || found == count + 1)
    }

    @Test(
        "A full disk is an error at that moment; reads go on; with room, so do writes",
        arguments: Durability.allCases)
    func fullDisk(durability: Durability) throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let (store, dataset) = try filled(storage, 20)
        storage.capacityBytes = storage.fileBytes + (3 << 20)
        var random = SeededGenerator(Seed(2))
        var acknowledged = 0
        var failure: StoreError?
        for index in 0..<1_000 where failure == nil {
            do {
                let value = random.bytes(10_000)
                try dataset.put(value, for: bytes("large \(index)"), durability: durability)
                acknowledged += 1
            } catch {
                failure = error
            }
        }
        // When the background work met the full disk first, the writer has been stopped by that.
        #expect([.diskFull, .writerStopped].contains(failure?.code))
        #expect(failure?.systemError == ENOSPC, "\(String(describing: failure))")
        #expect(acknowledged > 50, "there was room for more")
        try checkReads(dataset, 20)
        for index in 0..<acknowledged {
            #expect(try dataset.get("large \(index)")?.count == 10_000)
        }
        do {
            try dataset.put("refused", for: "after")
            Issue.record("a write was accepted after the disk was full")
        } catch {
            #expect([.diskFull, .writerStopped].contains(error.code), "\(error)")
        }
        try? store.close()
        storage.capacityBytes = nil
        let again = try openSimulated(storage, options)
        let main = try again.dataset("main")
        try checkReads(main, 20)
        for index in 0..<acknowledged {
            #expect(try main.get("large \(index)")?.count == 10_000)
        }
        try main.put("works", for: "after")
        #expect(try again.verify().damages.isEmpty)
        try again.close()
    }

    @Test("A store that cannot be created for want of room can be created later")
    func fullAtCreation() throws {
        for capacity in [0, 10, 1_000, 100_000] {
            let storage = SimulatedStorage(seed: Seed(1))
            storage.capacityBytes = capacity
            expectError(.diskFull) { try openSimulated(storage, options) }
            storage.capacityBytes = nil
            try filled(storage, 3).0.close()
        }
    }

    @Test(
        "What came back when a store was opened outlives the power, be it a single write",
        arguments: [1, 2, 20])
    func openingMakesDurable(count: Int) throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let (store, dataset) = try filled(storage, 0)
        for index in 0..<count {
            try dataset.put("\(index)", for: "key \(index)", durability: .process)
        }
        // A store that met the end of the disk makes nothing durable any more, and closing neither.
        storage.capacityBytes = storage.fileBytes
        expectError(.diskFull) { try store.compact() }
        try? store.close()
        storage.capacityBytes = nil
        let again = try openSimulated(storage, options)
        try checkReads(again.dataset("main"), count)
        var random = SeededGenerator(Seed(2))
        let last = try openSimulated(
            storage.afterPowerLoss(.nothing, using: &random), options)
        try checkReads(last.dataset("main"), count)
        try last.close()
        try again.close()
    }

    @Test(
        "A durable write that cannot be written leaves no trace, and its dot is given anew",
        arguments: [StorageFault.Failure.inputOutput, .diskFull, .short])
    func failedDurableWrite(failure: StorageFault.Failure) throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let (store, dataset) = try filled(storage, 20)
        let before = try dataset.knowledge()
        storage.faults = [StorageFault(failure, of: [.write])]
        expectError(failure == .inputOutput ? .inputOutput : .diskFull) {
            try dataset.put("never", for: "key in doubt")
        }
        #expect(storage.faults.isEmpty)
        #expect(try dataset.knowledge() == before)
        #expect(try dataset.get("key in doubt") == nil)
        expectError(.writerStopped) { try dataset.put("refused", for: "a") }
        try checkReads(dataset, 20)
        try? store.close()

        let again = try openSimulated(storage, options)
        let main = try again.dataset("main")
        #expect(try main.get("key in doubt") == nil)
        let dot = try main.put("works", for: "after")
        #expect(dot.counter == before.vector[again.replicaID] + 1)
        #expect(try again.verify().damages.isEmpty)
        try again.close()
    }

    @Test(
        "A failed sync is final: never again a write, though the disk is well",
        arguments: [StorageFault.Failure.inputOutput, .diskFull])
    func failedSync(failure: StorageFault.Failure) throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let (store, dataset) = try filled(storage, 20)
        storage.faults = [StorageFault(failure, of: [.sync, .syncMapping])]
        expectError(failure == .diskFull ? .diskFull : .inputOutput) {
            try dataset.put("in doubt", for: "key in doubt")
        }
        #expect(storage.faults.isEmpty)
        for durability in Durability.allCases {
            expectError(.writerStopped) {
                try dataset.put("refused", for: "a", durability: durability)
            }
        }
        expectError(.writerStopped) { try dataset.delete("key 1") }
        expectError(.writerStopped) { try dataset.clear() }
        expectError(.writerStopped) { try store.dataset("another") }
        expectError(.writerStopped) { try store.deleteDataset("main") }
        expectError(.writerStopped) { try store.sync() }
        expectError(.writerStopped) { try store.compact() }
        try checkReads(dataset, 20)
        let snapshot = try store.snapshot()
        #expect(try snapshot.get(bytes("key 3"), in: dataset) == bytes("3"))
        snapshot.close()
        try? store.close()

        var random = SeededGenerator(Seed(3))
        for disk in [
            storage.afterPowerLoss(.nothing, using: &random),
            storage.afterPowerLoss(.everything, using: &random), storage,
        ] {
            let again = try openSimulated(disk, options)
            let main = try again.dataset("main")
            try checkReads(main, 20)
            try main.put("works", for: "after")
            try again.close()
        }
    }

    @Test("Clearing what a failed sync has emptied is refused, and lasts when it is not")
    func clearingNothing() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let (store, dataset) = try filled(storage, 5)
        for index in 0..<5 { try dataset.delete(bytes("key \(index)"), durability: .process) }
        try dataset.clear()
        var random = SeededGenerator(Seed(3))
        let crashed = try openSimulated(
            storage.afterPowerLoss(.nothing, using: &random), options)
        #expect(try crashed.dataset("main").count() == 0)
        try crashed.close()
        try dataset.put("1", for: "a")
        storage.faults = [StorageFault(.inputOutput, of: [.sync, .syncMapping])]
        expectError(.inputOutput) { try dataset.clear() }
        #expect(try dataset.count() == 0)
        expectError(.writerStopped) { try dataset.clear() }
        try? store.close()
    }

    @Test("A failed sync of what was written under .process fails the next sync, not later ones")
    func failedExplicitSync() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let (store, dataset) = try filled(storage, 5)
        try dataset.put("buffered", for: "key", durability: .process)
        storage.faults = [StorageFault(.inputOutput, of: [.sync, .syncMapping])]
        expectError(.inputOutput) { try store.sync() }
        expectError(.writerStopped) { try store.sync() }
        expectError(.writerStopped) { try dataset.put("1", for: "a", durability: .memory) }
        #expect(try dataset.text("key") == "buffered")
        try? store.close()
    }

    @Test("Closing after a failure syncs nothing, and tells whether anything is in doubt")
    func closingAfterFailure() throws {
        // A write under .process is still to be synced, and is not any more.
        let storage = SimulatedStorage(seed: Seed(1))
        let (store, dataset) = try filled(storage, 5)
        try dataset.put("buffered", for: "key", durability: .process)
        storage.faults = [StorageFault(.inputOutput, of: [.sync, .syncMapping])]
        expectError(.inputOutput) { try store.sync() }
        storage.startTracing()
        let error = expectError(.writerStopped) { try store.close() }
        #expect(error?.systemError == EIO)
        #expect(!storage.trace.contains { $0.kind == .sync || $0.kind == .syncMapping })
        // It is closed all the same.
        expectError(.closed) { try dataset.text("key") }
        try store.close()
        let (again, main) = try filled(storage, 5)
        #expect(try main.text("key") == "buffered")

        // Where all that was written is durable, nothing is in doubt.
        storage.faults = [StorageFault(.inputOutput, of: [.write])]
        expectError(.inputOutput) { try main.put("never", for: "key") }
        expectError(.writerStopped) { try main.put("refused", for: "key") }
        try again.close()
        let (last, found) = try filled(storage, 0)
        #expect(try found.text("key") == "buffered")
        try last.close()
    }

    @Test("A log that the disk cannot read is an error at opening, before any of it is looked at")
    func unreadableLog() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        try filled(storage, 20).0.close()
        let isLog = { (call: StorageCall) in call.kind == .read && call.path.hasSuffix(".log") }
        storage.startTracing()
        let (store, dataset) = try filled(storage, 0)
        try checkReads(dataset, 20)
        try store.close()
        let reads = storage.trace.filter { $0.kind == .read }
        let bytes = try #require(reads.filter(isLog).map(\.count).max())
        #expect(bytes == 4_096, "all of the log that was closed")
        let passes = try #require(reads.firstIndex { isLog($0) && $0.count == bytes })
        storage.faults = [StorageFault(.inputOutput, of: [.read], after: passes)]
        expectError(.inputOutput) { try openSimulated(storage, options) }
        #expect(storage.faults.isEmpty)
        let again = try filled(storage, 0)
        try checkReads(again.1, 20)
        try again.0.close()
    }

    /// Once the manifest may name the new files they have to stay, though the old ones do, too.
    @Test("A compaction of a range that fails at any call loses nothing")
    func rangeCompaction() throws {
        let range = KeyRange(from: "key 1", upTo: "key 3")
        func run(_ fault: StorageFault?) throws -> Int {
            let storage = SimulatedStorage(seed: Seed(1))
            let (store, dataset) = try filled(storage, 20)
            try store.sealAll()
            try dataset.put("7", for: "key 7")
            try store.sealAll()
            let before = storage.callCount
            storage.faults = fault.map { [$0] } ?? []
            _ = try? dataset.compact(range)
            let calls = storage.callCount - before
            storage.faults = []
            try? store.close()
            let (again, found) = try filled(storage, 0)
            try checkReads(found, 20)
            try again.close()
            return calls
        }
        for passes in 0..<(try run(nil)) {
            _ = try run(StorageFault(.inputOutput, after: passes))
            _ = try run(StorageFault(.inputOutput, after: passes, isLasting: true))
        }
    }

    @Test("What a creation in doubt and its repetition say of a store that goes on writing")
    func repeatedCreation() throws {
        var workload = Workload()
        let write = GeneratedWrite(dataset: "a", key: [1], value: [1], expectation: .none)
        func acknowledge(_ operation: StoreOperation) {
            workload.begin(operation)
            workload.acknowledge(operation, default: .disk)
        }
        acknowledge(.createDataset("a"))
        // The first may have failed before it did anything.
        workload.begin(.createDataset("b"))
        workload.fail(.createDataset("b"))
        acknowledge(.createDataset("b"))
        #expect(workload.present.liveNames == ["a"])
        #expect(workload.states.last?.liveNames == ["a", "b"])
        acknowledge(.write(write, .disk))
        #expect(workload.present.liveNames == ["a", "b"])
        #expect(workload.durableIndex == workload.acknowledgedIndex)
        #expect(workload.states.count == workload.acknowledgedIndex + 1)
    }

    @Test(
        "Whichever call fails, the error is typed and nothing acknowledged is lost",
        arguments: StorageFault.Failure.allCases)
    func everyCall(failure: StorageFault.Failure) throws {
        withSeed(for: "everyCall(\(failure))") { seed in
            var random = SeededGenerator(seed)
            var run = FaultRun(options: options, seed: Seed(random.next()))
            let callCount = try run.callCount()
            try require(callCount > 40, "a workload of only \(callCount) calls")
            for passes in 0..<callCount {
                let fault = StorageFault(failure, after: passes, isLasting: random.oneIn(2))
                do {
                    try run.run(with: fault, &random)
                } catch {
                    throw Mismatch("\(fault): \(error)")
                }
            }
            print("faults: \(failure) at each of \(callCount) calls")
        }
    }
}

/// One workload, the same each time, under one fault after another.
private struct FaultRun {
    let options: StoreOptions
    let seed: Seed
    private let operationCount = 40

    init(options: StoreOptions, seed: Seed) {
        self.options = options
        self.seed = seed
    }

    private var generator: OperationGenerator {
        simulatedGenerator(seed, [.disk, .disk, .process])
    }

    /// The number of calls of the workload when none fails.
    func callCount() throws -> Int {
        let storage = SimulatedStorage(seed: seed)
        let store = try openSimulated(storage, options)
        var workload = Workload()
        var generator = generator
        for _ in 0..<operationCount {
            try perform(generator.next(workload.present), on: store, &workload)
        }
        try store.close()
        return storage.callCount
    }

    mutating func run(with fault: StorageFault, _ random: inout SeededGenerator) throws {
        let storage = SimulatedStorage(seed: seed)
        storage.faults = [fault]
        var workload = Workload()
        if let store = try opened(storage) {
            var generator = generator
            for _ in 0..<operationCount {
                // Errors are typed, which the compiler sees to; their kinds are checked here.
                do {
                    try perform(generator.next(workload.present), on: store, &workload)
                } catch let error as StoreError {
                    try require(
                        [.inputOutput, .diskFull, .writerStopped].contains(error.code),
                        "\(error.code): \(error)")
                }
            }
            storage.faults = []
            // Nothing written is lost to readers, whatever was refused.
            try check("in use", store, workload, from: workload.acknowledgedIndex, &random)
            storage.faults = [fault]
            try? store.close()
        }
        storage.faults = []
        let crashed = storage.afterPowerLoss(.drawn(using: &random), using: &random)
        let again = try openSimulated(storage, options)
        try check("reopened", again, workload, from: workload.acknowledgedIndex, &random)
        try again.dataset("after").put([1], for: [1])
        try again.close()
        let recovered = try openSimulated(crashed, options)
        try check("after power loss", recovered, workload, from: workload.durableIndex, &random)
        try recovered.close()
    }

    private func check(
        _ moment: String, _ store: Store, _ workload: Workload, from lowest: Int,
        _ random: inout SeededGenerator
    ) throws {
        do {
            _ = try workload.check(store, from: lowest, using: &random)
        } catch {
            throw Mismatch("\(moment): \(error)")
        }
    }

    private func opened(_ storage: SimulatedStorage) throws -> Store? {
        do {
            return try openSimulated(storage, options)
        } catch let error as StoreError {
            try require([.inputOutput, .diskFull].contains(error.code), "at opening: \(error)")
            return nil
        }
    }

    private func perform(
        _ operation: StoreOperation, on store: Store, _ workload: inout Workload
    ) throws {
        workload.begin(operation)
        do {
            try operation.perform(on: store)
        } catch {
            workload.fail(operation)
            throw error
        }
        workload.acknowledge(operation, default: options.durability)
    }
}
