import Testing
import Tidemark

@testable import TidemarkSync

/// How far a sweep has come is worth something only as long as all that it vouches for is here:
///
///     asker   sweep from key 0 ─▶ from key 20 ─▶ from key 40 ─▶ cut     mark 60
///             repaired, a scope set, or the position moved by other means
///             sweep from key 0, or none
@Suite(.serialized)
struct SweepMarkTests {
    private let a: TestReplica
    private let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// Begins a sweep of b that is cut off when three pages of twenty are stored.
    private func cutOff(_ asker: TestReplica) async throws {
        let cut = SweepTests.Watching(b.responder, messagesMax: 4)
        await #expect(throws: SyncError.self) {
            try await asker.dataset().synchronize(with: cut, options: SweepTests.options())
        }
        #expect(try mark(of: asker)?.start == SweepTests.key(60))
    }

    private func mark(of asker: TestReplica) throws -> SweepMark? {
        try SweepBook(asker.dataset(), b.store.replicaID).mark()
    }

    /// A repaired store has the mark, and not all the records that it vouches for.
    @Test func aRepairedStoreBeginsAfresh() async throws {
        try SweepTests.write(0..<SweepTests.keyCount, 1, to: b)
        try await cutOff(a)
        var stored = try #require(try mark(of: a))
        #expect(stored.replica == a.store.replicaID)
        let repaired = try TestReplica("repaired", in: a.directory)
        let dataset = try repaired.dataset()
        var batch = ReplicationBatch()
        for record in try a.dataset().records().collect().dropFirst(10) {
            batch.writes.append(
                ReplicatedWrite(
                    key: record.key,
                    content: .adopt(value: record.value, version: record.version), expected: nil))
        }
        #expect(try dataset.replicate(batch).isEmpty)
        #expect(try dataset.count() == 50)
        // Of one that was made apart the lifecycle would be another.
        try dataset.join(PeerLifecycle(b.dataset().knowledge().lifecycle))
        stored.lifecycle = try PeerLifecycle(dataset.knowledge().lifecycle)
        batch = ReplicationBatch()
        batch.notes = [try SweepBook(dataset, b.store.replicaID).note(stored)]
        _ = try dataset.replicate(batch)
        let watching = SweepTests.Watching(b.responder)
        try await dataset.synchronize(with: watching, options: SweepTests.options())
        #expect(watching.starts.first == [])
        #expect(try dataset.count() == SweepTests.keyCount)
        try expectEqual([repaired, b])
    }

    /// What was swept may go, as it does not belong to the part that is kept from then on.
    @Test func aScopeEndsTheMark() async throws {
        try SweepTests.write(0..<SweepTests.keyCount, 1, to: b)
        try await cutOff(a)
        try a.dataset().setSyncScope(.prefix("other/"))
        #expect(try mark(of: a) == nil)
        try a.dataset().setSyncScope(nil)
        for _ in 0..<2 {
            try await a.dataset().synchronize(with: b.transport, options: SweepTests.options())
        }
        #expect(try a.dataset().syncScope() == nil)
        try expectEqual([a, b])
    }

    @Test func aScopeThatIsSetMeanwhileEndsTheSweep() async throws {
        try SweepTests.write(0..<SweepTests.keyCount, 1, to: b)
        let dataset = try a.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "sweep", point.numberOfKind == 3, point.moment == .beforeAnswer
            else { return }
            try dataset.setSyncScope(.prefix("other/"))
        }
        let error = await #expect(throws: SyncError.self) {
            try await dataset.synchronize(with: transport, options: SweepTests.options())
        }
        #expect(error?.code == .contended)
        #expect(try !dataset.vector.covers(b.dataset().vector))
        try dataset.setSyncScope(nil)
        #expect(try mark(of: a) == nil)
        for _ in 0..<2 {
            try await dataset.synchronize(with: b.transport, options: SweepTests.options())
        }
        #expect(try dataset.syncScope() == nil)
        try expectEqual([a, b])
    }

    /// An ordinary pull moves the position past the mark, and a search agrees on another one.
    @Test(arguments: ["pull", "reconcile"])
    func whatMovesThePositionEndsTheMark(_ way: String) async throws {
        try SweepTests.write(0..<SweepTests.keyCount, 1, to: b)
        try await cutOff(a)
        var options = SyncOptions(pageRecordsMax: 20, adoptsSegments: false)
        if way == "reconcile" { options.comparesFrom = 0 } else { options.recordsPerRunMax = 30 }
        let watching = SweepTests.Watching(b.responder)
        try await a.dataset().synchronize(with: watching, options: options)
        #expect(watching.starts.isEmpty && watching.kinds.contains(way))
        #expect(try mark(of: a) == nil)
        for _ in 0..<2 {
            try await a.dataset().synchronize(with: b.transport, options: SweepTests.options())
        }
        try expectEqual([a, b])
    }

    /// What a sweep has still to bring is not searched for first.
    @Test func aSweepGoesOnWithoutASearch() async throws {
        try SweepTests.write(0..<SweepTests.keyCount, 1, to: b)
        try await cutOff(a)
        var options = SweepTests.options()
        options.comparesFrom = 0
        let watching = SweepTests.Watching(b.responder)
        try await a.dataset().synchronize(with: watching, options: options)
        #expect(watching.starts.first == SweepTests.key(60))
        #expect(!watching.kinds.contains("reconcile"))
        try expectEqual([a, b])
    }

    /// Who goes through everything again does not go on in the middle.
    @Test func aFullExchangeBeginsAfresh() async throws {
        try SweepTests.write(0..<SweepTests.keyCount, 1, to: b)
        try await cutOff(a)
        var options = SweepTests.options()
        options.isFull = true
        let watching = SweepTests.Watching(b.responder)
        try await a.dataset().synchronize(with: watching, options: options)
        #expect(watching.starts.first == [])
        try expectEqual([a, b])
    }
}
