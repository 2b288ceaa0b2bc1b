import TestSupport
import Tidemark

/// Reads what others write: batches are seen whole, and snapshots stand still.
struct SoakReader: Sendable {
    private let store: Store
    private let counts: SoakCounts
    private let seed: SeededGenerator

    init(_ store: Store, _ seed: SeededGenerator, _ counts: SoakCounts) {
        self.store = store
        self.seed = seed
        self.counts = counts
    }

    func read(until stop: Double) throws {
        var random = seed
        let shared = try store.dataset(SoakWriter.sharedName)
        var held: (snapshot: Snapshot, digest: [Record])?
        var passes = 0
        while SoakRun.now() < stop {
            let snapshot = try store.snapshot()
            let records = try snapshot.records(of: shared).collect()
            try Self.checkStamps(records)
            counts.note(operations: 1)
            passes += 1
            if passes % 50 == 0, let known = held {
                let again = try known.snapshot.records(of: shared).collect()
                try require(again == known.digest, "a snapshot has moved")
                known.snapshot.close()
                held = nil
            }
            if held == nil, random.oneIn(4) {
                held = (snapshot, records)
            } else {
                snapshot.close()
            }
        }
    }

    static func checkStamps(_ records: [Record]) throws {
        var stamps: [UInt8: Set<[UInt8]>] = [:]
        for record in records {
            guard let writer = record.key.first, let value = record.value else { continue }
            stamps[writer, default: []].insert(value)
        }
        try require(
            stamps.values.allSatisfy { $0.count == 1 }, "half of a batch is seen: \(stamps)")
    }
}
