import Simulation
import TestSupport
import Testing

/// The simulator finds nothing in what is there, and finds it again where it has found something.
@Suite(.serialized)
struct SimulationTests {
    /// Everything is in a trace: each step, each message with its checksum, each outcome.
    @Test func aSeedHasOneTrace() {
        let base = Seed.drawn()
        for number in 0..<8 {
            let seed = Seed(base.rawValue &+ UInt64(number))
            let (settings, steps) = Nemesis.draw(seed)
            let first = World.run(settings, steps)
            let second = World.run(settings, steps)
            #expect(first.trace.hash == second.trace.hash, "seed \(seed)")
            #expect(first.trace.lineCount > steps.count, "seed \(seed)")
        }
    }

    @Test func differentSeedsHaveDifferentTraces() {
        let hashes = (1...6).map { number in
            let (settings, steps) = Nemesis.draw(Seed(UInt64(number)))
            return World.run(settings, steps).trace.hash
        }
        #expect(Set(hashes).count == hashes.count)
    }

    /// The same with peers that are given up and come again, and deletions that are soon forgotten.
    @Test func nothingIsFoundWithLateComers() {
        let base = Seed.drawn()
        var exchanges = 0
        for number in 0..<25 {
            let seed = Seed(base.rawValue &+ UInt64(number))
            let (settings, steps) = Nemesis.drawLateComers(seed)
            let outcome = World.run(settings, steps)
            if let violation = outcome.violation {
                Issue.record("seed \(seed) with late comers: \(violation)")
            }
            exchanges += outcome.exchangeCount
        }
        #expect(exchanges > 400)
    }

    @Test func nothingIsFound() {
        let base = Seed.drawn()
        var (exchanges, failures, conflicts, crashes) = (0, 0, 0, 0)
        for number in 0..<25 {
            let seed = Seed(base.rawValue &+ UInt64(number))
            let (settings, steps) = Nemesis.draw(seed)
            let outcome = World.run(settings, steps)
            if let violation = outcome.violation {
                Issue.record("seed \(seed): \(violation); see tools/simulate --only")
            }
            exchanges += outcome.exchangeCount
            failures += outcome.failedExchangeCount
            conflicts += outcome.conflictCount
            crashes += outcome.crashCount
        }
        // Runs in which nothing goes wrong would prove nothing.
        #expect(exchanges > 400)
        #expect(failures > 10)
        #expect(conflicts > 10)
        #expect(crashes > 5)
    }
}
