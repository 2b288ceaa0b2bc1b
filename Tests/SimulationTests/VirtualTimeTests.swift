import TestSupport
import Testing

@testable import Simulation

/// What the simulator stands on.
struct VirtualTimeTests {
    @Test func eventsHappenInTheirOrderAndTimePassesOnlyThen() {
        let time = VirtualTime()
        var seen: [String] = []
        for (delay, name) in [(30, "c"), (10, "a"), (30, "d"), (20, "b")] {
            time.schedule(after: UInt64(delay)) { seen.append("\(name) \(time.now)") }
        }
        #expect(time.nextDue == 10)
        while let body = time.next(by: 25) { body() }
        #expect(seen == ["a 10", "b 20"])
        time.pass(to: 25)
        time.schedule(after: 5) { seen.append("e \(time.now)") }
        while let body = time.next(by: 1_000) { body() }
        #expect(seen == ["a 10", "b 20", "c 30", "d 30", "e 30"])
        #expect(time.nextDue == nil)
    }

    @Test func tasksRunInTheOrderInWhichTheyBecameReady() {
        let executor = OneThreadExecutor()
        let seen = Seen()
        for number in 0..<3 {
            Task(executorPreference: executor) {
                seen.numbers.append(number)
                await Self.elsewhere()
                seen.numbers.append(10 + number)
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { seen.numbers.append(20 + number) }
                }
                seen.numbers.append(30 + number)
            }
        }
        #expect(seen.numbers.isEmpty)
        while executor.runNext() {}
        #expect(seen.numbers == [0, 10, 1, 11, 2, 12, 20, 21, 22, 30, 31, 32])
        #expect(executor.strangerCount == 0)
    }

    /// Would go to the pool of threads if the task had no preference; so it just goes on.
    @concurrent private static func elsewhere() async {}

    private final class Seen: @unchecked Sendable {
        // Unchecked: only the thread of the test touches it, and the test fails if not.
        var numbers: [Int] = []
    }

    @Test func valuesTellWhichWritesTheyStandFor() {
        for numbers in [[], [1], [255, 256, 65_535, 70_000]] {
            for padding in [0, 1, 4, 7] {
                let value = WriteModel.value(of: numbers, padding: padding)
                #expect(value.count == 4 * numbers.count + padding)
                #expect(WriteModel.numbers(in: value) == numbers)
            }
        }
    }

    @Test func aTraceTellsLinesApart() {
        var traces = (0..<4).map { _ in Trace(keepsLines: true) }
        traces[0].append("a b")
        traces[1].append("a")
        traces[1].append(" b")
        traces[2].append("a")
        traces[2].append("b")
        #expect(Set(traces.map(\.hash)).count == 4)
        #expect(traces[2].lines == ["a", "b"])
    }
}
