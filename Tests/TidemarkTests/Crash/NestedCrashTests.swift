import Synchronization
import TestSupport
import Testing
import Tidemark

/// The world stops while a store recovers from a stop, and again while it recovers from that one.
///
///     life        ...call...call X (killed, or without power)
///     1st opening                  ...call X
///     2nd opening                             ...call X
///     3rd opening                                       holds what life was promised
///
/// A *kill* leaves what was written, and leaves undecided what of it is durable: a later loss of
/// power may still take it. So what an opening builds on it has to make durable first.
/// `TIDEMARK_RUNS=n` looks at n times as many moments of the life.
@Suite("Crashes within recovery")
struct NestedCrashTests {
    @Test("Recovery that stops loses nothing, nor does recovery from that", arguments: [1, 2])
    func recovery(deep: Int) throws {
        for durability in [Durability.disk, .process] {
            withSeed(for: "recovery(\(deep), \(durability.rawValue))") { seed in
                let run = NestedCrashes(durability, seed, deep: deep)
                try run.run()
                print(
                    "crashes \(deep) deep in recovery under .\(durability.rawValue):",
                    "\(run.disks) disks reopened, no loss")
                try require(run.disks > 100, "only \(run.disks) disks")
            }
        }
    }

    /// The parent directory is synced once, by whoever makes the store: before the manifest, which
    /// says to all who come later that it was done.
    @Test("A store whose maker was killed at any call survives the loss of power once it is used")
    func firstOpening() throws {
        withSeed(for: "firstOpening") { seed in
            var random = SeededGenerator(seed)
            let options = StoreOptions(durability: .disk, segmentBytes: 1 << 20)
            let storage = SimulatedStorage(seed: Seed(random.next()))
            let left = Mutex<[(String, SimulatedStorage)]>([])
            storage.observe { [storage] call in
                var choices = SeededGenerator(Seed(UInt64(call.number)))
                let disk = storage.afterKill(using: &choices)
                left.withLock { $0.append(("killed after \(call)", disk)) }
            }
            let maker = try openSimulated(storage, options)
            storage.observe(nil)
            try maker.close()
            for (moment, disk) in left.withLock({ $0 }) {
                let store = try openSimulated(disk, options)
                try store.dataset("main").put([1], for: [1])
                let after = disk.afterPowerLoss(.nothing, using: &random)
                try store.close()
                let found = try openSimulated(after, options)
                let value = try found.dataset("main").get([1])
                try require(value == [1], "\(moment): a durable write is gone")
                try found.close()
            }
        }
    }
}

/// One life, at some moments of which it is looked at what crashes within recovery would leave.
private final class NestedCrashes: Sendable {
    /// A disk as a crash left it.
    private struct Crash {
        let disk: SimulatedStorage
        let moment: String
        /// Whether every crash so far was a kill.
        let isKilled: Bool
    }

    private struct State {
        var workload = Workload()
        var random: SeededGenerator
        var failure: String?
        var disks = 0
    }

    /// Of so many calls of the life one is a moment to look at, one deep. Each level more has some
    /// six times as many disks for each moment.
    private static let lifeOneIn = 12
    /// Of so many calls of a recovery.
    private static let recoveryOneIn = 5

    private let options: StoreOptions
    private let script: LifeScript
    private let deep: Int
    private let storage: SimulatedStorage
    private let state: Mutex<State>

    init(_ durability: Durability, _ seed: Seed, deep: Int) {
        var random = SeededGenerator(seed)
        options = StoreOptions(
            durability: durability, segmentBytes: 1 << 20, compactsAutomatically: true)
        script = LifeScript(durability, Seed(random.next()))
        self.deep = deep
        storage = SimulatedStorage(seed: Seed(random.next()))
        state = Mutex(State(random: random))
    }

    var disks: Int { state.withLock { $0.disks } }

    func run() throws {
        storage.observe(
            before: { [weak self] call in self?.look(at: "before \(call)") },
            after: { [weak self] call in self?.look(at: "after \(call)") })
        defer { storage.observe(nil) }
        var store = try openSimulated(storage, options)
        for act in script.acts {
            switch act {
            case .operation(let operation):
                state.withLock { $0.workload.begin(operation) }
                try operation.perform(on: store)
                state.withLock {
                    $0.workload.acknowledge(operation, default: options.durability)
                }
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

    /// Called at every call of the life; mostly goes by.
    private func look(at moment: String) {
        let oneIn = max(1, Self.lifeOneIn * (deep * deep) / schedules(1).count)
        let drawn = state.withLock { state -> (Workload, SeededGenerator)? in
            guard state.failure == nil, state.random.oneIn(oneIn) else { return nil }
            return (state.workload, state.random.split())
        }
        guard let (before, choices) = drawn else { return }
        var random = choices
        let crash = crash(of: storage, at: moment, after: nil, using: &random)
        let after = state.withLock { $0.workload }
        do {
            try recover(from: crash, before, after, deep: deep, using: &random)
        } catch {
            state.withLock { $0.failure = $0.failure ?? "\(error)" }
        }
    }

    /// - Parameter earlier: what the disk comes from; nil for the life itself.
    private func crash(
        of disk: SimulatedStorage, at moment: String, after earlier: Crash?,
        using random: inout SeededGenerator
    ) -> Crash {
        let isKill = random.oneIn(2)
        let survival = Survival.drawn(using: &random)
        let left =
            isKill
            ? disk.afterKill(using: &random)
            : disk.afterPowerLoss(survival, using: &random)
        let name = "\(moment), \(isKill ? "killed" : "\(survival) survives")"
        return Crash(
            disk: left, moment: [earlier?.moment, name].compactMap(\.self).joined(separator: "; "),
            isKilled: isKill && earlier?.isKilled ?? true)
    }

    /// Opens what a crash left, and looks at crashes of that opening, and at those of theirs.
    ///
    /// - Parameters:
    ///   - before: what was promised before the life stood still.
    ///   - after: what may be there.
    private func recover(
        from crash: Crash, _ before: Workload, _ after: Workload, deep: Int,
        using random: inout SeededGenerator
    ) throws {
        let lowest = crash.isKilled ? before.acknowledgedIndex : before.durableIndex
        var crashes: [Crash] = []
        do {
            if deep > 0 { crashes = try crashesOfOpening(crash, using: &random) }
            // As it was left, or as the opening has just left it.
            try CrashedStore(crash.disk, options).check(after, from: lowest, &random)
        } catch {
            throw Mismatch("\(crash.moment): \(error)")
        }
        state.withLock { $0.disks += 1 }
        for next in crashes {
            try recover(from: next, before, after, deep: deep - 1, using: &random)
        }
    }

    private func crashesOfOpening(
        _ crash: Crash, using random: inout SeededGenerator
    ) throws -> [Crash] {
        let disk = crash.disk.afterKill(using: &random)
        let found = Mutex<(random: SeededGenerator, crashes: [Crash])>((random.split(), []))
        let look = { @Sendable [weak self, disk] (moment: String) in
            found.withLock { found in
                guard let self, found.random.oneIn(Self.recoveryOneIn) else { return }
                var choices = found.random.split()
                found.crashes.append(
                    self.crash(of: disk, at: moment, after: crash, using: &choices))
            }
        }
        disk.observe(
            before: { look("opening, before \($0)") }, after: { look("opening, after \($0)") })
        let store = try openSimulated(disk, options)
        disk.observe(nil)
        // Nothing of it is needed any more; closing would go on with the same names.
        try store.close()
        return found.withLock { $0.crashes }
    }
}
