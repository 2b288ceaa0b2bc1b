import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// When two identities become one, nothing of either is lost, wherever it stops.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct IdentityMergeTests {
    let fixture: IdentityFixture
    private var identities: IdentityDirectory { fixture.identities }
    private var store: Store { fixture.store }

    init() throws {
        fixture = try IdentityFixture()
    }

    @Test("datasets that the other one lacks go over, others are told of as merged")
    func merge() throws {
        let (kept, gone) = (try fixture.identity("a"), try fixture.identity("b"))
        try fixture.dataset("notes", of: kept, ["k": "kept", "own": "1"])
        try fixture.dataset("notes", of: gone, ["k": "gone", "new": "2"])
        try fixture.dataset("plans", of: gone, ["p": "3"])
        try fixture.dataset("plans", of: gone).delete("never there")
        try store.dataset(HubDatasets.sheets).put("x", for: "\(gone.id):notes\u{0}\u{0}")
        let both = kept.logins + gone.logins
        let outcome = try identities.identity(for: both, in: fixture.pool, store)
        guard case .linked(let facts, let merged) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(facts.id == kept.id)
        #expect(merged == [gone.id])
        #expect(Set(facts.logins) == Set(both))
        #expect(facts.absorbing.isEmpty)
        #expect(try fixture.records("\(kept.id):notes") == ["k": "kept", "own": "1"])
        #expect(try fixture.records("\(kept.id):plans") == ["p": "3"])
        let name = "\(kept.id):notes.\(gone.id)"
        #expect(try fixture.records(name) == ["k": "gone", "new": "2"])
        let noted = try store.mergedDatasets(into: "\(kept.id):notes")
        #expect(noted == [MergedDataset(name: name, origin: gone.id.text)])
        #expect(try store.mergedDatasets(into: "\(kept.id):plans").isEmpty)
        #expect(try store.datasetNames(prefix: "\(gone.id):").isEmpty)
        #expect(try fixture.records(HubDatasets.sheets) == [:])
        let old = try #require(try fixture.facts(gone))
        #expect(old.mergedInto == kept.id)
        #expect(!old.isEnabled)
        #expect(old.merging == nil)
        #expect(old.logins.isEmpty)
        for login in both {
            #expect(try identities.owner(of: login, in: fixture.pool, store) == kept.id)
        }
    }

    @Test("who has signed in stays over a guest, and of two the older one")
    func preference() throws {
        let guest = try fixture.identity()
        let alice = try fixture.identity("a")
        try fixture.dataset("notes", of: guest, ["k": "v"])
        let asked = AskedIdentity(id: guest.id, isProven: false)
        let first = try identities.identity(
            for: alice.logins, asked: asked, in: fixture.pool, store)
        #expect(first.facts.id == alice.id)
        #expect(try fixture.records("\(alice.id):notes") == ["k": "v"])
        // The id of the guest still leads there, as long as the login comes with it.
        let again = try identities.identity(
            for: alice.logins, asked: asked, in: fixture.pool, store)
        #expect(again.facts.id == alice.id)
        let younger = try fixture.identity("b")
        let both = younger.logins + alice.logins
        let second = try identities.identity(for: both, in: fixture.pool, store)
        #expect(second.facts.id == alice.id)
    }

    @Test("what had been merged before goes over with the dataset that it belongs to")
    func chains() throws {
        let names = ["a", "b", "c"]
        let facts = try names.map { try fixture.identity($0) }
        for (facts, name) in zip(facts, names) {
            try fixture.dataset("notes", of: facts, ["from": name])
        }
        try identities.merge(facts[2].id, into: facts[1].id, in: store)
        try identities.merge(facts[1].id, into: facts[0].id, in: store)
        let noted = try store.mergedDatasets(into: "\(facts[0].id):notes")
        #expect(Set(noted.map(\.origin)) == [facts[1].id.text, facts[2].id.text])
        var contents: Set<String> = []
        for merged in noted {
            contents.insert(try #require(try fixture.records(merged.name)?["from"]))
        }
        #expect(contents == ["b", "c"])
        #expect(try fixture.records("\(facts[0].id):notes") == ["from": "a"])
        #expect(try store.datasetNames(prefix: "\(facts[1].id):").isEmpty)
        for (login, expected) in [("b", facts[0].id), ("c", facts[0].id)] {
            let owner = try identities.owner(
                of: IdentityFixture.login(login), in: fixture.pool, store)
            #expect(owner == expected)
        }
    }

    /// As the first batch of a merge leaves both.
    private func begun(_ gone: IdentityFacts, into kept: IdentityFacts) throws {
        try identities.change(gone.id, in: store) { held, _ in
            held.merging = IdentityFacts.Merging(into: kept.id.text)
        }
        try identities.change(kept.id, in: store) { held, _ in held.absorbing = [gone.id] }
    }

    @Test("what was to go into one that goes itself is there by then")
    func stoppedChain() throws {
        let facts = try ["a", "b", "c"].map { try fixture.identity($0) }
        try fixture.dataset("notes", of: facts[2], ["from": "c"])
        try begun(facts[2], into: facts[1])
        try identities.merge(facts[1].id, into: facts[0].id, in: store)
        #expect(try fixture.records("\(facts[0].id):notes") == ["from": "c"])
        let owner = try identities.owner(
            of: IdentityFixture.login("c"), in: fixture.pool, store)
        #expect(owner == facts[0].id)
    }

    @Test("facts that name each other are refused, and nothing goes round in circles")
    func circles() throws {
        let facts = try ["a", "b", "c"].map { try fixture.identity($0) }
        for (one, other) in [(facts[0], facts[1]), (facts[1], facts[0])] {
            try identities.change(one.id, in: store) { held, _ in held.absorbing = [other.id] }
        }
        let refused = try IdentityFixture.failure {
            try identities.merge(facts[0].id, into: facts[2].id, in: store)
        }
        #expect(refused == .tooManyRequests)
    }

    @Test("who unlinks the last login of an identity strands none that was going into it")
    func unlinkedWhileStopped() throws {
        let (kept, gone) = (try fixture.identity("a"), try fixture.identity("b"))
        try fixture.dataset("notes", of: gone, ["k": "v"])
        try begun(gone, into: kept)
        let left = try identities.unlink(kept.logins, from: kept.id, in: store)
        #expect(left?.isEnabled == true)
        #expect(left?.logins == gone.logins)
        #expect(try fixture.facts(gone)?.mergedInto == kept.id)
        #expect(try fixture.records("\(kept.id):notes") == ["k": "v"])
    }

    @Test("names that are too long or taken are made another way, each dataset its own")
    func longNames() throws {
        let (kept, gone) = (try fixture.identity("a"), try fixture.identity("b"))
        let begin = String(repeating: "n", count: 127)
        for (index, name) in ["\(begin)1", "\(begin)2", "short"].enumerated() {
            try fixture.dataset(name, of: kept, ["k": "kept \(index)"])
            try fixture.dataset(name, of: gone, ["k": "gone \(index)"])
        }
        try fixture.dataset("short.\(gone.id)", of: kept, ["k": "taken"])
        try identities.merge(gone.id, into: kept.id, in: store)
        var seen: Set<String> = []
        for (index, name) in ["\(begin)1", "\(begin)2", "short"].enumerated() {
            let noted = try store.mergedDatasets(into: "\(kept.id):\(name)")
            #expect(noted.count == 1)
            let merged = try #require(noted.first)
            #expect(seen.insert(merged.name).inserted)
            #expect(StoreNames.apiName(of: merged.name, kept.id) != nil)
            #expect(try fixture.records(merged.name) == ["k": "gone \(index)"])
            #expect(try fixture.records("\(kept.id):\(name)") == ["k": "kept \(index)"])
        }
        #expect(try fixture.records("\(kept.id):short.\(gone.id)") == ["k": "taken"])
    }

    @Test("an identity that is merged elsewhere, of another pool or not there is refused")
    func refusals() throws {
        let (one, other) = (try fixture.identity("a"), try fixture.identity("b"))
        let third = try fixture.identity("c")
        let foreign = try fixture.identity("a", in: fixture.otherPool)
        try identities.merge(other.id, into: one.id, in: store)
        let twice = try IdentityFixture.failure {
            try identities.merge(other.id, into: third.id, in: store)
        }
        #expect(twice == .resourceConflict)
        let intoGone = try IdentityFixture.failure {
            try identities.merge(third.id, into: other.id, in: store)
        }
        #expect(intoGone == .resourceConflict)
        let across = try IdentityFixture.failure {
            try identities.merge(foreign.id, into: one.id, in: store)
        }
        #expect(across == .resourceNotFound)
        // Again is nothing, and into itself neither.
        try identities.merge(other.id, into: one.id, in: store)
        try identities.merge(one.id, into: one.id, in: store)
        #expect(try fixture.facts(third) == third)
        let busy = try IdentityFixture.failure {
            try identities.reserve([one.id]) {
                try identities.merge(third.id, into: one.id, in: store)
            }
        }
        #expect(busy == .tooManyRequests)
        try identities.merge(third.id, into: one.id, in: store)
    }

    @Test("a record that expires does so where it went")
    func expiry() throws {
        let (kept, gone) = (try fixture.identity("a"), try fixture.identity("b"))
        let expiry = try fixture.dataset("notes", of: gone).expiry(after: .seconds(10_000))
        let source = try fixture.dataset("notes", of: gone)
        try source.put("v", for: "k", expiresAt: expiry)
        try identities.merge(gone.id, into: kept.id, in: store)
        let record = try store.dataset("\(kept.id):notes").record(for: "k")
        #expect(record?.expiresAt == expiry)
    }

    // MARK: - Stops

    /// Keeps the disk as it would be found if the process ended at one of its calls.
    private final class Captures: Sendable {
        struct State {
            var random: SeededGenerator
            var disks: [SimulatedStorage] = []
        }

        let state: Mutex<State>
        let oneIn: Int

        init(_ random: SeededGenerator, oneIn: Int) {
            state = Mutex(State(random: random))
            self.oneIn = oneIn
        }

        func look(at storage: SimulatedStorage) {
            var random = state.withLock { $0.random.split() }
            guard random.oneIn(oneIn) else { return }
            let disk = storage.afterPowerLoss(Survival.drawn(using: &random), using: &random)
            state.withLock { $0.disks.append(disk) }
        }

        var disks: [SimulatedStorage] { state.withLock { $0.disks } }
    }

    /// Two identities with datasets of which some have the same name.
    private struct Before {
        let kept: IdentityFacts
        let gone: IdentityFacts
        var ofKept: [String: [String: String]] = [:]
        var ofGone: [String: [String: String]] = [:]

        init(
            _ identities: IdentityDirectory, _ time: VirtualEnvironment, _ pool: PoolID,
            _ store: Store, _ random: inout SeededGenerator
        ) throws {
            let (a, b) = ([IdentityFixture.login("a")], [IdentityFixture.login("b")])
            kept = try identities.identity(for: a, in: pool, store).facts
            // The older one stays.
            time.advance(by: .seconds(1))
            gone = try identities.identity(for: b, in: pool, store).facts
            for name in ["one", "two", "three"] {
                for (facts, isKept) in [(kept, true), (gone, false)] where !random.oneIn(3) {
                    let dataset = try store.dataset("\(facts.id):\(name)")
                    var records: [String: String] = [:]
                    for number in 0..<(1 + random.below(12)) {
                        records["key \(number)"] = "\(facts.id) \(random.below(1_000))"
                    }
                    for (key, value) in records { try dataset.put(value, for: key) }
                    if isKept { ofKept[name] = records } else { ofGone[name] = records }
                }
            }
        }

        /// That all of it is there, under the identity that stayed.
        func check(_ identities: IdentityDirectory, _ store: Store) throws {
            let names = try store.datasetNames(prefix: "\(gone.id):")
            try require(names.isEmpty, "\(names) are left")
            for (name, records) in ofKept {
                let found = try IdentityFixture.records("\(kept.id):\(name)", in: store)
                try require(found == records, "\(name) is not as it was")
            }
            for (name, records) in ofGone {
                let plain = "\(kept.id):\(name)"
                let noted = try store.mergedDatasets(into: plain)
                try require(
                    noted.count == (ofKept[name] == nil ? 0 : 1), "\(name): \(noted) are noted")
                let found = try IdentityFixture.records(noted.first?.name ?? plain, in: store)
                try require(found == records, "\(name) of the other is not as it was")
            }
            let facts = try identities.identity(kept.id, in: store)
            try require(facts?.absorbing == [], "it is still under way")
            let old = try identities.identity(gone.id, in: store)
            try require(old?.mergedInto == kept.id && old?.merging == nil, "it is not merged")
        }
    }

    @Test("a merge goes on where it was stopped, wherever that is")
    func stops() throws {
        var generator = SeededGenerator(Seed.drawn())
        var checkCount = 0
        // How many moments a merge has to be stopped at depends on the seed.
        for round in 0..<100 where round < 6 || checkCount <= 10 {
            let storage = SimulatedStorage(seed: Seed(generator.next()))
            let options = StoreOptions(segmentBytes: 1 << 20, compactsAutomatically: false)
            let store = try Store.open(
                at: "/store", options: options, storage: storage, observer: nil)
            let identities = IdentityDirectory(clock: fixture.time)
            let before = try Before(
                identities, fixture.time, fixture.pool, store, &generator)
            let captures = Captures(generator.split(), oneIn: 6)
            storage.observe { [weak storage] _ in
                if let storage { captures.look(at: storage) }
            }
            try identities.merge(before.gone.id, into: before.kept.id, in: store)
            storage.observe(nil)
            try before.check(identities, store)
            try store.close()
            for disk in captures.disks {
                let again = try Store.open(
                    at: "/store", options: options, storage: disk, observer: nil)
                let directory = IdentityDirectory(clock: fixture.time)
                let logins = before.kept.logins + before.gone.logins
                let found = try directory.identity(for: logins, in: fixture.pool, again)
                try require(found.facts.id == before.kept.id, "another one stayed")
                try before.check(directory, again)
                try again.close()
                checkCount += 1
            }
        }
        #expect(checkCount > 10)
    }
}
