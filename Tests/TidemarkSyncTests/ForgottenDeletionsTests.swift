import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Deletions that one side has forgotten, where not everything is pulled: in a search for what
/// differs, for one who keeps a part, in a bundle, and while a write is held.
///
///     a  ── deletes ── b has heard of it ── a forgets: nothing is left of the keys
///     b  ── still has the tombstones ─────────────────────────────────────────────
///     c  ── was away, or keeps a part ─── comes: what now?
struct ForgottenDeletionsTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    @discardableResult
    private func exchange(
        _ from: TestReplica, _ to: TestReplica, options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        try await from.dataset().synchronize(with: to.transport, options: options)
    }

    /// a deletes some keys, and b hears of it; a forgets it, and waits for nobody else.
    private func forget(_ numbers: Range<Int>) async throws {
        for number in numbers { try a.dataset().delete("key \(number)") }
        try await exchange(b, a)
        try a.store.retire(c.store.replicaID)
        try a.store.compact()
        for number in numbers {
            let record = try a.dataset().record(for: "key \(number)", includingDeleted: true)
            #expect(record == nil)
        }
    }

    private func forgetCheckpoints(_ one: TestReplica, _ other: TestReplica) throws {
        try one.dataset().remember(PeerCheckpoint(), of: other.store.replicaID)
        try other.dataset().remember(PeerCheckpoint(), of: one.store.replicaID)
    }

    // MARK: - Searches

    /// Only one of the two still has the tombstones. That is no difference.
    @Test(arguments: [false, true])
    func forgottenDeletionsAreNoDifference(_ isForgetter: Bool) async throws {
        try fill(a, 2_000)
        try await exchange(b, a)
        try await forget(0..<300)
        #expect(try a.dataset().digest() == b.dataset().digest())
        try forgetCheckpoints(a, b)
        let (asker, responder) = isForgetter ? (a, b) : (b, a)
        let transport = InterposedTransport(responder.responder) { _ in }
        let result = try await asker.dataset().synchronize(with: transport)
        #expect(transport.messageCount(of: "reconcile") == 1)
        #expect(transport.messageCount(of: "fetch") == 0)
        #expect(result.pulled == 0 && result.pushed == 0 && result.isComplete)
        try expectEqual([a, b])
    }

    /// Beside them, what does differ is found.
    @Test(arguments: [false, true])
    func whatDiffersBesideThemIsFound(_ isForgetter: Bool) async throws {
        try fill(a, 2_000)
        try await exchange(b, a)
        try await forget(0..<300)
        try a.dataset().put("again", for: "key 7")
        try b.dataset().delete("key 1500")
        try b.dataset().put("over there", for: "key 8")
        try forgetCheckpoints(a, b)
        let (asker, responder) = isForgetter ? (a, b) : (b, a)
        try await exchange(asker, responder)
        try expectEqual([a, b])
        #expect(try a.dataset().text("key 7") == "again")
        #expect(try b.dataset().text("key 8") == "over there")
        #expect(try a.dataset().text("key 1500") == nil)
        #expect(try a.dataset().text("key 9") == nil)
    }

    /// Who is late does not search: it starts afresh, and brings nothing back.
    @Test(arguments: [false, true])
    func aLateComerDoesNotSearch(_ isAsker: Bool) async throws {
        try fill(a, 2_000)
        for replica in [b, c] { try await exchange(replica, a) }
        try await forget(0..<300)
        try forgetCheckpoints(a, c)
        try c.dataset().put("mine", for: "key 3")
        let (asker, responder) = isAsker ? (c, a) : (a, c)
        let transport = InterposedTransport(responder.responder) { _ in }
        try await asker.dataset().synchronize(with: transport)
        #expect(transport.messageCount(of: "reconcile") == 0)
        #expect(try a.dataset().text("key 4") == nil)
        #expect(try c.dataset().text("key 4") == nil)
        #expect(try a.dataset().text("key 3") == "mine")
        for _ in 0..<2 { for other in [a, c] { try await exchange(b, other) } }
        try expectEqual([a, b, c])
    }

    // MARK: - Disputed ids

    /// No position moves while an id is disputed, and the late one went by the position to tell
    /// whether all that it has was looked at: it never was, and no exchange came to an end.
    @Test func aLateResponderThatDisputesAnIdIsLookedThrough() async throws {
        try fill(b, 2)
        try await exchange(a, b)
        try b.dataset().delete("key 0")
        try await exchange(a, b)
        try a.store.compact()
        #expect(try a.dataset().record(for: "key 0", includingDeleted: true) == nil)
        // As somebody who keeps a part shows it one: nobody has settled anything by that.
        let id = b.store.replicaID
        let drawn = Baton(replica: id, number: 99, random: 7)
        try b.dataset().disputeForked([drawn], VersionVector())
        #expect(b.store.replicaID != id)
        try b.dataset().put("new", for: "other")
        let result = try await exchange(a, b)
        #expect(result.isComplete)
        #expect(try BatonBook(b.dataset()).disputed.isEmpty)
        try expectEqual([a, b])
        #expect(try a.dataset().text("other") == "new")
        #expect(try a.dataset().text("key 1") == "first")
        #expect(try b.dataset().text("key 0") == nil)
        let again = try await exchange(a, b)
        #expect(again.pulled == 0 && again.pushed == 0)
    }

    // MARK: - Parts

    /// Positions say what a part was told of, and no vector does.
    @Test func aPartLearnsWhatWasForgotten() async throws {
        try fill(a, 10)
        try await exchange(b, a)
        try c.dataset().setSyncScope(.prefix("key"))
        try await exchange(c, a)
        #expect(try c.dataset().count() == 10)
        try await forget(0..<5)
        try c.dataset().put("mine", for: "key 1")
        try await exchange(c, a)
        #expect(try c.dataset().count() == 6 && a.dataset().count() == 6)
        #expect(try a.dataset().text("key 1") == "mine")
        #expect(try c.dataset().text("key 0") == nil)
        // It asks once.
        let transport = InterposedTransport(a.responder) { _ in }
        try await c.dataset().synchronize(with: transport)
        #expect(transport.messageCount(of: "lookup") == 0)
        for _ in 0..<2 { try await exchange(b, a) }
        try expectEqual([a, b])
        #expect(try b.dataset().text("key 1") == "mine")
    }

    /// A part claims little, so that deletions wait for it.
    @Test func aPartHoldsBackDeletions() async throws {
        try fill(a, 4)
        try await exchange(b, a)
        try c.dataset().setSyncScope(.prefix("key 1"))
        try await exchange(c, a)
        try a.dataset().delete("key 2")
        for replica in [b, c] { try await exchange(replica, a) }
        try a.store.compact()
        #expect(try a.dataset().record(for: "key 2", includingDeleted: true) != nil)
        #expect(try a.dataset().knowledge().forgotten.isEmpty)
        try a.store.retire(c.store.replicaID)
        try a.store.compact()
        #expect(try a.dataset().record(for: "key 2", includingDeleted: true) == nil)
    }

    /// c keeps a part and is to be whole again, while a has forgotten three of six records.
    private func prepareEndingPart() async throws {
        try fill(a, 6)
        for replica in [b, c] { try await exchange(replica, a) }
        try c.dataset().setSyncScope(.prefix("key 5"))
        try await exchange(c, a)
        try await forget(0..<3)
        try c.dataset().setSyncScope(nil)
    }

    /// When it is whole again, what its peer has forgotten is forgotten here, too.
    @Test func aPartThatBecomesWholeForgetsAsItsPeer() async throws {
        try await prepareEndingPart()
        for _ in 0..<2 { try await exchange(c, a) }
        #expect(try c.dataset().syncScope() == nil)
        let forgotten = try a.dataset().knowledge().forgotten
        #expect(try c.dataset().knowledge().forgotten.covers(forgotten))
        for other in [a, c] { try await exchange(b, other) }
        try expectEqual([a, b, c])
        #expect(try c.dataset().count() == 3)
    }

    /// Its own writes its peer stores anew, as what outlives: who claims to have seen what was
    /// forgotten must have them so.
    @Test func aPartBecomesWholeWithWhatBecameOfItsWrites() async throws {
        try await prepareEndingPart()
        var written: [String] = []
        for number in 0..<3 where try c.dataset().syncScope() != nil {
            try c.dataset().put("mine", for: "key \(number)")
            written.append("key \(number)")
            try await exchange(c, a)
        }
        #expect(try c.dataset().syncScope() == nil)
        let forgotten = try a.dataset().knowledge().forgotten.vector
        for key in written {
            let record = try #require(try c.dataset().record(for: key))
            #expect(record.version.vector.covers(forgotten), "\(key)")
        }
        // b still has the tombstones.
        for other in [c, a] { try await exchange(b, other) }
        try expectEqual([a, b, c])
        #expect(try b.dataset().text("key 0") == "mine")
    }

    // MARK: - Bundles

    /// A file cannot be asked what became of a record.
    @Test func aBundleIsRefusedByALateComer() async throws {
        try fill(a, 4)
        for replica in [b, c] { try await exchange(replica, a) }
        try await forget(0..<2)
        let path = a.directory.path + "/late.bundle"
        try a.store.exportBundle(of: "notes", to: path)
        await #expect(throws: SyncError.self) { try await c.store.importBundle(from: path) }
        #expect(try c.dataset().text("key 0") == "first")
        // One that has nothing misses nothing.
        let d = try TestReplica("d", in: a.directory)
        try await d.store.importBundle(from: path)
        #expect(try d.dataset().digest() == a.dataset().digest())
    }

    // MARK: - Buried writes

    /// b has buried a write under its own dot, and c has it joined with an earlier one of its own.
    /// Had b joined the two, there would be a deletion and a value of one version.
    @Test(arguments: [false, true])
    func whatWasBuriedIsDeletedWhereItHasMore(_ doesBAsk: Bool) async throws {
        try c.dataset().put("first", for: "key")
        c.clock.putForward(bySeconds: 1)
        b.clock.putForward(bySeconds: 1)
        try b.dataset().put("later", for: "key")
        let write = try #require(try b.dataset().record(for: "key"))
        let present = try #require(try c.dataset().record(for: "key"))
        var taken = ReplicationBatch()
        taken.writes = [
            ReplicatedWrite(
                key: write.key,
                content: .adopt(
                    value: write.value, version: write.version.joined(with: present.version.vector)
                ), expected: present.version)
        ]
        taken.seen = try b.dataset().vector
        #expect(try c.dataset().replicate(taken).isEmpty)
        var buried = ReplicationBatch()
        try buried.bury(write.key, write.version, in: b.dataset())
        #expect(try b.dataset().replicate(buried).isEmpty)

        let (asker, responder) = doesBAsk ? (b, c) : (c, b)
        try await exchange(asker, responder)
        let there = try b.dataset().record(for: "key", includingDeleted: true)
        #expect(there?.isDeleted == true && there?.version.dot != write.version.dot)
        // It counts as no later than what it deleted.
        #expect(there?.version.time.milliseconds == write.version.time.milliseconds)
        try await exchange(asker, responder)
        #expect(try c.dataset().text("key") == nil)
        try expectEqual([b, c])
    }

    // MARK: - Held writes

    /// Whether a held write still counts its key's tombstone says, so that one stays.
    @Test func aTombstoneStaysWhileAWriteIsHeld() async throws {
        try fill(a, 2)
        try await exchange(b, a)
        b.clock.putForward(bySeconds: 3_600)
        try b.dataset().put("future", for: "key 0")
        try await exchange(a, b)
        #expect(try a.dataset().quarantined().count == 1)
        try a.dataset().delete("key 0")
        // There is nobody who would have to hear of it.
        try a.store.retire(b.store.replicaID)
        try a.store.compact()
        let tombstone = try a.dataset().record(for: "key 0", includingDeleted: true)
        #expect(tombstone?.isDeleted == true)
        // With the next exchange it is held no longer.
        try await exchange(a, b)
        #expect(try b.dataset().text("key 0") == nil)
        try a.store.compact()
        #expect(try a.dataset().record(for: "key 0", includingDeleted: true) == nil)
        a.clock.putForward(bySeconds: 7_200)
        try await exchange(a, b)
        #expect(try a.dataset().text("key 0") == nil && b.dataset().text("key 0") == nil)
        try expectEqual([a, b])
    }
}
