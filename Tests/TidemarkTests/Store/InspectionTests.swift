import Synchronization
import TestSupport
import Testing
import Tidemark

@Suite("Inspection")
struct InspectionTests {
    private func filled() throws -> StoreFixture {
        let fixture = try StoreFixture()
        let other = try fixture.store.dataset("other")
        for index in 0..<200 {
            try fixture.dataset.put("value \(index)", for: "key \(index % 50)")
        }
        try fixture.store.compact()
        try fixture.dataset.delete("key 1")
        try other.put("1", for: "a")
        return fixture
    }

    @Test("A whole store verifies without damage, open or closed")
    func verify() throws {
        let fixture = try filled()
        var progress: [VerificationProgress] = []
        let report = try fixture.store.verify { progress.append($0) }
        #expect(report.damages.isEmpty)
        #expect(report.filesChecked >= 2 && report.blocksChecked >= 1 && report.bytesChecked > 0)
        for (earlier, later) in zip(progress, progress.dropFirst()) {
            #expect(earlier.bytesChecked <= later.bytesChecked)
        }
        #expect(progress.allSatisfy { $0.bytesChecked <= $0.bytesTotal })
        try fixture.store.close()
        let before = try Files.contents(fixture.path)
        #expect(try Store.verify(at: fixture.path).damages.isEmpty)
        #expect(try Files.contents(fixture.path) == before)
    }

    @Test("What is found does not depend on the number of threads, and progress never goes back")
    func verifyInParallel() throws {
        let directory = try TemporaryDirectory()
        var options = quickOptions()
        options.compression = .none
        let store = try Store.open(at: directory["store"], options: options)
        let dataset = try store.dataset("main")
        var random = SeededGenerator(Seed(8))
        for index in 0..<3_000 { try dataset.put(random.bytes(300), for: bytes("key \(index)")) }
        try store.compact()
        for index in 0..<50 { try dataset.put(random.bytes(300), for: bytes("log \(index)")) }
        let whole = try store.verify(threads: 1)
        #expect(whole.damages.isEmpty && whole.blocksChecked > 250)
        try store.close()
        let name = try #require(try Files.list(store.path).first { $0.hasSuffix(".seg") })
        let size = try Files.read("\(store.path)/\(name)").count
        for offset in stride(from: 100, to: size, by: 50_000) {
            try Files.overwrite([1, 2, 3], in: "\(store.path)/\(name)", at: offset)
        }
        let report = try Store.verify(at: store.path, threads: 1)
        #expect(report.damages.count > 10)
        for threads in [2, 3, 8] {
            var progress: [VerificationProgress] = []
            let other = try Store.verify(at: store.path, threads: threads) { progress.append($0) }
            #expect(other == report)
            for (earlier, later) in zip(progress, progress.dropFirst()) {
                #expect(earlier.bytesChecked < later.bytesChecked)
            }
            #expect(progress.last.map { $0.bytesChecked == $0.bytesTotal } == true)
        }
        for threads in [0, -1, 65] {
            expectError(.invalidArgument) { try Store.verify(at: store.path, threads: threads) }
        }
    }

    @Test("Verifying what is no store is an error")
    func verifyNothing() throws {
        let directory = try TemporaryDirectory()
        expectError(.notAStore) { try Store.verify(at: directory["none"]) }
    }

    /// The number that the header of a file says it has.
    private func number(in header: ArraySlice<UInt8>) -> UInt64 {
        header.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The first bytes of such a log are the header of the one whose file it was.
    @Test("A log prepared in the file of another, and never begun, is no damage after a kill")
    func recycledLog() throws {
        let storage = SimulatedStorage(seed: Seed(21))
        let options = StoreOptions(
            durability: .process, segmentBytes: 1 << 20, compactsAutomatically: false)
        let store = try openSimulated(storage, options)
        let captured = Mutex<SimulatedStorage?>(nil)
        storage.observe { [unowned storage] call in
            guard call.kind == .rename, call.path.hasSuffix(".log") else { return }
            var random = SeededGenerator(Seed(22))
            let disk = storage.afterProcessEnd(using: &random)
            captured.withLock { if $0 == nil { $0 = disk } }
        }
        let dataset = try store.dataset("main")
        var random = SeededGenerator(Seed(23))
        for index in 0..<20_000 {
            try dataset.put(random.bytes(3_000), for: bytes("key \(index % 100)"))
            if captured.withLock({ $0 != nil }) { break }
        }
        storage.observe(nil)
        try store.close()

        let disk = try #require(captured.withLock { $0 }, "no log was used again")
        let directory = try TemporaryDirectory()
        let path = directory["killed"]
        try Files.createDirectory(path)
        var strangeCount = 0
        for name in try disk.listDirectory(simulatedPath) {
            let file = try #require(disk.contents(of: "\(simulatedPath)/\(name)"))
            try Files.write(file, to: "\(path)/\(name)")
            guard name.hasSuffix(".log"), file.count >= 80 else { continue }
            let stated = number(in: file[16..<24])
            if stated != 0, stated != UInt64(name.dropLast(4)) { strangeCount += 1 }
        }
        #expect(strangeCount == 1)
        let damages = try Store.verify(at: path).damages
        #expect(damages.isEmpty, "\(damages)")
        let opened = try Store.open(at: path, options: options)
        #expect(try opened.dataset("main").count() > 0)
        try opened.close()
    }

    @Test("Statistics agree with what can be read")
    func statistics() throws {
        let fixture = try filled()
        let statistics = try fixture.store.statistics()
        #expect(statistics.replicaID == fixture.store.replicaID && statistics.formatVersion >= 1)
        #expect(statistics.datasets.map(\.name) == ["main", "other"])
        let main = try #require(statistics.datasets.first)
        #expect(main.recordCount == 49 && main.tombstoneCount == 1)
        #expect(try main.syncCount == fixture.dataset.syncCount)
        #expect(main.dirtyCount == 50 && main.replicaCount == 1)
        let size = try fixture.dataset.size()
        #expect(main.valueBytes == size.valueBytes)
        let files = statistics.segments.map(\.file)
        let listed = try Files.list(fixture.path)
        #expect(Set(files).count == files.count && files.allSatisfy(listed.contains))
        #expect(statistics.segments.count { !$0.isSealed } == 1)
        #expect(statistics.segments.contains { $0.isSealed && $0.entryCount >= 50 })
        #expect(statistics.fileBytes > 0)
    }

    @Test("Live, dead and deleted add up, counted or told by the segments' tables")
    func usage() throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        let fixture = try StoreFixture(options)
        let (store, dataset) = (fixture.store, fixture.dataset)
        try store.dataset("gone").put("1", for: "a")
        for index in 0..<100 { try dataset.put("value \(index)", for: "key \(index)") }
        try store.compact()
        let fresh = try store.usage()
        #expect(fresh.spaceAmplificationEstimate == 1)
        try store.deleteDataset("gone")
        for index in 0..<30 { try dataset.put("second \(index)", for: "key \(index)") }
        for index in 90..<100 { try dataset.delete("key \(index)") }
        // Closing seals nothing this small: 40 entries stay in the log.
        let statistics = try store.statistics()
        let main = try #require(statistics.datasets.first)
        #expect(main.recordCount == 90 && main.tombstoneCount == 10 && main.deadCount == 40)
        let sealed = try #require(statistics.segments.first { $0.isSealed })
        let log = try #require(statistics.segments.first { !$0.isSealed })
        #expect(log.liveCount == 30 && log.deadCount == 0 && log.tombstoneCount == 10)
        // 40 were superseded, and the one of the deleted dataset is there as well.
        #expect(sealed.liveCount == 60 && sealed.deadCount == 41)
        func liveBytes(_ numbers: Range<Int>, _ word: String) -> UInt64 {
            numbers.reduce(0) { $0 + UInt64("key \($1)\(word) \($1)".utf8.count) }
        }
        #expect(log.liveBytes == liveBytes(0..<30, "second"))
        #expect(sealed.liveBytes == liveBytes(30..<90, "value"))
        for segment in [log, sealed] {
            let bytes = segment.isSealed ? segment.fileBytes : segment.storedBytes
            #expect(segment.spaceAmplification == Double(bytes) / Double(segment.liveBytes))
        }
        #expect(try #require(statistics.spaceAmplification) > 1)
        let usage = try store.usage()
        #expect(usage.segments.map(\.file) == statistics.segments.map(\.file))
        #expect(usage.segments.map(\.entryCount) == [40, 101])
        #expect(usage.datasets.map(\.name) == ["main", nil])
        #expect(usage.datasets.map(\.entryCount) == [100, 1])
        #expect(usage.fileBytes == statistics.fileBytes)
        let bytes = usage.datasets[0]
        #expect(bytes.keyBytes == (0..<100).reduce(0) { $0 + UInt64("key \($1)".utf8.count) })
        #expect(bytes.valueBytes == (0..<100).reduce(0) { $0 + UInt64("value \($1)".utf8.count) })
    }

    @Test("The log tells every record's last operation, in the order of change")
    func operations() throws {
        let fixture = try filled()
        let listed = try Files.list(fixture.path)
        var operations: [LogOperation] = []
        let cursor = try fixture.store.operations()
        while let operation = try cursor.next() { operations.append(operation) }
        #expect(operations.allSatisfy { listed.contains($0.segment) })
        for name in ["main", "other"] {
            let dataset = try fixture.store.dataset(name)
            let own = operations.filter { $0.dataset == name }
            for (earlier, later) in zip(own, own.dropFirst()) {
                #expect(earlier.syncCount <= later.syncCount)
            }
            for record in try dataset.records(includingDeleted: true).collect() {
                let last = own.last { $0.key == record.key }
                #expect(last?.version == record.version && last?.syncCount == record.syncCount)
                #expect(last?.kind == (record.isDeleted ? .delete : .put))
                #expect(last?.valueBytes == (record.value?.count ?? 0))
            }
            var count = 0
            let single = try fixture.store.operations(in: name)
            while let operation = try single.next() {
                #expect(operation.dataset == name)
                count += 1
            }
            #expect(count == own.count)
        }
        #expect(try fixture.store.operations(in: "never-there").next() == nil)
    }

    @Test("Datasets that come and go while statistics are made are counted or not")
    func statisticsBesideDatasets() throws {
        let fixture = try filled()
        let store = fixture.store
        let isDone = Atomic<Bool>(false)
        try runOnThreads([
            {
                defer { isDone.store(true, ordering: .releasing) }
                for number in 0..<300 {
                    try store.dataset("passing-\(number)").put("1", for: "a")
                    if number > 2 { try store.deleteDataset("passing-\(number - 3)") }
                }
            },
            {
                while !isDone.load(ordering: .acquiring) {
                    let names = try store.statistics().datasets.map(\.name)
                    try require(names.contains("main") && names.contains("other"), "\(names)")
                }
            },
        ])
    }
}
