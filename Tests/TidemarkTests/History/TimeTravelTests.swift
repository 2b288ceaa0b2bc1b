import TestSupport
import Testing
import Tidemark

/// Every change that a dataset ever saw, so that every past moment can be computed.
private struct Past {
    struct Change {
        let syncCount: UInt64
        let key: [UInt8]
        let value: [UInt8]?
        /// From which on it can be read.
        let time: HybridTime
        let expiresAt: UInt64?
    }

    private(set) var changes: [Change] = []
    /// Nothing before can be told: the dataset was deleted then.
    private(set) var wipedAt: (syncCount: UInt64, milliseconds: UInt64) = (0, 0)

    /// Takes up what the dataset tells to be new: one change for each key at most.
    mutating func learn(from dataset: Dataset, since syncCount: SyncCount) throws {
        for record in try dataset.changes(since: syncCount).collect() {
            // What expired without a trace yet was taken up when it was written.
            guard !changes.contains(where: { $0.syncCount == record.syncCount.rawValue }) else {
                continue
            }
            let ended = record.isDeleted ? record.expiresAt : nil
            let expired = ended.map { HybridTime(milliseconds: $0, counter: 0) } ?? .zero
            changes.append(
                Change(
                    syncCount: record.syncCount.rawValue, key: record.key, value: record.value,
                    time: max(record.version.time, expired), expiresAt: record.expiresAt))
        }
    }

    mutating func wipe(syncCount: UInt64, at milliseconds: UInt64) {
        changes = []
        wipedAt = (syncCount, milliseconds)
    }

    /// The live records at a moment.
    func values(at moment: PastMoment) -> [[UInt8]: [UInt8]] {
        var newest: [[UInt8]: Change] = [:]
        for change in changes {
            switch moment {
            case .syncCount(let count) where change.syncCount <= count.rawValue:
                newest[change.key] = change
            case .time(let time) where change.time <= time: newest[change.key] = change
            default: break
            }
        }
        return newest.compactMapValues { change in
            if case .time(let time) = moment, let end = change.expiresAt,
                end <= time.milliseconds
            {
                return nil
            }
            return change.value
        }
    }

    /// Of a key, newest first.
    func versions(of key: [UInt8]) -> [Change] {
        changes.filter { $0.key == key }.reversed()
    }
}

/// A random life of a dataset, looked back upon again and again. Whatever the store answers about
/// the past must be what the model knows; and it must answer whatever its options promise.
private struct TimeTravelRun {
    var random: SeededGenerator
    var clocked: ClockedStore
    var past = Past()
    var answered = 0
    var refused = 0

    init(_ seed: Seed, versions: Int, age: UInt64) throws {
        random = SeededGenerator(seed)
        clocked = try ClockedStore(
            seed: Seed(random.next()), historyVersions: versions,
            historyAge: .milliseconds(age))
    }

    var keys: [[UInt8]] { (0..<8).map { [UInt8($0)] } }

    mutating func run(steps: Int) throws {
        for number in 0..<steps {
            try step()
            if number % 5 == 0 { try lookBack() }
            if number % 50 == 0 { try checkHistory() }
        }
        try clocked.store.close()
    }

    private mutating func step() throws {
        let dataset = clocked.dataset
        let before = try dataset.syncCount
        switch random.below(40) {
        case 0: try clocked.store.compact()
        case 1 where random.oneIn(2): try clocked.reopen()
        case 2: try clocked.store.deleteExpired()
        case 3, 4, 5: clocked.wait(UInt64(random.below(30)))
        case 6, 7: try dataset.delete(random.element(of: keys))
        case 8 where random.oneIn(8):
            let count = try dataset.syncCount.rawValue
            try clocked.store.deleteDataset("main")
            _ = try clocked.store.dataset("main")
            past.wipe(syncCount: count, at: clocked.now)
            return
        case 9: try clocked.store.dataset("other").put([1], for: random.element(of: keys))
        default:
            let end = random.oneIn(4) ? clocked.now + UInt64(1 + random.below(60)) : 0
            try dataset.put(
                random.bytes(1 + random.below(8)), for: random.element(of: keys), expiresAt: end)
        }
        try past.learn(from: clocked.dataset, since: before)
    }

    private mutating func lookBack() throws {
        let last = try clocked.dataset.syncCount.rawValue
        try check(.syncCount(SyncCount(rawValue: last)), isPromised: true)
        // The clock of the stamps may be ahead of the wall's.
        let latest = past.changes.map(\.time.milliseconds).max() ?? 0
        try check(
            .milliseconds(clocked.now),
            isPromised: latest <= clocked.now && past.wipedAt.milliseconds < clocked.now)
        let count = UInt64(random.below(Int(last) + 1))
        try check(.syncCount(SyncCount(rawValue: count)), isPromised: false)
        guard !past.changes.isEmpty else { return }
        let stamp = random.element(of: past.changes).time.rawValue
        let time = HybridTime(rawValue: stamp - 1 + UInt64(random.below(3)))
        let age = clocked.options.historyAge.components
        let milliseconds =
            UInt64(age.seconds) * 1_000 + UInt64(age.attoseconds / 1_000_000_000_000_000)
        guard time.milliseconds <= clocked.now else { return }
        try check(
            .time(time),
            isPromised: time.milliseconds > clocked.now - milliseconds
                && time.milliseconds > past.wipedAt.milliseconds)
    }

    private mutating func check(_ moment: PastMoment, isPromised: Bool) throws {
        let mustRefuse =
            switch moment {
            case .syncCount(let count): count.rawValue < past.wipedAt.syncCount
            case .time(let time): time.milliseconds < past.wipedAt.milliseconds
            }
        let start = try clocked.dataset.historyStart()
        let isBefore =
            switch moment {
            case .syncCount(let count): count < start.syncCount
            case .time(let time): time < start.time
            }
        do {
            let snapshot = try snapshot(at: moment)
            let expected = past.values(at: moment)
            if random.oneIn(10) { try clocked.store.compact() }
            try compare(snapshot, expected, moment)
            try require(!mustRefuse && !isBefore, "\(moment) was answered")
            answered += 1
        } catch let error as StoreError where error.code == .historyExpired {
            try require(isBefore && !isPromised, "\(moment) was refused: \(error)")
            refused += 1
        }
    }

    private func snapshot(at moment: PastMoment) throws -> Snapshot {
        switch moment {
        case .syncCount(let count):
            return try clocked.store.snapshot(at: count, of: clocked.dataset)
        case .time(let time): return try clocked.store.snapshot(at: time)
        }
    }

    private mutating func compare(
        _ snapshot: Snapshot, _ expected: [[UInt8]: [UInt8]], _ moment: PastMoment
    ) throws {
        let dataset = clocked.dataset
        let key = random.element(of: keys)
        let value = try snapshot.get(key, in: dataset)
        try require(value == expected[key], "get \(key) at \(moment) gives \(value as Any)")
        let bound = random.element(of: keys)
        let range = random.oneIn(2) ? KeyRange.all : KeyRange(from: bound, upTo: [bound[0] + 4])
        let within = expected.filter { entry in
            range.lowerBound.map { !entry.key.lexicographicallyPrecedes($0) } ?? true
                && range.upperBound.map { entry.key.lexicographicallyPrecedes($0) } ?? true
        }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        for order in [ScanOrder.forward, .backward] {
            let records = try snapshot.records(of: dataset, in: range, order: order).collect()
            let ordered = order == .forward ? within : within.reversed()
            try require(
                records.map(\.key) == ordered.map(\.key)
                    && records.map(\.value) == ordered.map(\.value),
                "\(order) scan at \(moment): \(records.map(\.key)), not \(ordered.map(\.key))")
        }
        let count = try snapshot.count(of: dataset)
        try require(count == expected.count, "count at \(moment) is \(count)")
    }

    /// Of each key its newest versions are there, as many as the options promise.
    private func checkHistory() throws {
        let options = clocked.options
        for key in keys {
            let expected = past.versions(of: key)
            let found = try clocked.dataset.history(of: key)
            try require(
                zip(found, found.dropFirst()).allSatisfy { $0.syncCount > $1.syncCount },
                "the history of \(key) is out of order")
            // Without history a tombstone goes with all that it superseded.
            if expected.first?.value == nil, options.historyVersions == 0 { continue }
            let promised = min(expected.count, 1 + options.historyVersions)
            for (index, change) in expected.enumerated() {
                let isYoung =
                    index > 0 && options.historyAge > .zero
                    && Duration.milliseconds(clocked.now)
                        < Duration.milliseconds(expected[index - 1].time.milliseconds)
                        + options.historyAge
                let match = found.first { $0.syncCount.rawValue == change.syncCount }
                // So does one that was the last word for longer than the age, before the key was
                // put again: without it the key is as absent as it says.
                if match == nil, change.value == nil, options.historyVersions == 0 { break }
                try require(
                    index >= promised && !isYoung || match != nil,
                    """
                    the version \(change.syncCount) of \(key) is gone, there are \
                    \(found.map(\.syncCount)) of \(expected.map(\.syncCount))
                    """)
                try require(
                    match.map { $0.value == change.value } ?? true,
                    "the version \(change.syncCount) of \(key) has another value")
            }
            let first = try clocked.dataset.history(of: key, limit: 2)
            try require(first == Array(found.prefix(2)), "a limit gives others")
        }
    }
}

/// What is read as of a past moment is what could be read then, or it is refused.
@Suite("Time travel")
struct TimeTravelTests {
    struct Plan: Sendable, CustomTestStringConvertible {
        let versions: Int
        let age: UInt64
        var testDescription: String { "\(versions) versions, \(age) ms" }
    }

    static let plans = [
        Plan(versions: 0, age: 0), Plan(versions: 3, age: 0), Plan(versions: 0, age: 100),
        Plan(versions: 2, age: 300), Plan(versions: 1_000_000, age: 0),
    ]

    @Test("Random changes, looked back upon through compaction and reopening", arguments: plans)
    func randomRun(_ plan: Plan) {
        withSeed(for: "randomRun(\(plan.testDescription))") { seed in
            var run = try TimeTravelRun(seed, versions: plan.versions, age: plan.age)
            try run.run(steps: 1_200)
            try require(run.answered > 300, "only \(run.answered) answers")
            try require(plan.versions > 100 || run.refused > 0, "nothing was ever refused")
        }
    }

    @Test("Old moments are refused once compaction has dropped what they need")
    func refusal() throws {
        var clocked = try ClockedStore()
        let dataset = clocked.dataset
        try dataset.put("1", for: "a")
        try dataset.put("1", for: "b")
        clocked.wait(10)
        try dataset.put("2", for: "a")
        #expect(try dataset.get("a", at: .syncCount(1)) == bytes("1"))
        #expect(try dataset.get("b", at: .syncCount(1)) == nil)
        #expect(try dataset.count(at: .milliseconds(clocked.now - 1)) == 2)
        #expect(try dataset.historyStart().syncCount == 0)
        try clocked.store.compact()
        try clocked.reopen()
        #expect(try clocked.dataset.historyStart().syncCount == 3)
        expectError(.historyExpired) { try clocked.dataset.get("b", at: .syncCount(2)) }
        expectError(.historyExpired) {
            try clocked.dataset.count(at: .milliseconds(clocked.now - 1))
        }
        #expect(try clocked.dataset.get("a", at: .syncCount(3)) == bytes("2"))
        #expect(try clocked.dataset.get("a", at: .milliseconds(clocked.now)) == bytes("2"))
    }

    @Test("A deleted dataset takes its past with it")
    func deletedDataset() throws {
        let clocked = try ClockedStore(historyVersions: 10)
        try clocked.dataset.put("1", for: "a")
        clocked.wait(5)
        try clocked.store.deleteDataset("main")
        expectError(.datasetNotFound) { try clocked.dataset.get("a", at: .syncCount(1)) }
        let again = try clocked.store.dataset("main")
        expectError(.historyExpired) { try again.get("a", at: .syncCount(0)) }
        expectError(.historyExpired) { try again.get("a", at: .milliseconds(clocked.now - 1)) }
        // The deletion counts as a change, the second one.
        expectError(.historyExpired) { try again.get("a", at: .syncCount(1)) }
        #expect(try again.get("a", at: .syncCount(2)) == nil)
    }

    @Test("Moments that have not come yet are refused, and what was answered stays")
    func future() throws {
        let clocked = try ClockedStore()
        let dataset = clocked.dataset
        try dataset.put("1", for: "a")
        expectError(.invalidArgument) { try dataset.get("a", at: .syncCount(2)) }
        expectError(.invalidArgument) { try dataset.get("a", at: .milliseconds(clocked.now + 1)) }
        let now = PastMoment.milliseconds(clocked.now)
        #expect(try dataset.get("a", at: now) == bytes("1"))
        try dataset.put("2", for: "a")
        #expect(try dataset.get("a", at: now) == bytes("1"))
        #expect(try dataset.text("a") == "2")
    }

    @Test("A snapshot of the past outlives compaction; it tells no changes, and of one dataset")
    func snapshots() throws {
        let clocked = try ClockedStore()
        try clocked.dataset.put("1", for: "a")
        let snapshot = try clocked.store.snapshot(at: 1, of: clocked.dataset)
        let cursor = try clocked.dataset.records(at: .syncCount(1))
        try clocked.dataset.put("2", for: "a")
        try clocked.store.compact()
        #expect(try snapshot.get(bytes("a"), in: clocked.dataset) == bytes("1"))
        #expect(try cursor.next()?.valueText == "1")
        expectError(.invalidArgument) { try snapshot.changes(of: clocked.dataset, since: 0) }
        let other = try clocked.store.dataset("other")
        expectError(.invalidArgument) { try snapshot.count(of: other) }
    }

    @Test("The option historyAge is checked")
    func options() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        for age in [Duration.seconds(-1), .seconds(4_000_000_000)] {
            expectError(.invalidArgument) {
                try openSimulated(storage, StoreOptions(historyAge: age))
            }
        }
    }
}
