import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkSync

/// What the policies do with a conflict, and what happens if they do not settle it.
struct PolicyTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// Both sides have changed "key" since they last met; the remote write is the later one.
    private func makeConflict() async throws {
        try a.dataset().put("base", for: "key")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours", for: "key")
        b.clock.putForward(bySeconds: 60)
        try b.dataset().put("theirs", for: "key")
    }

    private func synchronize(_ policy: MergePolicy) async throws -> SyncResult {
        try await a.dataset().synchronize(with: b.transport, options: SyncOptions(policy: policy))
    }

    struct Expected: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let policy: MergePolicy
        let value: String?
        let decision: SyncResult.Settlement.Decision
    }

    static let outcomes = [
        Expected(
            testDescription: "last writer wins", policy: .lastWriterWins, value: "theirs",
            decision: .remote),
        Expected(
            testDescription: "keep local", policy: .keepLocal, value: "ours", decision: .local),
        Expected(
            testDescription: "keep remote", policy: .keepRemote, value: "theirs",
            decision: .remote),
        Expected(
            testDescription: "custom: local", policy: .custom { _ in .keepLocal }, value: "ours",
            decision: .local),
        Expected(
            testDescription: "custom: remote", policy: .custom { _ in .keepRemote },
            value: "theirs", decision: .remote),
        Expected(
            testDescription: "custom: value", policy: .custom { _ in .value(Array("both".utf8)) },
            value: "both", decision: .merged),
        Expected(
            testDescription: "custom: delete", policy: .custom { _ in .delete }, value: nil,
            decision: .deleted),
    ]

    @Test(arguments: outcomes)
    func settles(_ expected: Expected) async throws {
        try await makeConflict()
        let result = try await synchronize(expected.policy)
        #expect(result.conflicts == 1)
        #expect(result.settled.map(\.decision) == [expected.decision])
        #expect(result.settled.map(\.key) == [Array("key".utf8)])
        #expect(try a.dataset().text("key") == expected.value)
        try expectEqual([a, b])
    }

    @Test func handlerSeesTheTrueAncestorAndBothSides() async throws {
        try await makeConflict()
        let seen = Mutex<[Conflict]>([])
        _ = try await synchronize(
            .custom { conflict in
                seen.withLock { $0.append(conflict) }
                return .keepLocal
            })
        let conflicts = seen.withLock { $0 }
        let conflict = try #require(conflicts.first)
        #expect(conflicts.count == 1)
        #expect(conflict.dataset == "notes")
        #expect(conflict.key == Array("key".utf8))
        #expect(conflict.ancestor?.valueText == "base")
        #expect(conflict.local.valueText == "ours")
        #expect(conflict.remote.valueText == "theirs")
        #expect(conflict.local.version.author == "a")
        #expect(conflict.remote.version.author == "b")
    }

    @Test func aDeletionIsATombstoneToTheHandler() async throws {
        try await makeConflict()
        try b.dataset().delete("key")
        let result = try await synchronize(
            .custom { conflict in
                conflict.remote.isDeleted && conflict.local.valueText == "ours"
                    ? .keepRemote : .stop
            })
        #expect(result.conflicts == 1)
        #expect(try a.dataset().text("key") == nil)
        try expectEqual([a, b])
    }

    struct Refusal: Error {}

    @Test(arguments: ["stop", "throw"])
    func anUnsettledConflictLeavesBothSidesAlone(_ way: String) async throws {
        try await makeConflict()
        try a.dataset().put("new here", for: "other")
        let before = (try Contents(a.dataset()), try Contents(b.dataset()))
        let error = await #expect(throws: SyncError.self) {
            try await synchronize(
                .custom { _ in
                    if way == "throw" { throw Refusal() }
                    return .stop
                })
        }
        #expect(error?.code == .conflictPending)
        #expect(error?.key == Array("key".utf8))
        #expect(error?.dataset == "notes")
        #expect(try (Contents(a.dataset()), Contents(b.dataset())) == before)
        // And nothing is in the way of a later exchange.
        _ = try await synchronize(.keepLocal)
        #expect(try b.dataset().text("other") == "new here")
        try expectEqual([a, b])
    }

    @Test func anEditMadeByTheHandlerIsNotLost() async throws {
        try await makeConflict()
        let dataset = try a.dataset()
        let calls = Mutex(0)
        _ = try await synchronize(
            .custom { conflict in
                let call = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                if call == 1 {
                    try dataset.put("ours, edited meanwhile", for: "key")
                    return .keepLocal
                }
                return .value((conflict.local.value ?? []) + (conflict.remote.value ?? []))
            })
        #expect(calls.withLock { $0 } == 2)
        #expect(try dataset.text("key") == "ours, edited meanwhiletheirs")
        try expectEqual([a, b])
    }

    @Test func aHandlerThatAlwaysWritesEndsInContention() async throws {
        try await makeConflict()
        let dataset = try a.dataset()
        let error = await #expect(throws: SyncError.self) {
            try await synchronize(
                .custom { conflict in
                    try dataset.put((conflict.local.value ?? []) + [33], for: conflict.key)
                    return .keepLocal
                })
        }
        #expect(error?.code == .contended)
        #expect(try b.dataset().text("key") == "theirs")
    }

    /// The peer writes to the key between our pull and our push.
    @Test func aWriteOnTheOtherSideMeanwhileIsPulledAndMerged() async throws {
        try a.dataset().put("base", for: "key")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours", for: "key")
        let (responder, theirs) = (b.responder, try b.dataset())
        let hasWritten = Mutex(false)
        let transport = ScriptedTransport { request throws(SyncError) in
            hasWritten.withLock { hasWritten in
                guard !hasWritten, MessageLabel.kind(of: request) == "push" else { return }
                _ = try? theirs.put("theirs", for: "key")
                hasWritten = true
            }
            return responder.respond(to: request)
        }
        let result = try await a.dataset().synchronize(
            with: transport,
            options: SyncOptions(policy: .custom { _ in .value(Array("merged".utf8)) }))
        #expect(result.attempts == 2)
        #expect(result.conflicts == 1)
        #expect(try b.dataset().text("key") == "merged")
        try expectEqual([a, b])
    }

    @Test func aPeerThatNeverRestsIsContended() async throws {
        try a.dataset().put("base", for: "key")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours", for: "key")
        let (responder, theirs) = (b.responder, try b.dataset())
        let count = Mutex(0)
        let transport = ScriptedTransport { request throws(SyncError) in
            let number = count.withLock { count in
                count += 1
                return count
            }
            _ = try? theirs.put("theirs \(number)", for: "key")
            return responder.respond(to: request)
        }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(
                with: transport, options: SyncOptions(policy: .keepLocal, attemptsMax: 3))
        }
        #expect(error?.code == .contended)
        _ = try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
    }

    @Test func equalValuesAreNoConflict() async throws {
        try a.dataset().put("same", for: "key")
        try b.dataset().put("same", for: "key")
        try a.dataset().delete("gone")
        try b.dataset().delete("gone")
        let result = try await synchronize(.custom { _ in .stop })
        #expect(result.conflicts == 0)
        try expectEqual([a, b])
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func cancellationIsReported() async throws {
        try await makeConflict()
        let (dataset, transport) = (try a.dataset(), b.transport)
        let task = Task {
            try await dataset.synchronize(
                with: transport,
                options: SyncOptions(
                    policy: .custom { _ in
                        try await sleepUntilCancelled()
                        return .keepLocal
                    }))
        }
        task.cancel()
        let error = await #expect(throws: SyncError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(try b.dataset().text("key") == "theirs")
    }
}
