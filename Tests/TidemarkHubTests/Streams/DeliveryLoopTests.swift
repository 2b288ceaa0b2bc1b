import Logging
import Synchronization
import TestSupport
import Testing
import TidemarkSync

@testable import TidemarkHub

/// Deliveries in lanes, from a source in memory.
///
/// The property: whatever fails and whenever something comes, each lane is delivered in its order,
/// everything at least once, and nothing of a lane while another delivery of it is under way.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct DeliveryLoopTests {
    /// Numbers that wait in lanes; what is taken is kept.
    final class Source: DeliverySource {
        struct Failed: Error {}

        private struct State {
            var waiting: [String: [Int]] = [:]
            var taken: [String: [Int]] = [:]
            var underWay: Set<String> = []
            var underWayMax = 0
            var overlaps = 0
            var random: SeededGenerator
            var failsOneIn: Int
            var questionFailures = 0
        }

        private let state: Mutex<State>

        init(_ seed: Seed, failsOneIn: Int) {
            state = Mutex(State(random: SeededGenerator(seed), failsOneIn: failsOneIn))
        }

        var taken: [String: [Int]] { state.withLock { $0.taken } }
        var waitingCount: Int { state.withLock { $0.waiting.count } }
        var underWayMax: Int { state.withLock { $0.underWayMax } }
        var overlaps: Int { state.withLock { $0.overlaps } }

        func put(_ number: Int, in lane: String) {
            state.withLock { $0.waiting[lane, default: []].append(number) }
        }

        /// - Parameter times: 0 for no more.
        func failEach(_ times: Int, questions: Int = 0) {
            state.withLock { state in
                state.failsOneIn = times
                state.questionFailures = questions
            }
        }

        func lanes(limit: Int) async throws -> [String] {
            let lanes = state.withLock { state -> [String]? in
                guard state.questionFailures == 0 else {
                    state.questionFailures -= 1
                    return nil
                }
                return Array(state.waiting.keys.sorted().prefix(limit))
            }
            guard let lanes else { throw Failed() }
            return lanes
        }

        func deliverNext(in lane: String) async throws -> Bool {
            let next = state.withLock { state -> Int? in
                guard let first = state.waiting[lane]?.first else { return nil }
                if !state.underWay.insert(lane).inserted { state.overlaps += 1 }
                state.underWayMax = max(state.underWayMax, state.underWay.count)
                return first
            }
            guard let next else { return false }
            await Task.yield()
            let isTaken = state.withLock { state -> Bool in
                state.underWay.remove(lane)
                guard state.failsOneIn == 0 || !state.random.oneIn(state.failsOneIn) else {
                    return false
                }
                state.taken[lane, default: []].append(next)
                // Now and then it is taken and not forgotten, as by a crash in between.
                guard state.failsOneIn == 0 || !state.random.oneIn(8) else { return false }
                state.waiting[lane]?.removeFirst()
                if state.waiting[lane]?.isEmpty ?? false { state.waiting[lane] = nil }
                return true
            }
            guard isTaken else { throw Failed() }
            return true
        }
    }

    private static func loop(
        _ source: Source, atOnceMax: Int = 4, clock: any SyncEnvironment
    ) -> DeliveryLoop<Source> {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return DeliveryLoop(
            source, name: "test", atOnceMax: atOnceMax, clock: clock, logger: logger)
    }

    @Test("everything comes at least once, in the order of its lane, whatever fails")
    func order() async throws {
        let seed = Seed.drawn()
        var random = SeededGenerator(seed)
        let source = Source(seed, failsOneIn: 3)
        let clock = VirtualEnvironment(passesBySleeping: true)
        let loop = Self.loop(source, clock: clock)
        var numbers: [(lane: String, number: Int)] = []
        for number in 0..<400 {
            numbers.append((lane: "lane \(random.below(12))", number: number))
        }
        // Some are there before it runs, and are asked for.
        for entry in numbers[..<100] { source.put(entry.number, in: entry.lane) }
        let rest = numbers[100...]
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await loop.run() }
            for entry in rest {
                source.put(entry.number, in: entry.lane)
                loop.wake(entry.lane)
                await Task.yield()
            }
            try await eventually("all taken") {
                source.waitingCount == 0 && loop.laneCount == 0
            }
            group.cancelAll()
        }
        #expect(source.overlaps == 0)
        #expect(source.underWayMax <= 4)
        let taken = source.taken
        for lane in Set(numbers.map(\.lane)) {
            let expected = numbers.filter { $0.lane == lane }.map(\.number)
            // Repeats follow each other.
            var once: [Int] = []
            for number in taken[lane] ?? [] where once.last != number { once.append(number) }
            #expect(once == expected, "\(lane)")
        }
    }

    @Test("what fails is tried again after a wait that grows")
    func backOff() async throws {
        let source = Source(Seed(1), failsOneIn: 1)
        let clock = VirtualEnvironment()
        let loop = Self.loop(source, clock: clock)
        source.put(1, in: "a")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await loop.run() }
            for _ in 0..<3 {
                await clock.untilAsleep()
                clock.advance(by: .seconds(300))
            }
            await clock.untilAsleep()
            // Of the random part nothing is taken away: the clock's numbers are zeros.
            #expect(clock.slept == [.seconds(1), .seconds(2), .seconds(4), .seconds(8)])
            #expect(source.taken.isEmpty)
            source.failEach(0)
            clock.advance(by: .seconds(8))
            try await eventually("taken") { source.taken == ["a": [1]] }
            group.cancelAll()
        }
    }

    @Test("a lane that fails holds up no other")
    func independence() async throws {
        let source = Source(Seed(1), failsOneIn: 1)
        let clock = VirtualEnvironment()
        let loop = Self.loop(source, atOnceMax: 1, clock: clock)
        source.put(1, in: "a")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await loop.run() }
            await clock.untilAsleep()
            source.failEach(0)
            source.put(2, in: "b")
            loop.wake("b")
            try await eventually("taken") { source.taken == ["b": [2]] }
            group.cancelAll()
        }
    }

    @Test("lanes beyond the bound wait on disk, and come in their turn")
    func bounded() async throws {
        let source = Source(Seed(1), failsOneIn: 0)
        let clock = VirtualEnvironment()
        let loop = Self.loop(source, clock: clock)
        let lanesMax = DeliveryLoop<Source>.lanesMax
        for number in 0..<(lanesMax + 500) {
            source.put(number, in: "lane \(number)")
            // Nobody takes any yet.
            loop.wake("lane \(number)")
        }
        #expect(loop.laneCount == lanesMax)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await loop.run() }
            try await eventually("all taken") { source.waitingCount == 0 }
            group.cancelAll()
        }
        #expect(source.taken.count == lanesMax + 500)
    }

    @Test("what nobody has told of is found by looking again")
    func lookingAgain() async throws {
        let source = Source(Seed(1), failsOneIn: 0)
        let loop = Self.loop(source, clock: VirtualEnvironment())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await loop.run() }
            source.put(1, in: "a")
            loop.wake("a")
            try await eventually("taken") { source.taken == ["a": [1]] && loop.laneCount == 0 }
            source.put(2, in: "b")
            loop.lookAgain()
            try await eventually("taken") { source.taken == ["a": [1], "b": [2]] }
            group.cancelAll()
        }
    }

    @Test("what waits is asked for again if it could not be read")
    func questions() async throws {
        let source = Source(Seed(1), failsOneIn: 0)
        source.failEach(0, questions: 3)
        source.put(1, in: "a")
        let clock = VirtualEnvironment(passesBySleeping: true)
        let loop = Self.loop(source, clock: clock)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await loop.run() }
            try await eventually("taken") { source.taken == ["a": [1]] }
            group.cancelAll()
        }
        #expect(clock.slept.count == 3)
    }
}
