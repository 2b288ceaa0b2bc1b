import Testing
import Tidemark

@testable import TidemarkSync

// The property: whatever a peer asks for, one answer looks at so much and no more, and the asker
// comes through to the end all the same.
//
//     changes   1 ............ 1,040 ........... 2,080 ....... 2,500
//     answers   └─ notices ──────┘└─ notices ──────┘└─ notices ──┘ last

/// A scope to which nothing belongs costs a bounded answer at a time.
struct ScopeBudgetTests {
    /// Close to the largest there may be, with few conditions.
    private static let heavy = SyncScope(
        .any(
            (0..<4).map { number in
                .field(JSONPath(["\(number)", String(repeating: "x", count: 4_000)]), .exists)
            }))

    @Test func aDearerScopeHasLessLookedAt() throws {
        let usual = ScopeBudget(.prefix("orders/") && .field(["state"], .equals("open")))
        #expect(usual.changesMax == SyncLimits.scopedChangesMax)
        #expect(usual.valueBytesMax == SyncLimits.scopedValueBytesMax)
        #expect(ScopeBudget(nil) == usual)
        try Self.heavy.checkBounds()
        let heavy = ScopeBudget(Self.heavy)
        #expect(heavy.changesMax < 1_100 && heavy.changesMax > 900)
        #expect(heavy.valueBytesMax == SyncLimits.scopedValueBytesMax)
        // Two scopes are looked at one after the other.
        #expect(ScopeBudget(Self.heavy, Self.heavy).changesMax <= heavy.changesMax / 2 + 1)
        let conditions = SyncScope(
            .any(Array(repeating: .field(JSONPath(["a"]), .exists), count: 2_500)))
        try conditions.checkBounds()
        #expect(ScopeBudget(conditions).valueBytesMax < 128 << 10)
        for scope in [SyncScope.nothing, .everything, Self.heavy, conditions] {
            let budget = ScopeBudget(scope)
            #expect(budget.changesMax > 0 && budget.valueBytesMax > 0)
        }
    }

    @Test func whatNothingBelongsToIsToldInBoundedAnswers() async throws {
        let directory = TemporaryDirectory()
        let hub = try TestReplica("hub", in: directory)
        let part = try TestReplica("part", in: directory)
        try fill(hub, 0..<2_500, "no document")
        try part.dataset().setSyncScope(Self.heavy, leaving: .keep)
        let counting = CountingTransport(hub.transport)
        let result = try await part.dataset().synchronize(with: counting)
        #expect(result.isComplete && result.pulled == 0)
        let positions = try counting.messages().compactMap { message -> SyncCount? in
            guard case .scopedPull(let request) = message else { return nil }
            return request.since
        }
        // Each goes on behind what the one before was told of, and none went through all of it.
        let most = UInt64(ScopeBudget(Self.heavy).changesMax)
        #expect(positions.count == 3)
        for (earlier, later) in zip(positions, positions.dropFirst()) {
            #expect(later.rawValue > earlier.rawValue)
            #expect(later.rawValue - earlier.rawValue <= most)
        }
        #expect(try await part.dataset().synchronize(with: hub.transport).pulled == 0)
    }

    /// Asked by key, values that do not belong are read and not sent: they count, too.
    @Test func aLookupReadsSoManyValues() throws {
        let directory = TemporaryDirectory()
        let hub = try TestReplica("hub", in: directory)
        let part = try TestReplica("part", in: directory)
        let value = String(repeating: "x", count: 60_000)
        let keys = (0..<5).map { "key \($0)" }
        for key in keys { try hub.dataset().put(value, for: key) }
        let scope = SyncScope(
            .any(Array(repeating: .field(JSONPath(["a"]), .exists), count: 2_500)))
        let request = LookupRequest(
            address: Address(
                from: part.store.replicaID, to: hub.store.replicaID, dataset: "notes"),
            scope: scope, bytesMax: 1 << 20,
            items: keys.map { LookupRequest.Item(key: Array($0.utf8)) })
        let answer = try hub.responder.answer(to: request)
        #expect(answer.answered == 2)
        #expect(answer.outside.count == 2 && answer.page.recordCount == 0)
    }
}
