import TestSupport
import Testing
import Tidemark

/// What the statistics tell of each segment adds up to what they tell of the datasets, whatever was
/// written, deleted, sealed and merged.
@Suite("Statistics of segments")
struct SegmentStatisticsTests {
    private func check(_ store: Store, valuesLieApart: Bool) throws {
        let statistics = try store.statistics()
        let (datasets, segments) = (statistics.datasets, statistics.segments)
        let records = datasets.reduce(0) { $0 + $1.recordCount }
        let live = segments.reduce(0) { $0 + $1.liveCount }
        try require(live == records, "\(live) live in segments, \(records) records")
        let dead = segments.reduce(0) { $0 + $1.deadCount }
        let superseded = datasets.reduce(0) { $0 + $1.deadCount }
        try require(dead == superseded, "\(dead) dead in segments, \(superseded) in datasets")
        let bytes = datasets.reduce(0) { $0 + $1.keyBytes + $1.valueBytes }
        let liveBytes = segments.reduce(0) { $0 + $1.liveBytes }
        let keyBytes = datasets.reduce(0) { $0 + $1.keyBytes }
        if valuesLieApart {
            try require(
                (UInt64(keyBytes)...UInt64(bytes)).contains(liveBytes),
                "\(liveBytes) bytes live, of \(bytes) with \(keyBytes) of keys")
        } else {
            try require(liveBytes == UInt64(bytes), "\(liveBytes) bytes live, of \(bytes)")
        }
        for segment in segments {
            try require(
                segment.liveCount + segment.deadCount <= segment.entryCount, "\(segment)")
            try require(
                (segment.spaceAmplification == nil) == (segment.liveBytes == 0), "\(segment)")
        }
        let largest = segments.map { $0.liveCount }.max() ?? 0
        try require(largest <= records, "\(largest) live in one segment")
    }

    @Test("Those of all segments are those of all datasets", arguments: [false, true])
    func addUp(valuesLieApart: Bool) {
        withSeed(for: "addUp(\(valuesLieApart))") { seed in
            var random = SeededGenerator(seed)
            var options = quickOptions()
            options.compactsAutomatically = false
            options.historyVersions = random.below(3)
            options.largeValueBytes = valuesLieApart ? 64 : Limits.valueBytesMax + 1
            let fixture = try StoreFixture(options)
            let datasets = [fixture.dataset, try fixture.store.dataset("other")]
            for _ in 0..<12 {
                for _ in 0..<random.below(80) {
                    let dataset = random.element(of: datasets)
                    let key = bytes("key \(random.below(60))")
                    if random.oneIn(4) {
                        try dataset.delete(key)
                    } else {
                        try dataset.put(random.bytes(random.below(200)), for: key)
                    }
                }
                switch random.below(4) {
                case 0: try fixture.store.compact()
                case 1, 2: try fixture.store.sealAll()
                default: break
                }
                try check(fixture.store, valuesLieApart: valuesLieApart)
            }
            try fixture.store.close()
        }
    }
}
