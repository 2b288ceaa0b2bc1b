import TestSupport
import Testing

@Suite("Clocks and waiting of tests", .timeLimit(.minutes(Patience.minutes)))
struct WaitingTests {
    @Test("A sleep in virtual time ends when it is due, or with its task")
    func virtualTime() async throws {
        let time = VirtualEnvironment()
        let begin = time.now()
        let short = Task { try await time.sleep(for: .seconds(2)) }
        await time.untilAsleep()
        let long = Task { try await time.sleep(for: .seconds(5)) }
        await time.untilAsleep(2)
        time.advance(by: .milliseconds(1_999))
        #expect(time.sleeperCount == 2)
        time.advance(by: .milliseconds(1))
        try await short.value
        #expect(time.sleeperCount == 1 && time.now() == begin + 2_000)
        long.cancel()
        await #expect(throws: CancellationError.self) { try await long.value }
        #expect(time.sleeperCount == 0 && time.slept == [.seconds(2), .seconds(5)])
    }

    @Test("Virtual time may pass by sleeping alone")
    func passing() async throws {
        let time = VirtualEnvironment(passesBySleeping: true)
        let begin = time.now()
        for seconds in 1...3 { try await time.sleep(for: .seconds(seconds)) }
        #expect(time.now() == begin + 6_000)
        time.setRandoms([7, 8])
        #expect([time.random(), time.random(), time.random()] == [7, 8, 0])
    }

    @Test("A sleep by the manual clock ends when it rings, or with its task")
    func manualClock() async throws {
        let clock = ManualClock()
        clock.ring()
        try await clock.sleep(for: .seconds(3_600))
        let sleeping = Task { try await clock.sleep(for: .seconds(3_600)) }
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
    }

    @Test("A condition is looked at until it is so, or the task is cancelled")
    func conditions() async throws {
        var lookCount = 0
        try await eventually("looked at") {
            lookCount += 1
            return lookCount == 3
        }
        waitUntil {
            lookCount += 1
            return lookCount == 6
        }
        #expect(lookCount == 6)
        let waiting = Task { try await eventually("ever so") { false } }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let sleeping = Task { try await sleepUntilCancelled() }
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
    }
}
