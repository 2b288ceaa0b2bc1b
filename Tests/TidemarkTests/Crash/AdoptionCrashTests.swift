import Synchronization
import TestSupport
import Testing
import Tidemark

/// The power fails before and after every call that taking over a dataset makes of the disk.
/// Whatever survives: the dataset is there whole, with all that is known of it, or it is as empty
/// as it was. Once the taking over has returned it is there.
///
///     adopt: segments | other number | manifest | state in the log
///            ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^   power fails
@Suite("Adoption and failures")
struct AdoptionCrashTests {
    private static let options = StoreOptions(
        durability: .process, segmentBytes: 1 << 20, compactsAutomatically: false,
        largeValueBytes: 2_000)

    private final class Run: Sendable {
        let storage: SimulatedStorage
        let expected: [[Record]]
        let syncCount: SyncCount
        let random: Mutex<SeededGenerator>
        let failure = Mutex<String?>(nil)
        /// How often the dataset was found empty, and how often whole.
        let seen = Mutex([0, 0])

        init(
            _ storage: SimulatedStorage, _ expected: [[Record]], _ syncCount: SyncCount,
            _ seed: Seed
        ) {
            self.storage = storage
            self.expected = expected
            self.syncCount = syncCount
            random = Mutex(SeededGenerator(seed))
        }

        func crash(at moment: String) {
            guard failure.withLock({ $0 }) == nil else { return }
            for variant in 0..<3 {
                let disk = random.withLock { random in
                    var survival = Survival.chance(percent: 1 + random.below(99))
                    if variant < 2 { survival = variant == 0 ? .nothing : .everything }
                    return storage.afterPowerLoss(survival, using: &random)
                }
                do {
                    let isWhole = try check(disk)
                    seen.withLock { $0[isWhole ? 1 : 0] += 1 }
                } catch {
                    failure.withLock { $0 = "power lost \(moment): \(error)" }
                }
            }
        }

        /// Whether the dataset is there.
        func check(_ disk: SimulatedStorage) throws -> Bool {
            let store = try openSimulated(disk, AdoptionCrashTests.options)
            try requireSound(store)
            try require(store.dataset("beside").text("here") == "before", "another dataset")
            let dataset = try store.dataset("main")
            let isWhole = try dataset.syncCount > .zero
            let versions = try allVersions(dataset)
            try require(versions == (isWhole ? expected : []), "\(versions.count) are there")
            let count = try dataset.syncCount
            try require(count == (isWhole ? syncCount : .zero), "its count is \(count)")
            // It goes on, through a merge and another opening.
            try dataset.put("after", for: "after")
            try store.dataset("empty").put("no longer", for: "empty")
            try store.dataset("third").put("new", for: "new")
            try store.compact()
            try requireSound(store)
            let records = try dataset.count()
            try store.close()
            let again = try openSimulated(disk, AdoptionCrashTests.options)
            try require(again.dataset("main").count() == records, "records came or went")
            for other in ["empty", "third"] {
                try require(again.dataset(other).count() == 1, "\(other) has its records")
            }
            try requireSound(again)
            try again.close()
            return isWhole
        }
    }

    /// Who has the number of the entries when they come.
    enum Holder: CaseIterable {
        case itself, anotherEmptyDataset, nobody
    }

    @Test("After a loss of power there is all of it or nothing", arguments: Holder.allCases)
    func powerLoss(holder: Holder) throws {
        withSeed(for: "powerLoss(\(holder))") { seed in
            var random = SeededGenerator(seed)
            let fixture = try AdoptionFixture()
            let others = holder == .nobody ? 5 : 1
            for index in 0..<others { _ = try fixture.source.dataset("\(index)") }
            let source = try fixture.source.dataset("main")
            try AdoptionFixture.fill(source, &random, writes: 300, seals: 2) {
                try fixture.source.sealAll()
            }
            try fixture.source.sealAll()
            let storage = SimulatedStorage(seed: Seed(random.next()))
            storage.clockMilliseconds = SystemStorage().wallClockMilliseconds()
            let store = try openSimulated(storage, Self.options)
            try store.dataset("beside").put("before", for: "here", durability: .disk)
            if holder == .anotherEmptyDataset { _ = try store.dataset("empty") }
            let target = try store.dataset("main")
            try store.sync()
            let run = Run(
                storage, try allVersions(source), try source.syncCount, Seed(random.next()))
            storage.observe(
                before: { call in run.crash(at: "before \(call)") },
                after: { call in run.crash(at: "after \(call)") })
            defer { storage.observe(nil) }
            let count = try adoptWhole(source, into: target, bytesMax: 5_000)
            storage.observe(nil)
            if let failure = run.failure.withLock({ $0 }) { throw Mismatch(failure) }
            try require(count != nil, "nothing was taken over")
            let seen = run.seen.withLock { $0 }
            try require(seen[0] > 10 && seen[1] > 1, "empty and whole were seen \(seen)")
            let after = storage.afterPowerLoss(.nothing, using: &random)
            try require(run.check(after), "what was taken over is gone")
            try store.close()
        }
    }

    @Test(
        "A call that fails ends it with a typed error, and nothing of it is there",
        arguments: [StorageFault.Failure.inputOutput, .diskFull])
    func faults(failure: StorageFault.Failure) throws {
        withSeed(for: "faults(\(failure))") { seed in
            var random = SeededGenerator(seed)
            let fixture = try AdoptionFixture()
            let source = try fixture.source.dataset("main")
            try AdoptionFixture.fill(source, &random, writes: 200, seals: 1)
            try fixture.source.sealAll()
            var failed = 0
            for kind in [
                StorageCall.Kind.openFile, .rename, .syncDirectory, .size, .read, .write, .sync,
            ] {
                for passes in 0..<12 {
                    let storage = SimulatedStorage(seed: Seed(random.next()))
                    storage.clockMilliseconds = SystemStorage().wallClockMilliseconds()
                    let store = try openSimulated(storage, Self.options)
                    let target = try store.dataset("main")
                    storage.faults = [StorageFault(failure, of: [kind], after: passes)]
                    do {
                        try adoptWhole(source, into: target)
                    } catch let error as StoreError {
                        failed += 1
                        try require(
                            [.inputOutput, .diskFull, .writerStopped].contains(error.code),
                            "\(error)")
                    }
                    storage.faults = []
                    try? store.close()
                    let again = try openSimulated(storage, Self.options)
                    let count = try again.dataset("main").count()
                    try require(try count == 0 || count == source.count(), "\(count) are there")
                    try requireSound(again)
                    try again.close()
                }
            }
            try require(failed > 8, "only \(failed) calls failed")
        }
    }
}
