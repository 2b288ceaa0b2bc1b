import TestSupport
import Testing
import Tidemark

/// Whatever is damaged, every version in a block that is whole comes back, with its version, and
/// every block that is not is reported.
@Suite("Repair")
struct RepairTests {
    private func flip(_ name: String, _ offset: Int, of store: DamagedStore) throws {
        let whole = try #require(store.files[name])
        try Files.overwrite([whole[offset] ^ 0x10], in: "\(store.path)/\(name)", at: offset)
    }

    /// Whether a version lies in a block that has any of the damaged bytes of its file.
    private func isHit(_ version: RepairedStore.Saved, _ hits: [(String, Int)]) -> Bool {
        hits.contains { $0.0 == version.file && version.range.contains($0.1) }
    }

    /// Blocks of the log that follow a damaged one may use what that one defined.
    private func mayLack(_ version: RepairedStore.Saved, _ hits: [(String, Int)]) -> Bool {
        version.file.hasSuffix(".log")
            && hits.contains { $0.0 == version.file && $0.1 < version.range.lowerBound }
    }

    @Test("A whole store is repaired to itself, and nothing is reported", arguments: [true, false])
    func whole(hasManifest: Bool) throws {
        let damaged = try RepairedStore()
        if !hasManifest { try Files.remove("\(damaged.store.path)/MANIFEST") }
        let report = try damaged.checkRepair { _ in false }
        #expect(report.isComplete == hasManifest)
        #expect(report.losses.map(\.kind) == (hasManifest ? [] : [.manifest]))
        #expect(report.datasets.map(\.name) == ["main", "other"])
        #expect(report.datasets.allSatisfy { $0.entriesLost == 0 && $0.versionsLost == 0 })
        let saved = report.datasets.reduce(0) { $0 + $1.entriesSaved }
        #expect(saved == damaged.versions.count)
    }

    @Test("Each data block and each block of the log in turn", arguments: [true, false])
    func eachBlock(hasManifest: Bool) throws {
        let damaged = try RepairedStore()
        let blocks = Set(damaged.versions.map { "\($0.file) \($0.range.lowerBound)" })
        #expect(blocks.count > 16)
        // The block with the states of datasets comes first, and may hold records as well.
        for version in damaged.versions {
            guard blocks.contains("\(version.file) \(version.range.lowerBound)") else { continue }
            try damaged.store.restore()
            if !hasManifest { try Files.remove("\(damaged.store.path)/MANIFEST") }
            let hit = (version.file, version.range.lowerBound + 30)
            try flip(hit.0, hit.1, of: damaged.store)
            let report = try damaged.checkRepair(
                mayLoseNames: version.file.hasSuffix(".seg") && version.range.lowerBound == 80,
                mayLoseVersion: { mayLack($0, [hit]) }
            ) { isHit($0, [hit]) }
            if version.file.hasSuffix(".seg") {
                let lost = damaged.versions.count { isHit($0, [hit]) }
                #expect(report.datasets.reduce(0) { $0 + $1.entriesLost } == lost)
            }
        }
    }

    @Test("Any bytes of any file, with and without the rest of the segment's indexes")
    func anyBytes() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let damaged = try RepairedStore()
            let segment = try damaged.store.file(".seg")
            let log = try damaged.store.file(".log")
            for _ in 0..<150 {
                try damaged.store.restore()
                var hits: [(String, Int)] = []
                var isMangled = false
                for _ in 0...random.below(4) {
                    let name = random.oneIn(3) ? log : segment
                    let used = name == log ? 1_200 : damaged.store.files[name]?.count ?? 0
                    hits.append((name, random.below(used)))
                    try flip(name, hits.last?.1 ?? 0, of: damaged.store)
                }
                let hasManifest = !random.oneIn(4)
                if !hasManifest { try Files.remove("\(damaged.store.path)/MANIFEST") }
                // Without the secret nothing is known for the store's own.
                let isSecretLost =
                    !hasManifest && ![segment, log].contains { damaged.tellsSecret($0, hits) }
                if random.oneIn(4) {
                    // Nothing is left behind the data blocks.
                    isMangled = true
                    try Files.overwrite(
                        random.bytes(damaged.indexRange.count),
                        in: "\(damaged.store.path)/\(segment)", at: damaged.indexRange.lowerBound)
                }
                let hasSegmentVersions =
                    !isMangled
                    && !hits.contains { $0.0 == segment && damaged.indexRange.contains($0.1) }
                let hasTimes = !hits.contains { $0.0 == log && $0.1 < 80 }
                do {
                    try damaged.checkRepair(
                        mayLoseNames: true,
                        mayLoseVersion: { version in
                            version.file == segment
                                ? !hasSegmentVersions
                                : !hasTimes || mayLack(version, hits)
                        }
                    ) { isSecretLost || isHit($0, hits) }
                } catch {
                    throw Mismatch("damage at \(hits), indexes mangled \(isMangled): \(error)")
                }
            }
        }
    }

    /// 56..<72 is the secret itself.
    @Test("Headers of all files that are damaged lose nothing but what they say", arguments: 0..<80)
    func headers(offset: Int) throws {
        let damaged = try RepairedStore()
        try Files.remove("\(damaged.store.path)/MANIFEST")
        let isSecretLost = (56..<72).contains(offset)
        for ending in [".seg", ".log"] {
            try flip(damaged.store.file(ending), offset, of: damaged.store)
        }
        let report = try damaged.checkRepair(
            mayLoseNames: isSecretLost, mayLoseVersion: { $0.file.hasSuffix(".log") }
        ) { _ in isSecretLost }
        #expect(!report.isComplete)
    }

    @Test("A file that is missing or cut short", arguments: [".seg", ".log"], [true, false])
    func missing(ending: String, isCut: Bool) throws {
        let damaged = try RepairedStore()
        let name = try damaged.store.file(ending)
        let path = "\(damaged.store.path)/\(name)"
        let length = ending == ".seg" ? 1_200 : 500
        if isCut { try Files.truncate(path, to: length) } else { try Files.remove(path) }
        let report = try damaged.checkRepair(
            mayLoseNames: ending == ".seg" && !isCut,
            mayLoseVersion: { $0.file == name && ending == ".seg" }
        ) { version in
            version.file == name && (!isCut || version.range.upperBound > length)
        }
        #expect(report.losses.contains { $0.kind == (isCut ? .block : .missingFile) })
    }

    @Test("A segment of which next to nothing is left is told as a loss", arguments: [0, 40, 80])
    func cutToNothing(length: Int) throws {
        let damaged = try RepairedStore()
        let name = try damaged.store.file(".seg")
        try Files.truncate("\(damaged.store.path)/\(name)", to: length)
        let report = try damaged.checkRepair(mayLoseNames: true) { $0.file == name }
        let expected = try #require(damaged.store.files[name]).count
        #expect(report.losses.map(\.file) == [name])
        #expect(report.losses.first?.offset == UInt64(length))
        #expect(report.losses.first?.byteCount == UInt64(expected - length))
    }

    @Test("A file of another store is left out, and reported", arguments: [true, false])
    func foreign(hasManifest: Bool) throws {
        let damaged = try RepairedStore()
        let other = try DamagedStore(logWrites: 3)
        try Files.write(
            try #require(other.files[other.file(".log")]), to: "\(damaged.store.path)/000099.log")
        let name = try damaged.store.file(".log")
        try Files.write(
            try #require(other.files[other.file(".log")]), to: "\(damaged.store.path)/\(name)")
        if !hasManifest { try Files.remove("\(damaged.store.path)/MANIFEST") }
        let report = try damaged.checkRepair { $0.file == name }
        #expect(report.losses.contains { $0.kind == .foreignFile && $0.file == name })
    }

    @Test("Expiry and the order of change outlive a repair", arguments: [true, false])
    func expiryAndOrder(isSealed: Bool) throws {
        let storage = SimulatedStorage(seed: Seed(12))
        let options = StoreOptions(durability: .process, segmentBytes: 1 << 20)
        let store = try openSimulated(storage, options)
        let now = storage.clockMilliseconds
        for round in 0..<2 {
            // The first time its records go with it; its order of change goes on.
            let dataset = try store.dataset("main")
            for index in 0..<9 { try dataset.put("\(round)", for: "\(index)") }
            try dataset.put("short", for: "short", expiresAt: now + 60_000)
            if round == 0 { try store.deleteDataset("main") }
        }
        if isSealed { try store.compact() }
        let syncCount = try store.dataset("main").syncCount
        try store.close()
        let contents = try StoreContents.read(at: simulatedPath, storage: storage)
        let report = try Store.repair(at: simulatedPath, to: "/repaired", storage: storage)
        #expect(report.isComplete)
        #expect(try StoreContents.read(at: "/repaired", storage: storage) == contents)
        storage.clockMilliseconds = now + 120_000
        let repaired = try Store.open(at: "/repaired", options: options, storage: storage)
        let dataset = try repaired.dataset("main")
        #expect(try dataset.get("short") == nil && dataset.count() == 9)
        #expect(try dataset.syncCount >= syncCount)
        expectError(.changesExpired) { try dataset.changes(since: 5).collect() }
        try repaired.close()
    }

    @Test("What was dropped in this store alone is told to no peer, if its version is lost, too")
    func droppedRecord() throws {
        let fixture = try StoreFixture()
        defer { withExtendedLifetime(fixture) {} }
        let writer = ReplicaID(high: 7, low: 7)
        for (number, key) in ["a", "b"].enumerated() {
            let version = Version(
                dot: Dot(replica: writer, counter: UInt64(number + 1)), vector: VersionVector(),
                time: HybridTime(milliseconds: 1_000, counter: 0))
            var batch = ReplicationBatch()
            batch.writes = [
                ReplicatedWrite(
                    key: bytes(key), content: .adopt(value: bytes("1"), version: version),
                    expected: nil)
            ]
            #expect(try fixture.dataset.replicate(batch).isEmpty)
        }
        let dropped = try #require(try fixture.dataset.storedRecord(for: bytes("a")))
        var batch = ReplicationBatch()
        batch.drops = [LocalDrop(key: bytes("a"), expected: dropped.version)]
        #expect(try fixture.dataset.replicate(batch).isEmpty)
        try fixture.store.close()

        // Without the header of the log no entry in it has a version.
        let name = try #require(try Files.list(fixture.path).first { $0.hasSuffix(".log") })
        let header = try Files.read("\(fixture.path)/\(name)")
        try Files.overwrite([header[30] ^ 0x10], in: "\(fixture.path)/\(name)", at: 30)
        let target = fixture.directory["repaired"]
        let report = try Store.repair(at: fixture.path, to: target)
        #expect(report.datasets.map(\.versionsLost) == [2])
        let store = try Store.open(at: target, options: quickOptions())
        let dataset = try store.dataset("main")
        let records = try dataset.records(includingDeleted: true).collect()
        #expect(records.map(\.keyText) == ["a", "b"])
        #expect(records.map(\.isDropped) == [true, false])
        let page = try dataset.changesPage(
            since: 0, recordsMax: 100, bytesMax: 1 << 20, excluding: VersionVector())
        #expect(page.records.map(\.keyText) == ["b"])
        #expect(try store.verify().damages.isEmpty)
        try store.close()
    }

    @Test("What a crash cut off does not come back")
    func tornTail() throws {
        let storage = SimulatedStorage(seed: Seed(3))
        let options = StoreOptions(durability: .process, segmentBytes: 1 << 20)
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        for index in 0..<5 { try dataset.put("\(index)", for: "\(index)", durability: .disk) }
        let contents = try StoreContents(store)
        let large = [UInt8](repeating: 1, count: 9_000)
        for index in 5..<9 { try dataset.put(large, for: bytes("\(index)")) }
        var random = SeededGenerator(Seed(4))
        let disk = storage.afterPowerLoss(.nothing, using: &random)
        let report = try Store.repair(at: simulatedPath, to: "/repaired", storage: disk)
        #expect(report.isComplete)
        let repaired = try StoreContents.read(at: "/repaired", storage: disk)
        #expect(repaired.datasets["main"]?.records == contents.datasets["main"]?.records)
        #expect(repaired.datasets["main"]?.vector == contents.datasets["main"]?.vector)
        try store.close()
    }

    @Test("A repair that loses the power is no store, and one that returned is durable")
    func powerLoss() throws {
        let storage = SimulatedStorage(seed: Seed(6))
        let store = try openSimulated(storage, StoreOptions(segmentBytes: 1 << 20))
        let dataset = try store.dataset("main")
        for index in 0..<50 { try dataset.put("\(index)", for: "\(index)") }
        try store.compact()
        try store.close()
        let contents = try StoreContents.read(at: simulatedPath, storage: storage)
        var crashed = 0
        let calls = storage.callCount
        try Store.repair(at: simulatedPath, to: "/first", storage: storage)
        let needed = storage.callCount - calls
        for passes in 0..<needed {
            let target = "/target \(passes)"
            storage.faults = [StorageFault(.inputOutput, after: passes, isLasting: true)]
            do throws(StoreError) {
                try Store.repair(at: simulatedPath, to: target, storage: storage)
            } catch {
                crashed += 1
            }
            storage.faults = []
            do {
                let found = try StoreContents.read(at: target, storage: storage)
                #expect(found == contents, "after \(passes) calls")
            } catch let error as StoreError where error.code == .notAStore {}
        }
        #expect(crashed > needed / 2)
        var random = SeededGenerator(Seed(7))
        let after = storage.afterPowerLoss(.nothing, using: &random)
        #expect(try StoreContents.read(at: "/first", storage: after) == contents)
    }

    @Test("It begins only where something of a store is, and ends only in an empty directory")
    func refusals() throws {
        let directory = try TemporaryDirectory()
        expectError(.notAStore) {
            try Store.repair(at: directory["none"], to: directory["new"])
        }
        try Files.createDirectory(directory["strange"])
        try Files.write(bytes("dear diary"), to: directory["strange/notes.txt"])
        expectError(.notAStore) {
            try Store.repair(at: directory["strange"], to: directory["new"])
        }
        let store = try DamagedStore()
        for target in [directory["strange"], store.path] {
            let before = try Files.contents(target)
            expectError(.invalidArgument) { try Store.repair(at: store.path, to: target) }
            #expect(try Files.contents(target) == before)
        }
    }
}
