import Simulation
import TestSupport
import Testing

/// The simulator finds nothing in what is there, and finds it again where it has found something.
@Suite(.serialized)
struct SimulationTests {
    /// Everything is in a trace: each step, each message with its checksum, each outcome.
    @Test func aSeedHasOneTrace() {
        let base = Seed.drawn()
        for number in 0..<4 { expectOneTrace(plain(base, number)) }
    }

    @Test(arguments: SimulatedTraits.named.map(\.name))
    func aSeedWithTraitsHasOneTrace(_ name: String) throws {
        let base = Seed.drawn()
        let traits = try #require(SimulatedTraits(name))
        for number in 0..<2 { expectOneTrace(plain(base, number).with(traits)) }
    }

    private func expectOneTrace(_ seed: Seed) {
        let (settings, steps) = Nemesis.draw(seed)
        let first = World.run(settings, steps)
        let second = World.run(settings, steps)
        #expect(first.trace.hash == second.trace.hash, "seed \(seed)")
        #expect(first.trace.lineCount > steps.count, "seed \(seed)")
    }

    /// Without traits, whatever was drawn.
    private func plain(_ base: Seed, _ number: Int) -> Seed {
        Seed(base.rawValue &+ UInt64(number)).with([])
    }

    @Test func differentSeedsHaveDifferentTraces() {
        let hashes = (1...6).map { number in
            let (settings, steps) = Nemesis.draw(Seed(UInt64(number)))
            return World.run(settings, steps).trace.hash
        }
        #expect(Set(hashes).count == hashes.count)
    }

    /// Each by itself.
    @Test(arguments: SimulatedTraits.named.map(\.name))
    func nothingIsFoundWithTraits(_ name: String) throws {
        let base = Seed.drawn()
        let traits = try #require(SimulatedTraits(name))
        let seeds = (0..<8).map { plain(base, $0).with(traits) }
        expectNothing(in: seeds, exchangesMin: 100)
    }

    /// And several at once.
    @Test func nothingIsFoundWithMixedTraits() {
        let base = Seed.drawn()
        let seeds = (0..<10).map { number in
            let seed = plain(base, number)
            return seed.with(.drawn(for: seed))
        }
        expectNothing(in: seeds, exchangesMin: 120)
    }

    /// - Parameter exchangesMin: runs in which nothing goes on would prove nothing.
    private func expectNothing(in seeds: [Seed], exchangesMin: Int) {
        var exchanges = 0
        for seed in seeds {
            let (settings, steps) = Nemesis.draw(seed)
            let outcome = World.run(settings, steps)
            if let violation = outcome.violation {
                Issue.record("seed \(seed): \(violation); see tools/simulate --only")
            }
            exchanges += outcome.exchangeCount
        }
        #expect(exchanges > exchangesMin)
    }

    @Test func nothingIsFound() {
        let base = Seed.drawn()
        var (exchanges, failures, conflicts, crashes) = (0, 0, 0, 0)
        for number in 0..<25 {
            let seed = plain(base, number)
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
