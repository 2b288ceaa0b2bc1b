import Synchronization
import TestSupport
import Testing
import Tidemark

/// Spans of keys in which nothing lives are jumped over once a walk has found them, and no walk
/// ever misses a record for that.
@Suite("Gaps")
struct GapTests {
    private func key(_ number: Int) -> [UInt8] {
        bytes(String(String(100_000 + number).dropFirst()))
    }

    /// - Parameter runsInline: whether the store has no threads of its own. A walk waits for nobody
    ///   to leave its note, so where notes are counted nobody else may hold the store's lock.
    private func filled(_ count: Int, runsInline: Bool = true) throws -> StoreFixture {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.runsInline = runsInline
        let fixture = try StoreFixture(options)
        for number in 0..<count { try fixture.dataset.put([1], for: key(number)) }
        return fixture
    }

    private func first(
        of fixture: StoreFixture, in range: KeyRange = .all, _ order: ScanOrder = .forward
    ) throws -> [UInt8]? {
        try fixture.dataset.keys(in: range, order: order, limit: 1).next()
    }

    // MARK: - Plain cases

    @Test("What was deleted at either end is passed over once", arguments: [false, true])
    func bothEnds(seals: Bool) throws {
        let fixture = try filled(3_000)
        // With two runs, so that merging drops no tombstone.
        if seals { try fixture.store.compact() }
        for number in 0..<1_000 { try fixture.dataset.delete(key(number)) }
        for number in 2_000..<3_000 { try fixture.dataset.delete(key(number)) }
        #expect(fixture.store.gapsNoted == 0)
        #expect(try first(of: fixture) == key(1_000))
        #expect(fixture.store.gapsNoted == 1)
        #expect(try first(of: fixture, .backward) == key(1_999))
        #expect(fixture.store.gapsNoted == 2)
        let uses = fixture.store.gapUseCount
        #expect(try first(of: fixture) == key(1_000))
        #expect(try first(of: fixture, in: .prefix(bytes("0")), .forward) == key(1_000))
        #expect(try first(of: fixture, in: KeyRange(from: key(500))) == key(1_000))
        #expect(try first(of: fixture, .backward) == key(1_999))
        #expect(try first(of: fixture, in: KeyRange(upTo: key(2_500)), .backward) == key(1_999))
        #expect(fixture.store.gapUseCount == uses + 5, "each began behind the gap")
        #expect(try fixture.dataset.count() == 1_000)
        #expect(try first(of: fixture, in: KeyRange(from: key(5), upTo: key(999))) == nil)
        #expect(try first(of: fixture, in: KeyRange(from: key(2_000))) == nil)
    }

    @Test("In one run, where tombstones stay for the sake of history")
    func oneRun() throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.runsInline = true
        options.historyVersions = 1
        let fixture = try StoreFixture(options)
        for number in 0..<3_000 { try fixture.dataset.put([1], for: key(number)) }
        for number in 0..<2_000 { try fixture.dataset.delete(key(number)) }
        for number in 2_500..<3_000 { try fixture.dataset.delete(key(number)) }
        try fixture.store.compact()
        for _ in 0..<2 {
            #expect(try first(of: fixture) == key(2_000))
            #expect(try fixture.dataset.count() == 500)
            #expect(try first(of: fixture, in: KeyRange(from: key(2_500))) == nil)
        }
        #expect(fixture.store.gapsNoted == 2)
        try fixture.dataset.put([2], for: key(700))
        #expect(try first(of: fixture) == key(700))
        #expect(try fixture.dataset.count() == 501)
    }

    @Test("A queue is taken from the front, and its gap grows with it")
    func queue() throws {
        let fixture = try filled(0)
        for number in 0..<400 { try fixture.dataset.put([1], for: key(number)) }
        for number in 0..<2_000 {
            #expect(try first(of: fixture) == key(number))
            try fixture.dataset.delete(key(number))
            try fixture.dataset.put([1], for: key(number + 400))
        }
        #expect(fixture.store.gapsNoted == 1)
    }

    @Test("Whatever puts a record into a gap cuts it, as of that moment")
    func puts() throws {
        let fixture = try filled(1_000)
        for number in 0..<900 { try fixture.dataset.delete(key(number)) }
        let before = try fixture.store.snapshot()
        #expect(try first(of: fixture) == key(900))
        try fixture.dataset.put([2], for: key(800))
        #expect(try first(of: fixture) == key(800))
        var batch = WriteBatch()
        batch.put([2], for: key(700), in: fixture.dataset)
        try fixture.store.write(batch)
        #expect(try first(of: fixture) == key(700))
        try fixture.store.transaction { transaction in
            try transaction.put([2], for: key(600), in: fixture.dataset)
        }
        #expect(try first(of: fixture) == key(600))
        #expect(try first(of: fixture, in: KeyRange(from: key(601))) == key(700))
        #expect(try first(of: fixture, in: KeyRange(upTo: key(900)), .backward) == key(800))
        let seen = try before.keys(of: fixture.dataset, limit: 1).next()
        #expect(seen == key(900), "a snapshot stays at its moment")
    }

    @Test("A snapshot from before the deletions sees all of it")
    func olderSnapshot() throws {
        let fixture = try filled(1_000)
        let snapshot = try fixture.store.snapshot()
        for number in 0..<900 { try fixture.dataset.delete(key(number)) }
        #expect(try fixture.dataset.count() == 100)
        #expect(try first(of: fixture) == key(900))
        #expect(fixture.store.gapsNoted == 1)
        #expect(try snapshot.count(of: fixture.dataset) == 1_000)
        #expect(try snapshot.keys(of: fixture.dataset, limit: 1).next() == key(0))
        let past = try fixture.store.snapshot(
            at: SyncCount(rawValue: 1_000), of: fixture.dataset)
        #expect(try past.keys(of: fixture.dataset).collect().count == 1_000)
    }

    @Test("A dataset that is deleted and made again has no gaps of the former one")
    func recreation() throws {
        let fixture = try filled(500)
        for number in 0..<400 { try fixture.dataset.delete(key(number)) }
        #expect(try first(of: fixture) == key(400))
        try fixture.store.deleteDataset("main")
        let again = try fixture.store.dataset("main")
        for number in 0..<500 { try again.put([3], for: key(number)) }
        #expect(try again.keys().collect().count == 500)
    }

    @Test("No more gaps are kept than there is room for")
    func bound() throws {
        let fixture = try filled(10_000)
        for number in 0..<10_000 where number % 200 != 0 { try fixture.dataset.delete(key(number)) }
        for _ in 0..<3 { #expect(try fixture.dataset.count() == 50) }
        #expect((1...16).contains(fixture.store.gapsNoted))
    }

    // MARK: - Several threads

    /// Property: whoever has put a record finds it, or one before it, with the first walk after.
    ///
    ///     putters   put k -- walk: first <= k, last >= k -- delete k
    ///     walkers   walk, noting gaps, all the time
    ///     scouts    do the same from the first key on
    @Test("Who has put a record into a gap finds it at once")
    func threads() throws {
        let fixture = try filled(2_000, runsInline: false)
        for number in 0..<2_000 { try fixture.dataset.delete(key(number)) }
        let dataset = fixture.dataset
        let isOver = Atomic<Bool>(false)
        let missed = Mutex<[String]>([])
        let putters: [@Sendable () throws -> Void] = [0, 1].map { part in
            {
                for round in 0..<400 {
                    let own = key(100 + 900 * part + round * 2)
                    try dataset.put([1], for: own)
                    let first = try dataset.keys(limit: 1).next()
                    let last = try dataset.keys(order: .backward, limit: 1).next()
                    if first.map({ Bytes.precedes(own, $0) }) ?? true
                        || last.map({ Bytes.precedes($0, own) }) ?? true
                    {
                        missed.withLock { $0.append("\(round) of \(part)") }
                    }
                    try dataset.delete(own)
                }
                isOver.store(true, ordering: .releasing)
            }
        }
        let walkers: [@Sendable () throws -> Void] = [ScanOrder.forward, .backward].map { order in
            {
                while !isOver.load(ordering: .acquiring) {
                    _ = try dataset.keys(order: order).collect()
                }
            }
        }
        let store = fixture.store
        let scouts: [@Sendable () throws -> Void] = [0, 1_500].map { start in
            {
                while !isOver.load(ordering: .acquiring) {
                    try store.scout(dataset, from: key(start), partMax: 300)
                }
            }
        }
        try runOnThreads(putters + walkers + scouts)
        #expect(missed.withLock { $0 }.isEmpty)
    }
}
