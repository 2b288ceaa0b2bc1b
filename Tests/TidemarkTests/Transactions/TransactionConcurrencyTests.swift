import Synchronization
import TestSupport
import Testing
import Tidemark

/// Threads that run transactions on a few records, so that many conflict. Each transaction that is
/// committed also writes a record of its own into the dataset `order`; the order of change there
/// is the order of the commits, and run one by one in that order each must see just what it saw.
///
///     thread 1:  [read a, b .. write b]        [walk k .. write c]
///     thread 2:       [walk k .. write a]  conflict, again [walk k .. write a]
@Suite("Concurrent transactions", .timeLimit(.minutes(Patience.minutes)))
struct TransactionConcurrencyTests {
    /// What one committed transaction saw and did.
    private struct Trace {
        var reads: [(key: String, value: String?)] = []
        var walks: [(range: KeyRange, found: [String: String])] = []
        var writes: [String: String?] = [:]
    }

    @Test("Whatever was committed can be replayed one by one", arguments: [false, true])
    func serializable(compacts: Bool) throws {
        let seed = Seed.drawn()
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        let order = try store.dataset("order")
        let traces = Mutex<[String: Trace]>([:])
        let threads = 3
        let isOver = Flag()
        let running = Running(threads)
        var bodies = (0..<threads).map { thread in
            { @Sendable () throws -> Void in
                defer { running.leave(isOver) }
                var generator = SeededGenerator(Seed(seed.rawValue &+ UInt64(thread)))
                for index in 0..<250 {
                    let name = "\(thread)/\(index)"
                    let trace = try store.transaction(attemptsMax: 10_000) { transaction in
                        try transaction.put("", for: name, in: order)
                        return try Self.work(transaction, dataset, name, &generator)
                    }
                    traces.withLock { $0[name] = trace }
                }
            }
        }
        if compacts {
            bodies.append {
                while !isOver.isSet { try store.compact() }
            }
        }
        try runOnThreads(bodies)
        try Self.replay(traces.withLock { $0 }, in: try order.changes(since: 0), dataset)
    }

    private static func work(
        _ transaction: Transaction, _ dataset: Dataset, _ name: String,
        _ generator: inout SeededGenerator
    ) throws -> Trace {
        var trace = Trace()
        func key() -> String { "k\(generator.below(8))" }
        for _ in 0..<(1 + generator.below(3)) {
            if generator.oneIn(3) {
                let range = KeyRange(from: bytes(key()), through: bytes(key()))
                let found = try transaction.records(of: dataset, in: range).collect()
                trace.walks.append(
                    (range, try texts(found.map { ($0.keyText, $0.valueText) })))
            } else {
                let key = key()
                trace.reads.append((key, try transaction.text(key, in: dataset)))
            }
        }
        // Written last, so that no read above is of the transaction's own.
        for _ in 0..<(1 + generator.below(2)) {
            let key = key()
            if generator.oneIn(4) {
                try transaction.delete(key, in: dataset)
                trace.writes[key] = .some(nil)
            } else {
                try transaction.put(name, for: key, in: dataset)
                trace.writes[key] = name
            }
        }
        return trace
    }

    private static func texts(_ pairs: [(String?, String?)]) throws -> [String: String] {
        var texts: [String: String] = [:]
        for pair in pairs {
            let key: String = try #require(pair.0)
            texts[key] = try #require(pair.1) as String
        }
        return texts
    }

    private static func replay(
        _ traces: [String: Trace], in order: RecordCursor, _ dataset: Dataset
    ) throws {
        var state: [String: String] = [:]
        var count = 0
        while let record = try order.next() {
            let name: String = try #require(record.keyText)
            let trace = try #require(traces[name])
            for (key, value) in trace.reads {
                try require(state[key] == value, "\(name) read a stale \(key)")
            }
            for (range, found) in trace.walks {
                let expected = state.filter { range.contains(bytes($0.key)) }
                try require(found == expected, "\(name) walked past a phantom")
            }
            for (key, value) in trace.writes { state[key] = value }
            count += 1
        }
        #expect(count == traces.count)
        let found = try dataset.records().collect()
        #expect(try texts(found.map { ($0.keyText, $0.valueText) }) == state)
    }

    @Test("Transfers between accounts keep the sum, for every reader at every moment")
    func transfers() throws {
        let fixture = try StoreFixture()
        let (store, accounts) = (fixture.store, fixture.dataset)
        let journal = try store.dataset("journal")
        let accountCount = 6
        for index in 0..<accountCount { try accounts.put("100", for: "\(index)") }
        let seed = Seed.drawn()
        let isOver = Flag()
        let running = Running(3)
        let clerks = (0..<3).map { thread in
            { @Sendable () throws -> Void in
                defer { running.leave(isOver) }
                var generator = SeededGenerator(Seed(seed.rawValue &+ UInt64(thread)))
                for index in 0..<300 {
                    let (from, to) = (generator.below(accountCount), generator.below(accountCount))
                    let amount = 1 + generator.below(40)
                    try store.transaction(attemptsMax: 10_000) { transaction in
                        let left = try balance(transaction, from, accounts)
                        guard left >= amount, from != to else { return }
                        let other = try balance(transaction, to, accounts)
                        try transaction.put("\(left - amount)", for: "\(from)", in: accounts)
                        try transaction.put("\(other + amount)", for: "\(to)", in: accounts)
                        try transaction.put("\(amount)", for: "\(thread)/\(index)", in: journal)
                    }
                }
            }
        }
        let auditor: @Sendable () throws -> Void = {
            while !isOver.isSet {
                let sum = try store.transaction { transaction in
                    try transaction.records(of: accounts).collect()
                        .reduce(0) { $0 + (Int($1.valueText ?? "") ?? 0) }
                }
                try require(sum == 100 * accountCount, "money came or went: \(sum)")
            }
        }
        let janitor: @Sendable () throws -> Void = {
            while !isOver.isSet { try store.compact() }
        }
        try runOnThreads(clerks + [auditor, janitor])
        let balances = try accounts.records().collect().map { Int($0.valueText ?? "") ?? -1 }
        #expect(balances.reduce(0, +) == 100 * accountCount)
        #expect(balances.allSatisfy { $0 >= 0 })
        #expect(try journal.count() > 100)
    }

    @Test("Counters kept by transactions lose no increment, and each attempt's end is counted")
    func increments() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let body: @Sendable () throws -> Void = {
            for _ in 0..<300 {
                try fixture.store.transaction(attemptsMax: 10_000) { transaction in
                    let count = try transaction.text("n", in: dataset).flatMap { Int($0) } ?? 0
                    try transaction.put("\(count + 1)", for: "n", in: dataset)
                }
            }
        }
        try runOnThreads([body, body, body])
        #expect(try dataset.text("n") == "900")
    }
}

private func balance(
    _ transaction: Transaction, _ account: Int, _ accounts: Dataset
) throws -> Int {
    try transaction.text("\(account)", in: accounts).flatMap { Int($0) } ?? 0
}

private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

/// Sets a flag when the last one leaves, whether it failed or not.
private final class Running: Sendable {
    private let count: Atomic<Int>
    init(_ count: Int) { self.count = Atomic(count) }
    func leave(_ flag: Flag) {
        if count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { flag.set() }
    }
}
