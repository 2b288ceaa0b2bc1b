import TestSupport
import Testing

@testable import Tidemark

/// The room that a commit asks for is counted by the code that fills it.
@Suite("Items of a log are counted as they are written")
struct StateItemTests {
    private func id(_ random: inout SeededGenerator) -> ReplicaID {
        ReplicaID(high: random.next(), low: random.next())
    }

    /// Of counters of all lengths.
    private func vector(_ random: inout SeededGenerator) -> VersionVector {
        var vector = VersionVector()
        for _ in 0..<random.below(5) {
            let counter = random.next() >> UInt64(random.below(64)) & Limits.countMax
            vector.insert(Dot(replica: id(&random), counter: max(1, counter)))
        }
        return vector
    }

    private func count(_ random: inout SeededGenerator) -> UInt64 {
        random.next() >> UInt64(random.below(64)) & Limits.countMax
    }

    private func items(_ random: inout SeededGenerator) -> [StateItem] {
        let name = String(repeating: "n", count: 1 + random.below(Limits.datasetNameBytesMax))
        let lifecycle = DatasetLifecycle(
            isDeleted: random.oneIn(2), wiped: vector(&random),
            time: HybridTime(rawValue: random.next() >> 1), replica: id(&random))
        let number = DatasetID(1 + random.below(1 << 20))
        var adopted = AdoptedState(records: number, isVisible: true, lifecycle: lifecycle)
        adopted.vector = vector(&random)
        adopted.outstanding = vector(&random)
        adopted.syncCount = count(&random)
        adopted.expiredThrough = count(&random)
        adopted.wipedTime = random.next()
        adopted.timeMax = random.next()
        let checkpoint = PeerCheckpoint(
            pulledThrough: SyncCount(rawValue: count(&random)),
            pushedThrough: SyncCount(rawValue: count(&random)), vector: vector(&random))
        let forgotten = ForgottenDeletions(
            vector: vector(&random), time: HybridTime(rawValue: random.next() >> 1))
        return [
            .dataset(number, isVisible: random.oneIn(2), name: name, lifecycle),
            .checkpoint(checkpoint, of: id(&random), name: name),
            .seen(vector(&random), name: name),
            .renamed(id(&random)),
            .adopted(adopted, name: name),
            .disowned(id(&random), isSettled: random.oneIn(2), name: name),
            .forgotten(forgotten, name: name),
            .retired(id(&random), name: name),
            .copied(id(&random)),
        ]
    }

    @Test("Each takes as many bytes as are counted, and all of them are read")
    func countedAsWritten() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let timeBase: UInt64 = 0
            for _ in 0..<200 {
                for item in items(&random) {
                    var writer = ByteWriter()
                    item.write(to: &writer)
                    try require(
                        item.byteCount == writer.count, "\(item): \(writer.count) bytes")
                    try unsafe withUnsafeBytes(of: timeBase) { base in
                        try unsafe writer.bytes.withUnsafeBytes { bytes in
                            guard let start = base.baseAddress else { return }
                            var reader = unsafe LogItemReader(
                                ByteView(bytes), timeBase: start)
                            let read = try reader.next(originCount: 0)
                            try require(read != nil, "\(item) is not read")
                            let behind = try reader.next(originCount: 0)
                            try require(behind == nil, "\(item) has more")
                        }
                    }
                }
            }
        }
    }

    @Test("The definitions of a version take at most what is reserved", arguments: [0, 1, 9])
    func definitions(vectorCount: Int) {
        var counter = ByteCounter()
        let entries = Array(
            repeating: (replica: UInt32.max, counter: UInt64.max), count: vectorCount)
        for _ in 0...vectorCount {
            DefinitionItem.replica(ReplicaID(high: .max, low: .max)).write(to: &counter)
        }
        DefinitionItem.vector(entries).write(to: &counter)
        DefinitionItem.author(String(repeating: "ü", count: Limits.authorBytesMax / 2))
            .write(to: &counter)
        DefinitionItem.origin(Origin(replica: .max, vector: .max, author: .max))
            .write(to: &counter)
        #expect(counter.count <= DefinitionItem.byteCountMax(vectorCount: vectorCount))
        #expect(counter.count > DefinitionItem.byteCountMax(vectorCount: vectorCount) - 16)
    }

    @Test("A counter counts a varint as it is written", arguments: 0..<64)
    func varints(bit: Int) {
        for number in [UInt64(1) << UInt64(bit), (UInt64(1) << UInt64(bit)) - 1] {
            var (writer, counter) = (ByteWriter(), ByteCounter())
            writer.append(varint: number)
            counter.append(varint: number)
            #expect(writer.count == counter.count, "\(number)")
        }
    }
}
