import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import Simulation

/// What the checkers of runs with traits stand on.
struct TraitTests {
    /// The simulator's own evaluation of a part and the store's, on the keys and values of a run.
    @Test func bothEvaluateAPartAlike() {
        for part in SimulatedScope.all {
            let scope = part.scope
            for key in 0..<16 {
                let name = SimulatedReplica.key(key)
                for form in [ValueForm.numbers, .document, .set] {
                    for number in 0..<6 {
                        let numbers = [number, 1_000 + number]
                        let value = WriteModel.value(of: numbers, padding: 3, form)
                        #expect(
                            part.keeps(key, value) == scope.matches(key: name, value: value),
                            "\(part) k\(key) \(form) \(number)")
                    }
                }
            }
        }
        #expect(Set(SimulatedScope.all.map(\.scope)).count == SimulatedScope.count)
    }

    @Test func valuesOfEveryFormTellTheirNumbers() throws {
        for numbers in [[], [1], [1, 2, 300], Array(1...200), [70_000, 16_000_000]] {
            for form in [ValueForm.document, .set] {
                let value = WriteModel.value(of: numbers, padding: 5, form)
                #expect(WriteModel.numbers(in: value) == numbers)
            }
            let set = try GrowOnlySet(
                decoding: WriteModel.value(of: numbers, padding: 0, .set))
            #expect(set.count == numbers.count)
            let document = WriteModel.value(of: numbers, padding: 0, .document)
            #expect(WriteModel.mark(in: document) == (numbers.last ?? 0) % 3)
        }
    }

    @Test func traitsStandInTheSeed() {
        for (name, trait) in SimulatedTraits.named {
            let seed = Seed(0x500AAA).with(trait)
            #expect(SimulatedTraits(of: seed) == trait)
            #expect(SimulatedTraits(name) == trait)
            #expect(seed.with([]) == Seed(0x500AAA))
        }
        #expect(SimulatedTraits("parts+clocks") == [.parts, .clocks])
        #expect(SimulatedTraits("parts+nothing") == nil)
        #expect(SimulatedTraits(of: Seed(0x500AAA)).isEmpty)
    }

    /// Each trait does what it is there for, in some of its runs.
    @Test func traitsAddTheirSteps() {
        var seen: Set<String> = []
        for (name, trait) in SimulatedTraits.named {
            for number in 1...6 {
                let (settings, steps) = Nemesis.draw(Seed(UInt64(number)).with(trait))
                #expect(settings.traits == trait)
                for step in steps {
                    switch step.action {
                    case .setScope: seen.insert("\(name) scope")
                    case .retire: seen.insert("\(name) retire")
                    case .decideHeld: seen.insert("\(name) held")
                    case .copy: seen.insert("\(name) copy")
                    case .settle: seen.insert("\(name) settle")
                    case .noteMerged: seen.insert("\(name) merged")
                    case .fillLarge: seen.insert("\(name) large")
                    case .writeExpiring: seen.insert("\(name) expiry")
                    case .sweep: seen.insert("\(name) sweep")
                    case .remember: seen.insert("\(name) remember")
                    case .recall: seen.insert("\(name) recall")
                    case .carry: seen.insert("\(name) carry")
                    default: break
                    }
                }
                if settings.policy == .autoMerge || settings.policy == .mergeable {
                    seen.insert("\(name) values")
                }
            }
        }
        #expect(
            seen == [
                "parts scope", "lateComers retire", "clocks held", "copies copy",
                "pending settle", "merging merged", "segments large", "values values",
                "expiry expiry", "expiry sweep", "past remember", "past recall", "bundles carry",
            ])
    }

    /// Of bundles that all were refused, and a past that is always gone, nothing would be learnt.
    @Test func bundlesAreTakenInAndThePastIsRead() {
        let base = Seed.drawn()
        var (imports, reads) = (0, 0)
        for number in 0..<6 {
            let seed = Seed(base.rawValue &+ UInt64(number)).with([.bundles, .past])
            let (settings, steps) = Nemesis.draw(seed)
            let outcome = World.run(settings, steps)
            imports += outcome.importCount
            reads += outcome.pastReadCount
        }
        #expect(imports > 5, "seed \(base)")
        #expect(reads > 5, "seed \(base)")
    }

    /// Seeds of defects that the simulator itself had. 0x500aaa: whoever was killed drew the ids of
    /// everybody else who was killed. 0x50141e: a deletion that was forgotten where nobody else had
    /// a part was taken for something that readers had seen.
    @Test(arguments: [0x50_0AAA, 0x50_141E] as [UInt64])
    func nothingIsFoundWhereTheCheckerWasWrong(_ number: UInt64) {
        let (settings, steps) = Nemesis.draw(Seed(number))
        let violation = World.run(settings, steps).violation
        #expect(violation == nil, "\(violation.map { "\($0)" } ?? "")")
    }
}
