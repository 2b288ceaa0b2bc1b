import Testing
import Tidemark

@testable import TidemarkSync

/// The journal entry by entry, for who must not keep it in memory.
struct JournalWalkTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private func meet(_ keys: [String], _ policy: MergePolicy) async throws {
        for key in keys {
            try a.dataset().put("ours", for: key)
            try b.dataset().put("theirs", for: key)
        }
        _ = await a.store.synchronizeEach(
            with: b.transport, options: SyncOptions(policy: policy))
    }

    @Test func settledConflictsComeNewestFirst() async throws {
        try await meet(["one", "two", "three"], .keepLocal)
        let all = try a.dataset().settledConflicts()
        try #require(all.count == 3)
        var walked: [SettledConflict] = []
        try a.dataset().forEachSettledConflict { entry in
            walked.append(entry)
            return true
        }
        #expect(walked == all)
        var first: [SettledConflict] = []
        try a.dataset().forEachSettledConflict { entry in
            first.append(entry)
            return false
        }
        #expect(first == Array(all.prefix(1)))
    }

    @Test func waitingConflictsComeOldestFirst() async throws {
        try await meet(["one", "two"], .leavePending)
        let all = try a.dataset().pendingConflicts()
        try #require(all.count == 2)
        var times: [HybridTime] = []
        try a.dataset().forEachWaitingConflict { since in
            times.append(since)
            return true
        }
        #expect(times == all.map(\.since))
    }

    @Test func theLatestBatchOfEachPeer() async throws {
        for round in 0..<3 {
            try b.dataset().put("\(round)", for: "key")
            _ = await a.store.synchronizeEach(with: b.transport)
        }
        let latest = try a.dataset().latestArrivals()
        #expect(latest.count == 1)
        let newest = try #require(try a.dataset().arrivals().first)
        #expect(latest[b.store.replicaID] == newest)
    }
}
