import TestSupport
import Testing
import Tidemark

/// Blocks of a log name replicas, vectors and authors that earlier blocks defined. If one of those
/// is damaged, a later record may lose its version, but never takes that of another.
@Suite("Repair of logs")
struct RepairedLogTests {
    private static let options = StoreOptions(durability: .process, segmentBytes: 1 << 20)
    private static let recordCount = 60

    /// Where each block of a log begins, in its order.
    private func blocks(of log: [UInt8]) -> [Range<Int>] {
        var blocks: [Range<Int>] = []
        var offset = 80
        while offset + 24 <= log.count, log[offset..<(offset + 24)].contains(where: { $0 != 0 }) {
            let length = log[(offset + 8)..<(offset + 12)].reversed().reduce(0) {
                $0 << 8 | Int($1)
            }
            blocks.append(offset..<(offset + 24 + length))
            offset += 24 + length
        }
        return blocks
    }

    /// Records of many writers, as an exchange brings them: one commit each.
    private func fill(_ dataset: Dataset, _ random: inout SeededGenerator) throws {
        let replicas = (0..<6).map { _ in ReplicaID(high: random.next(), low: random.next()) }
        for index in 0..<Self.recordCount {
            let writer = random.element(of: replicas)
            var seen = VersionVector()
            for other in replicas where random.oneIn(3) {
                seen.insert(Dot(replica: other, counter: UInt64(1 + random.below(3))))
            }
            let version = Version(
                dot: Dot(replica: writer, counter: UInt64(10 + index)), vector: seen,
                time: HybridTime(milliseconds: 1_790_000_000_000 + UInt64(index), counter: 0),
                author: random.element(of: ["", "ann", "bob"]))
            var batch = ReplicationBatch()
            batch.writes = [
                ReplicatedWrite(
                    key: bytes("key \(index)"),
                    content: .adopt(value: bytes("value \(index)"), version: version),
                    expected: nil)
            ]
            #expect(try dataset.replicate(batch).isEmpty)
        }
    }

    @Test("A damaged block costs its own record, and of others at most the version")
    func manyWriters() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let storage = SimulatedStorage(seed: seed)
            let store = try openSimulated(storage, Self.options)
            let dataset = try store.dataset("main")
            try fill(dataset, &random)
            let original = try dataset.records().collect()
            try store.close()
            let name = try #require(
                try storage.listDirectory(simulatedPath).first { $0.hasSuffix(".log") })
            let path = "\(simulatedPath)/\(name)"
            let whole = try #require(storage.contents(of: path))
            let blocks = blocks(of: whole)
            try require(blocks.count == Self.recordCount + 2, "\(blocks.count) blocks")
            var lost = 0
            // The first creates the dataset, and the last is there for its mark.
            for number in 1...Self.recordCount {
                var damaged = whole
                damaged[blocks[number].lowerBound + random.below(blocks[number].count)] ^= 4
                storage.setContents(of: path, to: damaged)
                let target = "/repaired \(number)"
                let report = try Store.repair(
                    at: simulatedPath, to: target, storage: storage)
                try require(report.losses.count == 1, "\(report.losses)")
                try require(
                    report.losses[0].offset == UInt64(blocks[number].lowerBound)
                        && report.losses[0].byteCount == UInt64(blocks[number].count),
                    "\(report.losses[0]) for block \(blocks[number])")
                let repaired = try Store.open(
                    at: target, options: Self.options, storage: storage)
                let found = try repaired.dataset("main").records().collect()
                let key = bytes("key \(number - 1)")
                let wanted = original.filter { $0.key != key }
                try require(found.map(\.key) == wanted.map(\.key), "other keys")
                for (record, want) in zip(found, wanted) {
                    try require(record.value == want.value, "another value")
                    guard record.version != want.version else { continue }
                    try require(
                        record.version.dot.replica == report.replicaID,
                        "\(want.version) became \(record.version)")
                    try require(
                        want.syncCount.rawValue > UInt64(number),
                        "a record before the hole lost its version")
                    lost += 1
                }
                try repaired.close()
            }
            // Most of what stands behind a hole is told from what is there.
            let behind = Self.recordCount * Self.recordCount / 2
            try require(lost < behind / 3, "\(lost) of \(behind) versions were lost")
        }
    }

    @Test("A log that ended is read on behind a hole, though it has no mark")
    func endedLog() throws {
        let store = try StoppedWhileSealing(recordCount: 20)
        let disk = store.disk
        var log = try #require(disk.contents(of: store.logs[0]))
        let hole = blocks(of: log)[8]
        log[hole.lowerBound + 25] ^= 1
        disk.setContents(of: store.logs[0], to: log)
        expectError(.corruption) {
            try StoreContents.read(at: store.restoredPath, storage: disk)
        }
        let report = try Store.repair(at: store.restoredPath, to: "/repaired", storage: disk)
        #expect(report.losses.map(\.offset) == [UInt64(hole.lowerBound)])
        let repaired = try StoreContents.read(at: "/repaired", storage: disk)
        let keys = repaired.datasets["main"]?.records.compactMap(\.keyText)
        #expect(keys == (0..<20).filter { $0 != 7 }.map { "\(100 + $0)" })
        // Reading on what the second log has: the store's former name was renewed in it.
        let opened = try Store.open(at: "/repaired", options: Self.options, storage: disk)
        #expect(opened.formerReplicaIDs.count == 2)
        try opened.close()
    }
}
