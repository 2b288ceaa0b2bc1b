import TestSupport
import Testing
import Tidemark

/// A page of a value file that the disk cannot read is an error for whoever asks for a value in it,
/// and for nobody else: other values are read, writers go on, merges leave the values where they
/// are, and repair loses these alone.
///
/// The simulated disk has garbage in such a page. So a value that is used without asking the disk
/// for it first is not just an error of another kind, `corruption`: on a real one it is a signal.
@Suite("Bad sectors under large values")
struct LargeValueSectorTests {
    private static let count = 24
    private static let valueBytes = 3_000
    /// With the header; a multiple of eight, so nothing lies between blocks.
    private static let blockBytes = 3_024
    private static let pageBytes = 4_096
    private static let pageCount = (80 + count * blockBytes + pageBytes - 1) / pageBytes

    private var options: StoreOptions {
        var options = apartOptions(1_000)
        options.compression = .none
        return options
    }

    private func key(_ number: Int) -> [UInt8] { bytes("key \(100 + number)") }

    private func value(_ number: Int) -> [UInt8] {
        var random = SeededGenerator(Seed(UInt64(number)))
        return random.bytes(Self.valueBytes)
    }

    /// The values of which a part lies in a page: they follow each other in the order of the keys.
    private func lost(_ page: Int) -> Set<Int> {
        let start = page * Self.pageBytes
        return Set(
            (0..<Self.count).filter { number in
                let block = 80 + number * Self.blockBytes
                return block < start + Self.pageBytes && block + Self.blockBytes > start
            })
    }

    /// A closed store with one value file, of which a page cannot be read.
    private func spoiled(_ page: Int) throws -> (storage: SimulatedStorage, path: String) {
        let storage = SimulatedStorage(seed: Seed(3))
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        for number in 0..<Self.count { try dataset.put(value(number), for: key(number)) }
        try store.compact()
        try store.close()
        let names = try storage.listDirectory(simulatedPath).filter { $0.hasSuffix(".val") }
        let path = "\(simulatedPath)/\(try #require(names.first))"
        let size = try #require(storage.contents(of: path)).count
        try #require(names.count == 1 && size == 80 + Self.count * Self.blockBytes)
        let start = page * Self.pageBytes
        storage.spoil(start..<min(start + Self.pageBytes, size), of: path)
        return (storage, path)
    }

    @Test("Each way of reading says so, and everything else goes on", arguments: 1..<pageCount)
    func reading(page: Int) throws {
        let (storage, path) = try spoiled(page)
        let observer = RecordingObserver()
        let store = try Store.open(
            at: simulatedPath, options: options, storage: storage, observer: observer)
        let dataset = try store.dataset("main")
        let lost = lost(page)
        try #require(!lost.isEmpty && lost.count <= 3)
        for number in 0..<Self.count {
            try check(dataset, number, isLost: lost.contains(number), at: path)
        }
        // Whoever came upon it: verification, which tells what it finds, comes later.
        #expect(store.counters().damages > 0)
        #expect(try dataset.keys().collect().count == Self.count)
        #expect(try dataset.size().valueBytes == Self.count * Self.valueBytes)
        expectError(.inputOutput) { try dataset.records().collect() }
        expectError(.inputOutput) { try dataset.records(order: .backward).collect() }
        expectError(.inputOutput) { try dataset.changes(since: 0).collect() }
        expectError(.inputOutput) { try dataset.digest() }
        expectError(.inputOutput) {
            try dataset.changesPage(
                since: 0, recordsMax: 100, bytesMax: 1 << 20, excluding: VersionVector())
        }
        let damages = try store.verify().damages
        #expect(!damages.isEmpty)
        for damage in damages {
            #expect(damage.code == .inputOutput && damage.location?.path == path)
        }
        // A merge leaves the values where they lie.
        try store.compact()
        for number in lost { try dataset.put("new", for: "key \(100 + number)") }
        try store.sync()
        try store.close()
        let told = observer.events.compactMap { event in
            if case .damageFound(let error) = event { error } else { nil }
        }
        #expect(!told.isEmpty && told.allSatisfy { $0.location?.path == path })
        #expect(store.counters().damages == told.count)
        #expect(!store.counters().isWriterStopped)
    }

    private func check(
        _ dataset: Dataset, _ number: Int, isLost: Bool, at path: String
    ) throws {
        let (key, store) = (key(number), dataset.store)
        let snapshot = try store.snapshot()
        let readers: [() throws -> [UInt8]?] = [
            { try dataset.get(key) }, { try dataset.record(for: key)?.value },
            { try dataset.withValue(for: key) { Self.copy($0) } },
            { try dataset.history(of: key).first?.value },
            { try dataset.records(in: .only(key)).next()?.value },
            { try snapshot.get(key, in: dataset) },
            { try store.transaction { try $0.get(key, in: dataset) } },
        ]
        for read in readers {
            guard isLost else {
                #expect(try read() == value(number))
                continue
            }
            let error = expectError(.inputOutput) { try read() }
            #expect(error?.location?.path == path && error?.location?.offset != nil)
        }
        #expect(try dataset.contains(key))
        snapshot.close()
    }

    private static func copy(_ span: RawSpan?) -> [UInt8]? {
        guard let span else { return nil }
        return unsafe span.withUnsafeBytes { unsafe Array($0) }
    }

    @Test("Where values are moved those stay, until nobody needs them", arguments: [1, 8, 17])
    func moving(page: Int) throws {
        let (storage, path) = try spoiled(page)
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        let lost = lost(page)
        let others = Set((0..<Self.count).filter { !lost.contains($0) }.prefix(4))
        for number in 0..<Self.count where !lost.contains(number) && !others.contains(number) {
            try dataset.delete(key(number))
        }
        for _ in 0..<2 {
            try store.compact()
            #expect(storage.contents(of: path) != nil)
            #expect(try dataset.count() == lost.count + others.count)
            for number in others { #expect(try dataset.get(key(number)) == value(number)) }
            for number in lost { expectError(.inputOutput) { try dataset.get(key(number)) } }
            try dataset.put("1", for: "another")
            try dataset.delete("another")
        }
        for number in lost { try dataset.delete(key(number)) }
        try store.compact()
        #expect(storage.contents(of: path) == nil)
        #expect(try store.verify().damages.isEmpty)
        for number in others { #expect(try dataset.get(key(number)) == value(number)) }
        try store.close()
    }

    @Test("A backup that has to copy the file fails, and the store goes on")
    func backup() throws {
        let (storage, path) = try spoiled(5)
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        let error = expectError(.inputOutput) {
            try store.backup(to: "/copied", linksFiles: false)
        }
        #expect(error?.location?.path == path)
        try dataset.put("1", for: "another")
        try store.sync()
        try store.backup(to: "/linked")
        try store.close()
    }

    @Test("Repair loses the values in the page, and no other", arguments: 0..<pageCount)
    func repair(page: Int) throws {
        let (storage, path) = try spoiled(page)
        let lost = lost(page)
        let report = try Store.repair(at: simulatedPath, to: "/repaired", storage: storage)
        #expect(report.losses.count == lost.count)
        #expect(report.losses.allSatisfy { path.hasSuffix($0.file) && $0.kind == .block })
        let repaired = try Store.open(at: "/repaired", options: options, storage: storage)
        let dataset = try repaired.dataset("main")
        #expect(try dataset.count() == Self.count - lost.count)
        for number in 0..<Self.count {
            #expect(try dataset.get(key(number)) == (lost.contains(number) ? nil : value(number)))
        }
        #expect(try repaired.verify().damages.isEmpty)
        try repaired.close()
    }

    /// As if it were damaged: what the store is made of must be known before anything is written.
    @Test("A header that cannot be read keeps the store from being opened")
    func header() throws {
        let (storage, path) = try spoiled(0)
        for isReadOnly in [true, false] {
            var options = options
            options.isReadOnly = isReadOnly
            let error = expectError(.inputOutput) { try openSimulated(storage, options) }
            #expect(error?.location?.path == path)
        }
    }
}
