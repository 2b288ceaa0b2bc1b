import Testing
import Tidemark

@testable import TidemarkSync

// The property: a store that went back in time or was copied, and wrote at least as much as it had
// lost before it met anyone, loses nothing of what either it or its former self has written, and
// from when it finds out on no dot names two writes.
//
//     a  ──1──2──3──backup──4──5──✗                  4 and 5 are b's, too
//                     └──────────4'──5'──6'──        who sees only counters misses nothing
//     b  ──────────3────────────5───────────?

/// Whether the store in question asks or answers.
enum ExchangeRole: String, Sendable, CaseIterable {
    case asker, responder
}

@Suite(.serialized)
struct ForkTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    @discardableResult
    private func exchange(
        _ one: TestReplica, _ role: ExchangeRole = .asker, with other: TestReplica,
        options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        let (from, to) = role == .asker ? (one, other) : (other, one)
        return try await from.dataset().synchronize(with: to.transport, options: options)
    }

    // MARK: - The two schedules of the finding

    @Test(arguments: ExchangeRole.allCases, [4, 5, 9])
    func whatWasWrittenAfterARollBackIsKept(_ role: ExchangeRole, _ count: Int) async throws {
        try fill(a, 0..<5, "first")
        try await exchange(a, role, with: b)
        try a.backUp()
        try fill(a, 10..<14, "lost")
        try await exchange(a, role, with: b)
        try a.restore()
        try fill(a, 20..<20 + count, "again")
        let id = a.store.replicaID
        try await exchange(a, role, with: b)
        #expect(a.store.replicaID != id)
        try await exchange(a, role, with: b)
        try await exchange(c, with: b)
        try expectEqual([a, b, c])
        for replica in [a, b, c] {
            try expectText(replica, 0..<5, "first")
            try expectText(replica, 10..<14, "lost")
            try expectText(replica, 20..<20 + count, "again")
        }
    }

    @Test(arguments: ExchangeRole.allCases, [(4, 4), (4, 9), (9, 4)])
    func aCopyAndItsOriginalWithACommonPeerLoseNothing(
        _ role: ExchangeRole, _ counts: (Int, Int)
    ) async throws {
        try fill(a, 0..<5, "first")
        try await exchange(a, role, with: b)
        let twin = try a.copied(as: "twin")
        try fill(a, 10..<10 + counts.0, "original")
        try fill(twin, 30..<30 + counts.1, "copy")
        for _ in 0..<3 {
            try await exchange(a, role, with: b)
            try await exchange(twin, role, with: b)
        }
        #expect(a.store.replicaID != twin.store.replicaID)
        try expectEqual([a, b, twin])
        try expectText(b, 0..<5, "first")
        try expectText(b, 10..<10 + counts.0, "original")
        try expectText(b, 30..<30 + counts.1, "copy")
    }

    /// The copy is made while the dispute waits. That both have the same under the disputed dot
    /// proves nothing: a third replica has what was lost.
    @Test func copiesOfAForkedStoreDoNotConfirmEachOther() async throws {
        try fill(a, 0..<3, "first")
        try a.backUp()
        try a.dataset().put("lost", for: "key 5")
        try await exchange(a, with: b)
        try a.restore()
        try a.dataset().put("again", for: "key 5")
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(
                with: b.transport, options: SyncOptions(policy: .leavePending))
        }
        let twin = try a.copied(as: "twin")
        let union = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        for (one, other) in [(twin, a), (b, a), (twin, a), (b, twin)] {
            try await one.dataset().synchronize(with: other.transport, options: union)
        }
        try expectEqual([a, b, twin])
        #expect(try b.dataset().text("key 5") == "again+lost")
        try expectText(b, 0..<3, "first")
    }

    // MARK: - What a forked store knew to be there

    /// How far its changes had come is noted at its peer under the id that it had before.
    @Test func whatAForkedResponderKnewToBeThereIsNoConflict() async throws {
        try fill(a, 0..<3, "first")
        try await exchange(a, with: b)
        try a.backUp()
        try a.dataset().put("second", for: "key 2")
        try await exchange(a, with: b)
        let before = try Contents(b.dataset()).lines
        try a.restore()
        try fill(a, 10..<14, "again")
        let id = a.store.replicaID
        // It finds out, and nothing is compared yet.
        let broken = FaultyTransport(a.responder, .losesRequest, after: 3)
        await #expect(throws: SyncError.self) {
            try await b.dataset().synchronize(with: broken)
        }
        #expect(a.store.replicaID != id)
        #expect(try BatonBook(a.dataset()).disputed == [id])
        let union = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        let result = try await exchange(b, with: a, options: union)
        #expect(result.conflicts == 0)
        try await exchange(b, with: a, options: union)
        try expectEqual([a, b])
        #expect(try a.dataset().text("key 2") == "second")
        let after = try Contents(b.dataset()).lines
        let isAsItWas = before.map { after.contains($0) }
        #expect(isAsItWas == [true, true, true])
        try expectText(b, 10..<14, "again")
    }
}
