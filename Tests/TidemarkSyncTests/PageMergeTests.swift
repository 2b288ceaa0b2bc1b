import Foundation
import Testing
import Tidemark

@testable import TidemarkSync

/// The property: pages that the store compares and applies at once, as they lie in the message,
/// leave behind just what the comparison record by record leaves behind.
///
///     random past of a, b and c ──┬── copies ── exchange, record by record ──┐
///                                 └── copies ── exchange, page by page ──────┴── equal
///
/// The past has everything in it that versions can be: writes of three replicas, deletions,
/// records that expire, values that lie apart, exchanges that broke off in the middle, datasets
/// deleted, stores compacted, a clock that is hours ahead.
@Suite(.serialized)
struct PageMergeTests {
    /// A store in a folder of its own, which can be copied.
    private struct Side {
        let path: String
        let clock: TestClock
        var store: Store

        init(_ path: String, clock: TestClock = TestClock()) throws {
            self.path = path
            self.clock = clock
            store = try Self.open(path, clock)
        }

        static func open(_ path: String, _ clock: TestClock) throws -> Store {
            try Store.open(
                at: path,
                options: StoreOptions(
                    durability: .memory, author: String(path.suffix(1)), segmentBytes: 1 << 20,
                    blockCacheBytes: 1 << 20, historyVersions: 1, compactsAutomatically: false,
                    largeValueBytes: 200), storage: ClockedStorage(clock))
        }

        func copied(to copy: String) throws -> Side {
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            return try Side(copy, clock: clock)
        }

        var dataset: Dataset { get throws { try store.dataset("notes") } }
    }

    /// Everything that an exchange can have changed.
    private struct State: Equatable {
        struct Line: Equatable {
            let key: [UInt8]
            let value: [UInt8]?
            let dot: Dot
            let vector: VersionVector
            let author: String
            let expiresAt: UInt64?
            let syncCount: SyncCount
            let isDirty: Bool
            /// nil of a write that the exchange made: clocks go on.
            let time: HybridTime?
        }

        var lines: [Line] = []
        var vector: VersionVector?
        var wiped: VersionVector?
        var isDeleted = false
        var syncCount = SyncCount.zero
        var checkpoints: [PeerCheckpoint] = []
        var names: [String] = []
        var isVisible = false

        init(_ side: Side, peers: [ReplicaID], old: Set<Dot>) throws {
            names = try side.store.datasetNamesForSync()
            guard let dataset = try side.store.datasetForSync("notes", creating: false) else {
                return
            }
            let knowledge = try dataset.knowledge()
            vector = knowledge.vector
            wiped = knowledge.lifecycle.wiped
            isDeleted = knowledge.lifecycle.isDeleted
            syncCount = knowledge.syncCount
            checkpoints = try peers.map { try dataset.checkpoint(for: $0) }
            isVisible = try side.store.existingDataset("notes") != nil
            // Those of a deleted dataset, too.
            let page = try dataset.changesPage(
                since: .zero, recordsMax: .max, bytesMax: .max, excluding: VersionVector())
            lines = page.records.map { record in
                let isOld = old.contains(record.version.dot)
                return Line(
                    key: record.key, value: record.value, dot: record.version.dot,
                    vector: record.version.vector, author: record.version.author,
                    expiresAt: record.expiresAt, syncCount: record.syncCount,
                    isDirty: record.isDirty, time: isOld ? record.version.time : nil)
            }
        }
    }

    private static let policies: [(String, MergePolicy)] = [
        ("last writer wins", .lastWriterWins), ("keep local", .keepLocal),
        ("keep remote", .keepRemote),
        ("custom", .custom { .value(($0.local.value ?? []) + ($0.remote.value ?? [])) }),
    ]

    @Test(arguments: policies.indices)
    func pagesComeToTheSameAsRecords(_ number: Int) async throws {
        let (name, policy) = Self.policies[number]
        print("pagesComeToTheSameAsRecords, \(name): TIDEMARK_SEED=\(baseSeed)")
        var conflicts = 0
        var moved = 0
        for seed in baseSeed..<baseSeed + 60 {
            let counted = try await compare(seed: seed, policy)
            conflicts += counted.conflicts
            moved += counted.moved
        }
        // A run in which nothing met would prove nothing.
        #expect(conflicts > 60 && moved > 600, "\(conflicts) conflicts, \(moved) records moved")
    }

    private func compare(
        seed: UInt64, _ policy: MergePolicy
    ) async throws -> (conflicts: Int, moved: Int) {
        let directory = TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: directory.path, withIntermediateDirectories: true)
        var random = SeededGenerator(seed: seed)
        let sides = try await past(in: directory, &random)
        let ids = sides.map(\.store.replicaID)
        var old: Set<Dot> = []
        for side in sides {
            let state = try State(side, peers: [], old: [])
            old.formUnion(state.lines.map(\.dot))
            try side.store.close()
        }
        let options = SyncOptions(
            policy: policy, pageRecordsMax: Int.random(in: 1...40, using: &random),
            onDatasetDeleted: .discardLocal)
        var states: [[State]] = []
        var results: [[SyncResult]] = []
        for way in ["records", "pages"] {
            var options = options
            options.comparesOneByOne = way == "records"
            let a = try sides[0].copied(to: "\(directory.path)/\(way)-a")
            let b = try sides[1].copied(to: "\(directory.path)/\(way)-b")
            let responder = SyncResponder(
                store: b.store, comparesOneByOne: options.comparesOneByOne)
            var found: [SyncResult] = []
            do throws(SyncError) {
                found = try await a.store.synchronize(
                    with: InMemoryTransport(responder), options: options)
            } catch {
                // A handler cannot be asked about a record that outlived its dataset.
                let isGone = error.storeError?.code == .datasetNotFound
                #expect(isGone || error.code == .contended, "seed \(seed): \(error)")
            }
            states.append([
                try State(a, peers: ids, old: old),
                try State(b, peers: ids, old: old),
            ])
            results.append(found)
            // What is held because of a clock that is ahead is not in the records yet.
            let held =
                try found.isEmpty
                ? 0 : a.dataset.quarantined().count + b.dataset.quarantined().count
            if !found.isEmpty, held == 0 {
                #expect(try a.dataset.digest() == b.dataset.digest(), "seed \(seed)")
            }
            for (side, before) in zip([a, b], states[states.count - 1]) {
                try expectTheSameAgain(side, before, peers: ids, old: old, "seed \(seed)")
            }
        }
        #expect(states[0] == states[1], "seed \(seed)")
        // Not the bytes, since times in new versions differ.
        #expect(
            results[0].map(\.counts) == results[1].map(\.counts), "seed \(seed)")
        return (
            results[1].reduce(0) { $0 + $1.conflicts },
            results[1].reduce(0) { $0 + $1.pulled + $1.pushed }
        )
    }

    /// What is in the log says the same as what was in memory.
    private func expectTheSameAgain(
        _ side: Side, _ before: State, peers: [ReplicaID], old: Set<Dot>, _ comment: Comment
    ) throws {
        try side.store.close()
        let again = try Side(side.path, clock: side.clock)
        let state = try State(again, peers: peers, old: old)
        #expect(state.lines == before.lines, comment)
        #expect(state.vector == before.vector, comment)
        try again.store.close()
    }

    private static let keys = (0..<40).map { Array("key \($0)".utf8) }

    private func past(
        in directory: TemporaryDirectory, _ random: inout SeededGenerator
    ) async throws -> [Side] {
        let sides = try ["a", "b", "c"].map { try Side("\(directory.path)/\($0)") }
        for _ in 0..<Int.random(in: 10...60, using: &random) {
            let side = sides[Int.random(in: 0..<3, using: &random)]
            switch Int.random(in: 0..<40, using: &random) {
            case 0: try side.store.deleteDataset("notes")
            case 1...2: try side.store.compact()
            case 3...8: try await exchange(side, sides, &random)
            // By an hour, which the others do not believe.
            case 9 where side.path.hasSuffix("b"): side.clock.putForward(bySeconds: 3_600)
            default: try edit(side, &random)
            }
        }
        return sides
    }

    private func edit(_ side: Side, _ random: inout SeededGenerator) throws {
        let dataset = try side.dataset
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            let key = Self.keys[Int.random(in: 0..<Self.keys.count, using: &random)]
            // Few different ones, so that equal ones meet; some lie apart once they are sealed.
            let value = [UInt8](
                repeating: UInt8.random(in: 0..<4, using: &random),
                count: [0, 1, 50, 300][Int.random(in: 0..<4, using: &random)])
            switch Int.random(in: 0..<10, using: &random) {
            case 0...1: try dataset.delete(key)
            case 2:
                // Long past, or in the year 2096.
                let time: UInt64 = Bool.random(using: &random) ? 1_000 : 4_000_000_000_000
                try dataset.put(value, for: key, expiresAt: time)
            default: try dataset.put(value, for: key)
            }
        }
    }

    /// With one of the others, often broken off in the middle.
    private func exchange(
        _ side: Side, _ sides: [Side], _ random: inout SeededGenerator
    ) async throws {
        let other = sides[Int.random(in: 0..<3, using: &random)]
        guard other.path != side.path else { return }
        let transport = FaultyTransport(
            SyncResponder(store: other.store), .losesAnswer,
            after: Int.random(in: 1...8, using: &random))
        let options = SyncOptions(
            pageRecordsMax: Int.random(in: 1...10, using: &random),
            onDatasetDeleted: .keepAndRecreate)
        do throws(SyncError) {
            try await side.store.synchronize(with: transport, options: options)
        } catch {
            // A clock that is ahead may be in the way of a key.
            #expect([.unreachable, .contended].contains(error.code), "\(error)")
        }
    }

    /// What is beyond the limits of the store is refused as a whole.
    @Test func aPageBeyondTheLimitsChangesNothing() async throws {
        let directory = TemporaryDirectory()
        let a = try TestReplica("a", in: directory)
        let id = ReplicaID(high: 7, low: 7)
        let knowledge = PeerKnowledge(
            vector: VersionVector([Dot(replica: id, counter: 2)]), syncCount: 2,
            lifecycle: PeerLifecycle(
                isDeleted: false, wiped: VersionVector(), time: .zero, replica: id))
        func record(_ key: String, counter: UInt64, time: UInt64 = 5) -> Record {
            Record(
                key: Array(key.utf8), value: [1],
                version: Version(
                    dot: Dot(replica: id, counter: counter), vector: VersionVector(),
                    time: HybridTime(rawValue: time)),
                syncCount: 1, isDirty: false)
        }
        let good = record("good", counter: 1)
        for bad in [
            record("bad", counter: 1 << 60), record("bad", counter: 2, time: 1 << 63),
        ] {
            let push = PushRequest(
                address: Address(from: id, to: a.store.replicaID, dataset: "notes"), since: 0,
                acknowledged: 0,
                page: RecordPage(
                    records: [good, bad], through: 2, isLast: true, knowledge: knowledge))
            let answer = try SyncMessage(
                MessageFrame.decoded(
                    a.responder.respond(to: SyncMessage.push(push).encoded())))
            guard case .failure(let failure) = answer else {
                Issue.record("\(answer)")
                continue
            }
            #expect(failure.code == "recordRefused")
            #expect(try a.dataset().records(includingDeleted: true).collect().isEmpty)
            #expect(try a.dataset().vector.isEmpty)
        }
    }
}

extension SyncResult {
    fileprivate var counts: [Int] {
        [
            pulled, pushed, conflicts, pagesSent, pagesReceived, attempts,
            Int(localSyncCount.rawValue), Int(remoteSyncCount.rawValue),
        ] + settled.flatMap { [$0.key.hashValue, $0.decision.hashValue] }
    }
}
