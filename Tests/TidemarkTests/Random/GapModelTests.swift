import TestSupport
import Testing
import Tidemark

/// A dataset of which large parts are deleted and filled again, as it should be.
private struct GapModel {
    struct Entry {
        var value: UInt8
        /// 0: never.
        var expiresAt: UInt64
    }

    private(set) var entries: [Int: Entry] = [:]

    static func key(_ number: Int) -> [UInt8] {
        bytes(String(String(100_000 + number).dropFirst()))
    }

    mutating func put(_ value: UInt8?, for number: Int, expiresAt: UInt64 = 0) {
        entries[number] = value.map { Entry(value: $0, expiresAt: expiresAt) }
    }

    func live(at now: UInt64, from lower: Int, upTo upper: Int) -> [Int] {
        entries.filter { number, entry in
            (lower..<upper).contains(number) && (entry.expiresAt == 0 || entry.expiresAt > now)
        }.keys.sorted()
    }
}

private let numbersMax = 3_000

/// Much is deleted at the front, at the end and in the middle, and comes back, while snapshots are
/// held, the clock is set and the scout goes about: every walk, in whichever way, gives what the
/// model says.
@Suite("Gaps against a model")
struct GapModelTests {
    private final class Run {
        let storage: SimulatedStorage
        var store: Store
        var dataset: Dataset
        var model = GapModel()
        var snapshots: [(snapshot: Snapshot, model: GapModel, now: UInt64)] = []
        var random: SeededGenerator

        init(_ seed: Seed) throws {
            random = SeededGenerator(seed)
            storage = SimulatedStorage(seed: Seed(random.next()))
            store = try Self.open(storage)
            dataset = try store.dataset("main")
        }

        static func open(_ storage: SimulatedStorage) throws -> Store {
            var options = quickOptions()
            options.compactsAutomatically = false
            options.segmentEntriesMax = 300
            return try openSimulated(storage, options)
        }

        var now: UInt64 { storage.clockMilliseconds }

        // MARK: Changing

        func step() throws {
            switch random.below(40) {
            case 0..<8: try delete(live().prefix(random.below(300)))
            case 8..<12: try delete(live().suffix(random.below(300)))
            case 12..<15: try deleteBlock()
            case 15..<27: try putSome()
            case 27..<31: try putBlock()
            case 31..<33: storage.clockMilliseconds += UInt64(random.below(100))
            case 33: storage.clockMilliseconds -= UInt64(random.below(40))
            case 34..<36: try takeSnapshot()
            case 36: try compact()
            case 37 where random.oneIn(6): try reopen()
            case 38..<40: try scout()
            default: break
            }
        }

        private func live() -> [Int] { model.live(at: now, from: 0, upTo: .max) }

        private func delete(_ numbers: some Collection<Int>) throws {
            var batch = WriteBatch()
            for number in numbers { batch.delete(GapModel.key(number), in: dataset) }
            guard !batch.isEmpty else { return }
            try store.write(batch)
            for number in numbers { model.put(nil, for: number) }
        }

        private func deleteBlock() throws {
            let start = random.below(numbersMax)
            try delete(start..<min(start + random.below(500), numbersMax))
        }

        /// Anywhere, one by one, in a transaction or in a batch; some expire.
        private func putSome() throws {
            let numbers = (0..<(1 + random.below(4))).map { _ in random.below(numbersMax) }
            let value = UInt8(truncatingIfNeeded: random.next())
            switch random.below(3) {
            case 0:
                try store.transaction { transaction in
                    for number in numbers {
                        try transaction.put([value], for: GapModel.key(number), in: dataset)
                    }
                }
                for number in numbers { model.put(value, for: number) }
            case 1:
                var batch = WriteBatch()
                for number in numbers { batch.put([value], for: GapModel.key(number), in: dataset) }
                try store.write(batch)
                for number in numbers { model.put(value, for: number) }
            default:
                for number in numbers {
                    let expiresAt = random.oneIn(2) ? now + UInt64(random.below(200)) : 0
                    try dataset.put([value], for: GapModel.key(number), expiresAt: expiresAt)
                    model.put(value, for: number, expiresAt: expiresAt)
                }
            }
        }

        /// Many in a row, of which most expire soon, or none.
        private func putBlock() throws {
            let start = random.below(numbersMax)
            let expiresAt = random.oneIn(2) ? now + 1 + UInt64(random.below(100)) : 0
            var batch = WriteBatch()
            let numbers = start..<min(start + random.below(400), numbersMax)
            for number in numbers {
                batch.put([7], for: GapModel.key(number), in: dataset, expiresAt: expiresAt)
                model.put(7, for: number, expiresAt: expiresAt)
            }
            if !batch.isEmpty { try store.write(batch) }
        }

        private func takeSnapshot() throws {
            if snapshots.count >= 4 { snapshots.remove(at: random.below(snapshots.count)) }
            snapshots.append((try store.snapshot(), model, now))
        }

        private func compact() throws {
            guard random.oneIn(2) else {
                try store.compact()
                return
            }
            let start = random.below(numbersMax)
            try dataset.compact(
                KeyRange(
                    from: GapModel.key(start), upTo: GapModel.key(start + random.below(1_000))))
        }

        private func reopen() throws {
            snapshots = []
            try store.close()
            store = try Self.open(storage)
            dataset = try store.dataset("main")
        }

        /// Where the store itself wants to look, or anywhere.
        private func scout() throws {
            if store.scoutStep(), random.oneIn(2) { return }
            let start = random.oneIn(3) ? 0 : random.below(numbersMax)
            let partMax = random.oneIn(2) ? 1_000 : 20 + random.below(200)
            try store.scout(dataset, from: GapModel.key(start), partMax: partMax)
        }

        // MARK: Walking

        func checkWalk() throws {
            let lower = random.oneIn(2) ? 0 : random.below(numbersMax)
            let upper = random.oneIn(2) ? 99_999 : lower + random.below(1_500)
            let range = KeyRange(
                from: lower == 0 ? nil : GapModel.key(lower),
                upTo: upper == 99_999 ? nil : GapModel.key(upper))
            let order: ScanOrder = random.oneIn(2) ? .forward : .backward
            let limit = random.oneIn(6) ? nil : 1 + random.below(3)
            let held = random.oneIn(3) ? snapshots.randomElement(using: &random) : nil
            var expected = (held?.model ?? model)
                .live(at: held?.now ?? now, from: lower, upTo: upper)
            if order == .backward { expected.reverse() }
            if let limit { expected = Array(expected.prefix(limit)) }
            let snapshot = try held?.snapshot ?? store.snapshot()
            let keys: [[UInt8]]
            switch random.below(3) {
            case 0:
                keys = try snapshot.records(of: dataset, in: range, order: order, limit: limit)
                    .collect().map(\.key)
            case 1 where held == nil:
                let transaction = try store.beginTransaction()
                keys = try transaction.keys(of: dataset, in: range, order: order, limit: limit)
                    .collect()
            default:
                keys = try snapshot.keys(of: dataset, in: range, order: order, limit: limit)
                    .collect()
            }
            try require(
                keys == expected.map(GapModel.key),
                """
                \(range.lowerBound ?? []) up to \(range.upperBound ?? []), \(order), \
                \(held == nil ? "now" : "then"): \(keys.count) keys, \(expected.count) due
                """)
        }
    }

    @Test("1,000 steps with two walks each")
    func walks() throws {
        withSeed { seed in
            let run = try Run(seed)
            var (uses, scouted): (UInt64, UInt64) = (0, 0)
            let steps = schedules(1_000)
            for number in steps {
                do {
                    try run.step()
                    for _ in 0..<2 { try run.checkWalk() }
                } catch {
                    throw Mismatch("step \(number): \(error)")
                }
                uses = max(uses, run.store.gapUseCount)
                scouted = max(scouted, run.store.deadRecordsScouted)
            }
            try require(uses * 30 > steps.count, "gaps were used \(uses) times")
            try require(
                scouted * 30 > steps.count, "the scout has passed over \(scouted) dead records")
        }
    }
}
