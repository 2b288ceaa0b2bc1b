import TestSupport
import Testing
import Tidemark

/// The operating system says no while a store that has everything is opened, read in every way,
/// verified and closed. ``FaultTests`` has the calls of a store that begins empty and is written.
@Suite("Failing disks under a store that is there")
struct OpeningFaultTests {
    @Test(
        "Whichever call fails, nothing wrong is read, and the store is whole afterwards",
        arguments: [false, true])
    func everyCall(isReadOnly: Bool) {
        withSeed(for: "everyCall(\(isReadOnly))") { seed in
            var random = SeededGenerator(seed)
            let made = try FullStore()
            let well = made.disk(&random)
            try require(
                try made.readAll(well, isReadOnly: isReadOnly) == nil, "it is not well")
            let callCount = well.callCount
            try require(callCount > 40, "only \(callCount) calls")
            var (tried, failed) = (0, 0)
            var passes = 0
            while passes < callCount {
                let fault = StorageFault(
                    random.oneIn(4) ? .diskFull : .inputOutput, after: passes,
                    isLasting: random.oneIn(2))
                do {
                    let disk = made.disk(&random)
                    disk.faults = [fault]
                    let failure = try made.readAll(disk, isReadOnly: isReadOnly)
                    tried += 1
                    if let failure {
                        failed += 1
                        try require(
                            [.inputOutput, .diskFull, .writerStopped].contains(failure.code),
                            "\(failure.code): \(failure)")
                    }
                    disk.faults = []
                    let after = try made.readAll(disk, isReadOnly: false, writing: true)
                    try require(after == nil, "afterwards: \(String(describing: after))")
                } catch {
                    throw Mismatch("\(fault): \(error)")
                }
                // Each call of the opening, and then some of the many reads.
                passes += passes < 60 ? 1 : 1 + random.below(5)
            }
            try require(failed > tried / 3, "only \(failed) of \(tried) failed")
            print("faults: \(tried) of \(callCount) calls of a store that is there")
        }
    }
}

/// A store with two runs, values that lie apart, history, tombstones, records that expire, and a
/// log that nobody closed.
private struct FullStore {
    private static var options: StoreOptions {
        StoreOptions(
            durability: .process, segmentBytes: 1 << 20, historyVersions: 2,
            compactsAutomatically: false, largeValueBytes: 200)
    }

    private let storage: SimulatedStorage
    private let contents: StoreContents
    private let records: [Record]
    private let histories: [[Record]]

    init() throws {
        let storage = SimulatedStorage(seed: Seed(2))
        let store = try openSimulated(storage, Self.options)
        let dataset = try store.dataset("main")
        for round in 0..<2 {
            for number in 0..<24 {
                let value = String(repeating: "\(round) ", count: number % 8 == 0 ? 150 : 3)
                try dataset.put(value, for: "key \(10 + number)")
            }
            try dataset.delete("key \(10 + 5 * round)")
            try dataset.put("expires", for: "expires", expiresAt: 1 << 47)
            try store.dataset("other").put("\(round)", for: "k")
            if round == 0 { try store.compact() } else { try store.sealAll() }
        }
        try dataset.put("in the log", for: "key 11")
        contents = try StoreContents(store)
        records = try dataset.records(includingDeleted: true).collect()
        histories = try records.map { try dataset.history(of: $0.key) }
        var random = SeededGenerator(Seed(3))
        self.storage = storage.afterProcessEnd(using: &random)
        try store.close()
    }

    /// A copy of the disk.
    func disk(_ random: inout SeededGenerator) -> SimulatedStorage {
        storage.afterProcessEnd(using: &random)
    }

    /// Opens the store, reads it in every way and closes it. Gives the first error that any of it
    /// ended with; what is read is right, or there is an error.
    func readAll(
        _ disk: SimulatedStorage, isReadOnly: Bool, writing: Bool = false
    ) throws -> StoreError? {
        var options = Self.options
        options.isReadOnly = isReadOnly
        let store: Store
        do throws(StoreError) {
            store = try openStore(disk, options)
        } catch {
            return error
        }
        var failure: StoreError?
        func attempt(_ body: () throws -> Void) throws {
            do { try body() } catch let error as StoreError { failure = failure ?? error }
        }
        try attempt { try require(try StoreContents(store) == contents, "other contents") }
        try attempt {
            guard let dataset = try store.existingDataset("main") else {
                throw Mismatch("the dataset is gone")
            }
            for (record, history) in zip(records, histories) {
                try attempt {
                    let found = try dataset.get(record.key)
                    try require(found == record.value, "\(Bytes.summary(record.key)) is another")
                }
                try attempt {
                    let found = try dataset.history(of: record.key)
                    try require(found == history, "another history")
                }
            }
            try attempt {
                let found = try dataset.records(order: .backward, includingDeleted: true).collect()
                try require(found == records.reversed(), "other records backward")
            }
            try attempt {
                let found = try dataset.changes(since: 0).collect().count
                try require(found == records.count, "\(found) changes")
            }
        }
        try attempt {
            for damage in try store.verify(threads: 1).damages {
                // The disk could not read it; it is not that it was read and is damaged.
                try require(damage.code != .corruption, "\(damage)")
                throw damage
            }
        }
        if writing {
            try attempt { try store.dataset("after").put("works", for: "k") }
            try attempt { try store.compact() }
        }
        do throws(StoreError) {
            try store.close()
        } catch {
            failure = failure ?? error
        }
        return failure
    }

    private func openStore(
        _ disk: SimulatedStorage, _ options: StoreOptions
    ) throws(StoreError) -> Store {
        try Store.open(at: simulatedPath, options: options, storage: disk)
    }
}
