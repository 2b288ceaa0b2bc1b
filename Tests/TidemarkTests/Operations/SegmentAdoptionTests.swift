import TestSupport
import Testing
import Tidemark

/// A replica that has nothing of a dataset takes over the sealed blocks of one that has: then it
/// holds what the other had sealed, version by version, in the same stored bytes.
@Suite("Adoption of segments")
struct SegmentAdoptionTests {
    private func requireEqual(_ source: Dataset, _ target: Dataset) throws {
        try require(allVersions(target) == allVersions(source), "versions differ")
        try require(target.digest() == source.digest(), "digests differ")
        try require(target.syncCount == source.syncCount, "sync counts differ")
        try require(target.vector == source.vector, "vectors differ")
        func changes(_ dataset: Dataset) throws -> [Record] {
            let page = try dataset.changesPage(
                since: .zero, recordsMax: .max, bytesMax: .max, excluding: VersionVector())
            return withoutDirtiness(page.records)
        }
        try require(changes(target) == changes(source), "changes differ")
    }

    @Test(
        "History, tombstones and expiry come along, in the same bytes",
        arguments: [Compression.lz4, .none], [0, 3])
    func wholeDataset(compression: Compression, versions: Int) throws {
        withSeed(for: "wholeDataset(\(compression), \(versions))") { seed in
            var random = SeededGenerator(seed)
            var fixture = try AdoptionFixture(
                adoptionOptions(compression: compression, historyVersions: versions))
            let source = try fixture.source.dataset("main")
            try AdoptionFixture.fill(source, &random, writes: 3_000, seals: 3) {
                try fixture.source.sealAll()
            }
            try fixture.source.sealAll()
            let target = try fixture.target.dataset("main")
            let offer = try #require(try source.segmentOffer(bytesMin: 0))
            try require(offer.runs.count >= 3, "\(offer.runs.count) runs")
            let count = try adoptWhole(source, into: target)
            try require((count ?? 0) > 1_000, "\(count ?? -1) records")
            try requireEqual(source, target)
            let adopted = try #require(try target.segmentOffer(bytesMin: 0))
            try require(
                storedPayload(target, adopted) == storedPayload(source, offer),
                "the stored bytes are others")
            try requireSound(fixture.target)
            // It is a dataset like any other: writes go on, merges take it in, and it stays.
            try target.put("new", for: "new")
            try source.put("new", for: "new")
            try fixture.target.compact()
            try requireSound(fixture.target)
            try require(
                target.records().collect().map(\.key) == source.records().collect().map(\.key),
                "keys differ after a merge")
            let before = try StoreContents(fixture.target)
            fixture = try fixture.reopenedTarget()
            try require(StoreContents(fixture.target) == before, "opening found another content")
        }
    }

    @Test("Random stores with several datasets, one after the other", arguments: 0..<6)
    func randomStores(run: Int) throws {
        withSeed(for: "randomStores(\(run))") { seed in
            var random = SeededGenerator(seed)
            let fixture = try AdoptionFixture(
                adoptionOptions(
                    compression: random.oneIn(2) ? .lz4 : .none,
                    historyVersions: random.below(3)))
            var names = ["a", "main", "z", "other"]
            names.shuffle(using: &random)
            for name in names { _ = try fixture.source.dataset(name) }
            for _ in 0..<(1 + random.below(5)) {
                for name in names {
                    let dataset = try fixture.source.dataset(name)
                    try AdoptionFixture.fill(dataset, &random, writes: 1 + random.below(400))
                }
                if random.oneIn(4) { try fixture.source.compact() }
                try fixture.source.sealAll()
            }
            names.shuffle(using: &random)
            var adoptedCount = 0
            for name in names {
                let source = try fixture.source.dataset(name)
                let target = try fixture.target.dataset(name)
                guard try source.segmentOffer(bytesMin: 0) != nil else {
                    // Few writes, and each a deletion that nobody has to hear of.
                    try require(source.count() == 0, "\(name) is not offered")
                    continue
                }
                let count = try adoptWhole(source, into: target, bytesMax: random.below(9_000))
                try require(count != nil, "\(name) was not taken over")
                adoptedCount += 1
                try requireEqual(source, target)
            }
            try require(adoptedCount > 0, "nothing was taken over")
            try requireSound(fixture.target)
            let before = try StoreContents(fixture.target)
            try fixture.target.compact()
            try requireSound(fixture.target)
            // What was deleted is forgotten, since the one peer has it, and nothing else is.
            let merged = try StoreContents(fixture.target)
            try require(merged.live == before.live, "a merge found another content")
            try requireForgotten(in: fixture.target, since: before)
            let again = try fixture.reopenedTarget()
            try require(StoreContents(again.target) == merged, "opening found another content")
        }
    }

    /// Every deletion that is not there any more is noted as forgotten.
    private func requireForgotten(in store: Store, since before: StoreContents) throws {
        for (name, content) in before.datasets {
            let dataset = try store.dataset(name)
            let forgotten = try dataset.knowledge().forgotten
            for record in content.records where record.isDeleted {
                let isThere = try dataset.record(for: record.key, includingDeleted: true) != nil
                try require(
                    isThere || forgotten.covers(record.version),
                    "\(record.version.dot) of \(name) is gone, and nobody knows")
            }
        }
    }

    @Test("Nothing of other datasets leaves, nor who wrote there")
    func privacy() throws {
        let directory = try TemporaryDirectory()
        let canary = "canary of somebody else"
        func opened(_ author: String) throws -> Store {
            try Store.open(
                at: directory["source"],
                options: adoptionOptions(compression: .none, author: author))
        }
        for (round, author) in [canary, "we", canary].enumerated() {
            let store = try opened(author)
            let names = author == canary ? ["a", "z"] : ["main"]
            for name in names {
                let dataset = try store.dataset(name)
                for number in 0..<40 {
                    try dataset.put(author, for: "\(author) \(number) \(round)")
                }
            }
            try store.close()
        }
        let store = try opened("we")
        try store.compact()
        let dataset = try store.dataset("main")
        let offer = try #require(try dataset.segmentOffer(bytesMin: 0))
        var sent = offer.runs.joined().flatMap(\.tables)
        sent += try storedPayload(dataset, offer)
        func holds(_ text: String) -> Bool {
            let wanted = Array(text.utf8)
            return sent.indices.contains { sent[$0...].starts(with: wanted) }
        }
        #expect(holds("we 39"))
        #expect(!holds("canary"))
        #expect(!holds("somebody"))
        let target = try Store.open(at: directory["target"], options: adoptionOptions())
        let copy = try target.dataset("main")
        #expect(try adoptWhole(dataset, into: copy) == 40)
        #expect(try allVersions(copy) == allVersions(dataset))
        try requireSound(target)
    }

    @Test("Without its number, with a record of its own, or deleted, it is not taken over")
    func conditions() throws {
        let fixture = try AdoptionFixture()
        let source = try fixture.source.dataset("main")
        for number in 0..<100 { try source.put("\(number)", for: "\(number)") }
        try fixture.source.sealAll()
        let offer = try #require(try source.segmentOffer(bytesMin: 0))
        #expect(try source.segmentOffer(bytesMin: 1 << 30) == nil)
        // Its number is that of another dataset, which has had a record.
        let other = try fixture.target.dataset("other")
        try other.put("1", for: "its own")
        try other.delete("its own")
        let target = try fixture.target.dataset("main")
        #expect(try target.beginAdoption(of: offer) == nil)
        // It has the number itself, and a record.
        let second = try Store.open(at: fixture.directory["second"], options: adoptionOptions())
        let own = try second.dataset("main")
        #expect(try own.canBeAdopted())
        let adoption = try #require(try own.beginAdoption(of: offer))
        try fetch(adoption, from: source)
        try own.put("mine", for: "mine")
        #expect(try adoption.install(from: fixture.source.replicaID) == nil)
        #expect(try own.records().collect().map(\.keyText) == ["mine"])
        #expect(try !own.canBeAdopted())
        #expect(try own.beginAdoption(of: offer) == nil)
        try requireSound(second)
        #expect(try Files.list(second.path).filter { $0.hasSuffix(".seg") }.isEmpty)
        // It is gone.
        let third = try Store.open(at: fixture.directory["third"], options: adoptionOptions())
        let gone = try third.dataset("main")
        try third.deleteDataset("main")
        #expect(try gone.beginAdoption(of: offer) == nil)
        // The peer's deletion goes the way of records.
        try fixture.source.deleteDataset("main")
        #expect(try source.segmentOffer(bytesMin: 0) == nil)
    }

    @Test("Values that lie apart go record by record")
    func valuesApart() throws {
        let fixture = try AdoptionFixture()
        let source = try fixture.source.dataset("main")
        try source.put([UInt8](repeating: 1, count: 5_000), for: [1])
        try fixture.source.sealAll()
        #expect(try source.segmentOffer(bytesMin: 0) == nil)
    }

    @Test("Cut off, it goes on where it was, also when some segments were merged meanwhile")
    func goingOn() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let fixture = try AdoptionFixture()
            let source = try fixture.source.dataset("main")
            try AdoptionFixture.fill(source, &random, writes: 2_000, seals: 4) {
                try fixture.source.sealAll()
            }
            let target = try fixture.target.dataset("main")
            func begun() throws -> SegmentAdoption {
                let offer = try #require(try source.segmentOffer(bytesMin: 0))
                return try #require(try target.beginAdoption(of: offer))
            }
            var adoption = try begun()
            try fetch(adoption, from: source, bytesMax: 3_000, ranges: 15)
            let missing = adoption.missing.map { $0.first }
            try require(missing.contains { $0 > 0 }, "no segment is half there: \(missing)")
            adoption.rest()
            adoption = try begun()
            try require(adoption.missing.map { $0.first } == missing, "it does not go on")
            adoption.rest()
            try source.put("late", for: "late")
            try fixture.source.compact()
            adoption = try begun()
            try require(adoption.missing.map { $0.first } == [0], "what was merged is kept")
            try fetch(adoption, from: source)
            _ = try adoption.install(from: fixture.source.replicaID)
            try requireEqual(source, target)
            try requireSound(fixture.target)
            let segments = try Files.list(fixture.target.path).filter { $0.hasSuffix(".seg") }
            try require(segments.count == 1, "left over: \(segments)")
        }
    }

    @Test("A transaction that read nothing does not commit after the records came")
    func transactions() throws {
        let fixture = try AdoptionFixture()
        let source = try fixture.source.dataset("main")
        for number in 0..<100 { try source.put("\(number)", for: "\(number)") }
        try fixture.source.sealAll()
        // Of the same number here, so that the dataset has it before and after.
        let target = try fixture.target.dataset("main")
        let transaction = try fixture.target.beginTransaction()
        #expect(try transaction.text("7", in: target) == nil)
        try transaction.put("nothing was there", for: "result", in: target)
        let snapshot = try fixture.target.snapshot()
        #expect(try adoptWhole(source, into: target) == 100)
        #expect(try target.text("7") == "7")
        #expect(try snapshot.record(for: bytes("7"), in: target) == nil)
        expectError(.transactionConflict) { try transaction.commit() }
        #expect(try target.text("result") == nil)
    }

    @Test("Before the log is sealed a backup, a repair and the list of operations know of it")
    func operations() throws {
        let fixture = try AdoptionFixture()
        let source = try fixture.source.dataset("main")
        for number in 0..<100 { try source.put("\(number)", for: "\(number)") }
        try fixture.source.sealAll()
        let target = try fixture.target.dataset("main")
        #expect(try adoptWhole(source, into: target) == 100)
        try target.put("after", for: "after")
        let versions = try allVersions(target)
        let operations = try fixture.target.operations()
        var kinds: Set<LogOperation.Kind> = []
        while let operation = try operations.next() { kinds.insert(operation.kind) }
        #expect(kinds.contains(.datasetAdopted))
        let directory = fixture.directory
        try fixture.target.backup(to: directory["backup"])
        try Store.restore(from: directory["backup"], to: directory["restored"])
        try fixture.target.close()
        try Store.repair(at: directory["target"], to: directory["repaired"])
        for name in ["restored", "repaired"] {
            let store = try Store.open(at: directory[name], options: adoptionOptions())
            let copy = try store.dataset("main")
            let found = try allVersions(copy).map { $0.map(\.value) }
            #expect(found == versions.map { $0.map(\.value) })
            #expect(try copy.syncCount == 101)
            try requireSound(store)
        }
    }
}

extension AdoptionFixture {
    fileprivate func reopenedTarget() throws -> AdoptionFixture {
        try target.close()
        return AdoptionFixture(
            directory: directory, source: source,
            target: try Store.open(at: directory["target"], options: adoptionOptions()))
    }

    private init(directory: TemporaryDirectory, source: Store, target: Store) {
        self.directory = directory
        self.source = source
        self.target = target
    }
}
