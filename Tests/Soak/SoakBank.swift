import TestSupport
import Tidemark

/// Accounts between which transactions of several threads move amounts: the sum is the same for
/// every reader of every moment, the present one and past ones.
struct SoakBank: Sendable {
    private static let name = "bank"
    private static let accountCount = 20
    private static let total = 20_000

    private let store: Store
    private let seed: SeededGenerator
    private let counts: SoakCounts

    init(_ store: Store, _ seed: SeededGenerator, _ counts: SoakCounts) {
        self.store = store
        self.seed = seed
        self.counts = counts
    }

    private static func key(_ number: Int) -> [UInt8] { [UInt8(number)] }

    private static func value(_ amount: Int) -> [UInt8] { Array("\(amount)".utf8) }

    private static func amount(_ value: [UInt8]?) throws -> Int {
        guard let value, let amount = Int(String(decoding: value, as: UTF8.self)) else {
            throw Mismatch("an account is \(Bytes.summary(value))")
        }
        return amount
    }

    /// Makes the accounts, in one commit, unless they are there.
    static func open(_ store: Store) throws -> Dataset {
        let bank = try store.dataset(name)
        try store.transaction { transaction in
            guard try transaction.get(key(0), in: bank) == nil else { return }
            for number in 0..<accountCount {
                try transaction.put(value(total / accountCount), for: key(number), in: bank)
            }
        }
        return bank
    }

    /// Moves amounts and looks at the sum, now and back then.
    func transfer(until stop: Double) throws {
        var random = seed
        let bank = try Self.open(store)
        while SoakRun.now() < stop {
            let from = Self.key(random.below(Self.accountCount))
            let to = Self.key(random.below(Self.accountCount))
            let amount = 1 + random.below(50)
            if from != to { try move(amount, from, to, in: bank) }
            if random.oneIn(40) {
                let snapshot = try store.snapshot()
                try Self.check(snapshot, of: bank, "now")
                snapshot.close()
                try lookBack(bank, &random)
            }
            counts.note(operations: 1)
        }
    }

    private func move(
        _ amount: Int, _ from: [UInt8], _ to: [UInt8], in bank: Dataset
    ) throws {
        do {
            try store.transaction { transaction in
                let left = try Self.amount(try transaction.get(from, in: bank)) - amount
                guard left >= 0 else { return }
                let sum = try Self.amount(try transaction.get(to, in: bank)) + amount
                try transaction.put(Self.value(left), for: from, in: bank)
                try transaction.put(Self.value(sum), for: to, in: bank)
            }
        } catch let error as StoreError where error.code == .transactionConflict {
            // Others were faster, time and again: nothing has happened.
        }
    }

    /// Each transfer is two changes, after as many as there are accounts: every even count is a
    /// moment between two of them.
    private func lookBack(_ bank: Dataset, _ random: inout SeededGenerator) throws {
        let present = try bank.syncCount.rawValue
        let first = UInt64(Self.accountCount)
        let back = min(present - min(present, first), 2 * UInt64(random.below(200)))
        do {
            let past = try store.snapshot(at: SyncCount(rawValue: present - back), of: bank)
            try Self.check(past, of: bank, "\(back) changes ago")
            past.close()
        } catch let error as StoreError where error.code == .historyExpired {
            // Compaction has dropped what that moment needs.
        }
    }

    private static func check(_ snapshot: Snapshot, of bank: Dataset, _ moment: String) throws {
        let records = try snapshot.records(of: bank).collect()
        let sum = try records.reduce(0) { try $0 + amount($1.value) }
        try require(sum == total, "the accounts have \(sum) together, \(moment)")
    }

    /// Of a store that may be a copy, or one that has no accounts yet.
    static func check(_ store: Store) throws {
        guard let bank = try store.existingDataset(name), try bank.count() > 0 else { return }
        let snapshot = try store.snapshot()
        try check(snapshot, of: bank, "in a copy or after opening")
        snapshot.close()
    }
}
