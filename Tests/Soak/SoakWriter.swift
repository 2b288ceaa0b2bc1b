import Synchronization
import TestSupport
import Tidemark

/// One thread's dataset, which no other writes, and what must be in it. Each batch also writes
/// one stamp to several keys of a dataset that all share: nobody may ever see two of its stamps.
final class SoakWriter: Sendable {
    static let sharedName = "shared"
    static let sharedKeys = 4

    fileprivate struct State {
        var random: SeededGenerator
        var values: [[UInt8]: [UInt8]] = [:]
        /// The sync count of the last change of each key, deleted ones included.
        var changed: [[UInt8]: UInt64] = [:]
        var syncCount: UInt64 = 0
        var stamp: UInt64 = 0
    }

    private let number: Int
    private let state: Mutex<State>

    init(_ number: Int, _ random: SeededGenerator) {
        self.number = number
        state = Mutex(State(random: random))
    }

    private var name: String { "writer-\(number)" }

    static func sharedKey(_ writer: Int, _ index: Int) -> [UInt8] {
        Array("\(writer)/\(index)".utf8)
    }

    func write(to store: Store, until stop: Double, _ counts: SoakCounts) throws {
        let dataset = try store.dataset(name)
        let shared = try store.dataset(Self.sharedName)
        try state.withLock { state in
            while SoakRun.now() < stop {
                for _ in 0..<50 { try step(&state, store, dataset, shared) }
                counts.note(operations: 50)
            }
        }
    }

    private func step(
        _ state: inout State, _ store: Store, _ dataset: Dataset, _ shared: Dataset
    ) throws {
        let key = Array("key \(state.random.below(4_000))".utf8)
        switch state.random.below(200) {
        case 0..<90:
            let value = Self.value(&state.random)
            let level: Durability = state.random.oneIn(40) ? .disk : .process
            try dataset.put(value, for: key, durability: level)
            state.note(value, key)
        case 90..<110:
            try dataset.delete(key)
            state.note(nil, key)
        case 110..<130:
            try batch(&state, store, dataset, shared)
        case 130..<185:
            let found = try dataset.get(key)
            try require(found == state.values[key], "\(name): get differs")
        case 185..<195:
            try scan(&state, dataset, from: key)
        case 195..<198:
            try conditional(&state, dataset, key)
        case 198:
            let newest = try dataset.history(of: key).first
            try require(newest?.value == state.values[key], "\(name): history differs")
        default:
            if state.random.oneIn(10) {
                let since = state.syncCount - min(state.syncCount, UInt64(state.random.below(500)))
                try checkChanges(state, dataset, since: since)
            }
        }
    }

    private static func value(_ random: inout SeededGenerator) -> [UInt8] {
        let count = random.oneIn(60) ? random.below(40_000) : random.below(200)
        return random.oneIn(2) ? random.bytes(count) : random.compressibleBytes(count)
    }

    private func batch(
        _ state: inout State, _ store: Store, _ dataset: Dataset, _ shared: Dataset
    ) throws {
        var batch = WriteBatch()
        var writes: [(key: [UInt8], value: [UInt8]?)] = []
        for _ in 0..<(1 + state.random.below(30)) {
            let key = Array("key \(state.random.below(4_000))".utf8)
            let value = state.random.oneIn(5) ? nil : Self.value(&state.random)
            writes.append((key, value))
            if let value {
                batch.put(value, for: key, in: dataset)
            } else {
                batch.delete(key, in: dataset)
            }
        }
        let stamp = Array("\(state.stamp + 1)".utf8)
        for index in 0..<Self.sharedKeys {
            batch.put(stamp, for: Self.sharedKey(number, index), in: shared)
        }
        try store.write(batch)
        for write in writes { state.note(write.value, write.key) }
        state.stamp += 1
    }

    private func conditional(
        _ state: inout State, _ dataset: Dataset, _ key: [UInt8]
    ) throws {
        let dot = try dataset.record(for: key)?.version.dot
        try require((dot == nil) == (state.values[key] == nil), "\(name): record differs")
        try dataset.put([1], for: key, ifAt: dot)
        state.note([1], key)
    }

    private func scan(
        _ state: inout State, _ dataset: Dataset, from key: [UInt8]
    ) throws {
        let order = state.random.oneIn(2) ? ScanOrder.forward : .backward
        let range = state.random.oneIn(20) ? KeyRange.all : KeyRange.prefix(Array(key.prefix(6)))
        let found = try dataset.records(in: range, order: order).collect()
        var keys = state.values.keys.filter { key in
            guard let lower = range.lowerBound, Bytes.precedes(key, lower) else {
                return range.upperBound.map { Bytes.precedes(key, $0) } ?? true
            }
            return false
        }.sorted(by: Bytes.precedes)
        if order == .backward { keys.reverse() }
        try require(found.map(\.key) == keys, "\(name): the keys of a scan differ")
        for record in found {
            try require(record.value == state.values[record.key], "\(name): a scan differs")
        }
    }

    private func checkChanges(
        _ state: State, _ dataset: Dataset, since: UInt64
    ) throws {
        let expected = state.changed.filter { $0.value > since }
            .sorted { $0.value < $1.value }.map(\.key)
        do {
            let found = try dataset.changes(since: SyncCount(rawValue: since)).collect()
            let keys = Set(found.map(\.key))
            // Without history, tombstones may go, and whoever starts at 0 does not miss them.
            let wanted = expected.filter { keys.contains($0) || state.values[$0] != nil }
            try require(
                found.map(\.key) == (since == 0 ? wanted : expected),
                "\(name): changes since \(since) differ")
        } catch let error as StoreError where error.code == .changesExpired {
            try require(since > 0, "\(name): all changes expired")
        }
    }

    /// Everything, while nobody writes.
    func checkAll(_ store: Store) throws {
        guard let dataset = try store.existingDataset(name) else {
            return try require(state.withLock { $0.syncCount == 0 }, "\(name) is gone")
        }
        let state = state.withLock { $0 }
        var found: [[UInt8]: [UInt8]] = [:]
        for record in try dataset.records().collect() { found[record.key] = record.value }
        try require(
            found == state.values,
            "\(name): \(found.count) records, \(state.values.count) expected")
        let backward = try dataset.records(order: .backward).collect()
        try require(backward.count == found.count, "\(name): \(backward.count) backwards")
        let count = try dataset.syncCount.rawValue
        try require(count == state.syncCount, "\(name): sync count \(count)")
        try checkChanges(state, dataset, since: 0)
        let shared = try store.dataset(Self.sharedName)
        for index in 0..<Self.sharedKeys where state.stamp > 0 {
            let stamp = try shared.get(Self.sharedKey(number, index))
            try require(stamp == Array("\(state.stamp)".utf8), "\(name): the last stamp differs")
        }
    }
}

extension SoakWriter.State {
    fileprivate mutating func note(_ value: [UInt8]?, _ key: [UInt8]) {
        syncCount += 1
        values[key] = value
        changed[key] = syncCount
    }
}
