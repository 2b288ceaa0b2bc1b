import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A dataset as a version vector knew it, held against what it was at that moment.
struct KnowledgeTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// A moment of a dataset: what it had seen, and what it held.
    private struct Moment {
        let vector: VersionVector
        /// Live records.
        let records: [[UInt8]: Record]

        init(_ dataset: Dataset) throws {
            vector = try dataset.vector
            let all = try dataset.records().collect()
            records = Dictionary(uniqueKeysWithValues: all.map { ($0.key, $0) })
        }
    }

    // MARK: - Small cases

    @Test func aDatasetAsAPeerSawIt() async throws {
        try put("1", a)
        try put("1", a, "gone later")
        try await a.dataset().synchronize(with: b.transport)
        let seen = try Moment(b.dataset())
        try put("2", a)
        try put("new", a, "other")
        try a.dataset().delete("gone later")
        let dataset = try a.dataset()
        let vector = try dataset.vector(knownTo: b.store.replicaID)
        #expect(vector == seen.vector)
        let records = try dataset.records(asKnownTo: vector)
        let known = try records.collect()
        #expect(known.map(\.keyText) == ["gone later", "key"])
        #expect(known.map(\.valueText) == ["1", "1"])
        #expect(known.allSatisfy { $0.isCertain })
        #expect(records.isWhole && records.uncertainCount == 0)
        #expect(try dataset.record(for: "key", asKnownTo: vector).valueText == "1")
        #expect(try dataset.record(for: "other", asKnownTo: vector).record == nil)
        let changes = try dataset.changes(from: vector, to: try dataset.vector).collect()
        #expect(changes.map { $0.before.valueText } == ["1", "1", nil])
        #expect(changes.map { $0.after.valueText } == [nil, "2", "new"])
        #expect(changes.map { $0.after.record?.isDeleted } == [true, false, false])
        #expect(changes.allSatisfy { $0.isCertain })
        // Nobody knows what nobody has seen.
        #expect(try dataset.records(asKnownTo: VersionVector()).collect().isEmpty)
        #expect(try dataset.vector(knownTo: a.store.replicaID).isEmpty)
        let all = try dataset.records(asKnownTo: try dataset.vector, includesDeleted: true)
        #expect(try all.collect().count == 3)
        let some = try dataset.records(asKnownTo: vector, in: .prefix("k"))
        #expect(try some.collect().map(\.keyText) == ["key"])
    }

    @Test func theSidesOfAConflictAreKnownApart() async throws {
        try put("base", a)
        try await a.dataset().synchronize(with: b.transport)
        try put("ours", a)
        try put("theirs", b)
        let (ours, theirs) = (try Moment(a.dataset()), try Moment(b.dataset()))
        try await a.dataset().synchronize(
            with: b.transport,
            options: SyncOptions(policy: .custom { _ in .value(Array("both".utf8)) }))
        let dataset = try a.dataset()
        #expect(try dataset.record(for: "key", asKnownTo: ours.vector).valueText == "ours")
        #expect(try dataset.record(for: "key", asKnownTo: theirs.vector).valueText == "theirs")
        let both = try dataset.vector
        #expect(try dataset.record(for: "key", asKnownTo: both).valueText == "both")
        let changes = try dataset.changes(from: ours.vector, to: theirs.vector).collect()
        #expect(changes.map { $0.before.valueText } == ["ours"])
        #expect(changes.map { $0.after.valueText } == ["theirs"])
    }

    @Test func droppedHistoryIsSaid() async throws {
        try put("1", a)
        try put("1", a, "still")
        let early = try a.dataset().vector
        try put("2", a)
        let late = try a.dataset().vector
        try put("3", a, "another")
        try a.store.compact()
        let dataset = try a.dataset()
        #expect(try dataset.historyStart().syncCount == 3)
        let key = try dataset.record(for: "key", asKnownTo: early)
        #expect(key.record == nil && !key.isCertain)
        let still = try dataset.record(for: "still", asKnownTo: early)
        #expect(still.valueText == "1" && still.isCertain)
        let records = try dataset.records(asKnownTo: early)
        #expect(!records.isWhole)
        #expect(try records.collect().map(\.keyText) == ["still"])
        #expect(!records.isWhole && records.uncertainCount == 2)
        // The later moment is whole: what it does not know is kept.
        let whole = try dataset.records(asKnownTo: late)
        #expect(try whole.collect().map(\.valueText) == ["2", "1"])
        #expect(whole.isWhole)
        let changes = try dataset.changes(from: early, to: late)
        let found = try changes.collect()
        #expect(found.map { $0.after.valueText } == ["2"] && found.allSatisfy { !$0.isCertain })
        #expect(changes.uncertainCount == 1)
    }

    /// A key that is gone with all its versions is in no walk.
    @Test func aCollectedDeletionIsNotTakenForNothing() throws {
        try put("1", a)
        let early = try a.dataset().vector
        try a.dataset().delete("key")
        try put("1", a, "other")
        try a.store.compact()
        let records = try a.dataset().records(asKnownTo: early)
        #expect(try records.collect().isEmpty)
        #expect(!records.isWhole)
    }

    // MARK: - Random stores

    /// One store that keeps two versions of each key and is compacted now and then: whatever is
    /// called certain is what it was, and what is called whole lacks nothing.
    @Test(arguments: 0..<6)
    func whatIsCertainIsRight(_ run: UInt64) throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let store = try Store.open(
            at: "\(a.directory.path)/own",
            options: StoreOptions(
                durability: .memory, segmentBytes: 1 << 20,
                historyVersions: Int.random(in: 0...2, using: &random),
                compactsAutomatically: false))
        let dataset = try store.dataset("notes")
        var moments: [Moment] = []
        for _ in 0..<300 {
            let key = "key \(Int.random(in: 0..<12, using: &random))"
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<13: try dataset.put("\(random.next() % 1_000)", for: key)
            case 13..<16: try dataset.delete(key)
            case 16..<19: moments.append(try Moment(dataset))
            default: try store.compact()
            }
        }
        moments.append(try Moment(dataset))
        var (wholeCount, uncertainCount) = (0, 0)
        for moment in moments {
            let records = try dataset.records(asKnownTo: moment.vector)
            let known = try records.collect()
            uncertainCount += records.uncertainCount + known.filter { !$0.isCertain }.count
            for one in known where one.isCertain {
                #expect(
                    one.record?.version.dot == moment.records[one.key]?.version.dot,
                    "seed \(seed)")
                #expect(one.value == moment.records[one.key]?.value, "seed \(seed)")
            }
            guard records.isWhole else { continue }
            wholeCount += 1
            let keys = known.filter { $0.value != nil }.map(\.key)
            #expect(Set(keys) == Set(moment.records.keys), "seed \(seed)")
        }
        // The last moment is the present one.
        #expect(wholeCount > 0, "seed \(seed)")
        print("whatIsCertainIsRight: \(wholeCount) of \(moments.count), \(uncertainCount) not sure")
        try store.close()
    }

    /// Two replicas that meet now and then: whenever they were equal, either can later tell what
    /// both held then, and what has changed from one such moment to another.
    @Test(arguments: 0..<6)
    func whatBothHeldIsTold(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let policies: [MergePolicy] = [
            .lastWriterWins, .keepLocal, .keepRemote,
            .custom { .value(($0.local.value ?? []) + ($0.remote.value ?? [])) },
        ]
        for replica in [a, b] { _ = try replica.dataset() }
        var moments: [Moment] = []
        for _ in 0..<10 {
            for _ in 0..<Int.random(in: 0..<10, using: &random) {
                let replica = Bool.random(using: &random) ? a : b
                let key = "key \(Int.random(in: 0..<6, using: &random))"
                if Int.random(in: 0..<5, using: &random) == 0 {
                    try replica.dataset().delete(key)
                } else {
                    try replica.dataset().put("\(random.next() % 1_000)", for: key)
                }
            }
            let policy = policies[Int.random(in: 0..<4, using: &random)]
            try await a.dataset().synchronize(
                with: b.transport, options: SyncOptions(policy: policy))
            moments.append(try Moment(a.dataset()))
            #expect(try a.dataset().vector(knownTo: b.store.replicaID) == moments.last?.vector)
        }
        for replica in [a, b] {
            let dataset = try replica.dataset()
            for moment in moments {
                let records = try dataset.records(asKnownTo: moment.vector)
                let known = try records.collect()
                #expect(records.isWhole && known.allSatisfy { $0.isCertain }, "seed \(seed)")
                #expect(Set(known.map(\.key)) == Set(moment.records.keys), "seed \(seed)")
                for one in known {
                    let then = moment.records[one.key]
                    #expect(one.record?.version.dot == then?.version.dot, "seed \(seed)")
                    #expect(one.value == then?.value, "seed \(seed)")
                }
            }
            let before = moments[Int.random(in: 0..<10, using: &random)]
            let after = moments[Int.random(in: 0..<10, using: &random)]
            let changes = try dataset.changes(from: before.vector, to: after.vector).collect()
            for change in changes {
                #expect(change.before.value == before.records[change.key]?.value, "seed \(seed)")
                #expect(change.after.value == after.records[change.key]?.value, "seed \(seed)")
            }
            let changed = Set(changes.map(\.key))
            for key in Set(before.records.keys).union(after.records.keys) {
                let isSame =
                    before.records[key]?.version.dot == after.records[key]?.version.dot
                #expect(changed.contains(key) == !isSame, "seed \(seed)")
            }
        }
    }
}
