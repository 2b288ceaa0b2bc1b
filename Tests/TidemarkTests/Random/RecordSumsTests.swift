import TestSupport
import Testing

@testable import Tidemark

private let numbersMax = 4_000

/// Sums over ranges of keys that are kept up while records change, expire, are compacted away and
/// wiped: they are always those of a walk over all records.
@Suite("Sums over ranges of keys")
struct RecordSumsTests {
    private final class Run {
        let storage: SimulatedStorage
        var store: Store
        var dataset: Dataset
        var random: SeededGenerator

        init(_ seed: Seed) throws {
            random = SeededGenerator(seed)
            storage = SimulatedStorage(seed: Seed(random.next()))
            store = try Self.open(storage)
            dataset = try store.dataset("main")
        }

        static func open(_ storage: SimulatedStorage) throws -> Store {
            var options = quickOptions()
            options.compactsAutomatically = false
            options.segmentEntriesMax = 500
            return try openSimulated(storage, options)
        }

        /// Of different lengths, so that bounds are, too.
        private func key() -> [UInt8] {
            bytes(String(random.below(numbersMax)))
        }

        func step() throws {
            switch random.below(60) {
            case 0..<20: try dataset.put(random.bytes(random.below(30)), for: key())
            case 20..<26: try dataset.delete(key())
            case 26..<32:
                // Some have expired already.
                let now = storage.clockMilliseconds
                let expiresAt = now - 20 + UInt64(random.below(200))
                try dataset.put([1], for: key(), expiresAt: expiresAt)
            case 32..<36: try putMany()
            case 36..<40: storage.clockMilliseconds += UInt64(random.below(60))
            case 40: storage.clockMilliseconds -= UInt64(random.below(30))
            case 41: _ = try store.deleteExpired()
            case 42: try store.compact()
            case 43: try dataset.compact(KeyRange(from: key()))
            case 44 where random.oneIn(8): try meetPeer()
            case 45 where random.oneIn(8): try wipe()
            case 46 where random.oneIn(4): try reopen()
            default: break
            }
        }

        private func putMany() throws {
            var batch = WriteBatch()
            for _ in 0..<random.below(400) {
                if random.oneIn(4) {
                    batch.delete(key(), in: dataset)
                } else {
                    batch.put([2], for: key(), in: dataset)
                }
            }
            if !batch.isEmpty { try store.write(batch) }
        }

        /// From now on no deletion is forgotten: nobody is known to have heard of any.
        private func meetPeer() throws {
            var batch = ReplicationBatch()
            batch.checkpoint = (
                ReplicaID(high: 9, low: 9), PeerCheckpoint(pulledThrough: 1, pushedThrough: 0)
            )
            _ = try dataset.replicate(batch)
        }

        private func wipe() throws {
            _ = try store.deleteDataset("main")
            dataset = try store.dataset("main")
        }

        private func reopen() throws {
            try store.close()
            store = try Self.open(storage)
            dataset = try store.dataset("main")
        }

        // MARK: Checking

        func check() throws {
            let kept = try dataset.recordSums()
            let keptDigest = try dataset.digest()
            let records = try dataset.records(includingDeleted: true).collect()
            try require(keptDigest == Self.digest(of: records), "the digest is not that of a walk")
            let fresh = try fresh()
            try require(
                kept.total == fresh.total,
                "\(kept.total) was kept up, and \(fresh.total) is made anew")
            try require(
                kept.total.count == records.count,
                "\(kept.total.count) records of \(records.count)")
            for _ in 0..<4 { try check(kept, fresh, range(), records) }
            try checkForgotten(records)
        }

        /// Tombstones that had seen no more than somebody has forgotten are passed over, whatever
        /// the table was made for before.
        private func checkForgotten(_ records: [Record]) throws {
            let seen = try dataset.vector
            let forgotten = VersionVector(
                seen.dots.map { dot in
                    Dot(replica: dot.replica, counter: 1 + random.next() % dot.counter)
                })
            let kept = try dataset.recordSums(forgotten: forgotten)
            // What has expired may not be noted in the record yet, which then counts.
            let passedOver = records.filter { record in
                record.isDeleted && record.expiresAt == nil
                    && forgotten.covers(record.version.vector)
            }
            let scan = SumScan(
                moment: try store.engine.moment(), dataset: dataset.state.recordsID,
                kind: .versions, forgotten: forgotten)
            let fresh = try scan.table(syncCount: try dataset.syncCount, segments: [])
            try require(kept.total == fresh.total, "\(kept.total) is not \(fresh.total)")
            try require(
                kept.total.count <= records.count - passedOver.count,
                "\(kept.total.count) of \(records.count), \(passedOver.count) forgotten")
        }

        /// Of the same moment, by a walk over everything.
        private func fresh() throws -> RecordSums {
            let scan = SumScan(
                moment: try store.engine.moment(), dataset: dataset.state.recordsID,
                kind: .versions)
            let table = try scan.table(syncCount: try dataset.syncCount, segments: [])
            return RecordSums(table, scan, try dataset.knowledge())
        }

        private func range() -> KeyRange {
            let (one, other) = (key(), key())
            let isInOrder = one.lexicographicallyPrecedes(other)
            return KeyRange(
                from: random.oneIn(5) ? nil : (isInOrder ? one : other),
                upTo: random.oneIn(5) ? nil : (isInOrder ? other : one))
        }

        private func check(
            _ kept: RecordSums, _ fresh: RecordSums, _ range: KeyRange, _ records: [Record]
        ) throws {
            let keys = records.map(\.key).filter { range.contains($0) }
            let sum = try kept.sum(of: range)
            try require(sum.count == keys.count, "\(sum.count) in \(range), not \(keys.count)")
            try require(sum == fresh.sum(of: range), "the sum of \(range) differs")
            let marks = try kept.marks(in: range) ?? []
            try require(marks.map(\.key) == keys, "marks of other keys in \(range)")
            try require(
                marks.reduce(0) { $0 &+ $1.mark } == sum.digest.low, "marks are not of the sum")
            let countMax = 2 + random.below(15)
            var start = range.lowerBound
            var total = RecordsSum()
            let parts = try kept.parts(of: range, countMax: countMax)
            try require(parts.count <= countMax, "\(parts.count) parts of \(countMax)")
            try require(parts.count > 1 || sum.count < 2, "\(sum.count) records in one part")
            for (index, part) in parts.enumerated() {
                try require(
                    (part.upperBound == nil) == (index == parts.count - 1), "an end in the middle")
                let piece = KeyRange(from: start, upTo: part.upperBound ?? range.upperBound)
                try require(!piece.isEmpty || range.isEmpty, "an empty part of \(range)")
                try require(part.sum == fresh.sum(of: piece), "the sum of \(piece) differs")
                total.add(part.sum)
                start = part.upperBound
            }
            try require(total == sum, "the parts of \(range) are not the whole")
        }

        /// By the definition, from whole records.
        private static func digest(of records: [Record]) -> ConvergenceDigest {
            var digest = ConvergenceDigest()
            for record in records where !record.isDeleted {
                var writer = ByteWriter()
                writer.append(record.version.dot.replica)
                writer.append(fixed64: record.version.dot.counter)
                writer.append(fixed64: record.version.time.rawValue)
                writer.append(byte: 1)
                writer.append(fixed64: record.expiresAt ?? 0)
                for field in [record.key, record.value ?? []] {
                    writer.append(varint: field.count)
                    writer.append(field)
                }
                digest.add(unsafe writer.bytes.withUnsafeBytes { unsafe checksum128($0) })
            }
            return digest
        }
    }

    @Test("2,000 steps, with sums that are kept up and such that are made anew")
    func model() throws {
        withSeed { seed in
            let run = try Run(seed)
            for number in 0..<2_000 {
                do {
                    try run.step()
                    if run.random.oneIn(8) { try run.check() }
                } catch {
                    throw Mismatch("step \(number): \(error)")
                }
            }
        }
    }

    // MARK: - Each by itself

    private func fixture() throws -> StoreFixture {
        var options = quickOptions()
        options.compactsAutomatically = false
        return try StoreFixture(options)
    }

    /// A table is kept up where it can be, so that a digest that is asked for again is cheap.
    @Test("A change makes one leaf stale, and no change none")
    func keptUp() throws {
        let fixture = try fixture()
        for number in 0..<5_000 { try fixture.dataset.put([1], for: bytes("\(10_000 + number)")) }
        let engine = fixture.store.engine
        let first = try fixture.dataset.digest()
        let id = fixture.dataset.state.recordsID
        let table = try #require(engine.sumTables.table(of: id, .contents))
        #expect(table.leaves.count > 50 && table.total.count == 5_000)
        #expect(try fixture.dataset.digest() == first)
        try fixture.dataset.put([2], for: bytes("12000"))
        #expect(try fixture.dataset.digest() != first)
        let next = try #require(engine.sumTables.table(of: id, .contents))
        #expect(next.syncCount == table.syncCount.next)
        let changed = zip(table.leaves, next.leaves).filter { $0.sum != $1.sum }
        #expect(table.leaves.count == next.leaves.count && changed.count == 1)
    }

    @Test("A tombstone never counts in a digest, and for a peer as long as it is there")
    func forgottenTombstone() throws {
        let fixture = try fixture()
        let empty = try fixture.dataset.digest()
        try fixture.dataset.put("1", for: "a")
        #expect(try fixture.dataset.digest() != empty)
        try fixture.dataset.delete("a")
        #expect(try fixture.dataset.digest() == empty)
        #expect(try fixture.dataset.recordSums().total.count == 1)
        try fixture.store.compact()
        #expect(try fixture.dataset.records(includingDeleted: true).collect().isEmpty)
        #expect(try fixture.dataset.digest() == empty)
        #expect(try fixture.dataset.recordSums().total.count == 0)
    }

    /// One of two replicas may still have it.
    @Test("A tombstone that a peer has forgotten is passed over, and so are later ones with it")
    func forgottenByAPeer() throws {
        let fixture = try fixture()
        try fixture.dataset.put("1", for: "a")
        let live = try fixture.dataset.recordSums().total
        try fixture.dataset.put("2", for: "b")
        try fixture.dataset.delete("b")
        let seen = try fixture.dataset.vector
        try fixture.dataset.put("3", for: "c")
        try fixture.dataset.delete("c")
        #expect(try fixture.dataset.recordSums().total.count == 3)
        let first = try fixture.dataset.recordSums(forgotten: seen)
        #expect(first.total.count == 2)
        #expect(try first.marks(in: .all)?.map(\.key) == [bytes("a"), bytes("c")])
        let all = try fixture.dataset.recordSums(forgotten: fixture.dataset.vector)
        #expect(all.total == live)
        // Less than before: what was passed over counts again.
        #expect(try fixture.dataset.recordSums(forgotten: seen).total == first.total)
        #expect(try fixture.dataset.recordSums().total.count == 3)
    }

    /// Each asker names what it has forgotten, and no two the same.
    @Test("Where others have forgotten other tombstones, only the leaves of these are stale")
    func forgottenByOthers() throws {
        let fixture = try fixture()
        for number in 0..<5_000 { try fixture.dataset.put([1], for: bytes("\(10_000 + number)")) }
        try fixture.dataset.delete(bytes("12000"))
        let engine = fixture.store.engine
        let id = fixture.dataset.state.recordsID
        let ours = try fixture.dataset.vector
        let others = VersionVector([Dot(replica: ReplicaID(high: 1, low: 2), counter: 5)])
        let less = try fixture.dataset.recordSums(forgotten: ours)
        let table = try #require(engine.sumTables.table(of: id, .versions))
        #expect(less.total.count == 4_999 && table.forgottenCount == 1)
        #expect(table.leaves.count > 50)
        let more = try fixture.dataset.recordSums(forgotten: others)
        let next = try #require(engine.sumTables.table(of: id, .versions))
        #expect(more.total.count == 5_000 && next.forgottenCount == 0)
        // Made anew, all leaves behind the tombstone would begin with other keys.
        let kept = table.leaves.filter { leaf in
            next.leaves.contains { $0.lowerBound == leaf.lowerBound && $0.sum == leaf.sum }
        }
        #expect(kept.count == table.leaves.count - 1)
        #expect(try fixture.dataset.recordSums(forgotten: ours).total == less.total)
    }

    /// Leaves in which nothing counts are looked at again, too.
    @Test("Tombstones that were all passed over count again")
    func forgottenAlone() throws {
        let fixture = try fixture()
        for number in 0..<200 { try fixture.dataset.put([1], for: bytes("\(1_000 + number)")) }
        for number in 100..<200 { try fixture.dataset.delete(bytes("\(1_000 + number)")) }
        let none = try fixture.dataset.recordSums()
        #expect(none.total.count == 200)
        let all = try fixture.dataset.recordSums(forgotten: fixture.dataset.vector)
        #expect(all.total.count == 100)
        #expect(try fixture.dataset.recordSums().total == none.total)
    }

    /// When the sums were made there was no tombstone, and when they are asked for there is none.
    @Test("A tombstone that came and went in between is noticed")
    func tombstoneInBetween() throws {
        let fixture = try fixture()
        let empty = try fixture.dataset.digest()
        try fixture.dataset.put("1", for: "a")
        try fixture.store.compact()
        #expect(try fixture.dataset.digest() != empty)
        try fixture.dataset.delete("a")
        try fixture.store.compact()
        #expect(try fixture.dataset.digest() == empty)
        #expect(try fixture.dataset.recordSums().total.count == 0)
    }

    @Test("A dataset that was deleted and made again is another one")
    func madeAgain() throws {
        let fixture = try fixture()
        let empty = try fixture.dataset.digest()
        try fixture.dataset.put("1", for: "a")
        #expect(try fixture.dataset.digest() != empty)
        try fixture.store.deleteDataset("main")
        expectError(.datasetNotFound) { try fixture.dataset.digest() }
        #expect(try fixture.dataset.recordSums().total.count == 0)
        let again = try fixture.store.dataset("main")
        #expect(try again.digest() == empty)
    }

    @Test("Datasets do not share their sums, and few tables are kept")
    func manyDatasets() throws {
        let fixture = try fixture()
        var digests: [ConvergenceDigest] = []
        for number in 0..<(Limits.sumTablesMax + 10) {
            let dataset = try fixture.store.dataset("d\(number)")
            try dataset.put("\(number)", for: "key")
            digests.append(try dataset.digest())
        }
        #expect(Set(digests).count == digests.count)
        for number in digests.indices {
            #expect(try fixture.store.dataset("d\(number)").digest() == digests[number])
        }
        let first = try fixture.store.dataset("d0").state.recordsID
        _ = try fixture.store.dataset("d1").digest()
        let last = try fixture.store.dataset("d\(digests.count - 1)").state.recordsID
        #expect(fixture.store.engine.sumTables.table(of: last, .contents) != nil)
        #expect(fixture.store.engine.sumTables.table(of: first, .contents) == nil)
    }

    @Test("Leaves become larger where there would be too many")
    func largerLeaves() throws {
        let fixture = try fixture()
        for number in 0..<300 { try fixture.dataset.put([1], for: bytes("\(1_000 + number)")) }
        let sums = try fixture.dataset.recordSums()
        let id = fixture.dataset.state.recordsID
        let scan = SumScan(moment: try fixture.store.engine.moment(), dataset: id, kind: .versions)
        var maker = SumLeafMaker(from: [], recordsMax: 2, leavesMax: 16, now: nil)
        try scan.forEach(in: .all) { entry, hash in maker.add(entry, hash) }
        let recordsMax = maker.recordsMax
        let leaves = maker.finish()
        #expect(leaves.count <= 16 && recordsMax == 32)
        #expect(leaves.allSatisfy { $0.sum.count <= recordsMax })
        var total = RecordsSum()
        for leaf in leaves { total.add(leaf.sum) }
        #expect(total == sums.total)
        for (leaf, next) in zip(leaves, leaves.dropFirst()) {
            let range = KeyRange(
                from: leaf.lowerBound.isEmpty ? nil : leaf.lowerBound, upTo: next.lowerBound)
            #expect(try sums.sum(of: range) == leaf.sum)
        }
    }

    @Test("What says the same of a version hashes alike, and what does not, does not")
    func hashes() throws {
        let (one, two) = (try fixture(), try fixture())
        let a = ReplicaID(high: 1, low: 1)
        func adopt(
            _ fixture: StoreFixture, counter: UInt64 = 5, vector: VersionVector = VersionVector(),
            time: UInt64 = 77, value: [UInt8]? = [1], expiresAt: UInt64? = nil
        ) throws -> RecordsSum {
            let version = Version(
                dot: Dot(replica: a, counter: counter), vector: vector,
                time: HybridTime(rawValue: time))
            let known = try fixture.dataset.storedRecord(for: [7])?.version
            var batch = ReplicationBatch()
            batch.writes = [
                ReplicatedWrite(
                    key: [7],
                    content: .adopt(value: value, version: version, expiresAt: expiresAt),
                    expected: known)
            ]
            #expect(try fixture.dataset.replicate(batch).isEmpty)
            return try fixture.dataset.recordSums().total
        }
        // Stores number what they know differently.
        try two.dataset.put("other", for: "other")
        try two.dataset.delete("other")
        let other = try two.dataset.recordSums().total
        var others = try adopt(two)
        others.subtract(other)
        let plain = try adopt(one)
        #expect(others == plain)
        let seen = VersionVector([Dot(replica: ReplicaID(high: 2, low: 2), counter: 1)])
        let sums = [
            plain, try adopt(one, counter: 6), try adopt(one, vector: seen),
            try adopt(one, time: 78), try adopt(one, value: nil),
            try adopt(one, expiresAt: 1 << 40), try adopt(one, expiresAt: 1 << 41),
            try adopt(one, vector: VersionVector([Dot(replica: a, counter: 9)])),
        ]
        #expect(Set(sums).count == sums.count)
        // A record that expires is the same with its value and without.
        let expiring = try adopt(one, expiresAt: 1 << 40)
        #expect(try adopt(one, value: nil, expiresAt: 1 << 40) == expiring)
    }
}

extension SyncCount {
    fileprivate var next: SyncCount { SyncCount(rawValue: rawValue + 1) }
}
