import Testing
import Tidemark
import TidemarkSync

// The property: whoever comes late, to deletions that others have forgotten, loses nothing that
// they have not seen, brings nothing back that they have deleted, and ends up as they are.
//
//     hub     a ─────── b ──────── c        c has "key", and is away
//                                  ╎
//     a deletes "key"; a, b and whoever else is waited for have heard of it, and forget it
//                                  ╎
//     hub     a ─────── b ──────── c        c comes again: what now?

/// One small test for each way in which a fresh start could go wrong.
struct FreshStartTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    let d: TestReplica

    init() throws {
        let directory = TemporaryDirectory()
        a = try TestReplica("a", in: directory)
        b = try TestReplica("b", in: directory)
        c = try TestReplica("c", in: directory)
        d = try TestReplica("d", in: directory)
    }

    @discardableResult
    private func exchange(_ from: TestReplica, _ to: TestReplica) async throws -> SyncResult {
        try await from.dataset().synchronize(
            with: to.transport, options: SyncOptions(pageRecordsMax: 3))
    }

    /// All have everything. Then c is given up by all others, a deletes "key 0" to "key 4", and a
    /// and b forget that.
    private func forget() async throws {
        for number in 0..<10 { try a.dataset().put("old", for: "key \(number)") }
        for replica in [b, c, d] { try await exchange(replica, a) }
        try await exchange(c, b)
        for number in 0..<5 { try a.dataset().delete("key \(number)") }
        try await exchange(b, a)
        for replica in [a, b] {
            try replica.store.retire(c.store.replicaID)
            try replica.store.retire(d.store.replicaID)
            try replica.store.compact()
            for number in 0..<5 {
                let key = "key \(number)"
                #expect(try replica.dataset().record(for: key, includingDeleted: true) == nil)
            }
        }
    }

    private func live(_ replica: TestReplica) throws -> [String] {
        try replica.dataset().records().collect().compactMap { record in
            guard let key = record.keyText, let value = record.value else { return nil }
            return "\(key)=\(String(decoding: value, as: UTF8.self))"
        }
    }

    private static let rest = (5..<10).map { "key \($0)=old" }

    // MARK: - This side is late

    @Test func whatWasDeletedAndForgottenIsBuried() async throws {
        try await forget()
        let before = try c.dataset().syncCount
        let result = try await exchange(c, b)
        #expect(result.pulled == 5)
        #expect(try live(c) == Self.rest)
        // Whoever follows the changes is told.
        let changed = try c.dataset().changes(since: before).collect()
        #expect(changed.filter(\.isDeleted).compactMap(\.keyText) == (0..<5).map { "key \($0)" })
        try expectEqual([a, b, c])
        // And nothing is left to be said.
        for other in [a, b] {
            let again = try await exchange(c, other)
            #expect(again.pulled + again.pushed == 0)
        }
        try c.reopen()
        try c.store.compact()
        #expect(try c.dataset().records(includingDeleted: true).collect().count == 5)
        try expectEqual([a, b, c])
    }

    @Test(arguments: [true, false])
    func whatTheOthersHaveNotSeenSurvives(_ asks: Bool) async throws {
        try await forget()
        try c.dataset().put("new", for: "key 1")
        try c.dataset().put("new", for: "key 7")
        try c.dataset().put("new", for: "key 70")
        try c.dataset().delete("key 8")
        if asks { try await exchange(c, b) } else { try await exchange(b, c) }
        try await exchange(b, a)
        try await exchange(c, b)
        let expected = [
            "key 1=new", "key 5=old", "key 6=old", "key 7=new", "key 70=new", "key 9=old",
        ]
        for replica in [a, b, c] { #expect(try live(replica) == expected) }
        try expectEqual([a, b, c])
    }

    /// A replica that begins with nothing is late by what it has seen, and has nothing to ask.
    @Test func oneThatBeginsIsNotAskedForMuch() async throws {
        try await forget()
        let directory = TemporaryDirectory()
        let new = try TestReplica("new", in: directory)
        let transport = InterposedTransport(b.responder) { _ in }
        try await new.dataset().synchronize(with: transport)
        #expect(transport.messageCount(of: "inquiry") == 0)
        try expectEqual([a, b, new])
        // From it, too, nobody gets back what it never had.
        try await exchange(c, new)
        #expect(try live(c) == Self.rest)
        try expectEqual([a, b, c, new])
    }

    @Test func itGoesOnWhereItWasCutOff() async throws {
        try await forget()
        for number in 20..<30 { try c.dataset().put("new", for: "key \(number)") }
        var messages = 0
        while messages < 60 {
            let broken = FaultyTransport(
                b.responder, messages % 2 == 0 ? .losesRequest : .losesAnswer, after: messages)
            do {
                try await c.dataset().synchronize(
                    with: broken, options: SyncOptions(pageRecordsMax: 3))
                break
            } catch let error as SyncError {
                #expect(error.code == .unreachable)
            }
            if messages % 3 == 0 { try c.reopen() }
            messages += 1
        }
        #expect(messages > 3 && messages < 60)
        let expected = (20..<30).map { "key \($0)=new" } + Self.rest
        #expect(try live(c) == expected.sorted())
        try expectEqual([b, c])
        // What outlives is written anew once, however often it was asked about.
        let counters = try c.dataset().vector[c.store.replicaID]
        #expect(counters <= 20)
    }

    @Test func nothingIsTakenFromOthersInTheMeantime() async throws {
        try await forget()
        let (late, stale) = (c.transport, try d.dataset())
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "pull", point.numberOfKind == 1, point.moment == .beforeAnswer
            else { return }
            // It holds what is dead, too, and hands it over to one that has just been told.
            let error = await #expect(throws: SyncError.self) {
                try await stale.synchronize(with: late)
            }
            #expect(error?.code == .contended)
            #expect(error?.message.contains("starts afresh with another replica") == true)
        }
        try d.dataset().put("stale", for: "key 30")
        try await c.dataset().synchronize(with: transport, options: SyncOptions(pageRecordsMax: 1))
        #expect(try live(c) == Self.rest)
        try await exchange(d, c)
        for replica in [a, b] { try await exchange(replica, c) }
        let expected = (["key 30=stale"] + Self.rest).sorted()
        for replica in [a, b, c, d] { #expect(try live(replica) == expected) }
    }

    @Test func writesInTheMiddleOfItOutlive() async throws {
        try await forget()
        let late = try c.dataset()
        for moment in InterposedTransport.Moment.allCases {
            for kind in ["inquiry", "pull", "push"] {
                try late.put("before", for: "\(kind) \(moment)")
            }
        }
        let transport = InterposedTransport(b.responder) { point in
            guard point.numberOfKind == 1 else { return }
            try late.put(point.kind, for: "key 2")
            try late.put("meanwhile", for: "\(point.kind) \(point.moment)")
        }
        try await c.dataset().synchronize(with: transport, options: SyncOptions(pageRecordsMax: 2))
        #expect(transport.messageCount(of: "inquiry") > 0)
        try await exchange(c, b)
        try await exchange(b, a)
        #expect(try b.dataset().text("key 2") == "push")
        #expect(try a.dataset().text("pull beforeAnswer") == "meanwhile")
        try expectEqual([a, b, c])
        // What was written then stands above what was forgotten, wherever that still is.
        let forgotten = try b.dataset().knowledge().forgotten.vector
        for key in ["key 2", "pull beforeAnswer", "inquiry beforeRequest"] {
            let record = try #require(try c.dataset().record(for: key))
            #expect(record.version.vector.covers(forgotten), "\(key)")
        }
    }

    // MARK: - The peer is late

    /// A hub that was put back to an old backup holds what all others have deleted and forgotten.
    @Test func aHubOutOfAnOldBackupBringsNothingBack() async throws {
        let hub = a
        for number in 0..<10 { try b.dataset().put("old", for: "key \(number)") }
        try await exchange(b, hub)
        try await exchange(c, hub)
        try hub.backUp()
        for number in 0..<5 { try b.dataset().delete("key \(number)") }
        for _ in 0..<2 {
            for replica in [b, c] { try await exchange(replica, hub) }
        }
        for replica in [b, c, hub] { try replica.store.compact() }
        #expect(try !b.dataset().knowledge().forgotten.isEmpty)
        try hub.restore()
        #expect(try hub.dataset().count() == 10)
        try hub.dataset().put("on the hub", for: "key 3")
        try hub.dataset().put("on the hub", for: "key 11")
        for _ in 0..<2 {
            for replica in [b, c] { try await exchange(replica, hub) }
        }
        let expected = ["key 11=on the hub", "key 3=on the hub"] + Self.rest
        for replica in [hub, b, c] { #expect(try live(replica) == expected.sorted()) }
        try expectEqual([hub, b, c])
    }

    /// What was not looked at must not count as seen.
    @Test func whatALatePeerWritesMeanwhileIsLookedAtToo() async throws {
        try await forget()
        let late = try c.dataset()
        let transport = InterposedTransport(c.responder) { point in
            guard point.kind == "push", point.numberOfKind == 1, point.moment == .beforeRequest
            else { return }
            try late.put("meanwhile", for: "key 2")
        }
        try await b.dataset().synchronize(with: transport, options: SyncOptions(pageRecordsMax: 3))
        try await exchange(b, c)
        try await exchange(b, a)
        for replica in [a, b, c] { #expect(try replica.dataset().text("key 2") == "meanwhile") }
        try expectEqual([a, b, c])
    }

    @Test func bothMayBeLate() async throws {
        try await forget()
        // c and d know of deletions of which a and b know nothing.
        try await exchange(d, c)
        try c.dataset().delete("key 9")
        try c.dataset().put("new", for: "key 0")
        try await exchange(d, c)
        for (replica, others) in [(c, [a, b]), (d, [a, b])] {
            for other in others { try replica.store.retire(other.store.replicaID) }
            try replica.store.compact()
        }
        #expect(try !c.dataset().knowledge().forgotten.isEmpty)
        try await exchange(b, c)
        for (from, to) in [(a, b), (d, c), (d, a), (c, a), (b, d)] { try await exchange(from, to) }
        let expected = ["key 0=new"] + (5..<9).map { "key \($0)=old" }
        for replica in [a, b, c, d] { #expect(try live(replica) == expected) }
    }

    // MARK: - Lessons

    /// Lesson 1: d holds a later write to a key whose older value c has, and whose deletion a and b
    /// have forgotten. However they meet, all come to the same.
    @Test("A third replica with a concurrent write comes to the same", arguments: 0..<6)
    func lesson1(order: Int) async throws {
        try a.dataset().put("base", for: "other")
        for replica in [b, c, d] { try await exchange(replica, a) }
        try c.dataset().put("old", for: "key")
        try await exchange(c, a)
        try d.dataset().put("concurrent", for: "key")
        try a.dataset().delete("key")
        try await exchange(b, a)
        for replica in [a, b] {
            for gone in [c, d] { try replica.store.retire(gone.store.replicaID) }
            try replica.store.compact()
        }
        let meetings = [
            [(c, b), (d, c)], [(d, b), (c, b)], [(c, d), (c, b)], [(d, c), (d, a)],
            [(c, b), (d, a)], [(b, d), (b, c)],
        ]
        for (from, to) in meetings[order] { try await exchange(from, to) }
        for _ in 0..<3 {
            for (from, to) in [(b, a), (c, a), (d, a), (d, c)] { try await exchange(from, to) }
        }
        let first = try live(a)
        for replica in [b, c, d] { #expect(try live(replica) == first) }
        try expectEqual([a, b, c, d])
        #expect(!first.contains("key=old"))
    }

    /// What outlives is dated after all that was forgotten. It must not win by that over what
    /// somebody wrote who had seen it, in whatever order they meet.
    @Test("Who went on from what outlives wins over it", arguments: 0..<4)
    func lesson1GoingOn(order: Int) async throws {
        try await forgetLater()
        let meetings = [
            [(c, b), (d, c)], [(c, b), (d, b)], [(b, c), (c, d)], [(d, a), (c, b)],
        ]
        for (from, to) in meetings[order] { try await exchange(from, to) }
        try await exchangeAll([a, b, c, d])
        for replica in [a, b, c, d] { #expect(try live(replica) == ["key=newer"]) }
        try expectEqual([a, b, c, d])
    }

    /// A replica may have seen what outlives, and what somebody wrote who had seen it, and have
    /// taken the deletion for both, which came later. Elsewhere that is forgotten.
    @Test("What a deletion has won over does not come back under a later date", arguments: 0..<3)
    func lesson1Superseded(order: Int) async throws {
        let e = try TestReplica("e", in: a.directory)
        try await forgetLater { try await exchange(e, a) }
        try await exchange(e, d)
        #expect(try live(e) == [])
        let meetings = [[(c, b), (e, c)], [(c, b), (c, e)], [(c, b), (b, e), (c, e)]]
        for (from, to) in meetings[order] { try await exchange(from, to) }
        try await exchangeAll([a, b, c, d, e])
        for replica in [a, b, c, d, e] { #expect(try live(replica) == []) }
        try expectEqual([a, b, c, d, e])
    }

    /// c writes "ours", and d, who has seen that, "newer". a deletes the key later and has seen
    /// neither; a and b forget that.
    ///
    /// - Parameter meet: before it is forgotten.
    private func forgetLater(_ meet: () async throws -> Void = {}) async throws {
        try a.dataset().put("old", for: "key")
        for replica in [b, c, d] { try await exchange(replica, a) }
        try c.dataset().put("ours", for: "key")
        try await exchange(d, c)
        try d.dataset().put("newer", for: "key")
        a.clock.putForward(bySeconds: 60)
        try a.dataset().delete("key")
        try await exchange(b, a)
        try await meet()
        let kept = [a, b].map { $0.store.replicaID }
        for replica in [a, b] {
            for peer in try replica.dataset().peers() where !kept.contains(peer.replica) {
                try replica.store.retire(peer.replica)
            }
            try replica.store.compact()
            #expect(try replica.dataset().record(for: "key", includingDeleted: true) == nil)
        }
    }

    private func exchangeAll(_ replicas: [TestReplica]) async throws {
        for _ in 0..<3 {
            for (index, from) in replicas.enumerated() {
                for to in replicas[..<index] { try await exchange(from, to) }
            }
        }
    }

    /// Lesson 2: when the exchange began nobody was late. Compaction forgets in its middle.
    @Test("Compaction in the middle of an exchange is noticed", arguments: 1...4)
    func lesson2(pull: Int) async throws {
        for number in 0..<10 { try a.dataset().put("old", for: "key \(number)") }
        for replica in [b, c] { try await exchange(replica, a) }
        for number in 0..<12 { try a.dataset().put("new", for: "more \(number)") }
        for number in 0..<5 { try a.dataset().delete("key \(number)") }
        try await exchange(b, a)
        let (sender, goer) = (a.store, c.store.replicaID)
        let transport = InterposedTransport(a.responder) { point in
            guard point.kind == "pull", point.numberOfKind == pull, point.moment == .beforeAnswer
            else { return }
            try sender.retire(goer)
            try sender.compact()
        }
        try await c.dataset().synchronize(with: transport, options: SyncOptions(pageRecordsMax: 3))
        #expect(try !a.dataset().knowledge().forgotten.isEmpty)
        for number in 0..<5 { #expect(try c.dataset().get("key \(number)") == nil) }
        try await exchange(c, a)
        try expectEqual([a, b, c])
    }

    /// Lesson 3: b deletes the dataset without having seen "unseen", which is deleted afterwards
    /// by one who knows of b's deletion, or by one who does not. Whoever hears of the three in
    /// whatever order must agree on whether the dataset is there.
    @Test(
        "Whether a deleted dataset is there does not depend on what was heard first",
        arguments: [true, false])
    func lesson3(knows: Bool) async throws {
        try a.dataset().put("seen", for: "seen")
        try await exchange(b, a)
        try a.dataset().put("unseen", for: "unseen")
        try await exchange(c, a)
        // Later than c has made the dataset for itself, also within the same millisecond.
        b.clock.putForward(bySeconds: 60)
        try b.store.deleteDataset("notes")
        // d hears of the deletion, then of the survivor, then of its end; b of both at once.
        for other in [b, c] { _ = try await d.store.synchronize(with: other.transport) }
        #expect(try d.store.existingDataset("notes") != nil)
        #expect(try c.store.existingDataset("notes") != nil)
        try (knows ? c : a).dataset().delete("unseen")
        for _ in 0..<3 {
            for (from, to) in [(c, a), (d, c), (b, c), (b, d)] {
                _ = try await from.store.synchronize(with: to.transport)
            }
        }
        let lives = try [a, b, c, d].map { try $0.store.existingDataset("notes") != nil }
        #expect(lives == [Bool](repeating: knows, count: 4))
    }

    /// Lesson 5: an hour of the clock is no reason to take anybody for one who has missed nothing.
    @Test func lesson5ALateComerIsKnownByWhatItHasSeen() async throws {
        let directory = TemporaryDirectory()
        let hub = try TestReplica("hub", in: directory, tombstoneAge: .seconds(3_600))
        for number in 0..<4 { try hub.dataset().put("old", for: "key \(number)") }
        for replica in [a, b] { try await exchange(replica, hub) }
        try a.dataset().delete("key 0")
        try a.dataset().delete("key 1")
        try await exchange(a, hub)
        hub.clock.putForward(bySeconds: 40 * 365 * 86_400)
        try hub.store.compact()
        #expect(try !hub.dataset().knowledge().forgotten.isEmpty, "a has them, b has not")
        try b.dataset().put("mine", for: "key 1")
        try await exchange(b, hub)
        try await exchange(a, hub)
        for replica in [hub, a, b] {
            #expect(try live(replica) == ["key 1=mine", "key 2=old", "key 3=old"])
        }
    }

    // MARK: - Retirement

    @Test func whoWasRetiredStartsAfreshAndIsWaitedForAgain() async throws {
        try await forget()
        func status() throws -> PeerStatus? {
            try b.dataset().peers().first { $0.replica == c.store.replicaID }
        }
        #expect(try status()?.isRetired == true)
        try await exchange(c, b)
        #expect(try status()?.isRetired == false)
        try b.dataset().delete("key 5")
        try await exchange(b, a)
        #expect(try status()?.tombstonesHeld == 1)
        try b.store.compact()
        #expect(try b.dataset().record(for: "key 5", includingDeleted: true) != nil)
        try await exchange(c, b)
        #expect(try status()?.tombstonesHeld == 0)
        try b.store.compact()
        #expect(try b.dataset().record(for: "key 5", includingDeleted: true) == nil)
        try expectEqual([b, c])
    }
}
