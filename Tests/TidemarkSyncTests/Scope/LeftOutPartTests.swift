import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A record that was left out of a push lies before the position, where a dataset that becomes a
/// part does not look any more:
///
///     A  push "x/1", "key"    ──▶  B  refuses "key"; A leaves it out, and the position passes it
///     A or B keeps a part from now on
struct LeftOutPartTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private struct Refusal: Error {}

    /// B, refusing the value "bad".
    private var choosy: InMemoryTransport {
        InMemoryTransport(
            SyncResponder(
                store: b.store,
                validate: { record in
                    if record.valueText == "bad" { throw Refusal() }
                }))
    }

    /// A's "bad" is refused by B, and a push has gone past it.
    ///
    /// - Returns: the write.
    private func leaveOut() async throws -> Dot {
        try a.dataset().put("bad", for: "key")
        try a.dataset().put("fine", for: "x/1")
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: choosy)
        }
        #expect(error?.code == .recordRefused)
        #expect(try b.dataset().text("x/1") == "fine")
        let reached = try a.dataset().checkpoint(for: b.store.replicaID).pushedThrough
        let record = try #require(try a.dataset().record(for: "key"))
        #expect(reached >= record.syncCount)
        return record.version.dot
    }

    @Test func whatNobodyElseHasIsNotDropped() async throws {
        _ = try await leaveOut()
        try a.dataset().setSyncScope(.prefix("x/"))
        #expect(try a.dataset().text("key") == "bad")
        try await a.dataset().synchronize(with: choosy)
        #expect(try a.dataset().text("key") == "bad")
        #expect(try a.dataset().text("x/1") == "fine")
    }

    @Test func aPartClaimsNothingThatWasLeftOutWhileItWasWhole() async throws {
        let bad = try await leaveOut()
        try a.dataset().setSyncScope(.prefix("x/"))
        try a.dataset().put("more", for: "x/2")
        try await a.dataset().synchronize(with: choosy)
        #expect(try b.dataset().text("x/2") == "more")
        #expect(try !b.dataset().vector.contains(bad))
        // So it is taken when it comes.
        try a.dataset().setSyncScope(nil)
        try await a.dataset().synchronize(with: choosy)
        #expect(try a.dataset().syncScope() == nil)
        #expect(try !b.dataset().vector.contains(bad))
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: b.transport)
        #expect(try b.dataset().text("key") == "bad")
        #expect(try b.dataset().vector.contains(bad))
        try expectEqual([a, b])
    }

    @Test func whatWasLeftOutForAPartIsToldWithItsScope() async throws {
        let bad = try await leaveOut()
        try b.dataset().setSyncScope(.prefix("k"))
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().text("x/1") == nil)
        #expect(try b.dataset().text("key") == "bad")
        // It becomes whole again, and claims what it has.
        try b.dataset().setSyncScope(nil)
        for _ in 0..<2 { try await b.dataset().synchronize(with: a.transport) }
        #expect(try b.dataset().syncScope() == nil)
        try expectEqual([a, b])
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: b.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try b.dataset().vector.contains(bad))
        try expectEqual([a, b])
    }

    /// A scope to which it does not belong, and then the whole dataset: nothing is claimed before
    /// it came.
    @Test func whoBecomesWholeAgainHasWhatWasLeftOut() async throws {
        let bad = try await leaveOut()
        try b.dataset().setSyncScope(.prefix("x/"))
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().text("key") == nil)
        #expect(try !b.dataset().vector.contains(bad))
        try b.dataset().setSyncScope(nil)
        for _ in 0..<2 {
            try await b.dataset().synchronize(with: a.transport)
            let isClaimed = try b.dataset().vector.contains(bad)
            let isThere = try b.dataset().text("key") == "bad"
            #expect(isThere || !isClaimed)
        }
        #expect(try b.dataset().syncScope() == nil)
        #expect(try b.dataset().text("key") == "bad")
        try expectEqual([a, b])
    }
}
