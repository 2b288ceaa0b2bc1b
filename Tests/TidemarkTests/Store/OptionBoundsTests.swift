import TestSupport
import Testing
import Tidemark

/// One option at a bound: set to the last value that is allowed, and to the first that is not.
struct OptionBound: Sendable, CustomTestStringConvertible {
    let option: String
    let allowed: StoreOptions
    let refused: StoreOptions
    /// The ends of the range as the message must give them.
    let range: [String]

    var testDescription: String { "\(option), \(range)" }

    private init<Value>(
        _ option: String, _ path: WritableKeyPath<StoreOptions, Value>, _ allowed: Value,
        _ refused: Value, _ range: [String]
    ) {
        self.option = option
        self.range = range
        var options = StoreOptions()
        options[keyPath: path] = allowed
        self.allowed = options
        options[keyPath: path] = refused
        self.refused = options
    }

    private static func both<Value: Comparable>(
        _ option: String, _ path: WritableKeyPath<StoreOptions, Value>,
        _ range: ClosedRange<Value>, below: Value, above: Value
    ) -> [OptionBound] {
        let ends = ["\(range.lowerBound)", "\(range.upperBound)"]
        return [
            OptionBound(option, path, range.lowerBound, below, ends),
            OptionBound(option, path, range.upperBound, above, ends),
        ]
    }

    private static func both<Value: Comparable>(
        _ option: String, _ path: WritableKeyPath<StoreOptions, Value?>,
        _ range: ClosedRange<Value>, below: Value, above: Value
    ) -> [OptionBound] {
        let ends = ["\(range.lowerBound)", "\(range.upperBound)"]
        return [
            OptionBound(option, path, range.lowerBound, below, ends),
            OptionBound(option, path, range.upperBound, above, ends),
        ]
    }

    static let all: [OptionBound] =
        both(
            "segmentBytes", \.segmentBytes, 1 << 20...1 << 30, below: 1 << 20 - 1,
            above: 1 << 30 + 1)
        + both("blockCacheBytes", \.blockCacheBytes, 0...1 << 40, below: -1, above: 1 << 40 + 1)
        + both(
            "memoryLimit", \.memoryLimit, 8 << 20...1 << 40, below: 8 << 20 - 1,
            above: 1 << 40 + 1)
        + both(
            "largeValueBytes", \.largeValueBytes, 64...256 << 20 + 1, below: 63,
            above: 256 << 20 + 2)
        + both("historyVersions", \.historyVersions, 0...1_000_000, below: -1, above: 1_000_001)
        + both(
            "historyAge", \.historyAge, .zero ... .seconds(3_155_760_000),
            below: .nanoseconds(-1), above: .seconds(3_155_760_000) + .nanoseconds(1))
        + both(
            "tombstoneAge", \.tombstoneAge, .seconds(60) ... .seconds(3_155_760_000),
            below: .seconds(60) - .nanoseconds(1),
            above: .seconds(3_155_760_000) + .nanoseconds(1))
        + both(
            "clockAheadMax", \.clockAheadMax, .zero ... .seconds(3_155_760_000),
            below: .nanoseconds(-1), above: .seconds(3_155_760_000) + .nanoseconds(1))
        + [
            OptionBound(
                "compactionBytesPerSecond", \.compactionBytesPerSecond, 0, -1,
                ["negative", "0"]),
            OptionBound(
                "author", \.author, String(repeating: "a", count: 255),
                String(repeating: "a", count: 256), ["0", "255"]),
            // Bytes count, not characters.
            OptionBound(
                "author", \.author, String(repeating: "\u{E9}", count: 127),
                String(repeating: "\u{E9}", count: 128), ["0", "255"]),
        ]
}

@Suite("Bounds of options")
struct OptionBoundsTests {
    @Test("The last value is taken, the first beyond refused", arguments: OptionBound.all)
    func bounds(bound: OptionBound) throws {
        try bound.allowed.check()
        let error = expectError(.invalidArgument) { try bound.refused.check() }
        #expect(error?.message.contains("option \(bound.option) ") == true)
        for end in bound.range { #expect(error?.message.contains(end) == true, "\(error as Any)") }
    }

    @Test("Opening refuses them before it touches anything", arguments: OptionBound.all)
    func opening(bound: OptionBound) throws {
        let directory = try TemporaryDirectory()
        expectError(.invalidArgument) {
            try Store.open(at: directory["store"], options: bound.refused)
        }
        #expect(!Files.exists(directory["store"]))
    }

    /// Whoever adds an option must think of its bounds here.
    @Test("No option is without a test of its bounds, unless all of its values are good")
    func allOptions() {
        let unbounded: Set<String> = [
            "durability", "createsIfMissing", "isReadOnly", "compactsAutomatically", "compression",
        ]
        let forTests: Set<String> = [
            "segmentEntriesMax", "keptDatasetStatesMax", "runsInline", "plantedBugs",
        ]
        let options = Mirror(reflecting: StoreOptions()).children.compactMap(\.label)
        let bounded = Set(OptionBound.all.map(\.option))
        #expect(Set(options) == unbounded.union(forTests).union(bounded))
    }

    @Test("Threads of a verification, attempts at a transaction, times of expiry")
    func arguments() throws {
        let fixture = try StoreFixture()
        for threads in [1, 64] { _ = try fixture.store.verify(threads: threads) }
        for threads in [0, 65] {
            let error = expectError(.invalidArgument) {
                try fixture.store.verify(threads: threads)
            }
            #expect(error?.message.contains("1...64") == true)
        }
        try fixture.store.transaction(attemptsMax: 1) { _ in }
        expectError(.invalidArgument) { try fixture.store.transaction(attemptsMax: 0) { _ in } }
        try fixture.dataset.put("1", for: "a", expiresAt: Limits.expiryMax)
        expectError(.invalidArgument) {
            try fixture.dataset.put("1", for: "a", expiresAt: Limits.expiryMax + 1)
        }
    }

    @Test("Names of datasets have 1 to 255 bytes of a few characters")
    func names() throws {
        let fixture = try StoreFixture()
        let longest = String(repeating: "n", count: Limits.datasetNameBytesMax)
        for name in ["a", longest, "AZaz09_.:-"] {
            #expect(try fixture.store.dataset(name).name == name)
        }
        for name in ["", longest + "n", "a/b", "a b", "\u{E9}", "a\0", "a@", "a[", "a`", "a{"] {
            expectError(.invalidArgument) { try fixture.store.dataset(name) }
        }
    }
}
