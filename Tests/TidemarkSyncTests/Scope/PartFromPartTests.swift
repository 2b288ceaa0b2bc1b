import Testing
import Tidemark

@testable import TidemarkSync

/// Parts that exchange with each other: who keeps a part tells what it has to one that wants no
/// more, and takes nothing.
///
///     hub   ── keeps everything ──────────────────────────────────
///     shop  ── keeps a part, and exchanges with the hub ──────────
///     till  ── keeps no more than that, and asks the shop ────────
struct PartFromPartTests {
    let hub: TestReplica
    let shop: TestReplica
    let till: TestReplica

    init() throws { (hub, shop, till) = try TestReplica.three() }

    @discardableResult
    private func exchange(
        _ from: TestReplica, with to: TestReplica, _ options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        try await from.dataset().synchronize(with: to.transport, options: options)
    }

    private func put(_ replica: TestReplica, _ keys: [String], _ value: String = "v") throws {
        for key in keys { try replica.dataset().put(value, for: key) }
    }

    private func keys(_ replica: TestReplica) throws -> [String] {
        var keys: [String] = []
        let cursor = try replica.dataset().records()
        while let record = try cursor.next() {
            keys.append(String(decoding: record.key, as: UTF8.self))
        }
        return keys
    }

    /// The shop keeps what begins with "a/" and has it; the till is to keep the same, or less.
    private func open(till scope: SyncScope = .prefix("a/")) async throws {
        try put(hub, ["a/1", "a/2", "b/1"])
        try shop.dataset().setSyncScope(.prefix("a/"))
        try await exchange(shop, with: hub)
        try till.dataset().setSyncScope(scope)
    }

    @Test func aPartTakesWhatAnotherHas() async throws {
        try await open(till: .keys(in: KeyRange(from: "a/2", upTo: "a/9")))
        let result = try await exchange(till, with: shop)
        #expect(result.pulled == 1 && result.isComplete)
        #expect(try keys(till) == ["a/2"])
        // The same versions as at the hub.
        let there = try hub.dataset().record(for: "a/2")
        #expect(try till.dataset().record(for: "a/2")?.version == there?.version)
    }

    /// Whatever a page holds, and as it goes on.
    @Test func itGoesOnWhereItWas() async throws {
        try await open()
        let options = SyncOptions(pageRecordsMax: 1)
        try await exchange(till, with: shop, options)
        let transport = InterposedTransport(shop.responder) { _ in }
        let idle = try await till.dataset().synchronize(with: transport, options: options)
        #expect(transport.messageCount(of: "scopedPull") == 1 && idle.isComplete)
        try put(shop, ["a/3"])
        try shop.dataset().delete("a/1")
        let next = try await till.dataset().synchronize(with: transport, options: options)
        #expect(next.pulled == 2)
        #expect(try keys(till) == ["a/2", "a/3"])
    }

    /// Cut short by a bound, it goes on behind what it has taken.
    @Test func aBoundCutsItShort() async throws {
        try await open()
        let options = SyncOptions(recordsPerRunMax: 1)
        let first = try await exchange(till, with: shop, options)
        #expect(first.pulled == 1 && !first.isComplete)
        // The page was the last one, so nothing tells that all is there but another exchange.
        try await exchange(till, with: shop, options)
        let last = try await exchange(till, with: shop)
        #expect(last.isComplete)
        #expect(try keys(till) == ["a/1", "a/2"])
    }

    @Test(arguments: [
        SyncScope.everything, .prefix("b/"), .prefix("a"), .prefix("a/") || .prefix("b/"),
        !SyncScope.prefix("b/"),
    ])
    func whoWantsMoreIsRefused(_ scope: SyncScope) async throws {
        try await open(till: scope)
        let error = await #expect(throws: SyncError.self) { try await exchange(till, with: shop) }
        #expect(error?.code == .partialReplica)
        #expect(try keys(till).isEmpty)
    }

    /// Its own writes stay, whatever the scope, until one that keeps everything has them.
    @Test func writesStayUntilAWholeReplicaHasThem() async throws {
        try await open()
        try put(till, ["a/7", "z/1"])
        let result = try await exchange(till, with: shop)
        #expect(result.pushed == 0 && result.pulled == 2)
        #expect(try keys(till) == ["a/1", "a/2", "a/7", "z/1"])
        #expect(try keys(shop) == ["a/1", "a/2"])
        try await exchange(till, with: hub)
        #expect(try keys(till) == ["a/1", "a/2", "a/7"])
        #expect(try keys(hub) == ["a/1", "a/2", "a/7", "b/1", "z/1"])
    }

    /// What the shop wrote, and dropped once the hub had it, is at the hub, and the till counts for
    /// nothing in that.
    @Test func whoTakesIsNoPeer() async throws {
        try await open()
        try put(shop, ["a/3", "z/2"])
        try await exchange(till, with: shop)
        #expect(try keys(till) == ["a/1", "a/2", "a/3"])
        #expect(try shop.dataset().peerIDs() == [hub.store.replicaID])
        #expect(try till.dataset().peerIDs().isEmpty)
        #expect(try keys(shop) == ["a/1", "a/2", "a/3", "z/2"])
        try await exchange(shop, with: hub)
        #expect(try keys(shop) == ["a/1", "a/2", "a/3"])
        #expect(try keys(hub).contains("z/2"))
    }

    /// The shop is behind, and has what the till deleted, and has forgotten since.
    @Test func whatIsDeadStaysDead() async throws {
        try put(hub, ["a/1", "a/2"])
        for replica in [shop, till] {
            try await exchange(replica, with: hub)
            try replica.dataset().setSyncScope(.prefix("a/"))
            try await exchange(replica, with: hub)
        }
        try till.dataset().delete("a/1")
        try await exchange(till, with: hub)
        try till.store.compact()
        #expect(try till.dataset().record(for: "a/1", includingDeleted: true) == nil)
        try await exchange(till, with: shop)
        #expect(try keys(till) == ["a/2"])
        try await exchange(till, with: hub)
        try await exchange(shop, with: hub)
        #expect(try keys(till) == keys(shop))
    }

    /// A conflict is settled here, and what comes of it goes to the hub.
    @Test func conflictsAreSettledByWhoTakes() async throws {
        try await open()
        try put(till, ["a/1"], "till")
        let options = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        let result = try await exchange(till, with: shop, options)
        #expect(result.conflicts == 1)
        #expect(try till.dataset().text("a/1") == "till+v")
        #expect(try shop.dataset().text("a/1") == "v")
        try await exchange(till, with: hub, options)
        try await exchange(shop, with: hub, options)
        #expect(try hub.dataset().text("a/1") == "till+v")
        #expect(try shop.dataset().text("a/1") == "till+v")
    }

    /// A change of the scope takes everything anew that belongs to the new one. Nothing goes before
    /// one that keeps everything was met.
    @Test func anotherScopeBeginsAnew() async throws {
        try await open(till: .prefix("a/1"))
        try await exchange(till, with: shop)
        try till.dataset().setSyncScope(.prefix("a/2"))
        #expect(try keys(till) == ["a/1"])
        try await exchange(till, with: shop)
        #expect(try keys(till) == ["a/1", "a/2"])
        try await exchange(till, with: hub)
        #expect(try keys(till) == ["a/2"])
    }

    /// Who took the peer for one that keeps everything concludes from what it is not told; so it is
    /// told nothing.
    @Test func whoDoesNotKnowIsToldNothing() async throws {
        try await open()
        let request = ScopedPullRequest(
            address: Address(
                from: till.store.replicaID, to: shop.store.replicaID, dataset: "notes"),
            since: 0, recordsMax: 10, bytesMax: 1_000, scope: .prefix("a/"))
        #expect(throws: SyncError.self) { try shop.responder.answer(to: request) }
        var knowing = request
        knowing.takesOnly = true
        let answer = try shop.responder.answer(to: knowing)
        #expect(answer.page.recordCount == 2)
        #expect(answer.page.knowledge.vector.isEmpty && answer.forgottenThrough == .zero)
    }

    /// The till took a write under an id of the shop, whose disk then went back and which wrote
    /// another one under the same dot.
    @Test func aPartThatWentBackTellsNothingBeforeItHasMetTheHub() async throws {
        try await open()
        let backup = try shop.copied(as: "backup")
        try put(shop, ["a/3"], "lost")
        try await exchange(till, with: shop)
        try put(backup, ["a/4"], "other")
        let error = await #expect(throws: SyncError.self) { try await exchange(till, with: backup) }
        #expect(error?.code == .partialReplica)
        try await exchange(backup, with: hub)
        try await exchange(till, with: backup)
        #expect(try keys(till) == ["a/1", "a/2", "a/3", "a/4"])
        try await exchange(till, with: hub)
        #expect(try hub.dataset().text("a/3") == "lost" && hub.dataset().text("a/4") == "other")
    }
}
