import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// A result counts all conflicts and shows the first of them; who observes is told of all.
struct ShownSettlementsTests {
    private static let conflictCount = SyncLimits.settlementsMax + 200

    private func twoInConflict() throws -> (TestReplica, TestReplica) {
        let (a, b) = try TestReplica.two()
        for replica in [a, b] {
            var batch = WriteBatch()
            let dataset = try replica.dataset()
            for number in 0..<Self.conflictCount {
                batch.put(replica.name, for: "key \(10_000 + number)", in: dataset)
            }
            try replica.store.write(batch)
        }
        return (a, b)
    }

    @Test(arguments: [100, 10_000])
    func theFirstAreShown(pageRecordsMax: Int) async throws {
        let (a, b) = try twoInConflict()
        let result = try await a.dataset().synchronize(
            with: b.transport, options: SyncOptions(pageRecordsMax: pageRecordsMax))
        #expect(result.conflicts == Self.conflictCount)
        let keys = result.settled.map(\.key)
        let expected = (0..<SyncLimits.settlementsMax).map { Array("key \(10_000 + $0)".utf8) }
        #expect(keys == expected)
        try expectEqual([a, b])
    }

    @Test func allAreTold() async throws {
        let (a, b) = try twoInConflict()
        let told = Mutex(0)
        var options = SyncOptions()
        options.observer = { event in
            guard case .conflictsSettled(_, let settled) = event else { return }
            told.withLock { $0 += settled.count }
        }
        let result = try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(result.settled.count == SyncLimits.settlementsMax)
        #expect(told.withLock { $0 } == Self.conflictCount)
        try expectEqual([a, b])
    }
}
