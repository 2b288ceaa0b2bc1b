import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Held writes where not all that a vector claims is told: in a search for what differs, in a part,
/// and when a dataset goes into another one.
///
///     b  ── an hour ahead: future ──┐
///     a  ── holds it ───────────────┴── tells c its sums, or a part of its records
///     c  ── must be given it all the same
struct QuarantineElsewhereTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    private let hour: UInt64 = 3_600

    init() throws { (a, b, c) = try TestReplica.three() }

    /// All have the same, and a holds what b wrote in an hour.
    private func makeFuture(_ count: Int = 1, _ key: String = "key 0") async throws {
        try fill(a, count)
        for replica in [b, c] { try await replica.dataset().synchronize(with: a.transport) }
        b.clock.putForward(bySeconds: hour)
        try b.dataset().put("future", for: key)
        try await a.dataset().synchronize(with: b.transport)
        #expect(try held(a) == ["future"])
    }

    private func held(_ replica: TestReplica) throws -> [String] {
        try replica.dataset().quarantined().map { $0.record.valueText ?? "(deleted)" }.sorted()
    }

    private func forgetCheckpoints(_ one: TestReplica, _ other: TestReplica) throws {
        try one.dataset().remember(PeerCheckpoint(), of: other.store.replicaID)
        try other.dataset().remember(PeerCheckpoint(), of: one.store.replicaID)
    }

    /// What was let go as handed over is held there, and not told to who becomes whole again.
    @Test func aPartIsNotWholeBeforeWhatItHandedOverIsTold() async throws {
        try fill(a, 1)
        try b.dataset().setSyncScope(.prefix("other"))
        b.clock.putForward(bySeconds: hour)
        try b.dataset().put("future", for: "key 1")
        try await b.dataset().synchronize(with: a.transport)
        #expect(try held(a) == ["future"])
        #expect(try b.dataset().text("key 1") == nil)
        try b.dataset().setSyncScope(nil)
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().syncScope() != nil)
        for replica in [a, c] { replica.clock.putForward(bySeconds: hour) }
        try await c.dataset().synchronize(with: a.transport)
        for _ in 0..<2 { try await b.dataset().synchronize(with: a.transport) }
        #expect(try b.dataset().syncScope() == nil)
        #expect(try b.dataset().text("key 1") == "future")
        try expectEqual([a, b, c])
    }

    /// A search tells of records; what is held is none, so what was agreed must not claim it.
    @Test func aSearchDoesNotLoseWhatIsHeld() async throws {
        try await makeFuture(3_000)
        try forgetCheckpoints(c, a)
        let transport = InterposedTransport(a.responder) { _ in }
        let result = try await c.dataset().synchronize(with: transport)
        #expect(transport.messageCount(of: "reconcile") > 0)
        #expect(result.attempts == 1 && result.isComplete)
        #expect(try held(c) == ["future"])
        try expectEqual([a, c])
        for replica in [a, c] { replica.clock.putForward(bySeconds: hour + 1) }
        try await c.dataset().synchronize(with: a.transport)
        for replica in [a, c] { #expect(try replica.dataset().text("key 0") == "future") }
    }

    /// The other way round: the asker of the search holds it.
    @Test func whoSearchesHandsOverWhatItHolds() async throws {
        try await makeFuture(3_000)
        try forgetCheckpoints(a, c)
        let transport = InterposedTransport(c.responder) { _ in }
        let result = try await a.dataset().synchronize(with: transport)
        #expect(transport.messageCount(of: "reconcile") > 0 && result.isComplete)
        #expect(try held(c) == ["future"])
        try expectEqual([a, c])
    }

    /// What came while only a part was kept is not claimed when the dataset is whole again.
    @Test func aPartThatBecomesWholeIsGivenWhatIsHeld() async throws {
        try await makeFuture(3)
        try c.dataset().setSyncScope(.prefix("key 1"))
        try await c.dataset().synchronize(with: a.transport)
        try c.dataset().setSyncScope(nil)
        for _ in 0..<2 { try await c.dataset().synchronize(with: a.transport) }
        #expect(try c.dataset().syncScope() == nil)
        #expect(try c.dataset().text("key 0") == "first")
        #expect(try held(c) == ["future"])
        try expectEqual([a, c])
    }

    /// A part holds nothing: what was held before counts, and the peer is asked what became of it.
    @Test func aPartLetsInWhatWasHeldBefore() async throws {
        try await makeFuture(3)
        try await c.dataset().synchronize(with: a.transport)
        #expect(try held(c) == ["future"])
        try c.dataset().setSyncScope(.prefix("key 0"))
        try await c.dataset().synchronize(with: a.transport)
        #expect(try held(c) == [])
        // Somebody whose write has seen it overwrites it.
        try a.dataset().put("over", for: "key 0")
        try await c.dataset().synchronize(with: a.transport)
        #expect(try c.dataset().text("key 0") == "over")
        for replica in [a, c] { replica.clock.putForward(bySeconds: 2 * hour) }
        try await c.dataset().synchronize(with: a.transport)
        #expect(try a.dataset().text("key 0") == "over")
        #expect(try c.dataset().text("key 0") == "over")
    }

    /// To move a record is to delete it where it was, which would win over what is held of it.
    @Test func aMergedDatasetStaysForWhatIsHeld() async throws {
        try await makeFuture(1)
        let first = try await a.store.mergeDataset("notes", into: "all", by: .lastWriterWins)
        #expect(!first.isRetired && first.moved == 0 && first.left == 1)
        #expect(try held(a) == ["future"])
        a.clock.putForward(bySeconds: hour + 1)
        let second = try await a.store.mergeDataset("notes", into: "all", by: .lastWriterWins)
        #expect(second.isRetired && second.moved == 1)
        #expect(try a.dataset("all").text("key 0") == "future")
    }

    /// So would what is written where it goes win over what is held of it there.
    @Test func aMergedDatasetStaysForWhatIsHeldWhereItGoes() async throws {
        try fill(a, 1)
        b.clock.putForward(bySeconds: hour)
        try b.dataset("all").put("future", for: "key 0")
        try await a.dataset("all").synchronize(with: b.transport)
        let first = try await a.store.mergeDataset("notes", into: "all", by: .keepRemote)
        #expect(!first.isRetired && first.moved == 0 && first.left == 1)
        #expect(try a.dataset("all").quarantined().count == 1)
        a.clock.putForward(bySeconds: hour + 1)
        let second = try await a.store.mergeDataset("notes", into: "all", by: .lastWriterWins)
        #expect(second.isRetired && second.moved == 1)
        #expect(try a.dataset("all").text("key 0") == "future")
    }

    /// It came while the policy was asked, after what was held had been looked at.
    @Test(arguments: ["notes", "all"])
    func aMergedDatasetStaysForWhatComesToBeHeldMeanwhile(_ name: String) async throws {
        try a.dataset("notes").put("ours", for: "key")
        try a.dataset("all").put("theirs", for: "key")
        b.clock.putForward(bySeconds: hour)
        try b.dataset(name).put("future", for: "key")
        let (writer, transport) = (try b.dataset(name), a.transport)
        let meanwhile = MergePolicy.custom { _ in
            try await writer.synchronize(with: transport)
            return .keepRemote
        }
        let result = try await a.store.mergeDataset("notes", into: "all", by: meanwhile)
        #expect(!result.isRetired && result.moved == 0 && result.left == 1)
        #expect(try a.dataset("notes").text("key") == "ours")
        #expect(try a.dataset("all").text("key") == "theirs")
        let held = try a.dataset(name).quarantined().map(\.record.valueText)
        #expect(held == ["future"])
    }

    /// The peer counts another write of the key, of which nothing is a record here. It was taken
    /// for a conflict that a pull would bring, and nothing went to that peer any more.
    @Test func whatIsRefusedIsKeptBackWhereThereIsNoRecordOfIt() async throws {
        b.clock.putForward(bySeconds: hour)
        c.clock.putForward(bySeconds: 2 * hour)
        try b.dataset().put("b", for: "key")
        try c.dataset().put("c", for: "key")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("other", for: "another key")
        try await a.dataset().synchronize(with: c.transport)
        #expect(try held(a) == ["b", "c"])
        #expect(try c.dataset().text("another key") == "other")
        try await c.dataset().synchronize(with: a.transport)
        for replica in [a, b] { replica.clock.putForward(bySeconds: 3 * hour) }
        for _ in 0..<2 {
            try await a.dataset().synchronize(with: c.transport)
            try await b.dataset().synchronize(with: a.transport)
        }
        for replica in [a, b, c] { #expect(try replica.dataset().text("key") == "c") }
        try expectEqual([a, b, c])
    }
}
