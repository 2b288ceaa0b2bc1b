import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

// The clock of b is an hour ahead, and nobody believes more than five minutes.
//
//     b  ── key: future (in an hour) ──┐
//     a  ── key: base ─────────────────┴── still base ── ... an hour later: future
//     c  ── key: base ──────────── from a ── still base ── ...
struct QuarantineTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    private let hour: UInt64 = 3_600

    init() throws { (a, b, c) = try TestReplica.three() }

    /// All have the base, and b writes in an hour.
    private func makeFuture(_ value: String? = "future") async throws {
        try a.dataset().put("base", for: "key")
        for replica in [b, c] { try await replica.dataset().synchronize(with: a.transport) }
        b.clock.putForward(bySeconds: hour)
        if let value {
            try b.dataset().put(value, for: "key")
        } else {
            try b.dataset().delete("key")
        }
    }

    private func exchange(
        _ one: TestReplica, _ role: ExchangeRole = .asker, with other: TestReplica,
        options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        let (from, to) = role == .asker ? (one, other) : (other, one)
        return try await from.dataset().synchronize(with: to.transport, options: options)
    }

    private func exchangeAll() async throws {
        for _ in 0..<3 {
            for (one, other) in [(a, b), (b, a), (c, a), (a, c), (b, c), (c, b)] {
                _ = try await exchange(one, with: other)
            }
        }
    }

    private func held(_ replica: TestReplica) throws -> [String] {
        try replica.dataset().quarantined().map { $0.record.valueText ?? "(deleted)" }.sorted()
    }

    @Test(arguments: ExchangeRole.allCases)
    func aWriteFromTheFutureIsHeld(_ role: ExchangeRole) async throws {
        try await makeFuture()
        let result = try await exchange(a, role, with: b)
        #expect(try a.dataset().text("key") == "base")
        #expect(try b.dataset().text("key") == "future")
        let held = try #require(try a.dataset().quarantined().first)
        #expect(held.dataset == "notes" && held.record.valueText == "future")
        #expect(held.record.version.author == "b")
        let date = held.record.version.time.milliseconds
        #expect(held.dueAt == date - 300_000)
        if role == .asker { #expect(result.quarantined == 1 && result.pulled == 0) }
        // It is neither told again nor sent again.
        for role in ExchangeRole.allCases {
            let again = try await exchange(a, role, with: b)
            #expect(again.pulled + again.pushed + again.quarantined + again.conflicts == 0)
        }
    }

    @Test func aHeldWriteGoesOnToOthers() async throws {
        try await makeFuture()
        _ = try await exchange(a, with: b)
        _ = try await exchange(c, with: a)
        #expect(try held(c) == ["future"])
        #expect(try c.dataset().text("key") == "base")
        try expectEqual([a, c])
    }

    @Test(arguments: ["future", nil] as [String?])
    func itWinsWhenItsDateHasCome(_ value: String?) async throws {
        // A minute is little for a machine that is slow enough.
        for replica in [a, b, c] { replica.clock.stop() }
        try await makeFuture(value)
        _ = try await exchange(a, with: b)
        _ = try await exchange(c, with: a)
        for replica in [a, c] { replica.clock.putForward(bySeconds: hour - 360) }
        _ = try await exchange(c, with: a)
        #expect(try a.dataset().text("key") == "base")
        #expect(try c.dataset().text("key") == "base")
        for replica in [a, c] { replica.clock.putForward(bySeconds: 361) }
        _ = try await exchange(c, with: a)
        for replica in [a, c] {
            #expect(try replica.dataset().text("key") == value)
            #expect(try held(replica) == [])
        }
        try await exchangeAll()
        try expectEqual([a, b, c])
    }

    /// What the dispute is about has nothing to do with the key.
    @Test(arguments: ExchangeRole.allCases)
    func itIsHeldWhileAnIdIsDisputed(_ role: ExchangeRole) async throws {
        try c.dataset().put("base", for: "key")
        for replica in [a, b] { _ = try await exchange(replica, with: c) }
        try a.backUp()
        try fill(a, 0..<3, "lost")
        _ = try await exchange(a, with: b)
        try a.restore()
        try fill(a, 10..<14, "again")
        for replica in [b, c] { replica.clock.putForward(bySeconds: hour) }
        try c.dataset().put("future", for: "key")
        _ = try await exchange(b, with: c)
        #expect(try b.dataset().text("key") == "future")
        let id = a.store.replicaID
        for _ in 0..<2 { _ = try await exchange(a, role, with: b) }
        #expect(a.store.replicaID != id)
        #expect(try BatonBook(a.dataset()).disputed.isEmpty)
        #expect(try a.dataset().text("key") == "base")
        #expect(try held(a) == ["future"])
        #expect(try b.dataset().text("key") == "future")
        for replica in [a, b] {
            try expectText(replica, 0..<3, "lost")
            try expectText(replica, 10..<14, "again")
        }
    }

    /// Held on, it would go to nobody who claims its dot when the dispute is over.
    @Test(arguments: ExchangeRole.allCases)
    func whatIsHeldUnderADisputedIdIsLetIn(_ role: ExchangeRole) async throws {
        for replica in [a, b] { replica.clock.putForward(bySeconds: hour) }
        try a.backUp()
        try a.dataset().put("future", for: "key")
        _ = try await exchange(c, with: a)
        #expect(try held(c) == ["future"])
        // The same dot.
        try a.restore()
        try a.dataset().put("other", for: "other")
        _ = try await exchange(b, with: a)
        for _ in 0..<2 { _ = try await exchange(c, role, with: b) }
        #expect(try !held(c).contains("future"))
        for replica in [b, c] {
            #expect(try BatonBook(replica.dataset()).disputed.isEmpty)
            #expect(try replica.dataset().text("key") == "future")
        }
        c.clock.putForward(bySeconds: 2 * hour)
        for _ in 0..<2 { _ = try await exchange(c, role, with: b) }
        #expect(try c.dataset().text("other") == "other")
        try expectEqual([b, c])
    }

    /// A write always beats what it has seen, whatever the dates.
    @Test func itLosesToAWriteThatHasSeenIt() async throws {
        try await makeFuture()
        _ = try await exchange(a, with: b)
        try a.dataset().put("over", for: "key")
        #expect(try held(a) == [])
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try b.dataset().text("key") == "over")
        // Also once the date has come.
        for replica in [a, c] { replica.clock.putForward(bySeconds: 2 * hour) }
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("key") == "over")
    }

    /// The side whose clock is right asks: its write meets the other one before the date and stays,
    /// everywhere.
    @Test func beforeItsTimeItLosesToWhatItMeets() async throws {
        try await makeFuture()
        try a.dataset().put("ours", for: "key")
        let result = try await exchange(a, with: b)
        #expect(result.isComplete)
        #expect(try a.dataset().text("key") == "ours")
        try expectEqual([a, b])
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("key") == "ours")
    }

    /// The asker has nothing of its own to say of the key, and does not let in what it holds. The
    /// peer has to settle that itself, and is not given it until it asks.
    @Test func whatThePeerHasToSettleIsLeftToIt() async throws {
        try await makeFuture()
        _ = try await exchange(a, with: b)
        try c.dataset().put("apart", for: "key")
        c.clock.putForward(bySeconds: hour)
        for _ in 0..<2 {
            let result = try await exchange(a, with: c)
            #expect(result.isComplete)
            #expect(try a.dataset().text("key") == "apart")
            #expect(try c.dataset().text("key") == "apart")
            #expect(try held(a) == ["future"])
            #expect(try !c.dataset().vector.covers(b.dataset().vector))
        }
        // c believes it.
        let result = try await exchange(c, with: a)
        #expect(result.conflicts == 1)
        #expect(try c.dataset().text("key") == "future")
        #expect(try a.dataset().text("key") == "apart")
        a.clock.putForward(bySeconds: 2 * hour)
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try a.dataset().text("key") == "future")
    }

    /// What b's write has seen counts as known to a, which holds that write and never got the other
    /// one. It was told as a conflict in each attempt, until the date came.
    @Test func whatAHeldWriteHasSupersededIsNoConflict() async throws {
        try c.dataset().put("early", for: "key")
        try await b.dataset().synchronize(with: c.transport)
        b.clock.putForward(bySeconds: hour)
        try b.dataset().put("future", for: "key")
        try a.dataset().put("ours", for: "key")
        // a pulls, and its push is lost.
        let cut = FaultyTransport(b.responder, .losesRequest, after: 2)
        await #expect(throws: SyncError.self) { try await a.dataset().synchronize(with: cut) }
        #expect(try held(a) == ["future"])
        let result = try await exchange(a, with: c)
        #expect(result.isComplete && result.attempts <= 2)
        #expect(try a.dataset().text("key") == "ours")
        try expectEqual([a, c])
        try await exchangeAll()
        try expectEqual([a, b, c])
    }

    /// The side whose clock is ahead asks: there it wins, and nowhere else before its date.
    @Test func whereItIsBelievedItWinsAlone() async throws {
        try await makeFuture()
        try a.dataset().put("ours", for: "key")
        let result = try await exchange(b, with: a)
        #expect(result.conflicts == 1)
        #expect(try b.dataset().text("key") == "future")
        #expect(try a.dataset().text("key") == "ours")
        #expect(try held(a) == ["future"])
        for replica in [a, c] { replica.clock.putForward(bySeconds: 2 * hour) }
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try a.dataset().text("key") == "future")
    }

    @Test func anOperatorLetsItCount() async throws {
        try await makeFuture()
        _ = try await exchange(a, with: b)
        _ = try await exchange(c, with: a)
        let write = try #require(try a.dataset().quarantined().first)
        try a.dataset().release(write)
        #expect(try a.dataset().text("key") == "future")
        #expect(try held(a) == [])
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("key") == "future" && held(c) == [])
        // Once only.
        let error = #expect(throws: StoreError.self) { try a.dataset().release(write) }
        #expect(error?.code == .versionMismatch)
    }

    @Test(arguments: [true, false])
    func anOperatorLetsItGo(_ hasBase: Bool) async throws {
        if hasBase {
            try await makeFuture()
        } else {
            _ = try b.dataset()
            b.clock.putForward(bySeconds: hour)
            try b.dataset().put("future", for: "key")
        }
        _ = try await exchange(a, with: b)
        let write = try #require(try a.dataset().quarantined().first)
        try a.dataset().discard(write)
        try await exchangeAll()
        for replica in [a, c] { replica.clock.putForward(bySeconds: 2 * hour) }
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try b.dataset().text("key") == (hasBase ? "base" : nil))
    }

    @Test func itSurvivesReopeningAndCompaction() async throws {
        try await makeFuture()
        _ = try await exchange(a, with: b)
        for _ in 0..<2 {
            try a.reopen()
            #expect(try held(a) == ["future"])
            try a.store.compact()
            #expect(try held(a) == ["future"])
            #expect(try a.dataset().text("key") == "base")
        }
        _ = try await exchange(c, with: a)
        #expect(try held(c) == ["future"])
    }

    /// Two of one key do not fit into one page, and a page has a bound; none is claimed that was
    /// not sent.
    @Test func manyGoOnPageByPage() async throws {
        try await makeFuture()
        c.clock.putForward(bySeconds: 2 * hour)
        try c.dataset().put("later", for: "key")
        for number in 0..<10 { try b.dataset().put("new", for: "new \(number)") }
        _ = try await exchange(a, with: b)
        _ = try await exchange(a, with: c)
        #expect(try held(a).count == 12)
        let d = try TestReplica("d", in: a.directory)
        for round in 1...8 {
            let options = SyncOptions(pageRecordsMax: 3)
            _ = try await d.dataset().synchronize(with: a.transport, options: options)
            let count = try held(d).count
            #expect(count >= min(12, 2 * round), "round \(round)")
        }
        #expect(try held(d) == held(a))
        #expect(try d.dataset().text("key") == "base")
        try expectEqual([a, d])
        let idle = try await d.dataset().synchronize(with: a.transport)
        #expect(idle.quarantined == 0 && idle.pagesReceived <= 1)
    }

    /// Two writes of one key may be held of which the peer has the one and refuses the other. That
    /// one is not handed over until the peer asks for it and settles it.
    @Test func ofTwoThatAreHeldThePeerHasOne() async throws {
        try await makeFuture()
        c.clock.putForward(bySeconds: 2 * hour)
        try c.dataset().put("later", for: "key")
        _ = try await exchange(a, with: b)
        _ = try await exchange(a, with: c)
        #expect(try held(a) == ["future", "later"])
        #expect(try c.dataset().text("key") == "later")
        #expect(try !c.dataset().vector.contains(Dot(replica: b.store.replicaID, counter: 1)))
        _ = try await exchange(c, with: a)
        #expect(try c.dataset().vector.contains(Dot(replica: b.store.replicaID, counter: 1)))
        for replica in [a, b] { replica.clock.putForward(bySeconds: 2 * hour) }
        try await exchangeAll()
        try expectEqual([a, b, c])
        #expect(try a.dataset().text("key") == "later")
    }

    /// Where no date decides, none is waited for.
    @Test func anotherPolicyHoldsNothing() async throws {
        try await makeFuture()
        try a.dataset().put("ours", for: "key")
        let union = SyncOptions(policy: .custom { .value(joinedText(of: $0)) })
        let result = try await exchange(a, with: b, options: union)
        #expect(result.conflicts == 1 && result.quarantined == 0)
        #expect(try a.dataset().text("key") == "future+ours")
        try expectEqual([a, b])
    }

    /// A responder knows no policy and holds what is pushed; who asks it with one takes that in.
    @Test func whatAResponderHoldsIsMergedByWhoeverAsks() async throws {
        try await makeFuture()
        _ = try await exchange(b, with: a)
        #expect(try held(a) == ["future"])
        let stop = SyncOptions(policy: .keepLocal)
        _ = try await exchange(c, with: a, options: stop)
        #expect(try c.dataset().text("key") == "future")
        #expect(try held(c) == [])
    }

    @Test func aSegmentIsNotOfferedWithoutWhatIsHeld() async throws {
        for number in 0..<2_000 {
            try a.dataset().put(String(repeating: "x", count: 50), for: "old \(number)")
        }
        try await makeFuture()
        _ = try await exchange(a, with: b)
        try a.store.compact()
        let d = try TestReplica("d", in: a.directory)
        let responder = SyncResponder(
            store: a.store, limits: SyncResponder.Limits(segmentBytesMin: 0))
        let result = try await d.dataset().synchronize(with: InMemoryTransport(responder))
        #expect(result.adopted == 0)
        #expect(try held(d) == ["future"])
        try expectEqual([a, d])
    }

    /// The moment of an offer may be before that at which a held write was let in. Its vector
    /// claims the write, which is not among its records, so whoever took it over never got it.
    @Test func aSegmentFromBeforeTheAdmissionIsNotOffered() async throws {
        for number in 0..<2_000 {
            try a.dataset().put(String(repeating: "x", count: 50), for: "old \(number)")
        }
        try await makeFuture()
        _ = try await exchange(a, with: b)
        try a.store.compact()
        for replica in [a, c] { replica.clock.putForward(bySeconds: 2 * hour) }
        _ = try await exchange(a, with: c)
        #expect(try a.dataset().text("key") == "future")
        let responder = SyncResponder(
            store: a.store, limits: SyncResponder.Limits(segmentBytesMin: 0))
        let d = try TestReplica("d", in: a.directory)
        d.clock.putForward(bySeconds: 2 * hour)
        var result = try await d.dataset().synchronize(with: InMemoryTransport(responder))
        #expect(result.adopted == 0)
        try expectEqual([a, d])
        // Sealed after it, the segments have it, and may go as they are.
        try a.store.compact()
        let e = try TestReplica("e", in: a.directory)
        e.clock.putForward(bySeconds: 2 * hour)
        result = try await e.dataset().synchronize(with: InMemoryTransport(responder))
        #expect(result.adopted > 2_000)
        try expectEqual([a, e])
    }

    @Test func aBundleCarriesIt() async throws {
        try await makeFuture()
        _ = try await exchange(a, with: b)
        let d = try TestReplica("d", in: a.directory)
        let file = "\(a.directory.path)/notes.bundle"
        try a.store.exportBundle(of: "notes", to: file)
        let result = try await d.store.importBundle(from: file)
        #expect(result.quarantined == 1)
        #expect(try held(d) == ["future"])
        #expect(try d.dataset().text("key") == "base")
    }

    /// A peer that finds conflicts and names none is not asked for ever.
    @Test func conflictsWithoutKeysEndTheExchange() async throws {
        try a.dataset().put("ours", for: "key")
        _ = try b.dataset()
        let responder = b.responder
        let knowledge = PeerKnowledge(try b.dataset().knowledge())
        let transport = ScriptedTransport { request throws(SyncError) in
            let message = try SyncMessage(MessageFrame.decoded(request))
            guard case .push = message else { return responder.respond(to: request) }
            // Nothing of it is taken in.
            let refused = PushAnswer(
                outcome: .conflicts(keys: [], changed: 0), appliedAfter: nil, knowledge: knowledge)
            return try SyncMessage.pushAnswer(refused).encoded()
        }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: transport)
        }
        #expect(error?.code == .contended)
    }

    @Test func itIsTold() async throws {
        try await makeFuture()
        let events = Mutex<[String]>([])
        var options = SyncOptions()
        options.observer = { event in events.withLock { $0.append(event.label) } }
        _ = try await exchange(a, with: b, options: options)
        #expect(events.withLock { $0 } == ["quarantined notes key"])
    }

    @Test func withTheDatasetItGoes() async throws {
        try await makeFuture()
        _ = try await exchange(a, with: b)
        try a.store.deleteDataset("notes")
        _ = try a.dataset()
        let options = SyncOptions(onDatasetDeleted: .discardLocal)
        _ = try await exchange(b, with: a, options: options)
        a.clock.putForward(bySeconds: 2 * hour)
        _ = try await exchange(a, with: b, options: options)
        #expect(try a.dataset().text("key") == nil)
        #expect(try held(a) == [])
        try expectEqual([a, b])
    }
}
