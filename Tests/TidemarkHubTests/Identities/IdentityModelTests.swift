import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Whatever people sign in with, and in which order: those who have ever come with a common login
/// are one, have what all of them had, and nobody else has any of it.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct IdentityModelTests {
    /// People who are one.
    private struct Group {
        var logins: Set<VerifiedLogin> = []
        /// Of each identity that went into it one, whose key is its id.
        var records: Set<String> = []
    }

    private let fixture: IdentityFixture

    init() throws {
        fixture = try IdentityFixture()
    }

    /// All keys that an identity has, in its dataset and in those that were merged into it.
    private func keys(of id: IdentityID) throws -> Set<String> {
        let name = "\(id):d"
        var keys = Set(try fixture.records(name)?.keys.map { $0 } ?? [])
        for merged in try fixture.store.mergedDatasets(into: name) {
            let found = try #require(try fixture.records(merged.name))
            for key in found.keys {
                #expect(keys.insert(key).inserted, "\(key) is there twice")
            }
        }
        return keys
    }

    @Test("identities are as many as there are people, and have what is theirs")
    func people() throws {
        var generator = SeededGenerator(Seed.drawn())
        let logins = (0..<12).map {
            IdentityFixture.login("user \($0)", $0 % 2 == 0 ? "a.example.com" : "b.example.com")
        }
        var groups: [Group] = []
        for _ in 0..<60 {
            var picked: Set<VerifiedLogin> = []
            for _ in 0..<(1 + generator.below(2)) { picked.insert(generator.element(of: logins)) }
            fixture.time.advance(by: .seconds(1))
            var merged = Group(logins: picked)
            var asked: AskedIdentity?
            if generator.oneIn(3) {
                let guest = try fixture.identity()
                try fixture.dataset("d", of: guest, [guest.id.text: "guest"])
                merged.records.insert(guest.id.text)
                asked = AskedIdentity(id: guest.id, isProven: false)
            }
            let outcome = try fixture.identities.identity(
                for: Array(picked), asked: asked, in: fixture.pool, fixture.store)
            let facts = outcome.facts
            if case .created = outcome {
                try fixture.dataset("d", of: facts, [facts.id.text: "created"])
                merged.records.insert(facts.id.text)
            }
            for group in groups where !group.logins.isDisjoint(with: picked) {
                merged.logins.formUnion(group.logins)
                merged.records.formUnion(group.records)
            }
            groups.removeAll { !$0.logins.isDisjoint(with: picked) }
            groups.append(merged)
            #expect(Set(facts.logins) == merged.logins)
            try check(groups)
        }
        #expect(groups.count < logins.count)
    }

    private func check(_ groups: [Group]) throws {
        var seen: Set<IdentityID> = []
        for group in groups {
            var owners: Set<IdentityID> = []
            for login in group.logins {
                let owner = try fixture.identities.owner(
                    of: login, in: fixture.pool, fixture.store)
                owners.insert(try #require(owner))
            }
            #expect(owners.count == 1)
            let owner = try #require(owners.first)
            #expect(seen.insert(owner).inserted, "two people are one")
            #expect(try keys(of: owner) == group.records)
        }
    }
}
