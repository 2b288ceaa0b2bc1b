import TestSupport
import Testing
import Tidemark

/// Large values are written once and stay where they are until most of their file is needless.
@Suite("Compaction of large values")
struct LargeValueCompactionTests {
    @Test("Merging values of 1 MiB again and again writes their bytes once")
    func writtenOnce() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        var options = apartOptions(4_096)
        options.segmentBytes = 4 << 20
        options.compression = .none
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        var random = SeededGenerator(Seed(2))
        storage.startTracing()
        for number in 0..<6 { try dataset.put(random.bytes(1 << 20), for: bytes("\(number)")) }
        try store.compact()
        for round in 0..<3 {
            try dataset.put("\(round)", for: "small")
            try store.compact()
        }
        func written(_ ending: String) -> Int {
            storage.trace.filter { $0.kind == .write && $0.path.hasSuffix(ending) }
                .reduce(0) { $0 + $1.count }
        }
        #expect((6 << 20)..<(6 << 20 + 1_000) ~= written(".val"))
        #expect(written(".seg") < 100_000, "\(written(".seg"))")
        #expect(try store.verify().damages.isEmpty)
        #expect(try dataset.size().valueBytes == 6 << 20 + 1)
        try store.close()
    }

    @Test("Replaced values give their space back")
    func shrinks() throws {
        var fixture = try LargeValueStore(valueBytes: 20_000)
        try fixture.put(0..<30)
        try fixture.store.compact()
        let full = try fixture.valueFileBytes
        let first = try fixture.valueFiles
        // A third goes: the file stays as it is, beside one for what came.
        try fixture.put(0..<10, round: 1)
        try fixture.store.compact()
        #expect(try Set(fixture.valueFiles).isSuperset(of: first))
        // Now most of it: what is left of the first file moves, and it goes.
        try fixture.put(10..<22, round: 1)
        try fixture.store.compact()
        #expect(try Set(fixture.valueFiles).isDisjoint(with: first))
        for round in 2..<12 {
            try fixture.put(stride(from: round % 3, to: 30, by: 3), round: round)
            try fixture.store.compact()
            let used = try fixture.store.usage().valueFiles.reduce(0) { $0 + $1.usedBytes }
            #expect(try fixture.valueFileBytes <= 2 * Int(used) + 2_000)
            try fixture.requireWhole()
        }
        #expect(try fixture.valueFileBytes <= 2 * full + 2_000)
        var last = [Int](repeating: 1, count: 30)
        for number in 22..<30 { last[number] = 0 }
        for round in 2..<12 {
            for number in stride(from: round % 3, to: 30, by: 3) { last[number] = round }
        }
        try fixture.reopen()
        for number in 0..<30 {
            let value = try fixture.dataset.get(fixture.key(number))
            #expect(value == fixture.value(number, round: last[number]))
        }
        for number in 0..<30 { try fixture.dataset.delete(fixture.key(number)) }
        try fixture.store.compact()
        #expect(try fixture.valueFiles.isEmpty)
        try fixture.store.close()
    }

    @Test("In the background, too, no more than a few times what is live is kept")
    func background() throws {
        var options = apartOptions(4_096)
        options.compactsAutomatically = true
        let fixture = try LargeValueStore(valueBytes: 20_000, options: options)
        for round in 0..<60 {
            try fixture.put(0..<20, round: round)
            // As many as are live, so that each log is worth a run.
            try fixture.dataset.put([UInt8](repeating: 0, count: 2_000), for: bytes("\(round)"))
            if round % 10 == 9 { try fixture.store.waitForBackgroundWork() }
        }
        try fixture.store.waitForBackgroundWork()
        // 24 MB were written, of which 400 KB are live; a log has 1 MiB, and three runs may wait.
        #expect(try fixture.valueFileBytes < 6_000_000)
        for number in 0..<20 {
            let value = try fixture.dataset.get(fixture.key(number))
            #expect(value == fixture.value(number, round: 59))
        }
        try fixture.requireWhole()
        try fixture.store.close()
    }

    @Test("A run is rewritten for its value files' sake once that gives up more than it has")
    func relief() throws {
        var options = apartOptions(4_096)
        options.compactsAutomatically = true
        var fixture = try LargeValueStore(valueBytes: 20_000, options: options)
        options.compactsAutomatically = false
        try fixture.reopen(options)
        try fixture.put(0..<30)
        try fixture.store.compact()
        let first = try fixture.valueFiles
        // Sealed without a merge, eight times: then merging drops what they replace.
        for round in 1..<9 {
            try fixture.put(0..<20, round: round)
            try fixture.put(100..<150, round: round)
        }
        try fixture.store.waitForBackgroundWork()
        options.compactsAutomatically = true
        try fixture.reopen(options)
        try fixture.put(100..<160, round: 9)
        try fixture.store.waitForBackgroundWork()
        #expect(try Set(fixture.valueFiles).isDisjoint(with: first))
        for number in 20..<30 {
            #expect(try fixture.dataset.get(fixture.key(number)) == fixture.value(number))
        }
        try fixture.requireWhole()
        try fixture.store.close()
    }

    @Test("A snapshot keeps the values of its moment, and lets go of them")
    func snapshots() throws {
        let fixture = try LargeValueStore(valueBytes: 10_000)
        try fixture.put(0..<10)
        try fixture.store.compact()
        let snapshot = try fixture.store.snapshot()
        let cursor = try snapshot.records(of: fixture.dataset)
        #expect(try cursor.next()?.value == fixture.value(0))
        for round in 1..<4 {
            try fixture.put(0..<10, round: round)
            try fixture.store.compact()
        }
        #expect(try fixture.valueFiles.count == 1)
        var seen = 1
        while let record = try cursor.next() {
            #expect(record.value == fixture.value(seen))
            seen += 1
        }
        #expect(seen == 10)
        for number in 0..<10 {
            let value = try snapshot.get(fixture.key(number), in: fixture.dataset)
            #expect(value == fixture.value(number))
        }
        snapshot.close()
        try fixture.store.close()
    }

    @Test("A reader beside the writer keeps what it has opened")
    func readerBeside() throws {
        let fixture = try LargeValueStore(valueBytes: 10_000)
        try fixture.put(0..<10)
        try fixture.store.compact()
        try fixture.store.sync()
        var options = apartOptions()
        options.isReadOnly = true
        let reader = try Store.open(at: fixture.path, options: options)
        try fixture.put(0..<10, round: 1)
        try fixture.store.compact()
        let dataset = try #require(try reader.existingDataset("main"))
        for number in 0..<10 {
            #expect(try dataset.get(fixture.key(number)) == fixture.value(number))
        }
        try reader.close()
        try fixture.store.close()
    }

    @Test("Files that no segment names are removed at opening, and no others")
    func leftovers() throws {
        let fixture = try LargeValueStore(valueBytes: 1_000)
        try fixture.put(0..<10)
        try fixture.store.compact()
        try fixture.store.close()
        let before = try fixture.valueFiles
        let whole = try Files.read("\(fixture.path)/\(before[0])")
        try Files.write(whole, to: "\(fixture.path)/000900.val")
        try Files.write([1, 2, 3], to: "\(fixture.path)/000901.val")
        try Files.write([1, 2, 3], to: "\(fixture.path)/notes.val")
        let store = try Store.open(at: fixture.path, options: apartOptions())
        #expect(try fixture.valueFiles == before + ["notes.val"])
        try store.close()
    }

    @Test("A value that cannot be read stays where it is when others move")
    func damagedWhileMoving() throws {
        let fixture = try LargeValueStore(valueBytes: 2_000)
        try fixture.put(stride(from: 0, to: 40, by: 2))
        try fixture.store.compact()
        try fixture.store.close()
        let name = try fixture.valueFiles[0]
        // The first value of all is that of key 0.
        try Files.overwrite([0, 1, 2, 3, 4], in: "\(fixture.path)/\(name)", at: 80 + 24 + 100)
        let store = try Store.open(at: fixture.path, options: apartOptions())
        let dataset = try store.dataset("main")
        for number in stride(from: 4, to: 40, by: 2) { try dataset.delete(fixture.key(number)) }
        try store.compact()
        try dataset.put("1", for: "another")
        try store.compact()
        #expect(try fixture.valueFiles.contains(name))
        #expect(try dataset.get(fixture.key(2)) == fixture.value(2))
        expectError(.corruption) { try dataset.get(fixture.key(0)) }
        try store.close()
    }
}
