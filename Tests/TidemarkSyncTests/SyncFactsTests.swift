import Testing
import Tidemark
import TidemarkSync

/// What a dataset knows of itself and of its exchanges.
struct SyncFactsTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    @Test(arguments: 0..<4)
    func theDirtyAreCounted(_ run: UInt64) async throws {
        let seed = baseSeed &+ run
        print("theDirtyAreCounted: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let dataset = try a.dataset()
        for round in 0..<40 {
            for _ in 0..<Int.random(in: 0..<6, using: &random) {
                let replica = Int.random(in: 0..<3, using: &random) == 0 ? b : a
                let key = "key \(Int.random(in: 0..<20, using: &random))"
                if Int.random(in: 0..<4, using: &random) == 0 {
                    try replica.dataset().delete(key)
                } else {
                    try replica.dataset().put("\(random.next())", for: key)
                }
            }
            if Int.random(in: 0..<5, using: &random) == 0 { try a.store.compact() }
            let isSynchronised = Int.random(in: 0..<3, using: &random) == 0
            if isSynchronised { try await a.store.synchronize(with: b.transport) }
            let dirty = try dataset.records(includingDeleted: true).collect().filter(\.isDirty)
            #expect(try dataset.dirtyCount() == dirty.count, "seed \(seed), round \(round)")
            if isSynchronised { #expect(dirty.isEmpty) }
        }
    }

    @Test func factsOfADataset() async throws {
        let dataset = try a.dataset()
        let peer = b.store.replicaID
        #expect(try dataset.syncFacts(with: peer).lastSyncCount == .zero)
        #expect(try dataset.size(of: "key") == nil)
        try dataset.put("four", for: "key")
        #expect(try dataset.size(of: "key") == 7)
        #expect(try dataset.dirtyCount() == 1)
        try b.dataset().put("1", for: "theirs")
        try b.dataset().put("2", for: "theirs")
        try await a.store.synchronize(with: b.transport)
        let facts = try dataset.syncFacts(with: peer)
        #expect(facts.lastSyncCount == (try b.dataset().syncCount))
        #expect(facts.sentSyncCount == facts.syncCount)
        #expect(try dataset.dirtyCount() == 0)
        try dataset.delete("key")
        #expect(try dataset.size(of: "key") == nil)
        #expect(try dataset.dirtyCount() == 1)
        try a.store.deleteDataset("notes")
        let error = #expect(throws: StoreError.self) { try dataset.dirtyCount() }
        #expect(error?.code == .datasetNotFound)
    }

    private struct Refusal: Error {}

    /// The position of the peer is past it.
    @Test func whatWasLeftOutIsCountedAsDirty() async throws {
        let dataset = try a.dataset()
        try dataset.put("bad", for: "key")
        try dataset.put("fine", for: "other")
        let choosy = SyncResponder(
            store: b.store,
            validate: { record in
                if record.valueText == "bad" { throw Refusal() }
            })
        let error = await #expect(throws: SyncError.self) {
            try await dataset.synchronize(with: InMemoryTransport(choosy))
        }
        #expect(error?.code == .recordRefused)
        let facts = try dataset.syncFacts(with: b.store.replicaID)
        #expect(facts.sentSyncCount == facts.syncCount)
        let dirty = try dataset.records(includingDeleted: true).collect().filter(\.isDirty)
        #expect(dirty.contains(where: { $0.keyText == "key" }))
        #expect(try dataset.dirtyCount() == dirty.count)
        // That of another dataset is none of this one's.
        try a.dataset("notes2").put("1", for: "key")
        try await a.dataset("notes2").synchronize(with: b.transport)
        #expect(try a.dataset("notes2").dirtyCount() == 0)
        try dataset.retryFailedRecords()
        try await dataset.synchronize(with: b.transport)
        #expect(try dataset.dirtyCount() == 0)
    }

    @Test func theTimeOfCreationIsTheSameEverywhere() async throws {
        let dataset = try a.dataset()
        let made = try dataset.creationTime
        try dataset.put("1", for: "key")
        #expect(try dataset.creationTime == made)
        // Both have made one of that name before they meet: the later time counts.
        let early = try b.dataset("plans").creationTime
        a.clock.putForward(bySeconds: 60)
        let late = try a.dataset("plans").creationTime
        #expect(late > early)
        try await a.store.synchronize(with: b.transport)
        #expect(try b.dataset().creationTime == made)
        #expect(try b.dataset("plans").creationTime == late)
        #expect(try a.dataset("plans").creationTime == late)
        try a.store.deleteDataset("notes")
        let error = #expect(throws: StoreError.self) { try dataset.creationTime }
        #expect(error?.code == .datasetNotFound)
        #expect(try a.dataset().creationTime > made)
    }
}
