import TestSupport
import Testing
import Tidemark
import TidemarkSync

/// Records that expire on replicas that exchange them. Nobody writes anything of its own when a
/// record expires, so nothing can conflict; the digests agree once all clocks have passed the time.
struct ExpiryTests {
    /// A store with a clock of its own.
    private struct Replica {
        let storage: SimulatedStorage
        let store: Store
        let dataset: Dataset

        init(_ seed: UInt64) throws {
            storage = SimulatedStorage(seed: Seed(seed))
            store = try Store.open(
                at: "/store",
                options: StoreOptions(
                    durability: .memory, segmentBytes: 1 << 20, compactsAutomatically: false),
                storage: storage)
            dataset = try store.dataset("notes")
        }

        var transport: InMemoryTransport { InMemoryTransport(SyncResponder(store: store)) }

        func wait(_ milliseconds: UInt64) {
            storage.clockMilliseconds += milliseconds
        }
    }

    private func expectEqual(
        _ replicas: [Replica], _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try TidemarkSyncTests.expectEqual(
            replicas.map(\.dataset), comment, sourceLocation: sourceLocation)
    }

    @Test func theTimeTravelsWithTheRecord() async throws {
        let a = try Replica(1)
        let b = try Replica(2)
        let end = a.storage.clockMilliseconds + 100
        try a.dataset.put("value", for: "key", expiresAt: end)
        try await a.dataset.synchronize(with: b.transport)
        #expect(try b.dataset.record(for: "key")?.expiresAt == end)
        b.wait(100)
        #expect(try b.dataset.get("key") == nil)
        #expect(try a.dataset.text("key") == "value")
        a.wait(100)
        try expectEqual([a, b])
    }

    @Test func bothSweepAndNothingConflicts() async throws {
        let a = try Replica(1)
        let b = try Replica(2)
        for index in 0..<50 {
            try a.dataset.put(
                "a", for: "\(index)", expiresAt: a.storage.clockMilliseconds + UInt64(index))
        }
        try await a.dataset.synchronize(with: b.transport)
        a.wait(30)
        b.wait(40)
        #expect(try a.store.deleteExpired() == 31)
        #expect(try b.store.deleteExpired() == 41)
        let result = try await a.dataset.synchronize(with: b.transport)
        #expect(result.pulled == 0 && result.pushed == 0 && result.settled.isEmpty)
        // The one that comes late to it keeps its values until its own clock says so.
        #expect(try a.dataset.count() == 19)
        a.wait(10)
        try expectEqual([a, b])
        #expect(try a.store.deleteExpired() == 10)
        try expectEqual([a, b])
    }

    @Test func whoComesAfterTheSweepLearnsOfTheDeletion() async throws {
        let a = try Replica(1)
        let b = try Replica(2)
        try a.dataset.put("old", for: "key")
        try await b.dataset.synchronize(with: a.transport)
        try a.dataset.put("new", for: "key", expiresAt: a.storage.clockMilliseconds + 10)
        a.wait(20)
        #expect(try a.store.deleteExpired() == 1)
        try a.store.compact()
        try await b.dataset.synchronize(with: a.transport)
        #expect(try b.dataset.get("key") == nil)
        try expectEqual([a, b])
    }

    @Test func aMergedValueExpiresWithTheLater() async throws {
        let a = try Replica(1)
        let b = try Replica(2)
        let now = a.storage.clockMilliseconds
        try a.dataset.put("1", for: "both", expiresAt: now + 10)
        try a.dataset.put("1", for: "one", expiresAt: now + 10)
        try b.dataset.put("2", for: "both", expiresAt: now + 20)
        try b.dataset.put("2", for: "one")
        try await a.dataset.synchronize(
            with: b.transport,
            options: SyncOptions(policy: .custom { _ in .value([3]) }))
        #expect(try b.dataset.record(for: "both")?.expiresAt == now + 20)
        #expect(try b.dataset.record(for: "one")?.expiresAt == nil)
        try expectEqual([a, b])
    }

    /// Three replicas write, wait, sweep and meet in any order; in the end all are equal.
    @Test(arguments: 0..<12) func randomRun(_ number: UInt64) async throws {
        let seed = baseSeed &+ number
        print("seed of expiry randomRun: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let replicas = try (0..<3).map { try Replica(seed &+ UInt64($0)) }
        for _ in 0..<250 {
            let replica = replicas[Int.random(in: 0..<3, using: &random)]
            let now = replica.storage.clockMilliseconds
            let key = "\(Int.random(in: 0..<12, using: &random))"
            switch Int.random(in: 0..<12, using: &random) {
            case 0: replica.wait(UInt64.random(in: 0..<60, using: &random))
            case 1: try replica.store.deleteExpired()
            case 2, 3:
                let other = replicas[Int.random(in: 0..<3, using: &random)]
                guard other.store !== replica.store else { continue }
                try await replica.dataset.synchronize(with: other.transport)
            case 4: try replica.dataset.delete(key)
            case 5: try replica.dataset.put("\(now)", for: key)
            case 6 where Int.random(in: 0..<4, using: &random) == 0: try replica.store.compact()
            default:
                try replica.dataset.put(
                    "\(now)", for: key,
                    expiresAt: now + UInt64.random(in: 0..<120, using: &random))
            }
        }
        for _ in 0..<3 {
            for other in replicas.dropFirst() {
                try await replicas[0].dataset.synchronize(with: other.transport)
            }
        }
        let latest = replicas.map(\.storage.clockMilliseconds).max() ?? 0
        for replica in replicas { replica.storage.clockMilliseconds = latest }
        try expectEqual(replicas, "seed \(seed)")
        for replica in replicas { replica.wait(200) }
        try expectEqual(replicas, "seed \(seed), later")
        try replicas[1].store.deleteExpired()
        try expectEqual(replicas, "seed \(seed), swept")
    }

    // MARK: - Parts

    /// What leaves the part is kept there, so that the older value stays; until the peer has swept
    /// the one over which it was.
    @Test(arguments: [OutOfScopeAction.keep, .drop])
    func aPartHearsOfASweep(leaving action: OutOfScopeAction) async throws {
        let (hub, part) = (try Replica(1), try Replica(2))
        try hub.dataset.put(#"{"c":0}"#, for: "key")
        try part.dataset.setSyncScope(.field(["c"], .equals(0)), leaving: action)
        try await part.dataset.synchronize(with: hub.transport)
        #expect(try part.dataset.text("key") == #"{"c":0}"#)
        let end = hub.storage.clockMilliseconds + 100
        try hub.dataset.put(#"{"c":1}"#, for: "key", expiresAt: end)
        for isExpired in [false, true] {
            if isExpired { for replica in [hub, part] { replica.wait(100) } }
            try await part.dataset.synchronize(with: hub.transport)
            #expect(try part.dataset.text("key") == (action == .keep ? #"{"c":0}"# : nil))
        }
        #expect(try hub.store.deleteExpired() == 1)
        try await part.dataset.synchronize(with: hub.transport)
        #expect(try part.dataset.text("key") == nil)
    }
}
