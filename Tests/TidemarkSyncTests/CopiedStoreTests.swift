import Testing
import Tidemark

@testable import TidemarkSync

/// A store whose files were copied, or put back from a copy, finds that out when it is opened, and
/// writes under a new id: no dot names two writes, and nothing is in doubt.
struct CopiedStoreTests {
    let a: TestReplica
    let b: TestReplica

    init() throws {
        let directory = TemporaryDirectory()
        a = try TestReplica("a", in: directory, tellsCopies: true)
        b = try TestReplica("b", in: directory, tellsCopies: true)
    }

    private static let union = MergePolicy.custom { .value(unitedText(of: $0)) }

    private func exchange(_ one: TestReplica, _ other: TestReplica) async throws {
        _ = try await one.dataset().synchronize(
            with: other.transport, options: SyncOptions(policy: Self.union))
    }

    /// Of a key that each of the two copies wrote both values stand, and of the others each.
    @Test func twoCopiesThatWriteOnLoseNothing() async throws {
        try a.dataset().put("first", for: "x")
        let copy = try a.copied(as: "copy")
        try a.dataset().put("of the first", for: "x")
        try copy.dataset().put("of the copy", for: "x")
        try copy.dataset().put("more", for: "y")
        // Nobody has met both before one of them has met somebody else.
        try await exchange(b, a)
        try await exchange(b, copy)
        try await exchange(a, b)
        try await exchange(copy, a)
        try await exchange(b, copy)
        try expectEqual([a, b, copy])
        #expect(try b.dataset().text("x") == "of the copy+of the first")
        #expect(try a.dataset().text("y") == "more")
        for replica in [a, b, copy] {
            #expect(try BatonBook(replica.dataset()).disputed.isEmpty)
        }
    }

    /// It wrote as often as it had lost, and met nobody before: no baton would have shown it.
    @Test func aStoreThatWasPutBackLosesNothing() async throws {
        try a.dataset().put("first", for: "x")
        try a.backUp()
        let id = a.store.replicaID
        try a.dataset().put("lost", for: "x")
        try a.dataset().put("lost, too", for: "y")
        try await exchange(b, a)
        try a.restore()
        #expect(a.store.replicaID != id && a.store.formerReplicaIDs == [id])
        try a.dataset().put("again", for: "x")
        try a.dataset().put("again, too", for: "z")
        let c = try TestReplica("c", in: a.directory, tellsCopies: true)
        try await exchange(c, a)
        try await exchange(c, b)
        try await exchange(a, b)
        try await exchange(b, c)
        try await exchange(a, c)
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("x") == "again+lost")
        #expect(try a.dataset().text("y") == "lost, too" && b.dataset().text("z") == "again, too")
        #expect(try BatonBook(a.dataset()).disputed.isEmpty)
    }

    /// What it wrote before, and nobody has yet, is still its own to tell, as a conflict or not.
    @Test func whatACopyHadNotSentIsSent() async throws {
        try a.dataset().put("unsent", for: "x")
        let copy = try a.copied(as: "copy")
        #expect(try copy.dataset().record(for: "x")?.isDirty == true)
        try await exchange(copy, b)
        #expect(try b.dataset().text("x") == "unsent")
        #expect(try copy.dataset().record(for: "x")?.isDirty == false)
    }
}
