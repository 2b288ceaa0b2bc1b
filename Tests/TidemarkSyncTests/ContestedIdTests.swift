import Testing
import Tidemark

@testable import TidemarkSync

/// What two stores wrote under one id reaches those, too, who are neither of the two.
@Suite(.serialized)
struct ContestedIdTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private let union = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })

    private func exchange(
        _ one: TestReplica, _ role: ExchangeRole, with other: TestReplica,
        options: SyncOptions = SyncOptions()
    ) async throws {
        let (from, to) = role == .asker ? (one, other) : (other, one)
        try await from.dataset().synchronize(with: to.transport, options: options)
    }

    /// B is given what is lost at A then, and C the longer line that A writes instead.
    private func writeBothLines(_ role: ExchangeRole) async throws {
        try a.backUp()
        try a.dataset().put("lost", for: "key")
        try await exchange(b, role, with: a)
        try a.restore()
        try fill(a, 10..<17, "again")
        try await exchange(c, role, with: a)
    }

    /// The dots of what it lacks are those of what it has, and the store that wrote both has found
    /// out since.
    @Test(arguments: ExchangeRole.allCases)
    func whoHasTheLaterLineIsGivenTheEarlierOne(_ role: ExchangeRole) async throws {
        try await writeBothLines(role)
        let id = a.store.replicaID
        for _ in 0..<3 {
            try await exchange(b, role, with: a)
            try await exchange(c, role, with: a)
        }
        #expect(a.store.replicaID != id)
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("key") == "lost")
        for replica in [a, b, c] { try expectText(replica, 10..<17, "again") }
        for replica in [a, b, c] {
            #expect(try BatonBook(replica.dataset()).disputed.isEmpty)
        }
    }

    /// The batons that others keep have different numbers, and only the writer had drawn both.
    @Test(arguments: ExchangeRole.allCases)
    func theWriterTellsOfBothLines(_ role: ExchangeRole) async throws {
        try a.backUp()
        try a.dataset().put("lost", for: "key")
        try await exchange(b, role, with: a)
        try a.restore()
        for part in 0..<3 {
            try fill(a, 10 + part..<11 + part, "again")
            try await exchange(c, role, with: a)
        }
        for _ in 0..<4 {
            try await exchange(b, role, with: a)
            try await exchange(c, role, with: a)
        }
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("key") == "lost")
        for replica in [a, b, c] { try expectText(replica, 10..<13, "again") }
    }

    /// The writer is gone for good, and two others have one line each.
    @Test(arguments: ExchangeRole.allCases)
    func twoWhoKnowOneLineEachFindOutWithoutTheWriter(_ role: ExchangeRole) async throws {
        try a.backUp()
        try fill(a, 0..<3, "lost")
        try a.dataset().put("lost", for: "both")
        try await exchange(b, role, with: a)
        try a.restore()
        try a.dataset().put("again", for: "both")
        try fill(a, 10..<13, "again")
        try await exchange(c, role, with: a)
        for _ in 0..<2 { try await exchange(c, role, with: b, options: union) }
        try expectEqual([b, c])
        for replica in [b, c] {
            try expectText(replica, 0..<3, "lost")
            try expectText(replica, 10..<13, "again")
            #expect(try replica.dataset().text("both") == "again+lost")
        }
    }

    /// B has the one line and C the other, and both have exchanged without noticing.
    private func exchangeUnnoticed(_ role: ExchangeRole) async throws {
        try a.backUp()
        try fill(a, 0..<1, "lost")
        try await exchange(b, role, with: a)
        try a.restore()
        try a.dataset().put("again", for: "key")
        try await exchange(c, role, with: a)
        for number in 10..<12 {
            try fill(a, number..<number + 1, "again")
            try await exchange(c, role, with: a)
        }
        for _ in 0..<2 { try await exchange(c, role, with: b, options: union) }
        #expect(try BatonBook(c.dataset()).disputed.isEmpty)
    }

    /// Somebody shows C that the id is contested, and goes.
    private func showContest() throws {
        let known = try #require(
            try BatonBook(c.dataset()).batons.first { $0.replica == a.store.replicaID })
        try BatonBook(c.dataset()).dispute(
            [], contested: [Baton(replica: known.replica, number: known.number, random: 0)])
    }

    /// B has written "mine", having seen the dot of what lay at C: the two were in conflict.
    private func expectBothLines() throws {
        try expectEqual([b, c])
        for replica in [b, c] {
            #expect(try replica.dataset().text("key") == "again+mine")
            try expectText(replica, 0..<1, "lost")
            try expectText(replica, 10..<12, "again")
            #expect(try BatonBook(replica.dataset()).disputed.isEmpty)
        }
    }

    /// Two who have exchanged without noticing, since their batons had different numbers: that each
    /// has seen the dots of the other's line says nothing of what it has seen of that line.
    @Test(arguments: ExchangeRole.allCases)
    func whatWasExchangedBeforeProvesNoDescent(_ role: ExchangeRole) async throws {
        try await exchangeUnnoticed(role)
        #expect(try b.dataset().text("key") == nil)
        // It has seen the dot of what lies there at c, and another write.
        try b.dataset().put("mine", for: "key")
        try showContest()
        for _ in 0..<2 { try await exchange(c, role, with: b, options: union) }
        try expectBothLines()
    }

    /// Where both sides gave up their claims, neither vector says what was seen of the id.
    @Test(arguments: ExchangeRole.allCases)
    func aWriteOverWhatBothHadBeforeTheForkDescendsFromIt(_ role: ExchangeRole) async throws {
        try fill(a, 0..<2, "first")
        for replica in [b, c] { try await exchange(replica, role, with: a) }
        try a.backUp()
        try a.dataset().put("lost", for: "key")
        try await exchange(b, role, with: a)
        try a.restore()
        try a.dataset().put("again", for: "key")
        try await exchange(c, role, with: a)
        let writer = a.store.replicaID
        for _ in 0..<2 { try await exchange(c, role, with: b) }
        for (replica, key) in [(b, "key 0"), (c, "key 1")] {
            let bytes = Array(key.utf8)
            let before = try #require(try replica.dataset().storedRecord(for: bytes))
            #expect(before.version.dot.replica == writer)
            try replica.dataset().put("later", for: key)
            let after = try #require(try replica.dataset().storedRecord(for: bytes))
            #expect(after.version.relation(to: before.version) == .descendant)
        }
        let result = try await c.dataset().synchronize(with: b.transport)
        #expect(result.conflicts == 0)
        try expectEqual([b, c])
        #expect(try b.dataset().text("key 1") == "later")
        #expect(try c.dataset().text("key 0") == "later")
    }

    // MARK: - Bundles

    private func carry(
        _ from: TestReplica, _ to: TestReplica, since: SyncCount = .zero,
        options: SyncOptions = SyncOptions()
    ) async throws {
        let file = "\(a.directory.path)/notes.bundle"
        try from.store.exportBundle(
            of: "notes", to: file, since: since,
            limits: SyncResponder.Limits(pageRecordsMax: 3))
        try await to.store.importBundle(from: file, options: options)
    }

    /// The dots of what it lacks are those of what it has. Where stores meet by bundles alone,
    /// nobody else would ever bring it.
    @Test(arguments: ExchangeRole.allCases)
    func bundlesBringTheOtherLine(_ role: ExchangeRole) async throws {
        try await writeBothLines(role)
        let theirs = try c.dataset().syncCount
        try await carry(c, b)
        #expect(try b.dataset().text("key") == "lost")
        try expectText(b, 10..<17, "again")
        let ours = try b.dataset().syncCount
        try await carry(b, c)
        try expectEqual([b, c])
        #expect(try c.dataset().text("key") == "lost")
        for replica in [b, c] {
            #expect(try BatonBook(replica.dataset()).disputed.isEmpty)
        }
        // Once they know it they need no whole bundles any more.
        try await carry(c, b, since: theirs)
        try await carry(b, c, since: ours)
        let result = try await c.dataset().synchronize(with: b.transport)
        #expect(result.pulled + result.pushed + result.conflicts == 0)
    }

    /// What was left out cannot be compared. Nor does the refusal keep the sign that others go by.
    @Test(arguments: ExchangeRole.allCases)
    func aBundleOfChangesThatShowsAForkIsRefused(_ role: ExchangeRole) async throws {
        try c.dataset().put("first", for: "other")
        try await carry(c, b)
        let reached = try c.dataset().syncCount
        try await writeBothLines(role)
        let before = (try Contents(b.dataset()), try b.dataset().vector)
        let error = await #expect(throws: SyncError.self) {
            try await carry(c, b, since: reached)
        }
        #expect(error?.code == .wrongBundle)
        #expect(error?.message.contains("a bundle of the whole dataset") == true)
        #expect(try Contents(b.dataset()) == before.0)
        #expect(try b.dataset().vector == before.1)
        let shown = try BatonBook(c.dataset()).batons
        #expect(try BatonBook(b.dataset()).disputed.isEmpty)
        #expect(try BatonBook(b.dataset()).contested(shown).map(\.replica) == [a.store.replicaID])
        try await carry(c, b)
        try await carry(b, c)
        try expectEqual([b, c])
        for replica in [b, c] {
            #expect(try replica.dataset().text("key") == "lost")
            try expectText(replica, 10..<17, "again")
        }
    }

    /// The maker of a bundle has seen the dot of what lies here, and another write. Nobody has told
    /// it that there are two, so that it disputes nothing; which proves no descent.
    @Test(arguments: ExchangeRole.allCases)
    func whatTheMakerOfABundleHadProvesNoDescent(_ role: ExchangeRole) async throws {
        try await exchangeUnnoticed(role)
        try b.dataset().put("mine", for: "key")
        try showContest()
        for _ in 0..<2 {
            try await carry(b, c, options: union)
            try await carry(c, b, options: union)
        }
        try expectBothLines()
    }

    // MARK: - Batons

    /// How far its changes have come is noted under its own ids, and under nobody else's.
    @Test func whoDisputesTellsItsOwnIdsFromThoseOfOthers() async throws {
        try fill(a, 0..<1, "first")
        try await exchange(b, .asker, with: a)
        let dataset = try a.dataset()
        let (own, other) = (a.store.replicaID, ReplicaID(high: 1, low: 1))
        var batch = ReplicationBatch()
        batch.notes = try BatonBook(dataset).notes(
            taking: [Baton(replica: other, number: 3, random: 7)], settling: [])
        _ = try dataset.replicate(batch)
        try dataset.disputeForked(
            [
                Baton(replica: other, number: 3, random: 8),
                Baton(replica: own, number: 2, random: 5),
            ], VersionVector())
        var traffic = PeerConnection.Traffic()
        let (answer, _) = try await PeerConnection(transport: a.transport).hello(
            from: b.store, isDryRun: false, names: ["notes"], &traffic)
        let greeting = try #require(answer.datasets.first)
        #expect(Set(greeting.disputed) == [own, other])
        #expect(greeting.formerIDs == [own])
    }

    /// Or everybody who has not heard of a newer one would have all of it exchanged again.
    @Test func thatThereWereTwoIsNotForgottenForANewerBaton() throws {
        try fill(a, 0..<1, "first")
        let dataset = try a.dataset()
        let id = ReplicaID(high: 1, low: 1)
        func baton(_ number: UInt64, _ random: UInt64) -> Baton {
            Baton(replica: id, number: number, random: random)
        }
        func take(_ shown: [Baton], settling settled: [ReplicaID] = []) throws {
            var batch = ReplicationBatch()
            batch.notes = try BatonBook(dataset).notes(taking: shown, settling: settled)
            _ = try dataset.replicate(batch)
        }
        func contested(by shown: Baton) throws -> [Baton] {
            try BatonBook(dataset).contested([shown])
        }
        try take([baton(3, 7)])
        #expect(try contested(by: baton(3, 8)) == [baton(3, 0)])
        #expect(try contested(by: baton(2, 0)) == [baton(3, 0)])
        try BatonBook(dataset).dispute([], contested: [baton(3, 0)])
        try take([], settling: [id])
        #expect(try BatonBook(dataset).batons == [baton(3, 0)])
        try take([baton(5, 9)])
        #expect(try BatonBook(dataset).batons == [baton(5, 9)])
        try take([baton(3, 0)])
        try take([baton(6, 9)])
        #expect(try BatonBook(dataset).batons == [baton(6, 9)])
        for known in [baton(2, 0), baton(3, 0), baton(3, 8), baton(6, 9)] {
            #expect(try contested(by: known).isEmpty)
        }
        // What was drawn twice after that is another fork.
        #expect(try contested(by: baton(4, 0)) == [baton(6, 0)])
        #expect(try contested(by: baton(6, 8)) == [baton(6, 0)])
    }
}
