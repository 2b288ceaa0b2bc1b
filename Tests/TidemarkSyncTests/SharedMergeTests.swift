import Foundation
import Testing
import Tidemark

@testable import TidemarkSync

/// The property: merges of a page that share one vector, which has more than what the two versions
/// of each had, come to the same records as merges with just what they had.
///
///     random past of a, b and c ──┬── copies ── exchanges, record by record ──┐
///                                 ├── copies ── exchanges, page by page ──────┼── same records
///                                 └── copies ── exchanges, with sweeps ───────┘
///
/// Only the pages of sweeps share: they tell what their sender has seen without what it holds.
///
/// The past has hundreds of keys that all sides write, so that pages have many conflicts, and
/// exchanges that break off, so that what is merged was partly merged before.
@Suite(.serialized)
struct SharedMergeTests {
    private static let keyCount = 300

    private static func key(_ number: Int) -> [UInt8] { Array("key \(number)".utf8) }

    private static func write(
        _ numbers: some Sequence<Int>, _ text: String, to replica: TestReplica
    ) throws {
        let dataset = try replica.dataset()
        for number in numbers { try dataset.put("\(text) \(number)", for: "key \(number)") }
    }

    private static var sweeping: SyncOptions {
        var options = SyncOptions()
        options.sweepsFrom = 0
        return options
    }

    @Test func mergesOfAPageShareOneVector() async throws {
        let (a, b) = try TestReplica.two()
        try Self.write(0..<Self.keyCount, "b", to: b)
        try Self.write(0..<Self.keyCount, "a", to: a)
        try Self.write(Self.keyCount / 2..<Self.keyCount, "b again", to: b)
        let result = try await a.dataset().synchronize(
            with: b.transport, options: Self.sweeping)
        #expect(result.conflicts == Self.keyCount)
        #expect(result.pushed == Self.keyCount)
        try expectEqual([a, b])
        for replica in [a, b] {
            let records = try replica.dataset().records().collect()
            #expect(records.count == Self.keyCount)
            let (ours, theirs) = (a.store.replicaID, b.store.replicaID)
            for record in records {
                // Each has seen what it replaced, and of its own writer nothing but itself.
                let vector = record.version.vector
                #expect(vector[record.version.dot.replica] == record.version.dot.counter)
                #expect(vector[ours] > 0 && vector[theirs] > 0)
                #expect(try replica.dataset().vector.covers(vector))
            }
            let shared = Set(
                records.map { $0.version.vector.removing($0.version.dot.replica) })
            // One for those that either side has won.
            #expect(shared.count <= 2, "\(shared.count) vectors")
        }
        let again = try await a.dataset().synchronize(with: b.transport)
        #expect(again.pulled == 0 && again.pushed == 0 && again.conflicts == 0)
        // What is written now descends from all of it.
        try b.dataset().put("new", for: "key 7")
        try await a.dataset().synchronize(with: b.transport)
        #expect(try a.dataset().text("key 7") == "new")
        try expectEqual([a, b])
    }

    @Test func fewMergesHaveVectorsOfTheirOwn() async throws {
        let (a, b) = try TestReplica.two()
        try Self.write(0..<10, "b", to: b)
        try Self.write(0..<10, "a", to: a)
        try await a.dataset().synchronize(with: b.transport, options: Self.sweeping)
        let vectors = try a.dataset().records().collect().map(\.version.vector)
        #expect(Set(vectors).count == 10)
        try expectEqual([a, b])
    }

    /// Each conflict of the page is won by another replica: there would be as many shared vectors
    /// as conflicts, each with an entry for all of them.
    @Test func whatManyHaveWonHasVectorsOfItsOwn() async throws {
        let (a, b) = try TestReplica.two()
        let count = 80
        try Self.write(0..<count, "a", to: a)
        let time = a.store.nextTime()
        var batch = ReplicationBatch()
        for number in 0..<count {
            let dot = Dot(replica: ReplicaID(high: 7, low: UInt64(number)), counter: 1)
            let version = Version(
                dot: dot, vector: VersionVector([dot]), time: time, author: "many")
            batch.writes.append(
                ReplicatedWrite(
                    key: Self.key(number), content: .adopt(value: [9], version: version),
                    expected: nil))
            batch.seen = (batch.seen ?? VersionVector()).union(version.vector)
        }
        #expect(try b.dataset().replicate(batch).isEmpty)
        let result = try await a.dataset().synchronize(with: b.transport, options: Self.sweeping)
        #expect(result.conflicts == count)
        let records = try a.dataset().records().collect()
        #expect(records.count == count)
        for record in records {
            #expect(record.value == [9] && record.version.vector.count == 2)
        }
        try expectEqual([a, b])
    }

    /// What the shared vector claims must hold also where one side has had other versions: two
    /// replicas that merge the same conflicts apart from each other come together.
    @Test func twoWhoMergeTheSameMeet() async throws {
        let directory = TemporaryDirectory()
        let replicas = try ["a", "b", "c", "d"].map { try TestReplica($0, in: directory) }
        let (a, b, c, d) = (replicas[0], replicas[1], replicas[2], replicas[3])
        try Self.write(0..<Self.keyCount, "a", to: a)
        try Self.write(0..<Self.keyCount, "b", to: b)
        // c and d have both of what a wrote; then each merges what b wrote by itself.
        try await c.dataset().synchronize(with: a.transport)
        try await d.dataset().synchronize(with: a.transport)
        try Self.write(0..<20, "c", to: c)
        try Self.write(200..<220, "d", to: d)
        for replica in [c, d] {
            try await replica.dataset().synchronize(with: b.transport, options: Self.sweeping)
        }
        for _ in 0..<4 {
            for replica in [a, c, d] {
                try await replica.dataset().synchronize(
                    with: b.transport, options: Self.sweeping)
            }
        }
        try expectEqual(replicas)
        let seen = try a.dataset().vector
        #expect(try replicas.allSatisfy { try $0.dataset().vector == seen })
        for replica in [a, c, d] {
            let result = try await replica.dataset().synchronize(with: b.transport)
            #expect(result.pulled == 0 && result.pushed == 0)
        }
    }

    // MARK: - Deleted datasets

    /// c has seen some of what a merges with b, and not all, and deletes the dataset; d has merged
    /// what c has seen by itself. What was merged together survives together, on all of them.
    @Test func whatWasMergedTogetherSurvivesTogether() async throws {
        let directory = TemporaryDirectory()
        let replicas = try ["a", "b", "c", "d"].map { try TestReplica($0, in: directory) }
        let (a, b, c, d) = (replicas[0], replicas[1], replicas[2], replicas[3])
        let seenCount = Self.keyCount / 3
        try Self.write(0..<seenCount, "a", to: a)
        try Self.write(0..<seenCount, "b", to: b)
        for peer in [a, b] {
            // A hello and a pull. What c would push then is lost.
            let pulling = FaultyTransport(peer.responder, .losesRequest, after: 2)
            _ = try? await c.dataset().synchronize(with: pulling)
            #expect(try c.dataset().vector.covers(peer.dataset().vector))
        }
        try await d.dataset().synchronize(with: c.transport)
        try Self.write(seenCount..<Self.keyCount, "a", to: a)
        try Self.write(seenCount..<Self.keyCount, "b", to: b)
        let merged = try await a.dataset().synchronize(with: b.transport, options: Self.sweeping)
        #expect(merged.conflicts == Self.keyCount)
        try c.store.deleteDataset("notes")
        for (asker, other) in [(c, d), (c, a), (a, b), (d, a)] {
            try await asker.store.synchronize(with: other.transport, options: Self.sweeping)
        }
        for _ in 0..<2 {
            for replica in [a, c, d] { try await replica.store.synchronize(with: b.transport) }
        }
        #expect(try a.dataset().count() == Self.keyCount)
        try expectEqual(replicas)
        for replica in [a, c, d] {
            let result = try await replica.dataset().synchronize(with: b.transport)
            #expect(result.pulled == 0 && result.pushed == 0)
        }
    }

    /// What was wiped is in the vector and not in the records.
    @Test func nothingIsSharedWhereADatasetWasDeleted() async throws {
        let (a, b) = try TestReplica.two()
        try Self.write(0..<1, "old", to: a)
        try await a.dataset().synchronize(with: b.transport)
        try a.store.deleteDataset("notes")
        _ = try a.dataset()
        try await a.dataset().synchronize(with: b.transport)
        #expect(try !a.dataset().knowledge().lifecycle.wiped.isEmpty)
        try Self.write(0..<Self.keyCount, "b", to: b)
        try Self.write(0..<Self.keyCount, "a", to: a)
        let result = try await a.dataset().synchronize(with: b.transport, options: Self.sweeping)
        #expect(result.conflicts == Self.keyCount)
        let vectors = try a.dataset().records().collect().map(\.version.vector)
        #expect(Set(vectors).count == Self.keyCount)
        try expectEqual([a, b])
    }

    // MARK: - The property

    private struct Side {
        let path: String
        let store: Store

        init(_ path: String) throws {
            self.path = path
            store = try Store.open(
                at: path,
                options: StoreOptions(
                    durability: .memory, author: String(path.suffix(1)), segmentBytes: 1 << 20,
                    blockCacheBytes: 1 << 20, historyVersions: 1, compactsAutomatically: false,
                    largeValueBytes: 200))
        }

        var dataset: Dataset { get throws { try store.dataset("notes") } }

        func contents() throws -> Contents { try Contents(dataset) }
    }

    private struct Meeting {
        let asker: Int
        let other: Int
        let pageRecordsMax: Int
        /// After so many messages it breaks off; nil: it does not.
        let messagesMax: Int?
    }

    @Test func sharedVectorsComeToTheSameRecords() async throws {
        print("sharedVectorsComeToTheSameRecords: TIDEMARK_SEED=\(baseSeed)")
        var conflicts = 0
        var shared = 0
        for seed in baseSeed..<baseSeed + 12 {
            let counted = try await compare(seed: seed)
            conflicts += counted.conflicts
            shared += counted.shared
        }
        // A run in which nothing was shared would prove nothing.
        #expect(conflicts > 1_000 && shared > 500, "\(conflicts) conflicts, \(shared) shared")
    }

    private func compare(seed: UInt64) async throws -> (conflicts: Int, shared: Int) {
        let directory = TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: directory.path, withIntermediateDirectories: true)
        var random = SeededGenerator(seed: seed)
        let names = ["a", "b", "c"]
        do {
            let sides = try names.map { try Side("\(directory.path)/\($0)") }
            for _ in 0..<Int.random(in: 6...14, using: &random) {
                let side = sides[Int.random(in: 0..<3, using: &random)]
                switch Int.random(in: 0..<6, using: &random) {
                case 0: try side.store.compact()
                case 1:
                    let met = meeting(&random)
                    _ = try await hold(met, sides, comparesOneByOne: true)
                default: try edit(side, &random)
                }
            }
            for side in sides { try side.store.close() }
        }
        var meetings = (0..<Int.random(in: 3...8, using: &random)).map { _ in meeting(&random) }
        // Then everybody meets everybody, so that all come together.
        for _ in 0..<3 {
            for (asker, other) in [(0, 1), (1, 2), (2, 0)] {
                meetings.append(
                    Meeting(
                        asker: asker, other: other, pageRecordsMax: 500, messagesMax: nil))
            }
        }
        var contents: [[Contents]] = []
        var conflicts = 0
        var sharedCount = 0
        for way in ["records", "pages", "sweeps"] {
            for name in names { try directory.copy(name, to: "\(way)-\(name)") }
            let sides = try names.map { try Side("\(directory.path)/\(way)-\($0)") }
            for met in meetings {
                conflicts += try await hold(
                    met, sides, comparesOneByOne: way == "records", sweeps: way == "sweeps")
            }
            let found = try sides.map { try $0.contents() }
            #expect(found[0] == found[1] && found[1] == found[2], "seed \(seed), \(way)")
            let digests = try sides.map { try $0.dataset.digest() }
            #expect(Set(digests).count == 1, "seed \(seed), \(way)")
            let vectors = try sides.map { try $0.dataset.vector }
            #expect(Set(vectors).count == 1, "seed \(seed), \(way)")
            if way != "records" {
                let records = try sides[0].dataset.records(includingDeleted: true).collect()
                let own = Set(
                    records.map { $0.version.vector.removing($0.version.dot.replica) })
                sharedCount += records.count - own.count
                for record in records {
                    let seen = vectors[0].covers(record.version.vector)
                    #expect(seen, "seed \(seed): a version has seen more than its dataset")
                }
            }
            contents.append(found)
            for side in sides { try side.store.close() }
            // What is in the log says the same as what was in memory.
            for (name, before) in zip(names, found) {
                let again = try Side("\(directory.path)/\(way)-\(name)")
                #expect(try again.contents() == before, "seed \(seed), \(way)")
                #expect(try again.store.verify().damages.isEmpty, "seed \(seed), \(way)")
                try again.store.close()
            }
        }
        #expect(contents[0] == contents[1], "seed \(seed)")
        #expect(contents[0] == contents[2], "seed \(seed)")
        return (conflicts, sharedCount)
    }

    private func meeting(_ random: inout SeededGenerator) -> Meeting {
        let asker = Int.random(in: 0..<3, using: &random)
        let other = (asker + Int.random(in: 1...2, using: &random)) % 3
        return Meeting(
            asker: asker, other: other,
            pageRecordsMax: Int.random(in: 60...400, using: &random),
            messagesMax: Bool.random(using: &random)
                ? Int.random(in: 1...6, using: &random) : nil)
    }

    /// - Returns: how many conflicts there were, if it came to its end.
    private func hold(
        _ meeting: Meeting, _ sides: [Side], comparesOneByOne: Bool, sweeps: Bool = false
    ) async throws -> Int {
        let responder = SyncResponder(
            store: sides[meeting.other].store, comparesOneByOne: comparesOneByOne)
        let transport = FaultyTransport(
            responder, meeting.messagesMax == nil ? nil : .losesAnswer,
            after: meeting.messagesMax ?? 0)
        var options = SyncOptions(
            pageRecordsMax: meeting.pageRecordsMax, onDatasetDeleted: .keepAndRecreate,
            adoptsSegments: false)
        options.comparesOneByOne = comparesOneByOne
        if sweeps { options.sweepsFrom = 0 }
        do throws(SyncError) {
            let results = try await sides[meeting.asker].store.synchronize(
                with: transport, options: options)
            return results.reduce(0) { $0 + $1.conflicts }
        } catch {
            #expect(error.code == .unreachable, "\(error)")
            return 0
        }
    }

    private func edit(_ side: Side, _ random: inout SeededGenerator) throws {
        let dataset = try side.dataset
        let first = Int.random(in: 0..<Self.keyCount, using: &random)
        for step in 0..<Int.random(in: 50...Self.keyCount, using: &random) {
            let key = Self.key((first + step) % Self.keyCount)
            // Few different ones, so that equal ones meet; some lie apart once they are sealed.
            let value = [UInt8](
                repeating: UInt8.random(in: 0..<4, using: &random),
                count: [0, 1, 50, 300][Int.random(in: 0..<4, using: &random)])
            if Int.random(in: 0..<8, using: &random) == 0 {
                try dataset.delete(key)
            } else {
                try dataset.put(value, for: key)
            }
        }
    }
}
