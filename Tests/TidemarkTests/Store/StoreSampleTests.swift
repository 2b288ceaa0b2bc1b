import TestSupport
import Testing
import Tidemark

/// Some entries that stand for all.
struct StoreSampleTests {
    let fixture: StoreFixture

    init() throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.compression = .none
        fixture = try StoreFixture(options)
    }

    private func sample(about entriesMax: Int) throws -> (SampleReport, [SampledEntry]) {
        var entries: [SampledEntry] = []
        let report = try fixture.store.sampleEntries(about: entriesMax) { entries.append($0) }
        return (report, entries)
    }

    private func fill(_ range: Range<Int>, _ value: String) throws {
        for number in range { try fixture.dataset.put(value, for: "key \(100_000 + number)") }
    }

    @Test func aSmallStoreIsSampledWhole() throws {
        try fill(0..<100, "four")
        try fixture.store.sealAll()
        try fill(50..<60, "newer")
        try fixture.dataset.delete("key 100000")
        let (report, entries) = try sample(about: 1_000)
        #expect(report.isWhole && report.entriesTotal == 111)
        #expect(entries.count == 111)
        #expect(entries.allSatisfy { $0.weight == 1 && $0.keyBytes == 10 })
        #expect(entries.filter(\.isDeletion).map(\.valueBytes) == [0])
        #expect(entries.filter { $0.valueBytes == 4 }.count == 100)
        #expect(entries.filter { $0.valueBytes == 5 }.count == 10)
        let now = SystemStorage().wallClockMilliseconds()
        #expect(entries.allSatisfy { $0.writtenAt <= now && $0.writtenAt > now - 3_600_000 })
    }

    /// The weights of what was looked at come to what there is.
    @Test func aSampleStandsForAll() throws {
        let text = String(repeating: "x", count: 100)
        try fill(0..<8_000, text)
        try fixture.store.sealAll()
        try fill(8_000..<9_000, text)
        let (report, entries) = try sample(about: 900)
        #expect(report.entriesTotal == 9_000 && !report.isWhole)
        #expect(report.entriesSampled == entries.count && (600...1_500).contains(entries.count))
        let weight = entries.reduce(0) { $0 + $1.weight }
        #expect((7_500...10_500).contains(weight), "\(weight)")
    }

    @Test func valuesThatLieApartCountWhole() throws {
        try fixture.dataset.put(String(repeating: "x", count: 100_000), for: "large")
        try fixture.store.sealAll()
        let (_, entries) = try sample(about: 10)
        #expect(entries.map(\.valueBytes) == [100_000])
    }

    /// What the store remembers for itself is no user's record.
    @Test func theStoresOwnRecordsAreLeftOut() throws {
        try fixture.dataset.put("value", for: "key")
        try fixture.store.systemDataset(.conflicts).put("note", for: "note")
        #expect(try sample(about: 10).0.entriesTotal == 1)
        try fixture.store.sealAll()
        #expect(try sample(about: 10).0.entriesTotal == 1)
    }

    /// Damage costs its block and no more.
    @Test func aDamagedBlockIsPassedOver() throws {
        try fill(0..<1_000, String(repeating: "x", count: 100))
        try fixture.store.sealAll()
        try fixture.store.close()
        let name = try #require(try Files.list(fixture.path).first { $0.hasSuffix(".seg") })
        let path = "\(fixture.path)/\(name)"
        let byte = try Files.read(path)[20_000]
        try Files.overwrite([byte ^ 1], in: path, at: 20_000)
        let store = try Store.open(at: fixture.path, options: StoreOptions(isReadOnly: true))
        var count = 0
        let report = try store.sampleEntries(about: 10_000) { _ in count += 1 }
        #expect(report.blocksDamaged == 1 && !report.isWhole)
        #expect(report.entriesTotal == 1_000 && (900..<1_000).contains(count))
        try store.close()
    }
}
