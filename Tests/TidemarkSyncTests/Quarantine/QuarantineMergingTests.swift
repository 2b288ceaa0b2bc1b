import Testing
import Tidemark
import TidemarkSync

// Held writes under a policy that unites values. It is asked about each of them: what it comes to
// for one has not seen the others, although the dataset's vector claims them.
//
//     b  ── key: b (in three hours) ──┐
//     c  ── key: c (in one hour) ─────┤
//     d  ── key: d ───────────────────┴── a  ── d, and holds b and c ── ... b+c+d
struct QuarantineMergingTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    let d: TestReplica
    private let hour: UInt64 = 3_600
    private let union = SyncOptions(policy: .custom { conflict in united(conflict) })

    init() throws {
        let directory = TemporaryDirectory()
        a = try TestReplica("a", in: directory)
        b = try TestReplica("b", in: directory)
        c = try TestReplica("c", in: directory)
        d = try TestReplica("d", in: directory)
        b.clock.putForward(bySeconds: 3 * hour)
        c.clock.putForward(bySeconds: hour)
    }

    private func held(_ replica: TestReplica) throws -> [String] {
        try replica.dataset().quarantined().map { $0.record.valueText ?? "(deleted)" }.sorted()
    }

    /// The merge with the first of them claimed the others, which went unread.
    @Test func severalHeldWritesOfAKeyAreAllMerged() async throws {
        try put("b", b)
        try put("c", c)
        try put("d", d)
        // Neither of b and c has seen the other, and c does not believe b.
        for peer in [b, c, d] { try await a.dataset().synchronize(with: peer.transport) }
        #expect(try a.dataset().text("key") == "d")
        #expect(try held(a) == ["b", "c"])
        a.clock.putForward(bySeconds: 4 * hour)
        try await a.dataset().synchronize(with: d.transport, options: union)
        #expect(try a.dataset().text("key") == "b+c+d")
        #expect(try held(a) == [])
        b.clock.putForward(bySeconds: hour)
        c.clock.putForward(bySeconds: 3 * hour)
        d.clock.putForward(bySeconds: 4 * hour)
        for _ in 0..<3 {
            for asker in [b, c, d] {
                try await asker.dataset().synchronize(with: a.transport, options: union)
            }
        }
        for replica in [a, b, c, d] { #expect(try replica.dataset().text("key") == "b+c+d") }
        try expectEqual([a, b, c, d])
    }

    /// It came in a push while the policy was asked about something else of the key.
    @Test func aWriteThatIsHeldDuringASettlementIsMergedLater() async throws {
        try put("a", a)
        try put("b", b)
        try put("d", d)
        let (writer, transport) = (try b.dataset(), a.transport)
        let meanwhile = MergePolicy.custom { conflict in
            try await writer.synchronize(with: transport)
            return united(conflict)
        }
        try await a.dataset().synchronize(
            with: d.transport, options: SyncOptions(policy: meanwhile))
        #expect(try a.dataset().text("key") == "a+d")
        #expect(try held(a) == ["b"])
        a.clock.putForward(bySeconds: 4 * hour)
        try await a.dataset().synchronize(with: d.transport, options: union)
        #expect(try a.dataset().text("key") == "a+b+d")
        #expect(try held(a) == [])
    }
}

/// The words of both values.
private func united(_ conflict: Conflict) -> Resolution {
    let words = [conflict.local, conflict.remote].compactMap(\.valueText).flatMap { text in
        text.split(separator: "+").map { String($0) }
    }
    return .value(Array(Set(words).sorted().joined(separator: "+").utf8))
}
