import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Parts of a dataset whose hub went back in time, and disputes the id under which it wrote:
///
///     hub    key=lost ── restored ── key=again ── disputes its former id
///     other  key=lost ─────────────── finds out ─┘
///     part   goes on meanwhile
@Suite(.serialized)
struct DisputingHubTests {
    let hub: TestReplica
    let part: TestReplica
    /// Keeps everything, too.
    let other: TestReplica

    init() throws { (hub, part, other) = try TestReplica.three() }

    @discardableResult
    private func exchange(
        _ from: TestReplica, with to: TestReplica, options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        try await from.dataset().synchronize(with: to.transport, options: options)
    }

    /// Whoever is given has the hub's first line.
    ///
    /// - Parameter meanwhile: what happens before the hub goes back.
    private func forkHub(
        _ replicas: [TestReplica], _ meanwhile: () async throws -> Void = {}
    ) async throws {
        try hub.backUp()
        try hub.dataset().put("lost", for: "key")
        for replica in replicas { try await exchange(replica, with: hub) }
        try await meanwhile()
        try hub.restore()
        try hub.dataset().put("again", for: "key")
    }

    private func isDisputing() throws -> Bool { try !BatonBook(hub.dataset()).disputed.isEmpty }

    /// Else an exchange with a bound would never come to its end.
    @Test func whatAPartWasToldIsNotToldAgain() async throws {
        try await forkHub([other])
        // Finds out, and settles nothing.
        await #expect(throws: SyncError.self) {
            try await exchange(other, with: hub, options: SyncOptions(policy: .leavePending))
        }
        #expect(try isDisputing())
        try fill(hub, 0..<20, "theirs")
        try part.dataset().setSyncScope(.prefix("key "))
        var rounds = 0
        let bounded = SyncOptions(pageRecordsMax: 3, recordsPerRunMax: 7)
        while try await !exchange(part, with: hub, options: bounded).isComplete {
            rounds += 1
            try #require(rounds < 10)
        }
        try expectText(part, 0..<20, "theirs")
        let received = Mutex(0)
        let counting = SyncOptions(progress: { progress in
            received.withLock { $0 = progress.recordsReceived }
        })
        try await exchange(part, with: hub, options: counting)
        #expect(received.withLock { $0 } == 0)
        #expect(try isDisputing())
    }

    /// A part is not told of what does not belong to it. So how far it had come as one does not
    /// say, when it is whole again, that its version descends from the doubtful one.
    @Test func whatAPartReachedProvesNoDescent() async throws {
        try await forkHub([other, part]) {
            try part.dataset().setSyncScope(.prefix("elsewhere"), leaving: .keep)
            // From here on it hands on nothing but what belongs to it.
            try await exchange(part, with: other)
        }
        try await exchange(part, with: hub)
        #expect(try isDisputing())
        #expect(try part.dataset().text("key") == "lost")
        try part.dataset().setSyncScope(nil)
        for _ in 0..<2 { try await exchange(part, with: other) }
        #expect(try part.dataset().syncScope() == nil)
        try part.dataset().put("ours", for: "key")
        let union = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        for _ in 0..<2 { try await exchange(part, with: hub, options: union) }
        #expect(try hub.dataset().text("key") == "again+ours")
        try await exchange(other, with: hub, options: union)
        try expectEqual([hub, part, other])
    }

    /// What was here while all was kept meets what the hub has written since under the same count.
    @Test func whatAPartHandsOverIsMergedWithWhatTheHubWroteSince() async throws {
        try await forkHub([part])
        try part.dataset().setSyncScope(.prefix("elsewhere"), leaving: .keep)
        let union = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        for _ in 0..<2 { try await exchange(part, with: hub, options: union) }
        #expect(try hub.dataset().text("key") == "again+lost")
    }

    /// Parts settle nothing. Any store that keeps all of the dataset does, also one that is new.
    @Test(arguments: ExchangeRole.allCases)
    func aNewStoreEndsTheDisputeOfAHubThatMeetsOnlyParts(_ role: ExchangeRole) async throws {
        try await forkHub([other])
        await #expect(throws: SyncError.self) {
            try await exchange(other, with: hub, options: SyncOptions(policy: .leavePending))
        }
        try fill(hub, 0..<5, "theirs")
        try part.dataset().setSyncScope(.prefix("key "))
        for _ in 0..<3 { try await exchange(part, with: hub) }
        #expect(try isDisputing())
        let file = "\(hub.directory.path)/notes.bundle"
        #expect(throws: SyncError.self) { try hub.store.exportBundle(of: "notes", to: file) }
        let stranger = try TestReplica("stranger", in: hub.directory)
        let (from, to) = role == .asker ? (stranger, hub) : (hub, stranger)
        try await exchange(from, with: to)
        #expect(try !isDisputing())
        try expectEqual([hub, stranger])
        #expect(try stranger.dataset().text("key") == "again")
        try expectText(stranger, 0..<5, "theirs")
        try hub.store.exportBundle(of: "notes", to: file)
        try await exchange(part, with: hub)
        try expectText(part, 0..<5, "theirs")
    }
}
