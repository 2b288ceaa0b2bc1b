package import Tidemark

/// Draws operations that meet each other often: few datasets, few keys, and among the keys the
/// ones that break naive code.
package struct OperationGenerator: Sendable {
    /// How often each kind is drawn, relative to the others.
    package struct Weights: Sendable {
        package var write = 600
        package var batch = 60
        package var read = 200
        package var scan = 25
        package var changes = 20
        package var history = 10
        package var clear = 1
        package var datasetLifecycle = 3
        package var sync = 2
        package var snapshot = 6
        package var compact = 1
        package var reopen = 1
        /// Percent of writes and batches that carry a condition.
        package var conditionPercent = 15

        package init() {}

        /// Only what changes the store, for crash tests.
        package static var changesOnly: Weights {
            var weights = Weights()
            weights.read = 0
            weights.scan = 0
            weights.changes = 0
            weights.history = 0
            weights.snapshot = 0
            weights.reopen = 0
            weights.clear = 6
            weights.datasetLifecycle = 20
            weights.compact = 6
            weights.conditionPercent = 0
            return weights
        }
    }

    package var weights: Weights
    package let datasetNames: [String]
    package let keys: [[UInt8]]
    /// Larger values are drawn rarely; values above this, never.
    package var valueBytesMax = 3 << 20
    package var durabilities: [Durability] = [.memory, .process]
    private var random: SeededGenerator

    /// - Parameter moreDatasetCount: how many datasets there are beside four with unusual names.
    package init(
        _ seed: Seed, weights: Weights = Weights(), ordinaryKeyCount: Int = 150,
        moreDatasetCount: Int = 0
    ) {
        var random = SeededGenerator(seed)
        keys = Self.nastyKeys + Self.ordinaryKeys(ordinaryKeyCount, &random)
        datasetNames =
            ["a", "A", "b.c:d_e-f", String(repeating: "n", count: Limits.datasetNameBytesMax)]
            + (0..<moreDatasetCount).map { "more-\($0)" }
        self.weights = weights
        self.random = random
    }

    /// Keys at the edges of the order, of the lengths, and of each other.
    package static let nastyKeys: [[UInt8]] = [
        [0x00], [0x00, 0x00], [0x00, 0xFF], [0x01], [0x7F], [0x80], [0xFE, 0xFF],
        [0xFF], [0xFF, 0x00], [0xFF, 0xFF], [0xFF, 0xFF, 0xFF],
        Array("a".utf8), Array("a".utf8) + [0x00], Array("a".utf8) + [0xFF], Array("ab".utf8),
        Array(repeating: 0x61, count: 127), Array(repeating: 0x61, count: 128),
        Array(repeating: 0x61, count: 255), Array(repeating: 0x61, count: 256),
        Array(repeating: 0xFF, count: 65_535), Array(repeating: 0x00, count: 65_535),
        Array(repeating: 0x61, count: 65_534) + [0x62],
    ]

    /// The next operation; some depend on what the store holds.
    package mutating func next(_ model: StoreModel) -> StoreOperation {
        let choices: [(Int, Choice)] = [
            (weights.write, .write), (weights.batch, .batch), (weights.read, .read),
            (weights.scan, .scan), (weights.changes, .changes), (weights.history, .history),
            (weights.clear, .clear), (weights.datasetLifecycle, .datasetLifecycle),
            (weights.sync, .sync), (weights.snapshot, .snapshot),
            (weights.compact, .compact), (weights.reopen, .reopen),
        ]
        var ticket = random.below(choices.reduce(0) { $0 + $1.0 })
        var choice = Choice.write
        for (weight, candidate) in choices {
            if ticket < weight {
                choice = candidate
                break
            }
            ticket -= weight
        }
        guard let name = liveDataset(model) else {
            return .createDataset(random.element(of: datasetNames))
        }
        return operation(choice, on: name, model)
    }

    private enum Choice {
        case write, batch, read, scan, changes, history, clear, datasetLifecycle
        case sync, snapshot, compact, reopen
    }

    private mutating func operation(
        _ choice: Choice, on name: String, _ model: StoreModel
    ) -> StoreOperation {
        switch choice {
        case .write:
            return .write(write(to: name), random.element(of: durabilities))
        case .batch:
            return .batch(batch(model), random.element(of: durabilities))
        case .read: return .readKey(dataset: name, key: key())
        case .scan:
            return .scan(
                dataset: name, range(), random.oneIn(2) ? .forward : .backward,
                includingDeleted: random.oneIn(2))
        case .changes:
            let count = model[name].syncCount
            let since = random.oneIn(4) ? count : UInt64(random.below(Int(count) + 1))
            return .changes(dataset: name, since: since)
        case .history: return .history(dataset: name, key: key())
        case .clear: return .clear(dataset: name)
        case .datasetLifecycle:
            return random.oneIn(3)
                ? .deleteDataset(random.element(of: datasetNames))
                : .createDataset(random.element(of: datasetNames))
        case .sync: return .sync
        case .snapshot: return random.oneIn(2) ? .takeSnapshot : .checkSnapshot
        case .compact:
            return random.oneIn(2) ? .compact : .compactRange(dataset: name, range())
        case .reopen: return .reopen
        }
    }

    private mutating func liveDataset(_ model: StoreModel) -> String? {
        let live = model.liveNames
        return live.isEmpty ? nil : random.element(of: live)
    }

    private mutating func batch(_ model: StoreModel) -> [GeneratedWrite] {
        let live = model.liveNames
        var seen: Set<String> = []
        var writes: [GeneratedWrite] = []
        for _ in 0..<(1 + random.below(12)) {
            var next = write(to: random.element(of: live))
            // A condition on a key that the same batch wrote before has no agreed meaning.
            let place = next.dataset + "/" + String(decoding: next.key.prefix(40), as: UTF8.self)
            if !seen.insert(place).inserted { next.expectation = .none }
            writes.append(next)
        }
        return writes
    }

    private mutating func write(to name: String) -> GeneratedWrite {
        var expectation = GeneratedWrite.Expectation.none
        if random.below(100) < weights.conditionPercent {
            expectation = random.oneIn(3) ? .stale : .present
        }
        return GeneratedWrite(
            dataset: name, key: key(), value: random.oneIn(5) ? nil : value(),
            expectation: expectation)
    }

    package mutating func key() -> [UInt8] {
        let drawn = random.element(of: keys)
        // The longest keys are many bytes for one more case of the same kind.
        return drawn.count > 1_000 && !random.oneIn(8) ? random.element(of: keys) : drawn
    }

    package mutating func value() -> [UInt8] {
        let count: Int
        switch random.below(2_000) {
        case 0: count = random.below(valueBytesMax + 1)
        case 1...8: count = 100 << 10
        case 9...200: count = random.below(5_000)
        case 201...400: count = 0
        default: count = random.below(100)
        }
        let bounded = min(count, valueBytesMax)
        return random.oneIn(3) ? random.compressibleBytes(bounded) : random.bytes(bounded)
    }

    private mutating func range() -> KeyRange {
        switch random.below(4) {
        case 0: return .all
        case 1: return .prefix(Array(key().prefix(random.below(3))))
        case 2: return KeyRange(from: key(), upTo: key())
        default: return random.oneIn(2) ? KeyRange(from: key()) : KeyRange(upTo: key())
        }
    }

    private static func ordinaryKeys(
        _ count: Int, _ random: inout SeededGenerator
    ) -> [[UInt8]] {
        (0..<count).map { index in
            random.oneIn(3)
                ? random.bytes(1 + random.below(20))
                : Array("user/\(random.below(count))/field\(index % 5)".utf8)
        }
    }
}
