import TestSupport
import Testing
import Tidemark
import TidemarkSync

/// A dataset that thousands have written to, each under an id of its own. No vector is ever cut
/// short for it, so nothing is lost and nothing comes back, whoever is given up.
struct WritersTests {
    private static let formerCount = 3_000
    private static let writerCount = 40
    private static let sharedCount = 6

    /// What writers have left that are gone for good: a record of each.
    private func leave(in hub: TestReplica, _ expected: inout [String: String]) throws {
        let start = SystemStorage().wallClockMilliseconds() - 60_000
        var batch = ReplicationBatch()
        var seen = VersionVector()
        for number in 0..<Self.formerCount {
            let dot = Dot(replica: ReplicaID(high: 77, low: UInt64(number)), counter: 1)
            let time = HybridTime(milliseconds: start, counter: UInt16(number))
            let version = Version(dot: dot, vector: VersionVector(), time: time)
            let (key, value) = ("own \(number)", "of \(number)")
            batch.writes.append(
                ReplicatedWrite(
                    key: Array(key.utf8),
                    content: .adopt(value: Array(value.utf8), version: version), expected: nil))
            seen.insert(dot)
            expected[key] = value
        }
        batch.seen = seen
        #expect(try hub.dataset().replicate(batch).isEmpty)
    }

    /// Property: whoever meets the hub after all of them holds what a plain map holds that has
    /// heard of each write in turn, and knows every writer.
    ///
    ///     writer n   opens -- writes a key of its own -- meets the hub -- changes keys of others
    ///                -- meets the hub -- is gone for good
    @Test func nothingIsLostAmongThousandsOfWriters() async throws {
        let seed = Seed.drawn()
        var random = TestSupport.SeededGenerator(seed)
        let hub = try TestReplica("hub", in: TemporaryDirectory())
        var expected: [String: String] = [:]
        try leave(in: hub, &expected)
        for number in 0..<Self.writerCount {
            let writer = try TestReplica("writer", in: TemporaryDirectory())
            defer { try? writer.store.close() }
            try put("anew \(number)", writer, "new \(number)")
            expected["new \(number)"] = "anew \(number)"
            _ = try await writer.store.synchronize(with: hub.transport)
            for key in [
                "shared \(random.below(Self.sharedCount))",
                "own \(random.below(Self.formerCount))", "new \(random.below(number + 1))",
            ] {
                if random.oneIn(3) {
                    try writer.dataset().delete(key)
                    expected[key] = nil
                } else {
                    try put("\(number)", writer, key)
                    expected[key] = "\(number)"
                }
            }
            _ = try await writer.store.synchronize(with: hub.transport)
            if random.oneIn(3) { try hub.store.retire(writer.store.replicaID) }
            if random.oneIn(10) { try hub.store.compact() }
            if random.oneIn(20) { try hub.reopen() }
        }
        let last = try TestReplica("last", in: TemporaryDirectory())
        _ = try await last.store.synchronize(with: hub.transport)
        for replica in [hub, last] {
            let notes = try replica.dataset()
            var found: [String: String] = [:]
            for record in try notes.records().collect() {
                if let key = record.keyText { found[key] = record.valueText }
            }
            #expect(found == expected, "\(replica.name), seed \(seed)")
            let count = try notes.knowledge().vector.dots.count
            #expect(
                count == Self.formerCount + Self.writerCount, "\(replica.name), seed \(seed)")
        }
        #expect(try hub.dataset().digest() == last.dataset().digest(), "seed \(seed)")
    }
}
