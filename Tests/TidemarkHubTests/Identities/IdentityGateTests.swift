import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Credentials are kept nowhere, so who is not any more must be refused by the gate.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct IdentityGateTests {
    let fixture: IdentityFixture
    let gate: IdentityGate

    init() throws {
        fixture = try IdentityFixture()
        gate = IdentityGate(
            threads: fixture.threads, identities: fixture.identities, pools: [fixture.pool])
    }

    private func call(
        _ operation: SyncOperation, _ identity: IdentityID, pool: String = IdentityFixture.poolText,
        as principal: Principal
    ) throws -> SyncCall {
        let path = operation.pattern.map { segment in
            switch segment {
            case .fixed(let text): text
            case .pool: pool
            case .identity: identity.text
            case .dataset: "notes"
            case .device: "d"
            }
        }
        let route = try SyncRoute(
            method: operation.method, path: "/" + path.joined(separator: "/"))
        let request = SigV4Request(
            method: operation.method, path: "/", query: "", headers: [])
        return SyncCall(
            route: route, query: try SyncQuery(request), body: [], principal: principal,
            clientContext: nil, requestID: "1")
    }

    private func failure(_ call: SyncCall) async -> APIFailure.Kind? {
        do throws(APIFailure) {
            try await gate.enter(call).end()
            return nil
        } catch {
            return error.kind
        }
    }

    private func failure(_ principal: Principal) async -> APIFailure.Kind? {
        do throws(APIFailure) {
            try await gate.check(principal)
            return nil
        } catch {
            return error.kind
        }
    }

    private func own(_ facts: IdentityFacts) -> Principal {
        .identity(facts.id, pool: fixture.pool, isAuthenticated: true)
    }

    @Test("who is there passes, again and again, and as long as that is so")
    func passing() async throws {
        let facts = try fixture.identity("a")
        let call = try call(.describeDataset, facts.id, as: own(facts))
        for _ in 0..<3 { #expect(await failure(call) == nil) }
        #expect(await failure(own(facts)) == nil)
        #expect(await failure(.admin) == nil)
        _ = try fixture.identities.unlink(facts.logins, from: facts.id, in: fixture.store)
        #expect(await failure(call) == .notAuthorized)
        #expect(await failure(own(facts)) == .notAuthorized)
    }

    @Test("who is not there is told so, as the service model has it")
    func missing() async throws {
        let nobody = IdentityDirectory.drawnID(in: fixture.pool)
        let developer = Principal.developer(keyID: "k", pools: nil)
        let own = Principal.identity(nobody, pool: fixture.pool, isAuthenticated: false)
        let cases: [(SyncOperation, Principal, APIFailure.Kind)] = [
            (.describeDataset, developer, .resourceNotFound),
            (.listRecords, developer, .notAuthorized), (.listDatasets, developer, .notAuthorized),
            (.describeDataset, own, .notAuthorized),
        ]
        for (operation, principal, expected) in cases {
            let call = try call(operation, nobody, as: principal)
            #expect(await failure(call) == expected, "\(operation)")
        }
        #expect(await failure(own) == .notAuthorized)
        let unknown = try call(
            .describeIdentityPoolUsage, nobody, pool: "us-east-1:dead", as: developer)
        #expect(await failure(unknown) == .resourceNotFound)
        let list = try call(.listIdentityPoolUsage, nobody, as: developer)
        #expect(await failure(list) == nil)
    }

    @Test("an identity of another pool is not there, not even once it was seen")
    func pools() async throws {
        let facts = try fixture.identity("a", in: fixture.otherPool)
        let developer = Principal.developer(keyID: "k", pools: nil)
        let call = try call(.describeDataset, facts.id, as: developer)
        for _ in 0..<2 { #expect(await failure(call) == .resourceNotFound) }
    }

    @Test("who was merged or deleted is refused from then on")
    func gone() async throws {
        let (kept, gone) = (try fixture.identity("a"), try fixture.identity("b"))
        let call = try call(.updateRecords, gone.id, as: own(gone))
        #expect(await failure(call) == nil)
        try fixture.identities.merge(gone.id, into: kept.id, in: fixture.store)
        #expect(await failure(call) == .notAuthorized)
        #expect(await failure(own(kept)) == nil)
        #expect(try fixture.identities.delete(kept.id, in: fixture.store))
        #expect(await failure(own(kept)) == .notAuthorized)
    }

    @Test("what a guest was given ends when somebody signs in as that guest, and nobody else's")
    func signedIn() async throws {
        let (guest, other) = (try fixture.identity(), try fixture.identity())
        func asGuest(_ facts: IdentityFacts) -> Principal {
            .identity(facts.id, pool: fixture.pool, isAuthenticated: false)
        }
        let call = try call(.updateRecords, guest.id, as: asGuest(guest))
        for _ in 0..<2 { #expect(await failure(call) == nil) }
        #expect(await failure(asGuest(other)) == nil)
        let facts = try fixture.identities.identity(
            for: [IdentityFixture.login("a")],
            asked: AskedIdentity(id: guest.id, isProven: false), in: fixture.pool, fixture.store
        ).facts
        #expect(facts.id == guest.id)
        for _ in 0..<2 {
            #expect(await failure(call) == .expiredToken)
            #expect(await failure(asGuest(guest)) == .expiredToken)
        }
        #expect(await failure(own(facts)) == nil)
        #expect(await failure(asGuest(other)) == nil)
        // Developers ask about it as before, and nothing that was refused is still under way.
        let developer = Principal.developer(keyID: "k", pools: nil)
        let asked = try self.call(.listRecords, guest.id, as: developer)
        #expect(await failure(asked) == nil)
        #expect(fixture.identities.calls.areQuiet([guest.id]))
        // A further login changes nothing for who had signed in.
        let both = facts.logins + [IdentityFixture.login("b")]
        _ = try fixture.identities.identity(for: both, in: fixture.pool, fixture.store)
        #expect(await failure(own(facts)) == nil)
    }

    @Test("a merge that was stopped is gone on with when either of the two comes")
    func stopped() async throws {
        for comesFirst in [0, 1] {
            let (kept, gone) = (
                try fixture.identity("a\(comesFirst)"), try fixture.identity("b\(comesFirst)")
            )
            try fixture.dataset("notes", of: gone, ["k": "v"])
            // As the first batch of a merge leaves it.
            try fixture.identities.change(gone.id, in: fixture.store) { facts, _ in
                facts.merging = IdentityFacts.Merging(into: kept.id.text)
            }
            try fixture.identities.change(kept.id, in: fixture.store) { facts, _ in
                facts.absorbing = [gone.id]
            }
            let refused = await failure(own(comesFirst == 0 ? kept : gone))
            #expect(refused == (comesFirst == 0 ? nil : .notAuthorized))
            #expect(try fixture.facts(gone)?.mergedInto == kept.id)
            #expect(try fixture.records("\(kept.id):notes") == ["k": "v"])
            #expect(await failure(own(kept)) == nil)
        }
    }

    @Test("nothing goes over while a call that was let in is under way, and none is let in then")
    func underWay() async throws {
        for comesFirst in [0, 1] {
            let (kept, gone) = (
                try fixture.identity("c\(comesFirst)"), try fixture.identity("d\(comesFirst)")
            )
            let writer = comesFirst == 0 ? gone : kept
            let pass = try await gate.enter(own(writer))
            let refused = try IdentityFixture.failure {
                try fixture.identities.merge(gone.id, into: kept.id, in: fixture.store)
            }
            #expect(refused == .tooManyRequests)
            #expect(await failure(own(gone)) == .tooManyRequests)
            #expect(await failure(own(kept)) == .tooManyRequests)
            // The first update of a dataset, at the very moment of the merge.
            try fixture.dataset("late", of: writer, ["k": "v"])
            pass.end()
            #expect(await failure(own(kept)) == nil)
            #expect(await failure(own(gone)) == .notAuthorized)
            #expect(try fixture.facts(gone)?.mergedInto == kept.id)
            #expect(try fixture.records("\(kept.id):late") == ["k": "v"])
            #expect(try fixture.store.datasetNames(prefix: "\(gone.id):").isEmpty)
        }
    }

    @Test("an identity is deleted when its last call has ended, with what that has written")
    func deletedBehindCalls() async throws {
        let facts = try fixture.identity("a")
        let passes = [try await gate.enter(own(facts)), try await gate.enter(own(facts))]
        for pass in passes {
            let refused = try IdentityFixture.failure {
                _ = try fixture.identities.delete(facts.id, in: fixture.store)
            }
            #expect(refused == .tooManyRequests)
            #expect(await failure(own(facts)) == .notAuthorized)
            try fixture.dataset("late", of: facts, ["k": "v"])
            pass.end()
        }
        #expect(try fixture.identities.delete(facts.id, in: fixture.store))
        #expect(try fixture.store.datasetNames(prefix: "\(facts.id):").isEmpty)
        #expect(try fixture.facts(facts) == nil)
    }

    @Test("who is refused leaves nothing behind that a deletion would wait for")
    func refusedCalls() async throws {
        let foreign = try fixture.identity("a", in: fixture.otherPool)
        let facts = try fixture.identity("b")
        _ = try fixture.identities.unlink(facts.logins, from: facts.id, in: fixture.store)
        for refused in [foreign, facts] {
            // The gate takes both for identities of its own pool.
            #expect(await failure(own(refused)) == .notAuthorized)
            #expect(try fixture.identities.delete(refused.id, in: fixture.store))
        }
    }

    @Test("far more identities than are remembered pass")
    func many() async throws {
        var ids: [IdentityFacts] = []
        for number in 0..<100 { ids.append(try fixture.identity("\(number)")) }
        for facts in ids + ids { #expect(await failure(own(facts)) == nil) }
    }
}
