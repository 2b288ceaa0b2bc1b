import Glibc
import Synchronization
import TestSupport
import Tidemark

/// Everything that a store does with memory, at once, and how much of it that took at most: the
/// kilobytes of anonymous memory that the system says the process has.
final class MemoryChurn: Sendable {
    private let store: Store
    private let recordCount: Int
    private let isWriting = Atomic<Bool>(true)
    private let failure = Mutex<(any Error)?>(nil)

    private init(_ store: Store, recordCount: Int) {
        self.store = store
        self.recordCount = recordCount
    }

    /// Opens, works, closes, and says on standard output, as two little-endian numbers of 64 bits,
    /// the peak and what is left after closing.
    static func run(at directory: String, limit: Int, recordCount: Int) throws {
        let sampler = MemorySampler()
        for _ in 0..<2 {
            let options = StoreOptions(
                durability: .process, segmentBytes: 8 << 20, memoryLimit: limit)
            let store = try Store.open(at: directory, options: options)
            try MemoryChurn(store, recordCount: recordCount / 2).work()
            try store.close()
        }
        let peak = sampler.stop()
        guard acknowledge(peak), acknowledge(MemorySampler.anonymousKilobytes()) else { return }
    }

    private func work() throws {
        let threads = ThreadGroup()
        repeatWhileWriting(on: threads) { try self.read() }
        repeatWhileWriting(on: threads) { try self.compactAndCount() }
        repeatWhileWriting(on: threads) { try self.openDatasets() }
        do {
            try write()
        } catch {
            failure.withLock { $0 = error }
        }
        isWriting.store(false, ordering: .releasing)
        threads.join()
        if let failed = failure.withLock({ $0 }) { throw failed }
        try store.compact()
    }

    private func repeatWhileWriting(
        on threads: ThreadGroup, _ body: @escaping @Sendable () throws -> Void
    ) {
        threads.start { [self] in
            do {
                while isWriting.load(ordering: .acquiring) { try body() }
            } catch {
                failure.withLock { $0 = error }
            }
        }
    }

    private static func key(_ number: UInt64) -> [UInt8] {
        var mixed = number &* 0x9E37_79B9_7F4A_7C15
        mixed ^= mixed >> 29
        return (0..<8).map { UInt8(truncatingIfNeeded: mixed >> (8 * $0)) }
    }

    /// Small records in batches, which take the most memory for each byte of a log, and among them
    /// larger ones, overwrites and deletions.
    private func write() throws {
        let dataset = try store.dataset("churn")
        var number: UInt64 = 0
        var random: UInt64 = 88_172_645_463_325_252
        let large = [UInt8](repeating: 7, count: 20_000)
        while number < recordCount {
            var batch = WriteBatch()
            for _ in 0..<500 {
                random ^= random << 13
                random ^= random >> 7
                random ^= random << 17
                number += 1
                switch random % 16 {
                case 0: batch.delete(Self.key(random % number), in: dataset)
                case 1...4:
                    batch.put([1, 2, 3, 4], for: Self.key(random % number), in: dataset)
                default:
                    let value = [UInt8](repeating: UInt8(number & 0xFF), count: Int(random >> 60))
                    batch.put(value, for: Self.key(number), in: dataset)
                }
            }
            if random % 64 == 0 { batch.put(large, for: Self.key(random), in: dataset) }
            try store.write(batch)
            try dataset.put([9], for: Self.key(random % number))
        }
    }

    private func read() throws {
        let dataset = try store.dataset("churn")
        let snapshot = try store.snapshot()
        let cursor = try snapshot.records(of: dataset)
        for _ in 0..<5_000 { guard try cursor.next() != nil else { break } }
        snapshot.close()
        for number in 0..<UInt64(5_000) { _ = try dataset.get(Self.key(number)) }
        let backward = try dataset.records(order: .backward)
        for _ in 0..<1_000 { guard try backward.next() != nil else { break } }
    }

    private func compactAndCount() throws {
        try store.compact()
        _ = try store.statistics()
    }

    private func openDatasets() throws {
        for number in 0..<200 {
            let dataset = try store.dataset("dataset-\(number)")
            try store.transaction { transaction in
                let found = try transaction.get([1], in: dataset)
                try transaction.put((found ?? []).prefix(100) + [1], for: [1], in: dataset)
            }
            if number % 10 == 0 { try store.deleteDataset("dataset-\(number)") }
        }
    }
}

/// Looks at the process's anonymous memory every few milliseconds and keeps the most that it saw.
final class MemorySampler: Sendable {
    private let peak = Atomic<UInt64>(0)
    private let isStopped = Atomic<Bool>(false)
    private let thread = ThreadGroup()

    init() {
        thread.start { [self] in run() }
    }

    private func run() {
        while !isStopped.load(ordering: .acquiring) {
            let now = Self.anonymousKilobytes()
            peak.store(max(now, peak.load(ordering: .relaxed)), ordering: .relaxed)
            usleep(2_000)
        }
    }

    /// The peak, in kilobytes.
    func stop() -> UInt64 {
        isStopped.store(true, ordering: .releasing)
        thread.join()
        return max(peak.load(ordering: .relaxed), Self.anonymousKilobytes())
    }

    static func anonymousKilobytes() -> UInt64 {
        let descriptor = unsafe open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        precondition(descriptor >= 0, "the system does not tell of memory")
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        for line in text.split(separator: "\n") where line.hasPrefix("RssAnon:") {
            return UInt64(line.split(whereSeparator: { $0 == " " || $0 == "\t" })[1]) ?? 0
        }
        return 0
    }
}
