import Synchronization
import TestSupport
import Testing
import Tidemark

/// A dataset with records that expire, as it should be.
private struct ExpiryModel: Sendable {
    struct Entry: Equatable, Sendable {
        var value: [UInt8]?
        var expiresAt: UInt64?
    }

    private(set) var entries: [[UInt8]: Entry] = [:]

    mutating func put(_ value: [UInt8]?, for key: [UInt8], expiresAt: UInt64?) {
        entries[key] = Entry(value: value, expiresAt: expiresAt)
    }

    func live(at now: UInt64) -> [[UInt8]: Entry] {
        entries.filter { entry in
            entry.value.value != nil && entry.value.expiresAt.map { $0 > now } ?? true
        }
    }

    func check(_ dataset: Dataset, at now: UInt64) throws {
        let expected = live(at: now)
        let keys = expected.keys.sorted { $0.lexicographicallyPrecedes($1) }
        let forward = try dataset.records().collect()
        try require(
            forward.map(\.key) == keys, "keys \(forward.map(\.keyText)) at \(now), not \(keys)")
        let backward = try dataset.records(order: .backward).collect()
        try require(backward.map(\.key) == keys.reversed(), "backward \(backward)")
        for record in forward {
            let entry = expected[record.key]
            try require(
                record.value == entry?.value && record.expiresAt == entry?.expiresAt,
                "\(record) is not \(entry as Any)")
        }
        for key in entries.keys {
            let value = try dataset.get(key)
            try require(value == expected[key]?.value, "get \(key) gives \(value as Any)")
            let record = try dataset.record(for: key, includingDeleted: true)
            try require(record?.value == value, "record of \(key) is \(record as Any)")
        }
        let changed = try dataset.changes(since: 0).collect().filter { !$0.isDeleted }
        try require(Set(changed.map(\.key)) == Set(keys), "changes tell of others")
        let count = try dataset.count()
        try require(count == keys.count, "count is \(count)")
    }
}

/// One step of a random run.
private enum ExpiryStep: Sendable {
    case put([UInt8]?, key: [UInt8], expiresAt: UInt64?)
    case wait(UInt64)
    case sweep
    case compact

    static func drawn(at now: UInt64, using random: inout SeededGenerator) -> ExpiryStep {
        switch random.below(20) {
        case 0: return .sweep
        case 1: return random.oneIn(3) ? .compact : .wait(UInt64(random.below(2_000)))
        case 2, 3: return .wait(UInt64(random.below(50)))
        default:
            let key = [UInt8(random.below(24))]
            guard !random.oneIn(6) else { return .put(nil, key: key, expiresAt: nil) }
            let value = random.bytes(random.below(40))
            let isExpiring = !random.oneIn(3)
            return .put(
                value, key: key, expiresAt: isExpiring ? now + UInt64(random.below(200)) : nil)
        }
    }

    func perform(
        on store: Store, _ dataset: Dataset, _ storage: SimulatedStorage,
        durability: Durability? = nil
    ) throws {
        switch self {
        case .put(let value?, let key, let expiresAt):
            try dataset.put(
                value, for: key, expiresAt: expiresAt ?? 0, durability: durability)
        case .put(nil, let key, _): try dataset.delete(key, durability: durability)
        case .wait(let milliseconds): storage.clockMilliseconds += milliseconds
        case .sweep: try store.deleteExpired()
        case .compact: try store.compact()
        }
    }

    func apply(to model: inout ExpiryModel) {
        if case .put(let value, let key, let expiresAt) = self {
            model.put(value, for: key, expiresAt: expiresAt)
        }
    }
}

@Suite("Expiry against a model")
struct ExpiryModelTests {
    @Test("Random writes, waits, sweeps, compactions and reopenings")
    func randomRun() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            var clocked = try ClockedStore(
                seed: Seed(random.next()), historyVersions: random.below(3))
            var model = ExpiryModel()
            for number in 0..<1_500 {
                let step = ExpiryStep.drawn(at: clocked.now, using: &random)
                try step.perform(on: clocked.store, clocked.dataset, clocked.storage)
                step.apply(to: &model)
                if random.oneIn(100) { try clocked.reopen() }
                if number % 10 == 0 { try model.check(clocked.dataset, at: clocked.now) }
            }
            try model.check(clocked.dataset, at: clocked.now)
            try clocked.store.close()
        }
    }

    /// The power fails after each call of the disk; the store must come back to a prefix of the
    /// writes that has every acknowledged one, and read by the clock as if nothing had happened.
    @Test("Power loss at every call")
    func powerLoss() {
        withSeed { seed in
            let run = CrashRun(seed)
            try run.run(steps: 90)
            try require(run.checkCount > 60, "only \(run.checkCount) crashes")
        }
    }
}

private final class CrashRun: Sendable {
    private struct State {
        /// After each write; the last may be under way.
        var models = [ExpiryModel()]
        var acknowledged = 0
        var random: SeededGenerator
        var failure: String?
        var checkCount = 0
    }

    private let storage: SimulatedStorage
    private let state: Mutex<State>
    private let options = StoreOptions(
        durability: .disk, segmentBytes: 1 << 20, compactsAutomatically: false)

    init(_ seed: Seed) {
        var random = SeededGenerator(seed)
        storage = SimulatedStorage(seed: Seed(random.next()))
        state = Mutex(State(random: random))
    }

    var checkCount: Int { state.withLock { $0.checkCount } }

    func run(steps: Int) throws {
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        try store.sync()
        storage.observe { [weak self] call in self?.crash(at: "\(call)") }
        defer { storage.observe(nil) }
        for _ in 0..<steps {
            let step = state.withLock { state in
                let step = ExpiryStep.drawn(at: storage.clockMilliseconds, using: &state.random)
                var next = state.models[state.models.count - 1]
                step.apply(to: &next)
                state.models.append(next)
                return step
            }
            try step.perform(on: store, dataset, storage, durability: .disk)
            state.withLock { $0.acknowledged = $0.models.count - 1 }
            if let failure = state.withLock({ $0.failure }) { throw Mismatch(failure) }
        }
        storage.observe(nil)
        try store.close()
    }

    private func crash(at moment: String) {
        var (random, models, hasFailed) = state.withLock { state in
            state.checkCount += 1
            return (
                state.random.split(), Array(state.models[state.acknowledged...]),
                state.failure != nil
            )
        }
        guard !hasFailed else { return }
        let survival = Survival.drawn(using: &random)
        let disk = storage.afterPowerLoss(survival, using: &random)
        do {
            try check(disk, models)
        } catch {
            state.withLock { $0.failure = "crash at \(moment), \(survival) survives: \(error)" }
        }
    }

    private func check(_ disk: SimulatedStorage, _ models: [ExpiryModel]) throws {
        let store = try openSimulated(disk, options)
        let dataset = try store.dataset("main")
        var last: (any Error)?
        for model in models.reversed() {
            do {
                try model.check(dataset, at: disk.clockMilliseconds)
                // A sweep of what came back changes nothing to see, now or later.
                try store.deleteExpired()
                try model.check(dataset, at: disk.clockMilliseconds)
                disk.clockMilliseconds += 1_000
                try store.deleteExpired()
                try store.compact()
                try model.check(dataset, at: disk.clockMilliseconds)
                let expired = try dataset.records(includingDeleted: true).collect()
                    .filter { $0.expiresAt != nil }
                try require(expired.isEmpty, "\(expired.count) expired records are left")
                return try store.close()
            } catch {
                last = error
            }
        }
        throw last ?? Mismatch("no model")
    }
}
