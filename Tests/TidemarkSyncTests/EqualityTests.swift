import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// An exchange ends by comparing all records of the two sides, and what differs behind equal
/// vectors is settled.
@Suite(.serialized)
struct EqualityTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private static let union = MergePolicy.custom { .value(unitedText(of: $0)) }

    /// - Parameter interval: nil for what is usual.
    @discardableResult
    private func exchange(
        _ one: TestReplica, _ role: ExchangeRole, with other: TestReplica,
        policy: MergePolicy = .lastWriterWins, every interval: Duration? = nil,
        observer: (@Sendable (SyncEvent) -> Void)? = nil
    ) async throws -> SyncResult {
        let (from, to) = role == .asker ? (one, other) : (other, one)
        var options = SyncOptions(policy: policy)
        if let interval { options.comparesAllEvery = interval }
        // No search finds what differs before.
        options.comparesFrom = .max
        options.observer = observer
        return try await from.dataset().synchronize(with: to.transport, options: options)
    }

    /// B has what was lost at A and C what A wrote instead, under dots of one id; no baton shows it
    /// to either. Both take all that the other one has for something that they have seen.
    ///
    /// - Parameters:
    ///   - lost: keys that A wrote before it went back.
    ///   - again: keys that it wrote after that.
    ///   - deletes: whether it deleted these.
    private func writeTwoLines(
        lost: [String], again: [String], deletes: Bool = false
    ) async throws {
        try a.backUp()
        for key in lost { try a.dataset().put("lost", for: key) }
        try await exchange(b, .asker, with: a)
        try a.restore()
        a.clock.putForward(bySeconds: 1)
        for key in again {
            if deletes {
                try a.dataset().delete(key)
            } else {
                try a.dataset().put("again", for: key)
            }
        }
        try await exchange(c, .asker, with: a)
        // Further batons, so that the two that are kept have different numbers.
        for number in 0..<2 {
            try a.dataset().put("more", for: "more \(number)")
            try await exchange(c, .asker, with: a)
        }
        try await exchange(c, .asker, with: b)
        try await exchange(b, .asker, with: c)
        #expect(try b.dataset().vector == c.dataset().vector)
        #expect(try b.dataset().digest() != c.dataset().digest())
    }

    @Test(arguments: ExchangeRole.allCases)
    func whatEitherSideLacksIsThereAfterwards(_ role: ExchangeRole) async throws {
        try await writeTwoLines(lost: ["x"], again: ["y"])
        let told = Mutex<[String]>([])
        let result = try await exchange(c, role, with: b, every: .zero) { event in
            guard case .overlooked(_, let keys) = event else { return }
            told.withLock { $0 += keys.map { String(decoding: $0, as: UTF8.self) } }
        }
        #expect(result.overlooked == 2 && result.isComplete)
        #expect(told.withLock { $0.sorted() } == ["x", "y"])
        try expectEqual([b, c])
        for replica in [b, c] {
            #expect(try replica.dataset().text("x") == "lost")
            #expect(try replica.dataset().text("y") == "again")
        }
        // From then on they are equal, and nothing is compared while nothing changes.
        try await exchange(c, role, with: b, every: .zero)
        let last = try await exchange(c, role, with: b, every: .zero)
        #expect(last.overlooked == 0 && last.pulled + last.pushed == 0)
    }

    /// One dot names two values of one key.
    @Test(arguments: ExchangeRole.allCases)
    func theLaterOfTwoValuesStands(_ role: ExchangeRole) async throws {
        try await writeTwoLines(lost: ["x"], again: ["x"])
        #expect(try b.dataset().text("x") == "lost")
        let result = try await exchange(c, role, with: b, every: .zero)
        #expect(result.overlooked == 1)
        try expectEqual([b, c])
        #expect(try b.dataset().text("x") == "again")
    }

    @Test(arguments: ExchangeRole.allCases)
    func aPolicyThatMergesMergesThem(_ role: ExchangeRole) async throws {
        try await writeTwoLines(lost: ["x"], again: ["x"])
        try await exchange(c, role, with: b, policy: Self.union, every: .zero)
        try expectEqual([b, c])
        #expect(try b.dataset().text("x") == "again+lost")
    }

    /// Whoever was given the one line only hears of it as of any write.
    @Test func othersAreToldOfIt() async throws {
        try await writeTwoLines(lost: ["x"], again: ["y"])
        let d = try TestReplica("d", in: a.directory)
        try await exchange(d, .asker, with: b)
        try await exchange(c, .asker, with: b, every: .zero)
        try await exchange(d, .asker, with: b)
        try expectEqual([b, c, d])
        #expect(try d.dataset().text("y") == "again")
    }

    /// More keys than are settled at once, on either side and on both.
    @Test(arguments: ExchangeRole.allCases)
    func manyKeysAreSettledInPieces(_ role: ExchangeRole) async throws {
        let keys = (0..<3_000).map { "key \($0)" }
        try await writeTwoLines(lost: Array(keys[..<2_000]), again: Array(keys[1_000...]))
        let result = try await exchange(c, role, with: b, every: .zero)
        #expect(result.overlooked == 3_000)
        try expectEqual([b, c])
        #expect(try b.dataset().text(keys[0]) == "lost")
        #expect(try b.dataset().text(keys[1_500]) == "again")
    }

    // MARK: - Beside forgotten deletions

    /// A replica deletes a record, tells the others, and forgets it. They still have the deletion.
    private func forgetADeletion(_ one: TestReplica, _ others: [TestReplica]) async throws {
        try one.dataset().put("value", for: "other")
        try one.dataset().delete("other")
        for _ in 0..<2 { for other in others { try await exchange(one, .asker, with: other) } }
        try one.store.compact()
        #expect(try one.dataset().record(for: "other", includingDeleted: true) == nil)
    }

    /// Each forgets in its own time, and they have seen the same all the same.
    @Test(arguments: ExchangeRole.allCases)
    func whatOneSideAloneHasForgottenHidesNoDifference(_ role: ExchangeRole) async throws {
        try await forgetADeletion(b, [a, c])
        try await writeTwoLines(lost: ["x"], again: ["y"])
        let result = try await exchange(c, role, with: b, every: .zero)
        #expect(result.overlooked == 2 && result.isComplete)
        try expectEqual([b, c])
        #expect(try b.dataset().text("y") == "again" && c.dataset().text("x") == "lost")
        try await exchange(c, role, with: b, every: .zero)
        let last = try await exchange(c, role, with: b, every: .zero)
        #expect(last.overlooked == 0 && last.pulled + last.pushed == 0)
    }

    /// B has a record that A wrote before it went back, and C a later deletion under the same dot.
    /// That is the later of two writes under one dot, whether it was forgotten by then or not.
    @Test(arguments: ExchangeRole.allCases, [false, true])
    func whatWasDeletedUnderTheSameDotIsBuried(
        _ role: ExchangeRole, _ deleterForgets: Bool
    ) async throws {
        try a.dataset().put("first", for: "x")
        for replica in [b, c] { try await exchange(replica, .asker, with: a) }
        try await writeTwoLines(lost: ["x"], again: ["x"], deletes: true)
        #expect(try b.dataset().text("x") == "lost" && c.dataset().text("x") == nil)
        try await forget("x", deleterForgets)
        let result = try await exchange(c, role, with: b, every: .zero)
        #expect(result.overlooked == 0 && result.isComplete)
        for replica in [b, c] { #expect(try replica.dataset().text("x") == nil) }
        let last = try await exchange(c, role, with: b, every: .zero)
        #expect(last.overlooked == 0 && last.pulled + last.pushed == 0)
    }

    /// A has forgotten a deletion when C, which keeps a part, hands on that it has won over a write
    /// of C's. B has a deletion that has seen more than what A has forgotten.
    @Test(arguments: ExchangeRole.allCases)
    func aDeletionThatOneSideHasForgottenIsNoDifference(_ role: ExchangeRole) async throws {
        try c.dataset().setSyncScope(.prefix("x"))
        let lost = try c.dataset().put("mine", for: "x")
        a.clock.putForward(bySeconds: 10)
        try a.dataset().delete("x")
        try await exchange(b, .asker, with: a)
        try await exchange(c, .asker, with: b)
        try a.store.compact()
        try await exchange(c, .asker, with: a)
        #expect(try a.dataset().vector.contains(lost))
        let result = try await exchange(b, role, with: a, every: .zero)
        #expect(result.isComplete && result.overlooked == 0)
        #expect(try a.dataset().record(for: "x", includingDeleted: true) == nil)
        #expect(try b.dataset().record(for: "x", includingDeleted: true)?.isDeleted == true)
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    /// Either the one that has a deletion of the key forgets it, or the other one a later one.
    private func forget(_ key: String, _ deleterForgets: Bool) async throws {
        for replica in [b, c] { try replica.store.retire(a.store.replicaID) }
        if deleterForgets {
            try c.store.compact()
            #expect(try c.dataset().record(for: key, includingDeleted: true) == nil)
        } else {
            try await forgetADeletion(b, [c])
            #expect(try c.dataset().record(for: key, includingDeleted: true) != nil)
        }
    }

    // MARK: - When

    @Test func itIsLookedAtNoMoreOftenThanWanted() async throws {
        try await writeTwoLines(lost: ["x"], again: ["y"])
        let hour = SyncOptions().comparesAllEvery
        #expect(hour == .seconds(3_600))
        #expect(try await exchange(c, .asker, with: b).overlooked == 0)
        c.clock.putForward(bySeconds: 3_599)
        #expect(try await exchange(c, .asker, with: b).overlooked == 0)
        c.clock.putForward(bySeconds: 1)
        #expect(try await exchange(c, .asker, with: b).overlooked == 2)
        try expectEqual([b, c])
    }

    @Test func aFullExchangeAlwaysLooks() async throws {
        try await writeTwoLines(lost: ["x"], again: ["y"])
        var options = SyncOptions()
        options.isFull = true
        let result = try await c.dataset().synchronize(with: b.transport, options: options)
        #expect(result.overlooked == 2)
        try expectEqual([b, c])
    }

    /// Nothing of what the two have seen is certain then, so it is left to the next exchange.
    @Test(arguments: ["reconcile", "fetch"])
    func whatIsWrittenMeanwhileIsLeftAlone(_ kind: String) async throws {
        try await writeTwoLines(lost: ["x"], again: ["y"])
        let peer = try b.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == kind, point.numberOfKind == 1, point.moment == .beforeRequest
            else { return }
            try peer.put("meanwhile", for: "z")
        }
        var options = SyncOptions()
        options.comparesAllEvery = .zero
        let result = try await c.dataset().synchronize(with: transport, options: options)
        #expect(transport.messageCount(of: kind) > 0)
        #expect(result.overlooked == 0)
        let next = try await c.dataset().synchronize(with: b.transport, options: options)
        #expect(next.overlooked == 2)
        try expectEqual([b, c])
        #expect(try c.dataset().text("z") == "meanwhile")
    }

    /// What was left alone is not put off for an hour.
    @Test func whatWasLeftAloneIsLookedAtNextTime() async throws {
        try await writeTwoLines(lost: ["x"], again: ["y"])
        try await exchange(c, .asker, with: b)
        c.clock.putForward(bySeconds: 3_600)
        let peer = try b.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "fetch", point.moment == .beforeRequest else { return }
            try peer.put("meanwhile", for: "z")
        }
        #expect(try await c.dataset().synchronize(with: transport).overlooked == 0)
        #expect(transport.messageCount(of: "fetch") == 1)
        #expect(try await exchange(c, .asker, with: b).overlooked == 2)
        try expectEqual([b, c])
    }

    /// Nothing differs in what they hold, so nobody is told of anything.
    @Test func vectorsOfOneWriteAreUnited() async throws {
        try put("first", a)
        try await exchange(b, .asker, with: a)
        try await exchange(c, .asker, with: a)
        // Either joins the same write with another one that loses.
        try put("of b", b)
        try put("of c", c)
        for _ in 0..<2 {
            try await exchange(b, .asker, with: c, every: .zero)
            try await exchange(a, .asker, with: c, every: .zero)
            try await exchange(a, .asker, with: b, every: .zero)
        }
        let result = try await exchange(b, .asker, with: c, every: .zero)
        #expect(result.overlooked == 0)
        try expectEqual([a, b, c])
    }
}
