import Synchronization
import TestSupport
import Testing
import Tidemark

/// The power fails after every single call that the store makes of its disk, and between calls,
/// and each time a seed chooses what of the unsynced bytes survives. Whatever it chooses, the store
/// opens, holds a prefix of the writes in whole batches, and of those every one that was
/// acknowledged under `.disk`.
@Suite("Power loss")
struct PowerLossTests {
    struct Plan: Sendable, CustomStringConvertible {
        let description: String
        let durabilities: [Durability]
        let operationCount: Int
        /// See `SimulatedStorage.writebackOneIn`.
        let writebackOneIn: Int
        /// Beside four; if there are more, their states are let go as soon as can be.
        var moreDatasetCount = 0
    }

    static let plans = [
        Plan(description: "disk", durabilities: [.disk], operationCount: 60, writebackOneIn: 0),
        Plan(
            description: "process", durabilities: [.process], operationCount: 120, writebackOneIn: 4
        ),
        Plan(
            description: "memory", durabilities: [.memory], operationCount: 120, writebackOneIn: 4),
        Plan(
            description: "mixed", durabilities: [.memory, .process, .process, .disk],
            operationCount: 100, writebackOneIn: 8),
        Plan(
            description: "many datasets", durabilities: [.process, .disk], operationCount: 120,
            writebackOneIn: 6, moreDatasetCount: 20),
    ]

    @Test("A prefix of the writes is left, with all that was promised", arguments: plans)
    func enumeration(plan: Plan) throws {
        withSeed(for: "enumeration(\(plan))") { seed in
            let run = PowerLossRun(plan, seed)
            try run.run()
            try require(run.checkCount > plan.operationCount / 4, "only \(run.checkCount) checks")
        }
    }

    @Test(
        "After the end of the process alone, everything acknowledged is left",
        arguments: [Durability.process, .disk])
    func processEnd(durability: Durability) throws {
        withSeed(for: "processEnd(\(durability.rawValue))") { seed in
            let plan = Plan(
                description: "", durabilities: [durability], operationCount: 80,
                writebackOneIn: 0)
            let run = PowerLossRun(plan, seed)
            run.losesPower = false
            try run.run()
        }
    }

    @Test("Writers on several threads each get the durability they waited for")
    func groupCommit() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let store = try openSimulated(
            storage, StoreOptions(durability: .disk, segmentBytes: 1 << 20))
        let dataset = try store.dataset("main")
        let bodies = (0..<4).map { thread in
            { @Sendable () throws -> Void in
                for index in 0..<50 { try dataset.put("\(index)", for: "\(thread)/\(index)") }
            }
        }
        try runOnThreads(bodies)
        var random = SeededGenerator(Seed(2))
        let crashed = try openSimulated(
            storage.afterPowerLoss(.nothing, using: &random), store.options)
        #expect(try crashed.dataset("main").count() == 200)
        try crashed.close()
        try store.close()
    }
}

/// One workload with the crashes in it. The observer runs on the thread of the store's call.
private final class PowerLossRun: Sendable {
    private struct State {
        var workload = Workload()
        var random: SeededGenerator
        var failure: String?
        var checkCount = 0
        var losesPower = true
        var replica: ReplicaID?
    }

    private let plan: PowerLossTests.Plan
    private let options: StoreOptions
    private let storage: SimulatedStorage
    private let generatorSeed: Seed
    private let state: Mutex<State>

    init(_ plan: PowerLossTests.Plan, _ seed: Seed) {
        var random = SeededGenerator(seed)
        self.plan = plan
        var options = StoreOptions(
            durability: plan.durabilities[0], segmentBytes: 1 << 20, compactsAutomatically: false)
        if plan.moreDatasetCount > 0 { options.keptDatasetStatesMax = 0 }
        // Some of the values lie apart.
        options.largeValueBytes = 500
        self.options = options
        storage = SimulatedStorage(seed: Seed(random.next()))
        storage.writebackOneIn = plan.writebackOneIn
        generatorSeed = Seed(random.next())
        state = Mutex(State(random: random))
    }

    var losesPower: Bool {
        get { state.withLock { $0.losesPower } }
        set { state.withLock { $0.losesPower = newValue } }
    }

    var checkCount: Int { state.withLock { $0.checkCount } }

    func run() throws {
        storage.observe { [weak self] call in self?.crash(at: "\(call)") }
        defer { storage.observe(nil) }
        let store = try openSimulated(storage, options)
        state.withLock { $0.replica = store.replicaID }
        var generator = simulatedGenerator(
            generatorSeed, plan.durabilities, moreDatasetCount: plan.moreDatasetCount)
        for number in 1...plan.operationCount {
            let present = state.withLock { $0.workload.present }
            let operation = generator.next(present)
            state.withLock { $0.workload.begin(operation) }
            try operation.perform(on: store)
            state.withLock { state in
                state.workload.acknowledge(operation, default: options.durability)
            }
            if number % 4 == 0 { crash(at: "operation \(number)") }
            if let failure = state.withLock({ $0.failure }) { throw Mismatch(failure) }
        }
        try store.close()
    }

    /// Checks what a crash now would leave; the run itself goes on.
    private func crash(at moment: String) {
        var (workload, random, losesPower, hasFailed) = state.withLock { state in
            state.checkCount += 1
            return (
                state.workload, state.random.split(), state.losesPower, state.failure != nil
            )
        }
        guard !hasFailed else { return }
        let survival = losesPower ? Survival.drawn(using: &random) : .everything
        let disk = storage.afterPowerLoss(survival, using: &random)
        do {
            try check(disk, workload, losesPower, &random)
        } catch {
            state.withLock { state in
                state.failure = "crash at \(moment), \(survival) survives: \(error)"
            }
        }
    }

    private func check(
        _ disk: SimulatedStorage, _ workload: Workload, _ losesPower: Bool,
        _ random: inout SeededGenerator
    ) throws {
        var disk = disk
        // Now and then the power fails again while the store recovers.
        if losesPower, random.oneIn(6) {
            disk = try afterCrashInRecovery(of: disk, &random)
        }
        let lowest = losesPower ? workload.durableIndex : workload.acknowledgedIndex
        let store = try openSimulated(disk, options)
        let index = try workload.check(store, from: lowest, using: &random)
        let replica = state.withLock { $0.replica }
        if let replica, index > 0 {
            try require(store.replicaID == replica, "the store has another replica id")
        }
        // What was recovered is written on, and stays.
        let dataset = try store.dataset("after")
        try dataset.put([1], for: [1], durability: .disk)
        try store.close()
        let again = try openSimulated(disk, options)
        try require(again.dataset("after").get([1]) == [1], "a write after recovery is gone")
        try again.deleteDataset("after")
        _ = try workload.check(again, from: index, using: &random)
        try again.close()
    }

    /// Opens the store, and loses the power at one of the calls that takes.
    private func afterCrashInRecovery(
        of disk: SimulatedStorage, _ random: inout SeededGenerator
    ) throws -> SimulatedStorage {
        let target = 1 + random.below(12)
        let survival = Survival.drawn(using: &random)
        let choices = Mutex(random.split())
        let result = Mutex<SimulatedStorage?>(nil)
        let calls = Mutex(0)
        disk.observe { [unowned disk] _ in
            let number = calls.withLock { calls in
                calls += 1
                return calls
            }
            guard number == target else { return }
            let crashed = choices.withLock { disk.afterPowerLoss(survival, using: &$0) }
            result.withLock { $0 = crashed }
        }
        _ = try openSimulated(disk, options)
        disk.observe(nil)
        return result.withLock { $0 } ?? disk.afterProcessEnd(using: &random)
    }
}
