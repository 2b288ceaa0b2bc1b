import TestSupport
import Testing

@testable import Tidemark

/// A store without threads does the same work as one with threads, only at another time: when it
/// cannot be put off. So where the one waits for its threads after each operation and the other for
/// itself, the two leave the same files.
struct InlineStoreTests {
    private func options(runsInline: Bool) -> StoreOptions {
        var options = StoreOptions(
            durability: .process, segmentBytes: 1 << 20, blockCacheBytes: 1 << 20,
            compactsAutomatically: false)
        options.runsInline = runsInline
        return options
    }

    /// Writes some megabytes, so that logs are sealed, prepared and used again.
    private func work(_ storage: SimulatedStorage, _ seed: Seed, runsInline: Bool) throws {
        var random = SeededGenerator(seed)
        for round in 0..<3 {
            let store = try openSimulated(storage, options(runsInline: runsInline))
            for number in 0..<160 {
                let dataset = try store.dataset("d\(random.below(2))")
                let key = Array("key \(random.below(40))".utf8)
                switch random.below(20) {
                case ..<16: try dataset.put(random.bytes(random.below(30_000)), for: key)
                case ..<19: try dataset.delete(key)
                default: try store.sync()
                }
                try store.waitForBackgroundWork()
                storage.clockMilliseconds += 1
                if number == 100 + round { try store.compact() }
                if number == 130, round == 1 { try store.deleteDataset("d1") }
            }
            try store.close()
        }
    }

    @Test func theFilesAreTheSameWithAndWithoutThreads() throws {
        let seed = Seed.drawn()
        let disks = (threads: SimulatedStorage(seed: seed), inline: SimulatedStorage(seed: seed))
        try work(disks.threads, seed, runsInline: false)
        try work(disks.inline, seed, runsInline: true)
        let names = try disks.threads.listDirectory(simulatedPath).sorted()
        #expect(try disks.inline.listDirectory(simulatedPath).sorted() == names)
        #expect(names.contains { $0.hasSuffix(".seg") })
        for name in names {
            let path = "\(simulatedPath)/\(name)"
            let isSame = disks.threads.contents(of: path) == disks.inline.contents(of: path)
            #expect(isSame, "\(name), seed \(seed)")
        }
    }

    /// Without any waiting, work is put off as long as it can be, and none of it is forgotten.
    @Test func whatIsPutOffIsDone() throws {
        let seed = Seed.drawn()
        var random = SeededGenerator(seed)
        let storage = SimulatedStorage(seed: seed)
        var store = try openSimulated(storage, options(runsInline: true))
        var expected: [[UInt8]: [UInt8]] = [:]
        for number in 0..<600 {
            let key = Array("key \(random.below(60))".utf8)
            let value = random.bytes(random.below(20_000))
            try store.dataset("d").put(value, for: key)
            expected[key] = value
            if number % 200 == 199 {
                try store.close()
                store = try openSimulated(storage, options(runsInline: true))
            }
        }
        #expect(store.engine.currentView.segments.count >= 4)
        for (key, value) in expected { #expect(try store.dataset("d").get(key) == value) }
        try store.close()
    }

    @Test func compactionGoesByStep() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let store = try openSimulated(storage, options(runsInline: true))
        let dataset = try store.dataset("d")
        for number in 0..<CompactionChoice.runsMin {
            #expect(store.engine.currentView.runs.count == number)
            try dataset.put("value", for: "key \(number)")
            #expect(try store.compactStep() == (number == CompactionChoice.runsMin - 1))
        }
        #expect(store.engine.currentView.runs.count == 1)
        #expect(try !store.compactStep())
        #expect(try dataset.count() == CompactionChoice.runsMin)
        try store.close()
    }
}
