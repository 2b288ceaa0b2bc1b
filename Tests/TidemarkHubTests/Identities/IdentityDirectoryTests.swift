import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Whose a login is, and what becomes of identities.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct IdentityDirectoryTests {
    let fixture: IdentityFixture
    private var identities: IdentityDirectory { fixture.identities }
    private var store: Store { fixture.store }

    init() throws {
        fixture = try IdentityFixture()
    }

    @Test("a login leads to the same identity ever after, and in each pool to another")
    func logins() throws {
        let login = IdentityFixture.login("alice")
        let first = try identities.identity(for: [login], in: fixture.pool, store)
        guard case .created(let alice) = first else {
            Issue.record("\(first)")
            return
        }
        #expect(alice.logins == [login])
        #expect(try identities.identity(for: [login], in: fixture.pool, store) == .found(alice))
        let elsewhere = try fixture.identity("alice", in: fixture.otherPool)
        #expect(elsewhere.id != alice.id)
        let other = try fixture.identity("bob")
        #expect(other.id != alice.id)
        let sameName = try identities.identity(
            for: [IdentityFixture.login("alice", "b.example.com")], in: fixture.pool, store)
        #expect(sameName.facts.id != alice.id)
        #expect(try identities.owner(of: login, in: fixture.pool, store) == alice.id)
        #expect(alice.id.text.hasPrefix("us-east-1:"))
        #expect(alice.created == fixture.time.now() - 2_000)
    }

    @Test("guests are as many as ask, and have no login")
    func guests() throws {
        let (one, other) = (try fixture.identity(), try fixture.identity())
        #expect(one.id != other.id)
        #expect(one.isGuest)
        #expect(one.isEnabled)
        let asked = AskedIdentity(id: one.id, isProven: false)
        let again = try identities.identity(for: [], asked: asked, in: fixture.pool, store)
        #expect(again == .found(one))
    }

    @Test("many that come at once with a login get one identity")
    func atOnce() async throws {
        let fixture = fixture
        let identities = identities
        let found = try await withThrowingTaskGroup(of: IdentityID.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let logins = [IdentityFixture.login("user \(number % 4)")]
                    return try await fixture.threads.write { store in
                        try identities.identity(for: logins, in: fixture.pool, store).facts.id
                    }
                }
            }
            return try await group.reduce(into: Set<IdentityID>()) { $0.insert($1) }
        }
        #expect(found.count == 4)
        let all = try identities.identities(
            of: fixture.pool, after: nil, limit: 100, in: store)
        #expect(Set(all.map(\.id)) == found)
    }

    @Test("a login that nobody has goes to the identity of the others, or the one asked for")
    func attaching() throws {
        let alice = try fixture.identity("alice")
        let second = IdentityFixture.login("a", "b.example.com")
        let both = [IdentityFixture.login("alice"), second]
        let found = try identities.identity(for: both, in: fixture.pool, store)
        #expect(found.facts.id == alice.id)
        #expect(Set(found.facts.logins) == Set(both))
        #expect(try identities.owner(of: second, in: fixture.pool, store) == alice.id)
        // A guest that signs in keeps what it has.
        let guest = try fixture.identity()
        let asked = AskedIdentity(id: guest.id, isProven: false)
        let bob = try identities.identity(
            for: [IdentityFixture.login("bob")], asked: asked, in: fixture.pool, store)
        #expect(bob.facts.id == guest.id)
        #expect(!bob.facts.isGuest)
    }

    @Test("nobody gets into an identity that has signed in by a login of their own")
    func intruders() throws {
        let alice = try fixture.identity("alice")
        let before = try fixture.facts(alice)
        let asked = AskedIdentity(id: alice.id, isProven: false)
        for logins in [[], [IdentityFixture.login("mallory")]] {
            let failure = try IdentityFixture.failure {
                _ = try identities.identity(for: logins, asked: asked, in: fixture.pool, store)
            }
            #expect(failure == .notAuthorized)
        }
        let mallory = try fixture.identity("mallory")
        let known = try IdentityFixture.failure {
            _ = try identities.identity(
                for: mallory.logins, asked: asked, in: fixture.pool, store)
        }
        #expect(known == .notAuthorized)
        #expect(try fixture.facts(alice) == before)
        // By another pool neither, nor one that is not there.
        let elsewhere = try IdentityFixture.failure {
            _ = try identities.identity(
                for: alice.logins, asked: asked, in: fixture.otherPool, store)
        }
        #expect(elsewhere == .resourceNotFound)
        let nobody = AskedIdentity(
            id: IdentityDirectory.drawnID(in: fixture.pool), isProven: true)
        let missing = try IdentityFixture.failure {
            _ = try identities.identity(for: [], asked: nobody, in: fixture.pool, store)
        }
        #expect(missing == .resourceNotFound)
    }

    @Test("an identity has so many logins at most")
    func loginsMax() throws {
        var logins = (0..<IdentityFacts.loginsMax).map { IdentityFixture.login("\($0)") }
        let full = try identities.identity(for: logins, in: fixture.pool, store).facts
        #expect(full.logins.count == IdentityFacts.loginsMax)
        logins.append(IdentityFixture.login("one more"))
        let failure = try IdentityFixture.failure {
            _ = try identities.identity(for: logins, in: fixture.pool, store)
        }
        #expect(failure == .limitExceeded)
        let last = try identities.owner(of: logins[logins.count - 1], in: fixture.pool, store)
        #expect(last == nil)
    }

    @Test("a login that is unlinked leads to a new identity, and none is left without any")
    func unlinking() throws {
        let (one, other) = (IdentityFixture.login("a"), IdentityFixture.login("b"))
        let facts = try fixture.identity("a", "b")
        let epoch = identities.epoch
        let stranger = try IdentityFixture.failure {
            _ = try identities.unlink([IdentityFixture.login("c")], from: facts.id, in: store)
        }
        #expect(stranger == .notAuthorized)
        let left = try #require(try identities.unlink([one], from: facts.id, in: store))
        #expect(left.logins == [other])
        #expect(left.isEnabled)
        #expect(identities.epoch == epoch)
        let new = try identities.identity(for: [one], in: fixture.pool, store).facts
        #expect(new.id != facts.id)
        let none = try #require(try identities.unlink([other], from: facts.id, in: store))
        #expect(!none.isEnabled)
        #expect(identities.epoch > epoch)
        // It is no guest's now, which anybody could be.
        let asked = AskedIdentity(id: facts.id, isProven: false)
        let failure = try IdentityFixture.failure {
            _ = try identities.identity(for: [other], asked: asked, in: fixture.pool, store)
        }
        #expect(failure == .notAuthorized)
    }

    @Test("of a deleted identity nothing is left, and of others everything")
    func deletion() throws {
        let (one, other) = (try fixture.identity("a"), try fixture.identity("b"))
        for facts in [one, other] {
            try fixture.dataset("notes", of: facts, ["k": "v"])
            for (name, key) in [
                (HubDatasets.sheets, "\(facts.id):notes\u{0}\u{1}k"),
                (HubDatasets.subscriptions, "\(facts.id):notes\u{0}d"),
                (HubDatasets.devices, "\(facts.id)\u{0}d"),
                (
                    HubDatasets.notices,
                    "\(facts.pool)\u{0}\(facts.id)\u{0}d\u{0}\(facts.id):notes"
                ),
            ] {
                try store.dataset(name).put("x", for: key)
            }
        }
        let epoch = identities.epoch
        #expect(try identities.delete(one.id, in: store))
        #expect(identities.epoch > epoch)
        #expect(try fixture.facts(one) == nil)
        #expect(try fixture.facts(other) == other)
        #expect(try store.datasetNames(prefix: "\(one.id):").isEmpty)
        #expect(try fixture.records("\(other.id):notes") == ["k": "v"])
        for name in [
            HubDatasets.sheets, HubDatasets.subscriptions, HubDatasets.devices,
            HubDatasets.notices,
        ] {
            let keys = try #require(try fixture.records(name)).keys
            #expect(keys.count == 1)
            for key in keys { #expect(key.contains(other.id.text)) }
        }
        #expect(try identities.owner(of: one.logins[0], in: fixture.pool, store) == nil)
        #expect(try !identities.delete(one.id, in: store))
        #expect(try fixture.identity("a").id != one.id)
    }

    @Test("identities of a pool are listed by pages, in the order of their ids")
    func listing() throws {
        var ids: Set<IdentityID> = []
        for number in 0..<25 {
            ids.insert(try fixture.identity("\(number)").id)
            _ = try fixture.identity("\(number)", in: fixture.otherPool)
        }
        var listed: [IdentityID] = []
        while true {
            let page = try identities.identityIDs(
                of: fixture.pool, after: listed.last, limit: 4, in: store)
            guard !page.isEmpty else { break }
            #expect(page.count <= 4)
            listed += page
        }
        #expect(Set(listed) == ids)
        #expect(listed.count == ids.count)
        #expect(listed.map(\.text) == listed.map(\.text).sorted())
    }

    @Test("ids have the region of their pool, and are none of the hub's own names")
    func ids() throws {
        for text in ["hub:0", "us-east-1:0-a", "\(String(repeating: "r", count: 50)):0"] {
            let pool = try #require(PoolID(text))
            let id = IdentityDirectory.drawnID(in: pool)
            #expect(id.text.utf8.count <= 55)
            #expect(!id.text.hasPrefix("hub:"))
        }
        let pools = (0..<100).map { _ in IdentityDirectory.drawnID(in: fixture.pool) }
        #expect(Set(pools).count == 100)
    }

    @Test("facts come back as they were, and damaged ones are told")
    func facts() throws {
        let id = IdentityDirectory.drawnID(in: fixture.pool)
        var facts = IdentityFacts(
            id: id, pool: fixture.pool, created: 5, logins: [IdentityFixture.login("\"ä\n")])
        facts.modified = 7
        #expect(try IdentityFacts(id, facts.encoded()) == facts)
        facts.merging = IdentityFacts.Merging(
            into: "us-east-1:0", dataset: "d", target: "t", root: nil, origin: "o")
        facts.absorbing = [id]
        facts.mergedInto = id
        facts.isEnabled = false
        #expect(try IdentityFacts(id, facts.encoded()) == facts)
        for damaged in ["", "{}", "[]", #"{"pool":"x","created":1,"modified":1}"#] {
            #expect(throws: StoreError.self) { try IdentityFacts(id, Array(damaged.utf8)) }
        }
    }
}
