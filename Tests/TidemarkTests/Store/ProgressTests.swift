import TestSupport
import Testing
import Tidemark

/// What long work tells of how far it has come.
struct ProgressTests {
    let fixture: StoreFixture
    private static let recordCount = 10_000

    init() throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        fixture = try StoreFixture(options)
        for number in 0..<Self.recordCount {
            try fixture.dataset.put("a value", for: "key \(10_000 + number)")
        }
    }

    private static let recordBytes = UInt64("key 10000".utf8.count + "a value".utf8.count)

    @Test func aDigestTellsWhatItWalksOver() throws {
        let told = Told<UInt64>()
        _ = try fixture.dataset.digest { told.values.append($0) }
        #expect(told.values.count == 3)
        #expect(told.values.reduce(0, +) == UInt64(Self.recordCount) * Self.recordBytes)
        #expect(told.values.first == 4_096 * Self.recordBytes)
        // It is remembered, and nothing is walked over again.
        _ = try fixture.dataset.digest { told.values.append($0) }
        #expect(told.values.count == 3)
    }

    private func expectWhole(_ told: [CompactionProgress]) throws {
        let last = try #require(told.last)
        #expect(last.bytesDone == last.bytesTotal)
        #expect(last.bytesTotal >= UInt64(Self.recordCount) * Self.recordBytes)
        for (before, after) in zip(told, told.dropFirst()) {
            #expect(before.bytesDone <= after.bytesDone && before.bytesTotal == after.bytesTotal)
        }
        let first = try #require(told.first)
        #expect(first.bytesDone > 0 && first.bytesDone < first.bytesTotal / 2)
        // What was read is what the tables said there was, before it is said that all is done.
        let beforeLast = try #require(told.dropLast().last)
        #expect(beforeLast.bytesDone > beforeLast.bytesTotal * 9 / 10)
    }

    @Test func aCompactionTellsWhatItHasRead() throws {
        let told = Told<CompactionProgress>()
        try fixture.store.compact { told.values.append($0) }
        try expectWhole(told.values)
    }

    @Test func aCompactionOfARangeTellsWhatItHasRead() throws {
        try fixture.store.sealAll()
        let told = Told<CompactionProgress>()
        try fixture.dataset.compact(.prefix("key 1")) { told.values.append($0) }
        try expectWhole(told.values)
    }

    @Test func theCountOfLagsTellsItsShare() throws {
        var batch = ReplicationBatch()
        batch.checkpoint = (
            ReplicaID(high: 7, low: 7),
            PeerCheckpoint(pulledThrough: .zero, pushedThrough: .zero, vector: VersionVector())
        )
        _ = try fixture.dataset.replicate(batch)
        let told = Told<(changeCount: Int, share: Double)>()
        _ = try fixture.store.peerLags(datasetsMax: .max, changesMax: .max) { count, share in
            told.values.append((count, share))
        }
        #expect(told.values.map(\.changeCount) == [4_096, 8_192, Self.recordCount])
        let shares = told.values.map(\.share)
        #expect(shares == shares.sorted() && shares.last == 1)
        #expect(shares.first.map { $0 > 0 && $0 < 0.5 } ?? false)
    }
}

/// What was told, by closures that may be kept for as long as they like.
private final class Told<Value> {
    var values: [Value] = []
}
