import Testing
import Tidemark

@testable import TidemarkSync

/// Forks: what is drawn, shown, lost and settled on the way.
@Suite(.serialized)
struct ForkDetailTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private let smallPages = SyncOptions(pageRecordsMax: 3)
    private let union = SyncOptions(policy: .custom { .value(joinedText(of: $0)) })

    /// b has two writes that a will not have when its backup is put back.
    private func writeWhatIsLost() async throws {
        try a.dataset().put("first", for: "key 0")
        try a.backUp()
        try a.dataset().put("lost", for: "key 1")
        try a.dataset().put("lost", for: "key 2")
        try await a.dataset().synchronize(with: b.transport)
    }

    @Test(arguments: [true, false])
    func aCopyThatMeetsItsOriginalTakesANewIdAndGoesOn(copyAsks: Bool) async throws {
        try fill(a, 0..<3, "first")
        let twin = try a.copied(as: "twin")
        try fill(a, 10..<15, "original")
        try fill(twin, 20..<28, "copy")
        let id = a.store.replicaID
        let (asker, responder) = copyAsks ? (twin, a) : (a, twin)
        try await asker.dataset().synchronize(with: responder.transport)
        #expect(asker.store.replicaID != id)
        #expect(asker.store.replicaID != responder.store.replicaID)
        try await asker.dataset().synchronize(with: responder.transport)
        try expectEqual([a, twin])
        try expectText(a, 0..<3, "first")
        try expectText(a, 10..<15, "original")
        try expectText(a, 20..<28, "copy")
        // All of a store at once, too, and what nobody wrote since is no conflict.
        let third = try a.copied(as: "third")
        let results = try await third.store.synchronize(with: a.transport)
        #expect(results.map(\.conflicts) == [0])
        try expectEqual([a, twin, third])
    }

    /// The same key on both sides of the fork is a conflict, and the policy settles it.
    @Test(arguments: ExchangeRole.allCases)
    func whatBothSidesWroteIsAConflict(_ role: ExchangeRole) async throws {
        try fill(a, 0..<3, "first")
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        try a.dataset().put("lost", for: "key 1")
        try a.dataset().put("second", for: "key 2")
        try await a.dataset().synchronize(with: b.transport)
        try a.restore()
        try a.dataset().put("again", for: "key 0")
        try a.dataset().put("again", for: "key 1")
        try a.dataset().put("more", for: "key 9")
        let (from, to) = role == .asker ? (a, b) : (b, a)
        try await from.dataset().synchronize(with: to.transport, options: union)
        try await from.dataset().synchronize(with: to.transport, options: union)
        try expectEqual([a, b])
        let texts = try ["key 0", "key 1", "key 2", "key 9"].map { try a.dataset().text($0) }
        #expect(texts[1] == "again+lost")
        #expect(texts[2] == "second")
        #expect(texts[3] == "more")
        #expect(texts[0] == "again" || texts[0] == "again+first 0")
    }

    /// A conflict waits, and the dispute with it. What is written meanwhile over a record under a
    /// disputed dot has not seen what others have under that dot.
    @Test(arguments: ExchangeRole.allCases)
    func aWriteWhileADisputeWaitsHidesNothing(_ role: ExchangeRole) async throws {
        try await writeWhatIsLost()
        try a.restore()
        try a.dataset().put("again", for: "key 1")
        try a.dataset().put("again", for: "key 2")
        let id = a.store.replicaID
        let (from, to) = role == .asker ? (a, b) : (b, a)
        let error = await #expect(throws: SyncError.self) {
            try await from.dataset().synchronize(
                with: to.transport, options: SyncOptions(policy: .leavePending))
        }
        #expect(error?.code == .conflictPending && a.store.replicaID != id)
        try a.dataset().put("mine", for: "key 1")
        try a.dataset().delete("key 2")
        try a.store.compact()
        let policy = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        for _ in 0..<2 {
            try await from.dataset().synchronize(with: to.transport, options: policy)
        }
        try expectEqual([a, b])
        #expect(try a.dataset().text("key 1") == "lost+mine")
        #expect(try a.dataset().text("key 2") == "lost")
    }

    /// What was written after the disk went back, while the clock stood behind that of the writes
    /// that were lost, seems to be an ancestor of theirs.
    @Test(arguments: ExchangeRole.allCases)
    func aClockThatWentBackWithTheDiskHidesNothing(_ role: ExchangeRole) async throws {
        try await writeWhatIsLost()
        // Dates what was lost after everything that `a` writes from now on.
        let lost = try #require(try b.dataset().storedRecord(for: Array("key 2".utf8)))
        let later = Version(
            dot: lost.version.dot, vector: lost.version.vector,
            time: HybridTime(rawValue: lost.version.time.rawValue + 3_600_000 << 16),
            author: lost.version.author)
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: lost.key, content: .adopt(value: lost.value, version: later),
                expected: lost.version)
        ]
        _ = try b.dataset().replicate(batch)
        try a.restore()
        try a.dataset().put("again", for: "key 2")
        let (from, to) = role == .asker ? (a, b) : (b, a)
        try await from.dataset().synchronize(with: to.transport, options: union)
        try await from.dataset().synchronize(with: to.transport, options: union)
        try expectEqual([a, b])
        #expect(try a.dataset().text("key 2") == "again+lost")
    }

    /// What a store wrote after it went back seems to be an ancestor of what others write who have
    /// seen the write that its dot named before; a merge would take it for removed over there.
    @Test(arguments: ExchangeRole.allCases)
    func aWriteUnderADisputedDotIsNoAncestor(_ role: ExchangeRole) async throws {
        try a.backUp()
        try fill(a, 1..<3, "lost")
        try await a.dataset().synchronize(with: b.transport)
        try await b.dataset().synchronize(with: c.transport)
        try b.dataset().put(#"{"n":[3]}"#, for: "key 0")
        try c.dataset().put(#"{"n":[4]}"#, for: "key 0")
        try a.restore()
        try a.dataset().put(#"{"n":[5]}"#, for: "key 0")
        let merging = SyncOptions(policy: .autoMerge(AutoMerge(sets: [JSONPath(["n"])])))
        let (from, to) = role == .asker ? (a, b) : (b, a)
        for _ in 0..<2 {
            try await from.dataset().synchronize(with: to.transport, options: merging)
        }
        for _ in 0..<2 {
            try await a.dataset().synchronize(with: c.transport, options: merging)
        }
        try await b.dataset().synchronize(with: c.transport, options: merging)
        try expectEqual([a, b, c])
        let text = try #require(try a.dataset().text("key 0"))
        let digits = text.filter(\.isNumber).sorted()
        #expect(digits == ["3", "4", "5"])
        try expectText(c, 1..<3, "lost")
    }

    /// What the forked side wrote has a dot beyond all that the asker has seen of it: no settlement
    /// descends from that, and so it was in conflict at the responder in each attempt.
    @Test func aConflictWithWhatAForkedResponderWroteIsSettledAtOnce() async throws {
        try fill(b, 0..<1, "first")
        try b.backUp()
        try await a.dataset().synchronize(with: b.transport)
        try b.restore()
        try fill(b, 10..<14, "again")
        try b.dataset().put("theirs", for: "key")
        try a.dataset().put("ours", for: "key")
        let id = b.store.replicaID
        let options = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        for _ in 0..<2 { try await a.dataset().synchronize(with: b.transport, options: options) }
        #expect(b.store.replicaID != id)
        try expectEqual([a, b])
        #expect(try b.dataset().text("key") == "ours+theirs")
        try expectText(a, 10..<14, "again")
    }

    /// A page has a bound, and what lies at the responder of its keys has none.
    @Test func whatIsInConflictIsWrittenAnewAFewRecordsAtATime() async throws {
        let keys = ["x", "y", "z"]
        try fill(b, 0..<1, "first")
        try b.backUp()
        try await a.dataset().synchronize(with: b.transport)
        try b.restore()
        try fill(b, 10..<14, "again")
        for key in keys {
            try b.dataset().put("theirs", for: key)
            try a.dataset().put("ours", for: key)
        }
        var limits = SyncResponder.Limits()
        limits.renewedBytesMax = 1
        let transport = InterposedTransport(
            SyncResponder(store: b.store, limits: limits)
        ) { _ in }
        let options = SyncOptions(
            policy: .custom { .value(unitedText(of: $0)) }, attemptsMax: 8)
        try await a.dataset().synchronize(with: transport, options: options)
        // One record with each push that meets conflicts, and one push that meets none.
        #expect(transport.messageCount(of: "push") > keys.count)
        try await a.dataset().synchronize(with: b.transport, options: options)
        try expectEqual([a, b])
        for key in keys { #expect(try b.dataset().text(key) == "ours+theirs") }
        try expectText(a, 10..<14, "again")
    }

    /// What takes the place of both must not be older than either: somebody else's write in between
    /// would win over it.
    @Test(arguments: ExchangeRole.allCases)
    func whatBothSidesWroteAlikeIsAsLateAsTheLaterOne(_ role: ExchangeRole) async throws {
        try fill(a, 0..<1, "first")
        try a.backUp()
        try await a.dataset().synchronize(with: b.transport)
        try a.restore()
        try fill(a, 10..<14, "again")
        try a.dataset().put("same", for: "key")
        b.clock.putForward(bySeconds: 60)
        try b.dataset().put("same", for: "key")
        let key = Array("key".utf8)
        let later = try #require(try b.dataset().storedRecord(for: key))
        let (from, to) = role == .asker ? (a, b) : (b, a)
        for _ in 0..<2 { try await from.dataset().synchronize(with: to.transport) }
        try expectEqual([a, b])
        let stands = try #require(try a.dataset().storedRecord(for: key))
        #expect(stands.valueText == "same" && stands.version.time >= later.version.time)
        #expect(stands.version.vector.contains(later.version.dot))
    }

    /// The exchange that settles a fork is cut off, and another replica ends the dispute.
    @Test(arguments: [FaultyTransport.Fault.losesRequest, .losesAnswer])
    func whatWasSettledAndNotPushedComesAgainAfterADispute(
        _ fault: FaultyTransport.Fault
    ) async throws {
        let options = SyncOptions(
            policy: .custom { .value(unitedText(of: $0)) }, pageRecordsMax: 3)
        for lostFrom in 0..<14 {
            let (a, b, c) = try TestReplica.three()
            try fill(b, 0..<1, "first")
            try b.backUp()
            try await a.dataset().synchronize(with: b.transport)
            try b.restore()
            try b.dataset().put("theirs", for: "key")
            try fill(b, 10..<16, "again")
            try await c.dataset().synchronize(with: b.transport)
            try a.dataset().put("ours", for: "key")
            let broken = FaultyTransport(b.responder, fault, after: lostFrom)
            _ = try? await a.dataset().synchronize(with: broken, options: options)
            for _ in 0..<3 {
                for replica in [c, a] {
                    try await replica.dataset().synchronize(with: b.transport, options: options)
                }
            }
            try await c.dataset().synchronize(with: b.transport, options: options)
            try expectEqual([a, b, c], "lost from \(lostFrom)")
            #expect(try c.dataset().text("key") == "ours+theirs", "lost from \(lostFrom)")
            try expectText(a, 10..<16, "again")
        }
    }

    /// What was pulled in an exchange that was cut off does not count as what the asker had before
    /// the responder went back: its version only seems to descend from the doubtful one.
    @Test(arguments: [FaultyTransport.Fault.losesRequest, .losesAnswer])
    func aDisputeThatIsCutOffProvesNoDescent(_ fault: FaultyTransport.Fault) async throws {
        let options = SyncOptions(
            policy: .custom { .value(unitedText(of: $0)) }, pageRecordsMax: 3)
        for lostFrom in 0..<14 {
            let (a, b) = try TestReplica.two()
            try fill(b, 0..<1, "first")
            try b.backUp()
            try b.dataset().put("lost", for: "key")
            try await a.dataset().synchronize(with: b.transport)
            try a.dataset().put("ours", for: "key")
            try b.restore()
            try b.dataset().put("again", for: "key")
            try fill(b, 10..<18, "again")
            let broken = FaultyTransport(b.responder, fault, after: lostFrom)
            _ = try? await a.dataset().synchronize(with: broken, options: options)
            for _ in 0..<2 {
                try await a.dataset().synchronize(with: b.transport, options: options)
            }
            try expectEqual([a, b], "lost from \(lostFrom)")
            #expect(try b.dataset().text("key") == "again+ours", "lost from \(lostFrom)")
            try expectText(a, 10..<18, "again")
        }
    }

    /// Somebody who knew nothing of the lost writes ends the dispute. What it took over keeps
    /// nothing of the disputed dot, which names another write for who had it before.
    @Test func whatAStrangerEndsADisputeWithDescendsFromNoLostWrite() async throws {
        let options = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        let leaving = SyncOptions(policy: .leavePending)
        try b.backUp()
        try b.dataset().put("lost", for: "key")
        try fill(b, 0..<2, "first")
        try await a.dataset().synchronize(with: b.transport)
        try b.restore()
        try fill(b, 10..<11, "again")
        try b.dataset().put("again", for: "key")
        // Finds out, and settles nothing.
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: b.transport, options: leaving)
        }
        try await c.dataset().synchronize(with: b.transport, options: options)
        for replica in [a, c, a] {
            try await replica.dataset().synchronize(with: b.transport, options: options)
        }
        try await c.dataset().synchronize(with: b.transport, options: options)
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("key") == "again+lost")
    }

    /// What came under the disputed id with a page before the last one is the peer's own write, and
    /// nobody need write it anew.
    @Test func whatThePeerHasSentOfADisputedIdStaysAsItIs() async throws {
        try fill(a, 0..<3, "first")
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        try fill(a, 1..<2, "lost")
        try fill(a, 10..<20, "lost")
        try await a.dataset().synchronize(with: b.transport)
        let before = try Contents(b.dataset()).lines
        try a.restore()
        try fill(a, 30..<32, "again")
        try await a.dataset().synchronize(with: b.transport, options: smallPages)
        try expectEqual([a, b])
        let after = try Contents(b.dataset()).lines
        let isAsItWas = before.map { after.contains($0) }
        #expect(isAsItWas == Array(repeating: true, count: 13))
        try expectText(a, 1..<2, "lost")
        try expectText(b, 30..<32, "again")
    }

    /// Messages are lost in every place; nothing else is.
    @Test(arguments: ExchangeRole.allCases, [FaultyTransport.Fault.losesRequest, .losesAnswer])
    func lostMessagesInEveryPlace(
        _ role: ExchangeRole, _ fault: FaultyTransport.Fault
    ) async throws {
        for lostFrom in 0..<14 {
            let (a, b) = try TestReplica.two()
            let (from, to) = role == .asker ? (a, b) : (b, a)
            func exchange(_ fault: FaultyTransport.Fault?) async {
                let transport = FaultyTransport(to.responder, fault, after: lostFrom)
                // An exchange without a dispute has fewer messages, and then none is lost.
                _ = try? await from.dataset().synchronize(with: transport, options: smallPages)
            }
            try fill(a, 0..<4, "first")
            await exchange(fault)
            await exchange(nil)
            try a.backUp()
            try fill(a, 10..<14, "lost")
            await exchange(fault)
            await exchange(nil)
            try a.restore()
            try fill(a, 20..<26, "again")
            await exchange(fault)
            try fill(a, 30..<32, "between")
            try a.reopen()
            await exchange(fault)
            await exchange(nil)
            await exchange(nil)
            try expectEqual([a, b], "lost from \(lostFrom)")
            try expectText(b, 0..<4, "first")
            try expectText(b, 10..<14, "lost")
            try expectText(b, 20..<26, "again")
            try expectText(b, 30..<32, "between")
        }
    }

    /// Where a lost answer leaves the two unequal in what they remember, that is no fork.
    @Test(arguments: 0..<8, [FaultyTransport.Fault.losesRequest, .losesAnswer])
    func aLostMessageAloneIsNoFork(_ good: Int, _ fault: FaultyTransport.Fault) async throws {
        let ids = [a.store.replicaID, b.store.replicaID]
        for round in 0..<4 {
            try fill(a, round * 10..<round * 10 + 5, "ours")
            try fill(b, 100 + round * 10..<100 + round * 10 + 5, "theirs")
            let broken = FaultyTransport(b.responder, fault, after: good)
            _ = try? await a.dataset().synchronize(with: broken, options: smallPages)
        }
        try await a.dataset().synchronize(with: b.transport)
        #expect([a.store.replicaID, b.store.replicaID] == ids)
        try expectEqual([a, b])
    }

    @Test(arguments: [true, false])
    func whoLosesItsBatonsLosesNothingElse(asker: Bool) async throws {
        try fill(a, 0..<5, "ours")
        try fill(b, 5..<9, "theirs")
        try await a.dataset().synchronize(with: b.transport)
        let loser = asker ? a : b
        let book = try loser.store.systemDataset(.batons)
        #expect(try book.count() == 2)
        try book.clear()
        try fill(a, 10..<13, "ours")
        try fill(b, 20..<23, "theirs")
        for _ in 0..<2 { try await a.dataset().synchronize(with: b.transport) }
        try expectEqual([a, b])
        #expect(try a.dataset().count() == 15)
    }

    @Test func anIdleExchangeDrawsNothing() async throws {
        try fill(a, 0..<5, "ours")
        try fill(b, 5..<9, "theirs")
        try await a.dataset().synchronize(with: b.transport)
        try await b.dataset().synchronize(with: a.transport)
        let books = try [a, b].map { try $0.store.systemDataset(.batons) }
        let before = try books.map { try $0.syncCount }
        for _ in 0..<3 {
            try await a.dataset().synchronize(with: b.transport)
            try await b.store.synchronize(with: a.transport)
        }
        #expect(try books.map { try $0.syncCount } == before)
    }

    /// Whom it gave its writes to it never meets again; but somebody who has met that one.
    @Test func aForkShowsAtThirdParties() async throws {
        try fill(a, 0..<5, "first")
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        try fill(a, 10..<14, "lost")
        try await a.dataset().synchronize(with: b.transport)
        try await b.dataset().synchronize(with: c.transport)
        try a.restore()
        try fill(a, 20..<26, "again")
        for _ in 0..<2 { try await a.dataset().synchronize(with: c.transport) }
        try expectEqual([a, c])
        try expectText(c, 10..<14, "lost")
        try expectText(c, 20..<26, "again")
    }

    /// After the copy found out, the original goes on under the old id, and its writes arrive.
    @Test func anIdThatWasGivenUpIsTheOriginalsAlone() async throws {
        try fill(a, 0..<5, "first")
        try await a.dataset().synchronize(with: b.transport)
        let twin = try a.copied(as: "twin")
        try fill(a, 10..<12, "original")
        try await a.dataset().synchronize(with: b.transport)
        // More than the original, so that its next counters were all used here.
        try fill(twin, 20..<40, "copy")
        try await twin.dataset().synchronize(with: b.transport)
        let (id, copied) = (a.store.replicaID, twin.store.replicaID)
        #expect(id != copied)
        for round in 0..<6 {
            try fill(a, 50 + round..<51 + round, "later")
            try await a.dataset().synchronize(with: b.transport)
            try await twin.dataset().synchronize(with: b.transport)
            try expectText(twin, 50..<51 + round, "later")
        }
        #expect(a.store.replicaID == id && twin.store.replicaID == copied)
        try expectEqual([a, b, twin])
        #expect(try a.dataset().count() == 33)
    }

    @Test func recordsAreReadAsTheyWereWritten() {
        var record = BatonRecord(standing: .disputed)
        for number in 1...20 as ClosedRange<UInt64> {
            record.append(
                BatonRecord.Drawn(number: number, random: number << 50, through: number * 3))
        }
        #expect(record.drawn.count == BatonRecord.drawnMax)
        #expect(BatonRecord(decoding: record.encoded) == record)
        for count in 0..<record.encoded.count {
            #expect(BatonRecord(decoding: Array(record.encoded.prefix(count))) == nil)
        }
        #expect(BatonRecord(decoding: record.encoded + [0]) == nil)
        #expect(BatonRecord(decoding: [9, 0]) == nil)
        let replica = ReplicaID(high: 1, low: 1)
        func baton(_ number: UInt64, _ random: UInt64) -> Baton {
            Baton(replica: replica, number: number, random: random)
        }
        #expect(record.isForeign(baton(21, 1)))
        #expect(record.isForeign(baton(20, 1)))
        #expect(!record.isForeign(baton(20, 20 << 50)))
        #expect(!record.isForeign(baton(3, 1)))
        let some = [baton(1, 5), baton(1, 6), baton(2, 5), baton(2, 0), baton(2, 7)]
        for one in some {
            #expect(one.joined(with: one) == one)
            for other in some {
                #expect(one.joined(with: other) == other.joined(with: one))
                for third in some {
                    #expect(
                        one.joined(with: other).joined(with: third)
                            == one.joined(with: other.joined(with: third)))
                }
            }
        }
    }
}
