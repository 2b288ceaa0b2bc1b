import Testing
import Tidemark

@testable import TidemarkSync

/// What a part lets go, and what others learn of it.
@Suite(.serialized)
struct UntoldPartTests {
    let hub: TestReplica
    let part: TestReplica
    let other: TestReplica

    init() throws {
        let directory = TemporaryDirectory()
        hub = try TestReplica("hub", in: directory)
        part = try TestReplica("part", in: directory)
        other = try TestReplica("other", in: directory)
    }

    private func put(_ state: String, _ key: String, _ replica: TestReplica) throws {
        try replica.dataset().put("{\"state\":\"\(state)\"}", for: key)
    }

    private func version(_ key: String, _ replica: TestReplica) throws -> Version? {
        try replica.dataset().storedRecord(for: Array(key.utf8))?.version
    }

    /// A write of the part loses to one of the hub, and before the hub is told, that goes on to
    /// something outside of the scope. The hub must learn that its record has won over the other.
    ///
    ///     part  P: open ──▶ H, has seen P ──  (push is lost)  ──▶ H2, has seen P ──▶ dropped
    ///     hub               H: open later ──▶ H2: closed
    @Test func whatLostIsToldBeforeItsWinnerGoes() async throws {
        try part.dataset().setSyncScope(.field(["state"], .equals("open")))
        for good in 1..<5 {
            let key = "\(good)"
            try put("open", key, part)
            let lost = try #require(try version(key, part)).dot
            hub.clock.putForward(bySeconds: 10)
            try put("open", key, hub)
            let transport = FaultyTransport(hub.responder, .losesRequest, after: good)
            let dataset = try part.dataset()
            do throws(SyncError) {
                try await dataset.synchronize(with: transport)
            } catch {
                #expect(error.code == .unreachable)
            }
            try put("closed", key, hub)
            let result = try await dataset.synchronize(with: hub.transport)
            #expect(result.isComplete)
            #expect(try dataset.records().collect().isEmpty, "after \(good)")
            #expect(try version(key, hub)?.vector.contains(lost) == true, "after \(good)")
        }
        try await other.dataset().synchronize(with: hub.transport)
        try expectEqual([hub, other])
    }

    /// A write of the part that a hub has loses to one of another replica, which is not told, and
    /// goes for it. That one must not be told that it has seen what it never heard of: it would
    /// take what comes from the hub for old, and the hub would not take what it has.
    ///
    ///     part   P: open ──▶ O, has seen P ── (push is lost) ──▶ dropped, and claims nothing
    ///     hub    P: open                                          P ──▶ meets O
    ///     other              O: closed later                      O, has not seen P
    @Test func whatAnotherHasJoinedIsNotClaimedToOneThatHasNot() async throws {
        try part.dataset().setSyncScope(.field(["state"], .equals("open")))
        for good in 1..<8 {
            let key = "\(good)"
            try put("open", key, part)
            let lost = try #require(try version(key, part)).dot
            try await part.dataset().synchronize(with: hub.transport)
            other.clock.putForward(bySeconds: 10)
            try put("closed", key, other)
            let transport = FaultyTransport(other.responder, .losesRequest, after: good)
            let dataset = try part.dataset()
            do throws(SyncError) {
                try await dataset.synchronize(with: transport)
            } catch {
                #expect(error.code == .unreachable)
            }
            try await part.dataset().synchronize(with: other.transport)
            #expect(try part.dataset().records().collect().isEmpty, "after \(good)")
            let isClaimed = try other.dataset().vector.contains(lost)
            let isJoined = try version(key, other)?.vector.contains(lost) ?? false
            #expect(!isClaimed || isJoined, "after \(good)")
            try await other.dataset().synchronize(with: hub.transport)
            try expectEqual([hub, other])
        }
    }

    /// A hub goes back to a backup, and a part that has what it wrote after that does not push it
    /// over what the hub has written since under the same counts.
    @Test(arguments: [nil, "other"])
    func whatAHubWroteSinceItsBackupIsNotOverwritten(_ policy: String?) async throws {
        try part.dataset().setSyncScope(.prefix("a/"))
        var options = SyncOptions()
        if policy != nil { options.policy = .custom { .value(joinedText(of: $0)) } }
        try hub.backUp()
        for text in ["w", "x", "y"] { try hub.dataset().put(text, for: "a/\(text)") }
        try hub.dataset().put("before", for: "a/1")
        try await part.dataset().synchronize(with: hub.transport, options: options)
        #expect(try part.dataset().text("a/1") == "before")
        hub.clock.putForward(bySeconds: 10)
        try hub.restore()
        try hub.dataset().put("since", for: "a/1")
        for _ in 0..<3 {
            try await part.dataset().synchronize(with: hub.transport, options: options)
        }
        for replica in [hub, part] {
            let text = try #require(try replica.dataset().text("a/1"))
            #expect(text.contains("since"))
            #expect(policy == nil || text.contains("before"))
            #expect(try replica.dataset().count() == 4)
        }
    }

    /// As a `put` over the record would, since a vector has no gaps.
    @Test func aWriteOverADroppedRecordTakesItsPlace() async throws {
        try part.dataset().put("part", for: "b/1")
        try hub.dataset().put("hub", for: "b/2")
        try await part.dataset().synchronize(with: hub.transport)
        try part.dataset().setSyncScope(.prefix("a/"))
        try await part.dataset().synchronize(with: hub.transport)
        #expect(try part.dataset().count() == 0)
        try part.dataset().put("part again", for: "b/1")
        try part.dataset().put("part too", for: "b/2")
        let result = try await part.dataset().synchronize(with: hub.transport)
        #expect(result.conflicts == 0)
        #expect(try hub.dataset().text("b/1") == "part again")
        #expect(try hub.dataset().text("b/2") == "part too")
        // What the part had not seen is not replaced unasked.
        try hub.dataset().put("hub again", for: "b/1")
        try part.dataset().put("once more", for: "b/1")
        let options = SyncOptions(policy: .keepRemote)
        let next = try await part.dataset().synchronize(with: hub.transport, options: options)
        #expect(next.conflicts == 1)
        #expect(try hub.dataset().text("b/1") == "hub again")
    }

    /// Nobody is told what was forgotten here, so that nobody else would ever hear of it.
    @Test func aDeletionStaysUntilAPeerHasItAlsoIfNoneIsWaitedFor() async throws {
        for key in ["a/1", "b/1"] { try put("open", key, hub) }
        try await part.dataset().synchronize(with: hub.transport)
        for key in ["a/1", "b/1"] { try part.dataset().delete(key) }
        try part.dataset().setSyncScope(.prefix("a/"))
        #expect(try part.store.retire(hub.store.replicaID) == 1)
        try part.store.compact()
        #expect(try part.dataset().knowledge().forgotten.isEmpty)
        try await part.dataset().synchronize(with: hub.transport)
        #expect(try hub.dataset().count() == 0)
        try part.store.compact()
        let tombstone = try part.dataset().record(for: "a/1", includingDeleted: true)
        #expect(tombstone == nil)
    }

    /// The part has come to the end of the changes of the other, of which it took what belongs to
    /// it: nothing that does not may go from there for that.
    @Test func aPartDoesNotPassForOneThatHasAll() async throws {
        for key in ["a/1", "b/1"] { try put("open", key, other) }
        try part.dataset().setSyncScope(.prefix("a/"))
        try await part.dataset().synchronize(with: other.transport)
        try other.dataset().setSyncScope(.prefix("a/"))
        try await other.dataset().synchronize(with: part.transport)
        #expect(try other.dataset().count() == 2)
        try await other.dataset().synchronize(with: hub.transport)
        #expect(try hub.dataset().count() == 2 && other.dataset().count() == 1)
    }
}
