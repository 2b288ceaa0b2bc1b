import TestSupport
import Testing
import Tidemark

/// A clock that is ahead by more than is believed moves no other clock.
@Suite("Clocks ahead")
struct FutureClockTests {
    private let storage = SimulatedStorage(seed: Seed(1))
    private let peer = ReplicaID(high: 7, low: 7)

    private var options: StoreOptions {
        StoreOptions(
            durability: .disk, segmentBytes: 1 << 20, compactsAutomatically: false,
            clockAheadMax: .seconds(60))
    }

    private var now: UInt64 { storage.clockMilliseconds }

    /// A write of the peer's, dated so far ahead.
    private func adopt(
        _ counter: UInt64, aheadBy milliseconds: UInt64, into dataset: Dataset
    ) throws {
        let version = Version(
            dot: Dot(replica: peer, counter: counter), vector: VersionVector(),
            time: HybridTime(milliseconds: now + milliseconds, counter: 0))
        let key = bytes("theirs \(counter)")
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: key, content: .adopt(value: [1], version: version), expected: nil)
        ]
        batch.seen = version.vector
        #expect(try dataset.replicate(batch).isEmpty)
    }

    private func timeOfNextWrite(in dataset: Dataset) throws -> UInt64 {
        try dataset.put("ours", for: "ours")
        return try #require(try dataset.record(for: "ours")).version.time.milliseconds
    }

    @Test("Up to the bound it is believed, beyond it is not")
    func bound() throws {
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        try adopt(1, aheadBy: 60_001, into: dataset)
        #expect(try timeOfNextWrite(in: dataset) == now)
        try adopt(2, aheadBy: 60_000, into: dataset)
        #expect(try timeOfNextWrite(in: dataset) == now + 60_000)
        try store.close()
    }

    @Test("Neither opening nor compaction brings the time back")
    func afterwards() throws {
        var store = try openSimulated(storage, options)
        var random = SeededGenerator(Seed(2))
        try adopt(1, aheadBy: 10 * 365 * 86_400_000, into: store.dataset("main"))
        for _ in 0..<2 {
            // The log is replayed, since nothing was closed.
            let crashed = storage.afterProcessEnd(using: &random)
            let copy = try openSimulated(crashed, options)
            #expect(try copy.dataset("main").get("theirs 1") != nil)
            #expect(try timeOfNextWrite(in: copy.dataset("main")) <= now + 60_000)
            try copy.close()
            try store.compact()
            try store.close()
            store = try openSimulated(storage, options)
            #expect(try timeOfNextWrite(in: store.dataset("main")) <= now + 60_000)
        }
        try store.close()
    }

    @Test("What outlived under a dot of ours is dated by others, also after opening")
    func outlived() throws {
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        try dataset.put("ours", for: "ours")
        let written = try #require(try dataset.record(for: "ours")).version
        let time = HybridTime.outliving(
            HybridTime(milliseconds: now + 3_600_000, counter: 0))
        let version = Version(dot: written.dot, vector: written.vector, time: time)
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes("ours"), content: .adopt(value: [1], version: version),
                expected: written)
        ]
        #expect(try dataset.replicate(batch).isEmpty)
        // The log is replayed, since nothing was closed.
        var random = SeededGenerator(Seed(3))
        let crashed = storage.afterProcessEnd(using: &random)
        let copy = try openSimulated(crashed, options)
        let again = try copy.dataset("main")
        let record = try #require(try again.record(for: "ours"))
        #expect(record.version.time == time)
        #expect(try timeOfNextWrite(in: again) <= now + 60_000)
        try copy.close()
        try store.close()
    }

    @Test("What is written anew with a date of others moves no clock, also after opening")
    func writtenAnew() throws {
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        let theirs = Version(
            dot: Dot(replica: peer, counter: 1), vector: VersionVector(),
            time: HybridTime(milliseconds: now + 3_600_000, counter: 0))
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes("theirs"),
                content: .rewrite(
                    value: [1], of: theirs, seen: VersionVector(), keepsTime: true,
                    expiresAt: nil), expected: nil)
        ]
        #expect(try dataset.replicate(batch).isEmpty)
        let written = try #require(try dataset.record(for: "theirs")).version
        #expect(written.dot.replica == store.replicaID && written.time > theirs.time)
        #expect(try timeOfNextWrite(in: dataset) <= now + 60_000)
        // The log is replayed, since nothing was closed.
        var random = SeededGenerator(Seed(4))
        let crashed = storage.afterProcessEnd(using: &random)
        let copy = try openSimulated(crashed, options)
        let again = try copy.dataset("main")
        #expect(try again.record(for: "theirs")?.version == written)
        #expect(try timeOfNextWrite(in: again) <= now + 60_000)
        #expect(try copy.verify().damages.isEmpty)
        try copy.close()
        try store.close()
    }

    /// It is stored under a dot of ours a second time, and by then nothing says who dated it.
    @Test("Nor does it when it is joined with what others had seen")
    func writtenAnewAndJoined() throws {
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        let theirs = Version(
            dot: Dot(replica: peer, counter: 1), vector: VersionVector(),
            time: HybridTime(milliseconds: now + 3_600_000, counter: 0))
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes("theirs"),
                content: .rewrite(
                    value: [1], of: theirs, seen: VersionVector(), keepsTime: true,
                    expiresAt: nil), expected: nil)
        ]
        #expect(try dataset.replicate(batch).isEmpty)
        let written = try #require(try dataset.record(for: "theirs")).version
        let joined = Version(
            dot: written.dot, vector: written.vector.union(theirs.vector), time: written.time)
        batch.writes = [
            ReplicatedWrite(
                key: bytes("theirs"), content: .adopt(value: [1], version: joined),
                expected: written)
        ]
        #expect(try dataset.replicate(batch).isEmpty)
        #expect(try timeOfNextWrite(in: dataset) <= now + 60_000)
        // The log is replayed, since nothing was closed.
        var random = SeededGenerator(Seed(5))
        let copy = try openSimulated(storage.afterProcessEnd(using: &random), options)
        let again = try copy.dataset("main")
        #expect(try again.record(for: "theirs")?.version.vector == joined.vector)
        #expect(try timeOfNextWrite(in: again) <= now + 60_000)
        try copy.close()
        try store.close()
    }

    @Test("A dataset whose deletion is dated far ahead can be made again")
    func lifecycle() throws {
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        var lifecycle = try dataset.knowledge().lifecycle
        lifecycle.isDeleted = true
        lifecycle.time = HybridTime(milliseconds: now + 86_400_000, counter: 0)
        lifecycle.replica = peer
        var batch = ReplicationBatch()
        batch.lifecycle = lifecycle
        #expect(try dataset.replicate(batch).isEmpty)
        #expect(try store.existingDataset("main") == nil)
        let again = try store.dataset("main")
        let stamp = try again.knowledge().lifecycle
        #expect(!stamp.isDeleted && stamp.time > lifecycle.time)
        #expect(try timeOfNextWrite(in: again) == now)
        try store.close()
    }
}
