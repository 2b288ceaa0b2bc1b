import Synchronization
import TestSupport
import Testing
import Tidemark

/// Many threads open the same datasets while their states come and go. A dataset has one state at
/// any time, so no write is lost and no dot is given twice:
///
///     thread 1:   open d -- put: dot 1 -- let go          open d -- put: dot 3
///     thread 2:             open d -- put: dot 2 -- let go
///     sealing:                                 d's state goes        never back to dot 2
@Suite("Concurrent use of datasets")
struct DatasetCatalogConcurrencyTests {
    private static let threadCount = 4
    private static let roundCount = 600
    private static let names = (0..<24).map { "dataset-\($0)" }

    @Test("Each write has a dot of its own, and all are there, while states are let go")
    func oneStateEach() throws {
        try withThreads { store, random, dots in
            let name = random.element(of: Self.names)
            let key = "\(random.next())"
            let value = random.bytes(1_000)
            let dot = try store.dataset(name).put(value, for: Array(key.utf8))
            let isNew = dots.byName.withLock { $0[name, default: []].insert(dot.counter).inserted }
            try require(isNew, "\(name): dot \(dot) was given twice")
            try require(try store.existingDataset(name)?.get(key) == value, "\(name): lost \(key)")
            if random.oneIn(40) { try store.compact() }
            if random.oneIn(40) {
                let found = try store.datasets().map(\.name)
                try require(found.contains(name) && found == found.sorted(), "\(found)")
            }
            if random.oneIn(20) {
                try require(try store.existingDataset("none") == nil, "a dataset from nowhere")
            }
        }
    }

    private func withThreads(
        _ body: @escaping @Sendable (Store, inout SeededGenerator, Dots) throws -> Void
    ) throws {
        withSeed { seed in
            var options = quickOptions()
            options.keptDatasetStatesMax = 1
            options.compactsAutomatically = true
            let directory = try TemporaryDirectory()
            let store = try Store.open(at: directory["store"], options: options)
            let dots = Dots()
            var random = SeededGenerator(seed)
            try runOnThreads(
                (0..<Self.threadCount).map { _ in
                    let own = random.split()
                    return { @Sendable () throws -> Void in
                        var random = own
                        for _ in 0..<Self.roundCount { try body(store, &random, dots) }
                    }
                })
            try store.compact()
            try store.waitForBackgroundWork()
            try require(store.datasetStatesInMemory < Self.names.count, "no state was let go")
            try check(store, dots)
            try store.close()
            let again = try Store.open(at: directory["store"], options: options)
            try check(again, dots)
            try again.close()
        }
    }

    private func check(_ store: Store, _ dots: Dots) throws {
        let expected = dots.byName.withLock { $0 }
        try require(
            expected.values.reduce(0) { $0 + $1.count } == Self.threadCount * Self.roundCount,
            "dots are missing")
        for (name, counters) in expected {
            let dataset = try store.dataset(name)
            try require(counters == Set(1...UInt64(counters.count)), "\(name): a gap")
            try require(
                try dataset.syncCount.rawValue == UInt64(counters.count), "\(name): sync count")
            try require(try dataset.count() == counters.count, "\(name): records")
        }
    }
}

/// The counters of the dots that were given out, for each dataset.
private final class Dots: Sendable {
    let byName = Mutex<[String: Set<UInt64>]>([:])
}
