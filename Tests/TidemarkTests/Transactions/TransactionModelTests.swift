import TestSupport
import Testing
import Tidemark

/// Several transactions open at once on one thread, with plain writes, sealing and compaction in
/// between, beside a model that keeps every version: what each reads is what the model says, and
/// each commit goes through exactly when the model says so.
@Suite("Transactions against a model")
struct TransactionModelTests {
    @Test("Any interleaving", arguments: 0..<6)
    func interleavings(round: Int) throws {
        withSeed { seed in
            var generator = SeededGenerator(Seed(seed.rawValue &+ UInt64(round)))
            let run = try ModelRun(compacts: round % 3 == 2)
            for _ in 0..<4_000 { try run.step(&generator) }
            try run.finish()
            print("commits \(run.commitCount), conflicts \(run.conflictCount)")
            #expect(run.commitCount > 100 && run.conflictCount > 50)
        }
    }
}

private struct Difference: Error, CustomStringConvertible {
    let description: String
}

private struct Cell: Equatable {
    var value: [UInt8]
    var serial: Int
}

private typealias State = [[UInt8]: Cell]

private final class OpenTransaction {
    let transaction: Transaction
    let begin: Int
    let states: [State]
    var hasSeenCompaction = false
    var writes: [[[UInt8]: [UInt8]?]]
    var keysRead: [Set<[UInt8]>]
    var rangesRead: [[KeyRange]]

    init(_ transaction: Transaction, begin: Int, states: [State]) {
        self.transaction = transaction
        self.begin = begin
        self.states = states
        writes = states.map { _ in [:] }
        keysRead = states.map { _ in [] }
        rangesRead = states.map { _ in [] }
    }

    func visible(_ dataset: Int) -> [(key: [UInt8], value: [UInt8])] {
        var values = states[dataset].mapValues(\.value)
        for (key, value) in writes[dataset] { values[key] = value }
        return values.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            .map { (key: $0.key, value: $0.value) }
    }
}

private final class ModelRun {
    private let fixture: StoreFixture
    private let datasets: [Dataset]
    private let compacts: Bool
    private var states: [State]
    private var log: [(dataset: Int, key: [UInt8])] = []
    private var open: [OpenTransaction] = []
    private(set) var commitCount = 0
    private(set) var conflictCount = 0

    init(compacts: Bool) throws {
        fixture = try StoreFixture()
        datasets = [fixture.dataset, try fixture.store.dataset("other")]
        states = [[:], [:]]
        self.compacts = compacts
    }

    private func key(_ generator: inout SeededGenerator) -> [UInt8] {
        bytes("k\(generator.below(40))")
    }

    private func range(_ generator: inout SeededGenerator) -> KeyRange {
        switch generator.below(8) {
        case 0: .all
        case 1: .only(key(&generator))
        case 2: .prefix("k\(generator.below(4))")
        case 3: KeyRange(from: key(&generator))
        default:
            // A narrow one, and at times an empty one.
            KeyRange(from: key(&generator), through: key(&generator))
                .intersection(.prefix("k\(generator.below(4))"))
        }
    }

    func step(_ generator: inout SeededGenerator) throws {
        let choice = generator.below(100)
        if choice < 15, open.count < 5 {
            open.append(
                OpenTransaction(
                    try fixture.store.beginTransaction(), begin: log.count, states: states))
        } else if choice < 22 {
            try plainWrite(&generator)
        } else if choice == 22, compacts {
            try fixture.store.compact()
            for transaction in open { transaction.hasSeenCompaction = true }
        } else if !open.isEmpty {
            let index = generator.below(open.count)
            if generator.oneIn(7) {
                try commit(open.remove(at: index))
            } else {
                try act(open[index], &generator)
            }
        }
    }

    func finish() throws {
        for transaction in open { try commit(transaction) }
        for (dataset, state) in zip(datasets, states) {
            let found = try dataset.records().collect()
            try check(found.count == state.count, "count")
            for record in found { try check(state[record.key]?.value == record.value, "value") }
        }
    }

    private func apply(_ dataset: Int, _ key: [UInt8], _ value: [UInt8]?) {
        log.append((dataset, key))
        states[dataset][key] = value.map { Cell(value: $0, serial: log.count) }
    }

    private func plainWrite(_ generator: inout SeededGenerator) throws {
        let dataset = generator.below(2)
        let key = key(&generator)
        if generator.oneIn(3) {
            try datasets[dataset].delete(key)
            apply(dataset, key, nil)
        } else {
            let value = generator.bytes(generator.below(20))
            try datasets[dataset].put(value, for: key)
            apply(dataset, key, value)
        }
    }

    private func act(_ it: OpenTransaction, _ generator: inout SeededGenerator) throws {
        let dataset = generator.below(2)
        let key = key(&generator)
        switch generator.below(8) {
        case 0...1:
            let value = generator.bytes(generator.below(20))
            try it.transaction.put(value, for: key, in: datasets[dataset])
            it.writes[dataset][key] = .some(value)
        case 2:
            try it.transaction.delete(key, in: datasets[dataset])
            it.writes[dataset][key] = .some(nil)
        case 3...5:
            let found = try it.transaction.get(key, in: datasets[dataset])
            let own = it.writes[dataset][key]
            let expected = own ?? it.states[dataset][key]?.value
            try check(found == expected, "a read")
            if own == nil { it.keysRead[dataset].insert(key) }
        default:
            try walk(it, dataset, range(&generator), &generator)
        }
    }

    private func walk(
        _ it: OpenTransaction, _ dataset: Int, _ range: KeyRange,
        _ generator: inout SeededGenerator
    ) throws {
        let order: ScanOrder = generator.oneIn(2) ? .forward : .backward
        let limit = generator.oneIn(2) ? generator.below(6) : nil
        var expected = it.visible(dataset).filter { range.contains($0.key) }
        if order == .backward { expected.reverse() }
        let isCut = limit.map { $0 <= expected.count } ?? false
        if let limit { expected = Array(expected.prefix(limit)) }
        if generator.oneIn(3) {
            let keys = try it.transaction.keys(
                of: datasets[dataset], in: range, order: order, limit: limit
            ).collect()
            try check(keys == expected.map(\.key), "keys of a range")
        } else {
            let found = try it.transaction.records(
                of: datasets[dataset], in: range, order: order, limit: limit
            ).collect()
            try check(found.map(\.key) == expected.map(\.key), "keys of records")
            try check(found.map(\.value) == expected.map(\.value), "values of records")
        }
        guard isCut else { return it.rangesRead[dataset].append(range) }
        guard let last = expected.last?.key else { return }
        it.rangesRead[dataset].append(
            order == .forward
                ? KeyRange(from: range.lowerBound, through: last)
                : KeyRange(from: last, upTo: range.upperBound))
    }

    private func commit(_ it: OpenTransaction) throws {
        var mustConflict = false
        for dataset in 0..<2 {
            for key in it.keysRead[dataset]
            where it.states[dataset][key]?.serial != states[dataset][key]?.serial {
                mustConflict = true
            }
            for change in log[it.begin...]
            where change.dataset == dataset
                && it.rangesRead[dataset].contains(where: { $0.contains(change.key) })
            {
                mustConflict = true
            }
        }
        let writes = it.writes.enumerated().flatMap { dataset, writes in
            writes.map { (dataset: dataset, key: $0.key, value: $0.value) }
        }
        if writes.isEmpty { mustConflict = false }
        do throws(StoreError) {
            try it.transaction.commit()
        } catch {
            try check(error.code == .transactionConflict, "\(error)")
            // A deletion that compaction has forgotten may have been of anything.
            try check(mustConflict || it.hasSeenCompaction, "a conflict over nothing")
            conflictCount += 1
            return
        }
        try check(!mustConflict, "a commit over a conflict")
        for write in writes { apply(write.dataset, write.key, write.value) }
        commitCount += 1
    }

    private func check(_ holds: Bool, _ what: String) throws {
        guard holds else { throw Difference(description: "\(what) at step \(log.count)") }
    }
}
