import TestSupport
import Testing
import Tidemark

/// The changes of a part of a dataset, page by page, for a peer that keeps no more.
@Suite("Changes of a range")
struct RangedChangesTests {
    private struct Pages {
        var changes: [String] = []
        var count = 0
    }

    /// All pages from a position, each of so many changes.
    private func pages(
        of dataset: Dataset, since start: SyncCount, in range: KeyRange, room: Int,
        skipsMax: Int, scanMax: Int
    ) throws -> Pages {
        var pages = Pages()
        var since = start
        while true {
            var taken = 0
            let run = try dataset.withChanges(
                since: since, in: range, skipsMax: skipsMax, scanMax: scanMax
            ) { (change) throws(StoreError) in
                guard taken < room else { return false }
                taken += 1
                let value = try change.value().map { String(decoding: $0, as: UTF8.self) }
                let key = String(decoding: change.key, as: UTF8.self)
                pages.changes.append("\(change.syncCount) \(key) \(value ?? "deleted")")
                return true
            }
            pages.count += 1
            #expect(run.through >= since && run.through <= run.knowledge.syncCount)
            if run.isLast {
                #expect(run.through == run.knowledge.syncCount)
                return pages
            }
            try #require(run.through > since, "no progress")
            since = run.through
        }
    }

    @Test("However they are found and cut, they are the changes of the range in their order")
    func model() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<12 {
                let fixture = try StoreFixture()
                // Of a dataset with a peer no deletion is forgotten.
                var batch = ReplicationBatch()
                batch.checkpoint = (ReplicaID(high: 7, low: 7), PeerCheckpoint())
                #expect(try fixture.dataset.replicate(batch).isEmpty)
                for _ in 0..<200 {
                    let key = "\(["a", "b", "c"][random.below(3)])/\(random.below(12))"
                    if random.oneIn(5) {
                        try fixture.dataset.delete(key)
                    } else {
                        try fixture.dataset.put("\(random.below(1_000))", for: key)
                    }
                    if random.oneIn(80) { try fixture.store.compact() }
                }
                let end = try fixture.dataset.syncCount
                for range in [KeyRange.prefix("b/"), KeyRange(from: "a/5", upTo: "b/3"), .all] {
                    for start in [0, end.rawValue / 2, end.rawValue] {
                        let since = SyncCount(rawValue: start)
                        let records = try fixture.dataset.changes(since: since, in: range)
                        let expected = try records.collect().map {
                            "\($0.syncCount) \($0.keyText ?? "?") \($0.valueText ?? "deleted")"
                        }
                        for scanMax in [0, 1, 5, 20, 1_000] {
                            let found = try pages(
                                of: fixture.dataset, since: since, in: range,
                                room: 1 + random.below(9), skipsMax: 1 + random.below(30),
                                scanMax: scanMax)
                            #expect(found.changes == expected, "\(seed) \(range) \(scanMax)")
                        }
                    }
                }
                try fixture.store.close()
            }
        }
    }

    @Test("Changes of other keys end a page, and a small part of many is found by its keys")
    func bounded() throws {
        let fixture = try StoreFixture()
        for number in 0..<300 { try fixture.dataset.put("\(number)", for: "other \(number)") }
        try fixture.dataset.put("1", for: "part 1")
        for number in 0..<300 { try fixture.dataset.put("\(number)", for: "third \(number)") }
        let skipping = try pages(
            of: fixture.dataset, since: 0, in: .prefix("part"), room: 5, skipsMax: 100, scanMax: 0)
        #expect(skipping.changes.count == 1 && skipping.count >= 6)
        let scanning = try pages(
            of: fixture.dataset, since: 0, in: .prefix("part"), room: 5, skipsMax: 100,
            scanMax: 100)
        #expect(scanning.changes == skipping.changes && scanning.count == 1)
        try fixture.store.close()
    }
}
