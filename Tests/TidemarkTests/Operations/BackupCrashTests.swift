import Synchronization
import TestSupport
import Testing
import Tidemark

/// The power fails after every call that a second backup makes of its disk. Whatever survives,
/// the destination is the first backup or the second, whole, and the store is as ever.
///
///     backup 1 ------- | writes, compaction | ------- backup 2 -------
///                                              ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^   power fails
@Suite("Backup and failures")
struct BackupCrashTests {
    private static let options = StoreOptions(
        durability: .process, segmentBytes: 1 << 20, compactsAutomatically: false,
        largeValueBytes: 500)

    /// A store with one backup, and what was in it then.
    private func prepared(
        _ seed: Seed, canLink: Bool = true
    ) throws -> (storage: SimulatedStorage, store: Store, first: StoreContents) {
        let storage = SimulatedStorage(seed: seed)
        storage.canLink = canLink
        let store = try openSimulated(storage, Self.options)
        let dataset = try store.dataset("main")
        for index in 0..<20 { try dataset.put("\(index)", for: "\(index)") }
        // A few lie apart.
        for index in 5..<8 {
            try dataset.put([UInt8](repeating: 1, count: 700), for: [UInt8(index)])
        }
        try store.compact()
        try dataset.delete("3")
        try store.backup(to: "/backup")
        return (storage, store, try StoreContents(store))
    }

    private func goOn(_ store: Store, compacting: Bool) throws {
        let dataset = try store.dataset("main")
        for index in 10..<30 { try dataset.put("second \(index)", for: "\(index)") }
        for index in 6..<9 {
            try dataset.put([UInt8](repeating: 2, count: 900), for: [UInt8(index)])
        }
        if compacting { try store.compact() }
        try dataset.put("last", for: "5")
    }

    @Test(
        "After a loss of power there is the earlier backup or the new one",
        arguments: [true, false], [true, false])
    func powerLoss(canLink: Bool, compacting: Bool) throws {
        withSeed(for: "powerLoss(\(canLink), \(compacting))") { seed in
            let (storage, store, first) = try prepared(seed, canLink: canLink)
            try goOn(store, compacting: compacting)
            let second = try StoreContents(store)
            let random = Mutex(SeededGenerator(seed))
            let failure = Mutex<String?>(nil)
            let seen = Mutex([0, 0])
            storage.observe { [unowned storage] call in
                guard failure.withLock({ $0 }) == nil else { return }
                for _ in 0..<3 {
                    let disk = random.withLock { random in
                        storage.afterPowerLoss(.drawn(using: &random), using: &random)
                    }
                    do {
                        let found = try StoreContents.read(at: "/backup", storage: disk)
                        let isSecond = found == second
                        try require(
                            isSecond || found == first, "the backup has \(found.summary)")
                        seen.withLock { $0[isSecond ? 1 : 0] += 1 }
                        // Another backup and a restore find nothing in their way.
                        let reopened = try openSimulated(disk, Self.options)
                        try reopened.backup(to: "/backup")
                        let third = try StoreContents(reopened)
                        try reopened.close()
                        try require(
                            StoreContents.read(at: "/backup", storage: disk) == third,
                            "the next backup is another")
                    } catch {
                        failure.withLock { $0 = "power lost at \(call): \(error)" }
                    }
                }
            }
            try store.backup(to: "/backup")
            storage.observe(nil)
            if let failure = failure.withLock({ $0 }) { throw Mismatch(failure) }
            let counts = seen.withLock { $0 }
            try require(counts[0] > 5 && counts[1] > 2, "first and second were seen \(counts)")
            var chance = SeededGenerator(seed)
            let after = storage.afterPowerLoss(.nothing, using: &chance)
            try require(
                StoreContents.read(at: "/backup", storage: after) == second,
                "a backup that returned was not durable")
            // What is in the backup was durable in the store.
            try require(
                StoreContents.read(at: simulatedPath, storage: after) == second,
                "the store lost what the backup has")
            try store.close()
        }
    }

    @Test(
        "A call that fails ends it with a typed error, and the earlier backup stays",
        arguments: [StorageFault.Failure.inputOutput, .diskFull, .short, .late])
    func faults(failure: StorageFault.Failure) throws {
        let kinds: [StorageCall.Kind] = [
            .createDirectory, .listDirectory, .openFile, .rename, .link, .remove, .syncDirectory,
            .size, .read, .write, .sync,
        ]
        for kind in kinds {
            for passes in 0..<20 {
                let (storage, store, first) = try prepared(
                    Seed(UInt64(passes)), canLink: kind != .write)
                try goOn(store, compacting: true)
                let second = try StoreContents(store)
                // Let what goes on in the background not meet the fault.
                try store.waitForBackgroundWork()
                storage.faults = [StorageFault(failure, of: [kind], after: passes)]
                var hasFailed = false
                do throws(StoreError) {
                    try store.backup(to: "/backup")
                } catch {
                    hasFailed = true
                    #expect([.inputOutput, .diskFull].contains(error.code), "\(error)")
                }
                storage.faults = []
                let found = try StoreContents.read(at: "/backup", storage: storage)
                // Only what is done after the new one is in place may fail and leave it there.
                #expect(found == second || hasFailed && found == first, "\(kind), \(passes)")
                try store.dataset("main").put("goes on", for: "5")
                try store.backup(to: "/backup")
                #expect(
                    try StoreContents.read(at: "/backup", storage: storage)
                        == StoreContents(store))
                try store.close()
                if !hasFailed { break }
            }
        }
    }

    @Test("A full disk costs nothing but the new backup, and the next one goes on")
    func fullDisk() throws {
        let (storage, store, first) = try prepared(Seed(9), canLink: false)
        try goOn(store, compacting: true)
        try store.waitForBackgroundWork()
        storage.capacityBytes = storage.fileBytes + 100
        expectError(.diskFull) { try store.backup(to: "/backup") }
        #expect(try StoreContents.read(at: "/backup", storage: storage) == first)
        let names = try storage.listDirectory("/backup")
        #expect(!names.contains { $0.hasSuffix(".new") }, "\(names)")
        storage.capacityBytes = nil
        try store.backup(to: "/backup")
        #expect(
            try StoreContents.read(at: "/backup", storage: storage) == StoreContents(store))
        try store.close()
    }

    @Test("A restore that is cut short is no store")
    func restorePowerLoss() throws {
        withSeed { seed in
            let (storage, store, first) = try prepared(seed)
            let random = Mutex(SeededGenerator(seed))
            let failure = Mutex<String?>(nil)
            storage.observe { [unowned storage] call in
                let disk = random.withLock { random in
                    storage.afterPowerLoss(.drawn(using: &random), using: &random)
                }
                do {
                    let found = try StoreContents.read(at: "/restored", storage: disk)
                    try require(found == first, "the restored store has \(found.summary)")
                } catch let error as StoreError where error.code == .notAStore {
                } catch {
                    failure.withLock { $0 = "power lost at \(call): \(error)" }
                }
            }
            try Store.restore(
                from: "/backup", to: "/restored", linksFiles: false, storage: storage)
            storage.observe(nil)
            if let failure = failure.withLock({ $0 }) { throw Mismatch(failure) }
            var chance = SeededGenerator(seed)
            let after = storage.afterPowerLoss(.nothing, using: &chance)
            let restored = try Store.open(
                at: "/restored", options: Self.options, storage: after)
            try require(StoreContents(restored) == first, "the restored store is another")
            try require(restored.replicaID != store.replicaID, "it has the same id")
            try restored.close()
            try store.close()
        }
    }
}
