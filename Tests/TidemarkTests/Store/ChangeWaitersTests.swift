import TestSupport
import Testing

@testable import Tidemark

/// Who is told of which changes: held against a model, and with tasks that sleep.
@Suite("Waiting for changes", .timeLimit(.minutes(Patience.minutes)))
struct ChangeWaitersTests {
    @Test("A mailbox holds what changed of what it was opened for, and nothing else")
    func mailboxes() {
        var random = SeededGenerator(Seed.drawn())
        let waiters = ChangeWaiters()
        let names = (0..<8).map { "dataset-\($0)" }
        var open: [(mailbox: ChangeMailbox, wanted: Set<String>?, told: Set<String>)] = []
        for _ in 0..<3_000 {
            switch random.below(6) {
            case 0 where open.count < 12:
                let wanted = random.oneIn(4) ? nil : Set(names.filter { _ in random.oneIn(3) })
                let interest = wanted.map { ChangeInterest.named(Array($0)) } ?? .all
                open.append((waiters.openMailbox(for: interest), wanted, []))
            case 1 where !open.isEmpty:
                open.remove(at: random.below(open.count))
            case 2 where !open.isEmpty:
                let index = random.below(open.count)
                #expect(open[index].mailbox.takeAll() == open[index].told.sorted())
                open[index].told = []
            default:
                let name = random.element(of: names)
                waiters.wakeAll(for: name)
                for index in open.indices where open[index].wanted?.contains(name) ?? true {
                    open[index].told.insert(name)
                }
            }
        }
        for entry in open { #expect(entry.mailbox.takeAll() == entry.told.sorted()) }
    }

    @Test("A sleeper wakes for its own dataset, and sleeps on when others change")
    func sleepers() async throws {
        let waiters = ChangeWaiters()
        func sleeper(_ interest: ChangeInterest) -> Task<Void, Never> {
            Task { await waiters.wait(for: interest) { false } }
        }
        let (a, b) = (sleeper(.named(["a", "x"])), sleeper(.named(["b", "x"])))
        let any = sleeper(.all)
        try await eventually("asleep") { waiters.sleeperCount == 3 }
        waiters.wakeAll(for: "c")
        await any.value
        #expect(waiters.sleeperCount == 2)
        waiters.wakeAll(for: "b")
        await b.value
        #expect(waiters.sleeperCount == 1)
        a.cancel()
        await a.value
        #expect(waiters.sleeperCount == 0)
        let (first, second) = (sleeper(.named(["x"])), sleeper(.named(["x", "y"])))
        try await eventually("asleep") { waiters.sleeperCount == 2 }
        waiters.wakeAll(for: "x")
        await first.value
        await second.value
        let last = sleeper(.named(["z"]))
        try await eventually("asleep") { waiters.sleeperCount == 1 }
        waiters.close()
        await last.value
        await sleeper(.named(["z"])).value
        #expect(waiters.sleeperCount == 0)
    }

    @Test("What is due at once does not sleep, and is forgotten")
    func dueAtOnce() async {
        let waiters = ChangeWaiters()
        await waiters.wait(for: .named(["a"])) { true }
        #expect(waiters.sleeperCount == 0)
        waiters.wakeAll(for: "a")
    }
}
