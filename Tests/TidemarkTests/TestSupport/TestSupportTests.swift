import TestSupport
import Testing
import Tidemark

@Suite("Test support")
struct TestSupportTests {
    @Test("A seed reads back what it prints, and repeats what it made")
    func seeds() {
        let seed = Seed(0xABCD_EF01_2345_6789)
        #expect(Seed(seed.description) == seed && Seed("17") == Seed(17))
        #expect(Seed("0xg") == nil && Seed("") == nil)
        var (one, two) = (SeededGenerator(seed), SeededGenerator(seed))
        #expect((0..<100).map { _ in one.next() } == (0..<100).map { _ in two.next() })
        // The first output for the state 0, from the reference implementation of SplitMix64.
        var zero = SeededGenerator(Seed(0))
        #expect(zero.next() == 0xE220_A839_7B1D_CDAF)
        #expect(one.compressibleBytes(1_000).count == 1_000 && one.bytes(13).count == 13)
    }

    @Test("Bytes compare as unsigned numbers, a prefix first")
    func byteOrder() {
        let sorted: [[UInt8]] = [
            [], [0], [0, 0], [0, 1], [1], [0x7F], [0x80], [0xFF], [0xFF, 0],
        ]
        #expect(sorted.shuffled().sorted(by: Bytes.precedes) == sorted)
        #expect(Bytes.areEqual([1, 2], [1, 2]) && !Bytes.areEqual([1, 2], [1, 3]))
        #expect(!Bytes.areEqual(nil, []) && Bytes.areEqual(nil, nil))
    }

    @Test("The generator repeats itself, and reaches every kind of operation")
    func operations() {
        var one = OperationGenerator(Seed(4), ordinaryKeyCount: 5)
        var two = OperationGenerator(Seed(4), ordinaryKeyCount: 5)
        one.valueBytesMax = 64
        two.valueBytesMax = 64
        var model = StoreModel()
        var kinds: Set<String> = []
        for _ in 0..<20_000 {
            let operation = one.next(model)
            let isSame = operation == two.next(model)
            if !isSame { Issue.record("\(operation) came once only") }
            // A case with a payload has its name as a label; one without is its name.
            kinds.insert(Mirror(reflecting: operation).children.first?.label ?? "\(operation)")
            model.apply(operation)
        }
        #expect(kinds.count == 15, "\(kinds)")
        #expect(one.keys.map(\.count).max() == 65_535)
    }

    @Test("The model tells tombstones, counts and order of change")
    func model() {
        var model = StoreModel()
        model.create("a")
        model.write([1], for: [1], in: "a")
        model.write([2], for: [2], in: "a")
        model.write(nil, for: [1], in: "a")
        #expect(model["a"].liveCount == 1 && model["a"].counter == 3)
        #expect(model["a"].keysChanged(since: 0) == [[2], [1]])
        #expect(model["a"].keys(in: .all, order: .backward, includingDeleted: true) == [[2], [1]])
        #expect(model.learn(HybridTime(rawValue: 5), of: [2], in: "a") == nil)
        #expect(model.learn(HybridTime(rawValue: 6), of: [2], in: "a") != nil)
        let before = model
        #expect(model.delete("a") && !model.delete("a"))
        model.create("a")
        #expect(model["a"].entries.isEmpty && model["a"].counter == 3)
        #expect(before["a"].entries.count == 2)
    }

    @Test("The check finds what a store has lost or made up")
    func check() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put([1], for: [1])
        var random = SeededGenerator(Seed(1))
        var model = StoreModel()
        model.create("main")
        model.write([1], for: [1], in: "main")
        func check(_ model: StoreModel) throws {
            var check = ModelCheck(model, of: fixture.store)
            try check.checkAll(fixture.store, using: &random)
        }
        try check(model)
        var longer = model
        longer.write([2], for: [2], in: "main")
        #expect(throws: Mismatch.self) { try check(longer) }
        var other = StoreModel()
        other.create("main")
        other.write([9], for: [1], in: "main")
        #expect(throws: Mismatch.self) { try check(other) }
        #expect(throws: Mismatch.self) { try check(StoreModel()) }
    }

    @Test("A temporary directory goes with its last reference")
    func temporaryDirectory() throws {
        var directory: TemporaryDirectory? = try TemporaryDirectory()
        let path = try #require(directory?.path)
        try Files.createDirectory(path + "/below")
        try Files.write([1, 2], to: path + "/below/file")
        try Files.overwrite([9], in: path + "/below/file", at: 1)
        #expect(try Files.read(path + "/below/file") == [1, 9])
        #expect(try Files.list(path) == ["below"])
        directory = nil
        #expect(!Files.exists(path))
        var kept: TemporaryDirectory? = try TemporaryDirectory()
        let keptPath = try #require(kept?.path)
        kept?.keep()
        kept = nil
        #expect(Files.exists(keptPath))
        Files.removeTree(keptPath)
    }

    @Test("An error on any thread reaches the test")
    func threads() {
        #expect(throws: Mismatch.self) {
            try runOnThreads([{}, { throw Mismatch("on purpose") }, {}])
        }
    }

    @Test("A child process is read while it runs, and tells how it ended")
    func childProcess() throws {
        let wrong = try ChildProcess("CrashWriter", ["/nowhere", "never"])
        #expect(try wrong.readToEnd().isEmpty)
        #expect(!wrong.wait(), "it ended by itself")
        let directory = try TemporaryDirectory()
        let writer = try ChildProcess("CrashWriter", [directory["store"], "process", "1", "1"])
        var output: [UInt8] = []
        while output.count < 16, let more = try writer.read(waitingMilliseconds: 1_000) {
            output += more
        }
        writer.kill()
        #expect(writer.wait(), "the signal ended it")
        #expect(output.prefix(16) == [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0])
        #expect(throws: FileFailure.self) { try ChildProcess("no such program", []) }
    }
}
