import TestSupport
import Testing
import Tidemark

/// Opening knows from the manifest when the first sealed record expires, so that a store whose
/// records do not expire is never walked over for any that have.
@Suite("Expiry after opening")
struct ExpiryOpeningTests {
    /// When the first record of the sealed segments expires, by the manifest as the article on the
    /// format describes it; nil if none does.
    private func firstExpiry(in storage: SimulatedStorage) throws -> UInt64? {
        let file = try #require(storage.contents(of: "\(simulatedPath)/MANIFEST"))
        var rest = file.dropFirst(80 + 24 + 16)
        func varint() -> UInt64 {
            var (number, shift): (UInt64, UInt64) = (0, 0)
            while let byte = rest.popFirst() {
                number |= UInt64(byte & 0x7F) << shift
                if byte < 0x80 { break }
                shift += 7
            }
            return number
        }
        let formerIDs = Int(varint())
        rest = rest.dropFirst(16 * formerIDs)
        for _ in 0..<4 { _ = varint() }
        let mark = varint()
        return mark == 0 ? nil : mark - 1
    }

    @Test("Without records that expire nothing is ever looked for")
    func never() throws {
        var clocked = try ClockedStore()
        for index in 0..<200 { try clocked.store.dataset("d\(index)").put("1", for: "a") }
        try clocked.store.compact()
        #expect(try firstExpiry(in: clocked.storage) == nil)
        for _ in 0..<2 {
            try clocked.reopen()
            clocked.wait(1_000_000_000)
            #expect(try clocked.store.deleteExpired() == 0)
            #expect(clocked.store.counters().expirySweeps == 0)
            #expect(clocked.store.datasetStatesInMemory == 1)
        }
    }

    @Test("With some, not before the first of them is due, and not again after the last has gone")
    func whenDue() throws {
        var clocked = try ClockedStore()
        let (first, second) = (clocked.now + 1_000, clocked.now + 5_000)
        try clocked.dataset.put("1", for: "a", expiresAt: second)
        try clocked.store.dataset("other").put("1", for: "b", expiresAt: first)
        try clocked.dataset.put("1", for: "stays")
        try clocked.store.compact()
        #expect(try firstExpiry(in: clocked.storage) == first)
        try clocked.reopen()
        clocked.storage.clockMilliseconds = first - 1
        #expect(try clocked.store.deleteExpired() == 0)
        #expect(clocked.store.counters().expirySweeps == 0)
        clocked.wait(1)
        #expect(try clocked.store.deleteExpired() == 1)
        #expect(try clocked.store.deleteExpired() == 0)
        #expect(clocked.store.counters().expirySweeps == 1)
        try clocked.store.compact()
        #expect(try firstExpiry(in: clocked.storage) == second)
        try clocked.reopen()
        clocked.storage.clockMilliseconds = second
        #expect(try clocked.store.deleteExpired() == 1)
        try clocked.store.compact()
        #expect(try firstExpiry(in: clocked.storage) == nil)
        try clocked.reopen()
        clocked.wait(1_000_000_000)
        #expect(try clocked.store.deleteExpired() == 0)
        #expect(clocked.store.counters().expirySweeps == 0)
        #expect(try clocked.dataset.records().keyTexts() == ["stays"])
    }

    @Test("What lies in the log alone counts as well")
    func inTheLog() throws {
        var clocked = try ClockedStore()
        try clocked.dataset.put("1", for: "stays")
        try clocked.store.compact()
        try clocked.dataset.put("1", for: "a", expiresAt: clocked.now + 100)
        try clocked.reopen()
        #expect(try firstExpiry(in: clocked.storage) == nil)
        clocked.wait(100)
        #expect(try clocked.store.deleteExpired() == 1)
    }

    /// Were the bound lost anywhere on the way, an expired record would stay.
    @Test("Random stores: after any opening a sweep finds all that is due, and no more")
    func random() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            var clocked = try ClockedStore(seed: Seed(random.next()))
            let names = ["main", "x", "y"]
            var expected: [String: [String: UInt64]] = [:]
            for _ in 0..<600 {
                let name = random.element(of: names)
                let key = "\(random.below(20))"
                switch random.below(12) {
                case 0: clocked.wait(UInt64(random.below(400)))
                case 1: try clocked.store.compact()
                case 2: try clocked.reopen()
                case 3:
                    try clocked.store.deleteDataset(name)
                    expected[name] = nil
                case 4:
                    try clocked.store.dataset(name).delete(key)
                    expected[name]?[key] = nil
                case 5:
                    let due = expected.mapValues { $0.filter { $0.value <= clocked.now }.count }
                    let count = try clocked.store.deleteExpired()
                    try require(
                        count == due.values.reduce(0, +), "\(count) swept, \(due) were due")
                    for (name, keys) in expected {
                        expected[name] = keys.filter { $0.value > clocked.now }
                    }
                default:
                    let end = random.oneIn(2) ? 0 : clocked.now + UInt64(random.below(1_000))
                    try clocked.store.dataset(name).put("1", for: key, expiresAt: end)
                    expected[name, default: [:]][key] = end > 0 ? end : nil
                }
            }
            try clocked.store.close()
        }
    }

    @Test(
        "The background deletes what was sealed, closed and due",
        .timeLimit(.minutes(Patience.minutes)))
    func background() throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        let fixture = try StoreFixture(options)
        try fixture.dataset.put("1", for: "a", timeToLive: .milliseconds(1))
        try fixture.store.compact()
        try fixture.store.close()
        options.compactsAutomatically = true
        let store = try Store.open(at: fixture.path, options: options)
        waitUntil { store.counters().recordsExpired == 1 }
        try store.close()
    }
}
