import Testing
import Tidemark

@testable import TidemarkSync

// What lies under a dot that may name two writes is written anew, which is nobody's word on what is
// held of its key.
//
//     a  ── backup ── lost ── b has it ──✗
//              └───────────── key: again ── holds c's ── meets b: again, under another dot
//     c  ── key: future (in an hour) ──────────┘                    ... an hour later: future
struct QuarantineForkTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    private let hour: UInt64 = 3_600

    init() throws { (a, b, c) = try TestReplica.three() }

    /// a has gone back behind what b has of it, and holds a write to what it wrote since.
    private func fork() async throws {
        try fill(a, 0..<3, "first")
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        try fill(a, 10..<14, "lost")
        try await a.dataset().synchronize(with: b.transport)
        try a.restore()
        try put("again", a)
        try fill(a, 20..<24, "again")
        c.clock.putForward(bySeconds: hour)
        try put("future", c)
        try await c.dataset().synchronize(with: a.transport)
        #expect(try a.dataset().text("key") == "again" && held() == ["future"])
    }

    private func held() throws -> [String] {
        try a.dataset().quarantined().map { $0.record.valueText ?? "(deleted)" }
    }

    private func expectFutureToWin() throws {
        #expect(try BatonBook(a.dataset()).disputed.isEmpty)
        #expect(try held() == ["future"])
        a.clock.putForward(bySeconds: 2 * hour)
        try a.dataset().admitDue()
        #expect(try a.dataset().text("key") == "future" && held() == [])
    }

    /// - Parameter isConflict: whether b has another record of the key, so that a policy is asked.
    @Test(arguments: ExchangeRole.allCases, [false, true])
    func whatIsWrittenAnewLeavesWhatIsHeld(
        _ role: ExchangeRole, _ isConflict: Bool
    ) async throws {
        try await fork()
        if isConflict { try put("theirs", b) }
        let id = a.store.replicaID
        let (from, to) = role == .asker ? (a, b) : (b, a)
        for _ in 0..<2 { try await from.dataset().synchronize(with: to.transport) }
        #expect(a.store.replicaID != id)
        #expect(try a.dataset().text("key") == (isConflict ? "theirs" : "again"))
        try expectFutureToWin()
    }

    @Test func soItIsWhereThereIsNobodyToCompareWith() async throws {
        try await fork()
        let id = a.store.replicaID
        // It finds out, and nothing is compared yet.
        let broken = FaultyTransport(b.responder, .losesRequest, after: 2)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: broken)
        }
        #expect(a.store.replicaID != id)
        let d = try TestReplica("d", in: a.directory)
        try await a.dataset().synchronize(with: d.transport)
        #expect(try a.dataset().text("key") == "again")
        try expectFutureToWin()
    }

    /// Let in because its id is disputed, it loses to a later record. That must not seem to have
    /// seen its dot, which may name another write elsewhere.
    @Test func whatLosesUnderADisputedIdIsNotSeen() throws {
        let (writer, disputed) = (ReplicaID(high: 1, low: 1), ReplicaID(high: 1, low: 2))
        let key = Array("key".utf8)
        let dataset = try a.dataset()
        let (sooner, later) = (a.store.nextTime(), a.store.nextTime())
        let local = Version(
            dot: Dot(replica: writer, counter: 1), vector: VersionVector(), time: later)
        let held = Record(
            key: key, value: Array("held".utf8),
            version: Version(
                dot: Dot(replica: disputed, counter: 1), vector: VersionVector(), time: sooner),
            syncCount: .zero, isDirty: false)
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: key, content: .adopt(value: Array("ours".utf8), version: local),
                expected: nil)
        ]
        batch.notes.append(try #require(try QuarantineBook(dataset).note(holding: held)))
        batch.seen = local.vector.union(held.version.vector)
        #expect(try dataset.replicate(batch).isEmpty)
        try BatonBook(dataset).dispute([disputed], contested: [])
        #expect(try dataset.admitDue().isEmpty)
        #expect(try QuarantineBook(dataset).isEmpty())
        let record = try #require(try dataset.record(for: "key"))
        #expect(record.valueText == "ours" && record.version == local)
    }
}
