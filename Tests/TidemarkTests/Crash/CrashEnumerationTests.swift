import Glibc
import Synchronization
import TestSupport
import Testing
import Tidemark

/// The world stops before and after every call that a workload makes of its disk, and after every
/// commit; each time, of what was not yet durable, nothing, everything, and several seeded choices
/// of pages, torn pages and names survive. From each of these disks the store opens, verifies,
/// holds what it promised, takes writes, compacts, verifies and opens again.
///
/// Without more ado one of these is tried at each point, in turn. `TIDEMARK_CRASH_VARIANTS=n` tries
/// nothing, everything and n seeded choices at each.
@Suite("Crash enumeration")
struct CrashEnumerationTests {
    @Test(
        "Nothing is lost at any call of the whole life of a store",
        arguments: [Durability.disk, .process])
    func wholeLife(durability: Durability) throws {
        withSeed(for: "wholeLife(\(durability.rawValue))") { seed in
            let run = CrashEnumeration(durability, seed, variants: Self.variants)
            try run.run()
            print(
                "crash enumeration under .\(durability.rawValue): \(run.points) points,",
                "\(run.disks) disks reopened, no loss")
            try require(run.points > 200, "only \(run.points) points")
        }
    }

    private static var variants: Int {
        guard let text = unsafe getenv("TIDEMARK_CRASH_VARIANTS") else { return 0 }
        return unsafe Int(String(cString: text)) ?? 1
    }
}

/// What happens to the store, in order.
enum Act {
    case operation(StoreOperation)
    case reopen
    case waitForBackgroundWork
}

/// A life that comes by everything that touches the disk: creation, commits of all kinds, a log
/// that is prepared, filled, sealed and used again, values that lie apart, compaction of everything
/// and of ranges, closing and opening.
struct LifeScript {
    private var random: SeededGenerator
    private(set) var acts: [Act] = []

    init(_ durability: Durability, _ seed: Seed) {
        random = SeededGenerator(seed)
        create("first")
        create("second")
        for number in 0..<6 { put("first", number, 50, durability) }
        batch(["first", "second"], durability)
        delete("first", 2, .process)
        acts.append(.operation(.sync))
        // More than one log of 1 MiB: the next is prepared, this one ended and sealed.
        for number in 0..<7 { put("first", 100 + number, 200_000, .process) }
        batch(["second", "first"], durability)
        acts += [.waitForBackgroundWork, .reopen]
        put("second", 7, 3_000, durability)
        acts.append(.operation(.deleteDataset("second")))
        create("second")
        batch(["second"], .memory)
        acts.append(.operation(.compact))
        acts.append(.operation(.clear(dataset: "second")))
        for number in 0..<7 { put("first", 200 + number, 200_000, durability) }
        acts.append(.waitForBackgroundWork)
        // Keys of both fills, whose values lie apart and stay where they are.
        compact("first", KeyRange(from: "key 105", upTo: "key 202"))
        acts.append(.operation(.compact))
        put("first", 3, 10, durability)
        acts.append(.reopen)
        // Most of what the first value file holds, so that compaction moves the rest out of it.
        for number in 101...105 { delete("first", number, durability) }
        compact("first", .prefix("key 10"))
        acts += [.operation(.compact), .reopen]
    }

    private mutating func create(_ name: String) {
        acts.append(.operation(.createDataset(name)))
    }

    private mutating func compact(_ name: String, _ range: KeyRange) {
        acts.append(.operation(.compactRange(dataset: name, range)))
    }

    private func write(_ name: String, _ number: Int, _ value: [UInt8]?) -> GeneratedWrite {
        GeneratedWrite(
            dataset: name, key: Array("key \(number)".utf8), value: value, expectation: .none)
    }

    private mutating func put(_ name: String, _ number: Int, _ count: Int, _ level: Durability) {
        acts.append(.operation(.write(write(name, number, random.bytes(count)), level)))
    }

    private mutating func delete(_ name: String, _ number: Int, _ level: Durability) {
        acts.append(.operation(.write(write(name, number, nil), level)))
    }

    private mutating func batch(_ names: [String], _ level: Durability) {
        var writes: [GeneratedWrite] = []
        for name in names {
            // Several pages, so that a torn batch would show.
            for number in 0..<5 { writes.append(write(name, number, random.bytes(2_500))) }
        }
        acts.append(.operation(.batch(writes, level)))
    }
}

/// One life with the crashes in it. The observers run on the thread of the store's call.
private final class CrashEnumeration: Sendable {
    private struct State {
        var workload = Workload()
        var random: SeededGenerator
        var failure: String?
        var points = 0
        var disks = 0
    }

    private let options: StoreOptions
    private let script: LifeScript
    private let variants: Int
    private let storage: SimulatedStorage
    private let state: Mutex<State>

    init(_ durability: Durability, _ seed: Seed, variants: Int) {
        var random = SeededGenerator(seed)
        options = StoreOptions(
            durability: durability, segmentBytes: 1 << 20, compactsAutomatically: true)
        script = LifeScript(durability, Seed(random.next()))
        self.variants = variants
        storage = SimulatedStorage(seed: Seed(random.next()))
        state = Mutex(State(random: random))
    }

    var points: Int { state.withLock { $0.points } }
    var disks: Int { state.withLock { $0.disks } }

    func run() throws {
        storage.observe(
            before: { [weak self] call in self?.crash(at: "before \(call)") },
            after: { [weak self] call in self?.crash(at: "after \(call)") })
        defer { storage.observe(nil) }
        var store = try openSimulated(storage, options)
        for (number, act) in script.acts.enumerated() {
            switch act {
            case .operation(let operation):
                state.withLock { $0.workload.begin(operation) }
                try operation.perform(on: store)
                state.withLock {
                    $0.workload.acknowledge(operation, default: options.durability)
                }
                crash(at: "end of act \(number)")
            case .reopen:
                state.withLock { $0.workload.begin(.sync) }
                try store.close()
                state.withLock { $0.workload.acknowledge(.sync, default: options.durability) }
                store = try openSimulated(storage, options)
            case .waitForBackgroundWork:
                try store.waitForBackgroundWork()
            }
            if let failure = state.withLock({ $0.failure }) { throw Mismatch(failure) }
        }
        try store.close()
        if let failure = state.withLock({ $0.failure }) { throw Mismatch(failure) }
    }

    /// Checks all that a crash now could leave; the life itself goes on.
    private func crash(at moment: String) {
        let (number, isOver) = state.withLock { state in
            state.points += 1
            return (state.points, state.failure != nil)
        }
        guard !isOver else { return }
        if variants > 0 || number % 3 == 0 { check(.nothing, at: moment) }
        if variants > 0 || number % 3 == 1 { check(.everything, at: moment) }
        if variants == 0, number % 3 == 2 { checkChance(at: moment) }
        for _ in 0..<variants {
            checkChance(at: moment)
        }
    }

    private func checkChance(at moment: String) {
        let percent = state.withLock { 1 + $0.random.below(99) }
        check(.chance(percent: percent), at: moment)
    }

    private func check(_ survival: Survival, at moment: String) {
        // Other threads go on: what was promised is read before the disk stands still, and what
        // may be there after.
        let (before, drawn) = state.withLock { state in
            state.disks += 1
            return (state.workload, state.random.split())
        }
        var random = drawn
        let disk = storage.afterPowerLoss(survival, using: &random)
        let after = state.withLock { $0.workload }
        let lowest =
            survival == .everything ? before.acknowledgedIndex : before.durableIndex
        do {
            try CrashedStore(disk, options).check(after, from: lowest, &random)
        } catch {
            state.withLock { state in
                state.failure = state.failure ?? "\(moment), \(survival) survives: \(error)"
            }
        }
    }
}

/// A disk as a crash left it, and all that must be possible with it.
struct CrashedStore {
    private let disk: SimulatedStorage
    private let options: StoreOptions

    init(_ disk: SimulatedStorage, _ options: StoreOptions) {
        self.disk = disk
        self.options = options
    }

    func check(
        _ workload: Workload, from lowest: Int, _ random: inout SeededGenerator
    ) throws {
        let store = try openSimulated(disk, options)
        let index = try workload.check(store, from: lowest, using: &random)
        try verify(store, "recovered")
        let dataset = try store.dataset("after")
        try dataset.put([1], for: [1], durability: .disk)
        // Recovery leaves different things behind: sometimes compaction meets them, sometimes
        // closing or the next opening.
        let compacts = random.oneIn(2)
        if compacts {
            try store.compact()
            try verify(store, "compacted")
        }
        try store.close()
        let again = try openSimulated(disk, options)
        try require(again.dataset("after").get([1]) == [1], "a write after recovery is gone")
        try again.deleteDataset("after")
        _ = try workload.check(again, from: index, using: &random)
        try verify(again, "reopened")
        try again.close()
    }

    private func verify(_ store: Store, _ moment: String) throws {
        let damages = try store.verify().damages
        try require(damages.isEmpty, "\(moment), verification finds \(damages)")
    }
}
