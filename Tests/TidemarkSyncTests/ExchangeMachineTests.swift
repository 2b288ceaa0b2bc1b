import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// The order of an exchange, without a store or a peer.
struct ExchangeMachineTests {
    typealias Step = ExchangeMachine.Step
    typealias Event = ExchangeMachine.Event

    private static let greeting = DatasetGreeting(
        name: "notes",
        knowledge: PeerKnowledge(
            vector: VersionVector(), syncCount: 1,
            lifecycle: PeerLifecycle(
                isDeleted: false, wiped: VersionVector(), time: .zero,
                replica: ReplicaID(high: 0, low: 1))), pulledThrough: .zero, pushedThrough: .zero)

    /// The steps of an exchange, if each has the event that is given for it, and else is done.
    private func steps(
        attemptsMax: Int = 3, known: DatasetGreeting? = nil,
        _ event: (Step, _ number: Int) -> Event?
    ) -> [Step] {
        var machine = ExchangeMachine(attemptsMax: attemptsMax, known: known)
        var steps: [Step] = []
        while machine.step != .end, machine.step != .giveUp, steps.count < 1_000 {
            let step = machine.step
            steps.append(step)
            var usual = Event.done
            if case .greet = step { usual = .greeted(Self.greeting) }
            machine.advance(event(step, steps.count) ?? usual)
        }
        return steps + [machine.step]
    }

    @Test func aWholeDataset() {
        let all = steps { _, _ in nil }
        #expect(
            all == [
                .begin, .greet(known: nil), .agree(Self.greeting), .admit, .lifecycle, .bootstrap,
                .startAfresh, .reconcile, .sweep, .pull, .settle(hasAll: true), .merge, .push,
                .compare, .pushOverlooked, .retire, .end,
            ])
    }

    @Test func aPart() {
        let all = steps { step, _ in step == .begin ? .isPart : nil }
        #expect(
            all == [
                .begin, .greet(known: nil), .agree(Self.greeting), .lifecycle, .admit, .lookUp,
                .pull, .settle(hasAll: true), .push, .end,
            ])
    }

    @Test func thePeerNeverHeardOfIt() {
        let whole = steps { step, _ in step == .greet(known: nil) ? .greeted(nil) : nil }
        #expect(
            whole == [
                .begin, .greet(known: nil), .agree(nil), .admit, .settleAlone, .merge, .push,
                .compare, .pushOverlooked, .retire, .end,
            ])
        let part = steps { step, _ in
            step == .begin ? .isPart : step == .greet(known: nil) ? .greeted(nil) : nil
        }
        #expect(
            part == [
                .begin, .greet(known: nil), .agree(nil), .admit, .push, .end,
            ])
    }

    @Test func whatWasToldBeforeIsAskedAgainInTheNextAttempt() {
        let all = steps(known: Self.greeting) { step, number in
            step == .push && number < 15 ? .outdated : nil
        }
        #expect(all.filter { $0 == .greet(known: Self.greeting) }.count == 1)
        #expect(all.filter { $0 == .greet(known: nil) }.count == 1)
        #expect(all.last == .end)
    }

    @Test func whatIsMovedMustComeFirst() {
        let all = steps { step, _ in step == .greet(known: nil) ? .cutShort : nil }
        #expect(all == [.begin, .greet(known: nil), .end])
    }

    /// Of a part that keeps a part everything is taken that it has, and nothing is looked up there
    /// or handed over.
    @Test func aPartTakesFromAPart() {
        let all = steps { step, _ in
            switch step {
            case .begin: .isPart
            case .agree: .isTakingOnly
            default: nil
            }
        }
        #expect(
            all == [
                .begin, .greet(known: nil), .agree(Self.greeting), .lifecycle, .pull,
                .settle(hasAll: true), .end,
            ])
    }

    /// What waits is looked at in each exchange, also if no more records may travel in it; and a
    /// pull that did not count is made again once.
    @Test func eachPullIsSettled() {
        let cut = steps { step, _ in step == .pull ? .cutShort : nil }
        #expect(cut.suffix(4) == [.pull, .settle(hasAll: false), .acknowledge, .end])
        let again = steps(attemptsMax: 1) { step, _ in
            step == .settle(hasAll: true) ? .pullAgain : nil
        }
        #expect(
            again.suffix(5) == [
                .pull, .settle(hasAll: true), .pull, .settle(hasAll: true), .giveUp,
            ])
    }

    /// A peer that shows ids in doubt again and again does not keep an attempt going.
    @Test func doubtsInEachAnswerEnd() {
        let all = steps { step, _ in step == .agree(Self.greeting) ? .forked : nil }
        #expect(all.last == .giveUp)
        #expect(all.filter { $0 == .agree(Self.greeting) }.count == 6)
    }

    /// Over random events: each exchange ends, nothing is pushed before the pull of its attempt,
    /// and merged datasets are retired only after a push, and last.
    @Test(arguments: 0..<8)
    func inAnyOrderOfEvents(_ run: UInt64) {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let attemptsMax = Int.random(in: 1...4, using: &random)
            let isPresent = Bool.random(using: &random)
            let greeting = isPresent ? Self.greeting : nil
            let all = steps(attemptsMax: attemptsMax) { step, _ in
                if case .greet = step, Int.random(in: 0..<8, using: &random) > 0 {
                    return .greeted(greeting)
                }
                let events: [Event] = [
                    .done, .done, .done, .done, .done, .isPart, .forked, .nothingNew, .cutShort,
                    .equal, .outdated, .isTakingOnly, .pullAgain,
                ]
                return events.randomElement(using: &random)
            }
            #expect(all.last == .end || all.last == .giveUp, "seed \(seed)")
            #expect(all.filter { $0 == .begin }.count <= attemptsMax, "seed \(seed)")
            for attempt in all.split(separator: .begin) {
                expectInOrder(Array(attempt), isPresent: isPresent, seed)
            }
        }
    }

    private func expectInOrder(_ attempt: [Step], isPresent: Bool, _ seed: UInt64) {
        guard let push = attempt.firstIndex(of: .push) else {
            #expect(!attempt.contains(.retire) && !attempt.contains(.compare), "seed \(seed)")
            return
        }
        let before = attempt[..<push]
        // Nothing was new, or there is nothing.
        let isSettled =
            before.contains(.pull) || before.contains(.settleAlone) || before.contains(.lookUp)
            || before.last == .merge && !before.contains(.bootstrap)
            || !isPresent && before.last == .admit
        #expect(isSettled, "seed \(seed): \(attempt)")
        if let retire = attempt.firstIndex(of: .retire) {
            #expect(push < retire, "seed \(seed)")
            let after = attempt[(retire + 1)...].filter { $0 != .acknowledge }
            #expect(after.allSatisfy { $0 == .end || $0 == .giveUp }, "seed \(seed)")
        }
    }
}
