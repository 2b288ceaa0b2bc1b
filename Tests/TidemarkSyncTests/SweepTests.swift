import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Much is pulled in the order of keys, and claimed when all of it is here:
///
///     asker  ── sweep from key 0 ──▶ ── from key 20 ──▶   cut   ── from key 20 ──▶ ... ── pull ──▶
///     stored      page, mark 20        page, mark 40                page, mark 40     all claimed
@Suite(.serialized)
struct SweepTests {
    static let keyCount = 200

    private let a: TestReplica
    private let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    static func options(pageRecordsMax: Int = 20) -> SyncOptions {
        var options = SyncOptions(pageRecordsMax: pageRecordsMax, adoptsSegments: false)
        options.sweepsFrom = 0
        return options
    }

    static func key(_ number: Int) -> [UInt8] {
        Array("key ".utf8) + [UInt8(number >> 8), UInt8(number & 255)]
    }

    /// Not in the order of keys.
    static func write(
        _ numbers: Range<Int>, _ value: UInt8, to replica: TestReplica
    ) throws {
        let dataset = try replica.dataset()
        for step in 0..<numbers.count {
            let number = numbers.lowerBound + step * 7 % numbers.count
            try dataset.put([value], for: key(number))
        }
    }

    /// Lets messages through and remembers the first keys of sweeps.
    final class Watching: SyncTransport {
        private let responder: SyncResponder
        private let messagesMax: Int
        private let state = Mutex((count: 0, starts: [[UInt8]](), kinds: [String]()))

        init(_ responder: SyncResponder, messagesMax: Int = .max) {
            self.responder = responder
            self.messagesMax = messagesMax
        }

        var starts: [[UInt8]] { state.withLock { $0.starts } }
        var kinds: [String] { state.withLock { $0.kinds } }

        func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            let message = try SyncMessage(MessageFrame.decoded(request))
            let isLost = state.withLock { state in
                state.count += 1
                state.kinds.append(MessageLabel.kind(of: request))
                if case .sweep(let sweep) = message { state.starts.append(sweep.start) }
                return state.count > messagesMax
            }
            if isLost { throw SyncError(.unreachable, "the test lost a message; repeat") }
            return responder.respond(to: request)
        }
    }

    @Test func aSweepBringsEverythingAndIsClaimed() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        try Self.write(0..<Self.keyCount / 2, 2, to: a)
        try b.dataset().delete(Self.key(3))
        let watching = Watching(b.responder)
        let result = try await a.dataset().synchronize(
            with: watching, options: Self.options())
        #expect(result.conflicts == Self.keyCount / 2)
        #expect(watching.starts.count == Self.keyCount / 20)
        #expect(watching.starts == watching.starts.sorted { $0.lexicographicallyPrecedes($1) })
        // The pull behind it brings nothing more.
        #expect(watching.kinds.filter { $0 == "pull" }.count == 1)
        try expectEqual([a, b])
        let (ours, theirs) = (try a.dataset().vector, try b.dataset().vector)
        #expect(ours == theirs)
        #expect(try a.store.existingSystemDataset(.sweeps)?.count() ?? 0 == 0)
        let again = Watching(b.responder)
        let idle = try await a.dataset().synchronize(with: again, options: Self.options())
        #expect(again.starts.isEmpty && idle.pulled == 0 && idle.pushed == 0)
        // What changes afterwards comes in the order of change.
        try b.dataset().put([9], for: Self.key(7))
        try await a.dataset().synchronize(with: b.transport, options: SyncOptions())
        #expect(try a.dataset().get(Self.key(7)) == [9])
    }

    @Test func fewChangesAreNotSwept() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        let watching = Watching(b.responder)
        try await a.dataset().synchronize(
            with: watching, options: SyncOptions(adoptsSegments: false))
        #expect(watching.starts.isEmpty)
        try expectEqual([a, b])
    }

    @Test(arguments: 1...12)
    func aSweepThatIsCutOffGoesOn(_ messagesMax: Int) async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        _ = try a.dataset()
        a.clock.putForward(bySeconds: 1)
        try Self.write(0..<Self.keyCount, 2, to: a)
        b.clock.putForward(bySeconds: 2)
        try Self.write(100..<150, 3, to: b)
        let first = Watching(b.responder, messagesMax: messagesMax)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: first, options: Self.options())
        }
        // Nothing is claimed before the end.
        if messagesMax <= Self.keyCount / 20 {
            #expect(try !a.dataset().vector.covers(b.dataset().vector))
        }
        try a.reopen()
        let second = Watching(b.responder)
        try await a.dataset().synchronize(with: second, options: Self.options())
        // The first message is the hello. The last page that came is stored, and so is the way to
        // the next one.
        let pagesStored = min(messagesMax - 1, Self.keyCount / 20)
        if (1..<Self.keyCount / 20).contains(pagesStored) {
            #expect(second.starts.first == Self.key(20 * pagesStored))
        }
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
        #expect(try a.store.existingSystemDataset(.sweeps)?.count() ?? 0 == 0)
        for number in 0..<Self.keyCount {
            let wanted: UInt8 = (100..<150).contains(number) ? 3 : 2
            #expect(try b.dataset().get(Self.key(number)) == [wanted])
        }
    }

    /// Both sides write and delete all the while, in front of the sweep and behind it.
    @Test func whatIsWrittenMeanwhileIsLostNowhere() async throws {
        print("whatIsWrittenMeanwhileIsLostNowhere: TIDEMARK_SEED=\(baseSeed)")
        for seed in baseSeed..<baseSeed + 8 {
            let (a, b) = try TestReplica.two()
            try Self.write(0..<Self.keyCount, 1, to: b)
            try Self.write(50..<150, 2, to: a)
            let (ours, theirs) = (try a.dataset(), try b.dataset())
            let random = Mutex(SeededGenerator(seed: seed))
            let transport = InterposedTransport(b.responder) { point in
                guard point.kind == "sweep" || point.kind == "pull" else { return }
                try random.withLock { random in
                    for _ in 0..<Int.random(in: 0..<4, using: &random) {
                        let key = Self.key(Int.random(in: 0..<Self.keyCount + 20, using: &random))
                        let side = Bool.random(using: &random) ? ours : theirs
                        if Int.random(in: 0..<4, using: &random) == 0 {
                            try side.delete(key)
                        } else {
                            try side.put([UInt8.random(in: 3...255, using: &random)], for: key)
                        }
                    }
                }
            }
            var options = Self.options()
            options.attemptsMax = 50
            try await ours.synchronize(with: transport, options: options)
            for _ in 0..<2 {
                try await ours.synchronize(with: b.transport, options: Self.options())
            }
            try expectEqual([a, b], "seed \(seed)")
            #expect(try ours.vector == theirs.vector, "seed \(seed)")
            #expect(transport.messageCount(of: "sweep") > 0)
        }
    }

    @Test func whatIsWipedMeanwhileIsNotClaimed() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        try Self.write(0..<Self.keyCount, 2, to: a)
        let store = a.store
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "sweep", point.numberOfKind == 4, point.moment == .beforeAnswer
            else { return }
            try store.deleteDataset("notes")
            _ = try store.dataset("notes")
        }
        var options = Self.options()
        options.onDatasetDeleted = .keepAndRecreate
        let dataset = try a.dataset()
        do throws(SyncError) {
            try await dataset.synchronize(with: transport, options: options)
        } catch {
            #expect(error.code == .peerChanged || error.code == .contended, "\(error)")
        }
        for _ in 0..<3 {
            try await a.dataset().synchronize(with: b.transport, options: options)
        }
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    @Test func aPeerThatDoesNotKnowSweepsIsPulledFrom() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        let responder = b.responder
        let old = ScriptedTransport { request throws(SyncError) in
            guard MessageLabel.kind(of: request) != "sweep" else {
                let failure = SyncMessage.failure(
                    Failure(code: "\(SyncError.Code.badMessage)", message: "what is that?"))
                return try failure.encoded()
            }
            return responder.respond(to: request)
        }
        let result = try await a.dataset().synchronize(with: old, options: Self.options())
        #expect(result.pulled == Self.keyCount)
        try expectEqual([a, b])
    }

    @Test func aPageOutOfOrderIsRefused() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        let responder = b.responder
        // Each begins afresh: of a first answer that is none, nothing is told but that the peer
        // does not know sweeps.
        for mistake in ["order", "range", "back"] {
            let bad = ScriptedTransport { request throws(SyncError) in
                let answer = responder.respond(to: request)
                guard case .sweepAnswer(var swept) = try SyncMessage(MessageFrame.decoded(answer)),
                    case .sweep(let sweep) = try SyncMessage(MessageFrame.decoded(request)),
                    !sweep.start.isEmpty
                else { return answer }
                switch mistake {
                case "order": swept.page.records.reverse()
                case "range": swept.next = swept.page.records.last?.key
                default: swept.next = sweep.start
                }
                return try SyncMessage.sweepAnswer(swept).encoded()
            }
            let asker = try TestReplica(mistake, in: a.directory)
            let error = await #expect(throws: SyncError.self) {
                try await asker.dataset().synchronize(with: bad, options: Self.options())
            }
            #expect(error?.code == .badMessage, "\(mistake)")
            #expect(try !asker.dataset().vector.covers(b.dataset().vector), "\(mistake)")
            try await asker.dataset().synchronize(with: b.transport, options: Self.options())
            try expectEqual([asker, b])
        }
    }

    @Test func marksThatCannotBeReadBeginAfresh() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        try Self.write(0..<1, 2, to: a)
        let cut = Watching(b.responder, messagesMax: 4)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: cut, options: Self.options())
        }
        let book = try #require(try a.store.existingSystemDataset(.sweeps))
        let key = try #require(try book.keys().next())
        let good = try #require(try book.get(key))
        let cutShort = Array(good.dropLast())
        let earlier = [UInt8(1)] + Array(good.dropFirst())
        for bad in [[], [2], earlier, cutShort, good + [0], [UInt8](repeating: 255, count: 40)] {
            try book.put(bad, for: key)
            #expect(try SweepBook(a.dataset(), b.store.replicaID).mark() == nil)
        }
        let watching = Watching(b.responder)
        try await a.dataset().synchronize(with: watching, options: Self.options())
        #expect(watching.starts.first == [])
        try expectEqual([a, b])
    }

    @Test func conflictsThatWaitAreNotClaimed() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        try Self.write(10..<12, 2, to: a)
        var options = Self.options()
        options.policy = .leavePending
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: b.transport, options: options)
        }
        #expect(error?.code == .conflictPending)
        #expect(try a.dataset().count() == Self.keyCount)
        #expect(try !a.dataset().vector.covers(b.dataset().vector))
        try await a.dataset().synchronize(with: b.transport, options: Self.options())
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    /// Most of the changes are of a few keys: to look through all records for them would cost more
    /// than to pull them.
    @Test func aSweepThatBringsLittleIsGivenUp() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        try await a.dataset().synchronize(with: b.transport)
        for value in UInt8(2)..<100 {
            for number in [5, 150] { try b.dataset().put([value], for: Self.key(number)) }
        }
        var limits = SyncResponder.Limits()
        limits.sweptRecordsMax = 20
        let watching = Watching(SyncResponder(store: b.store, limits: limits))
        try await a.dataset().synchronize(
            with: watching, options: Self.options(pageRecordsMax: 1_000))
        #expect(watching.starts == [[]])
        #expect(watching.kinds.contains("pull"))
        #expect(try SweepBook(a.dataset(), b.store.replicaID).mark() == nil)
        #expect(try a.dataset().get(Self.key(150)) == [99])
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    /// A record here has seven bytes: twenty of them are more than an answer may look at.
    @Test func anAnswerLooksAtSoManyBytes() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        var limits = SyncResponder.Limits()
        limits.sweptBytesMax = 100
        let watching = Watching(SyncResponder(store: b.store, limits: limits))
        try await a.dataset().synchronize(with: watching, options: Self.options())
        #expect((12...16).contains(watching.starts.count))
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    /// A list of what waits that is full ends the sweep, and the search before the second one, and
    /// not what comes behind them.
    @Test func aFullListKeepsNothingElseBack() async throws {
        let conflictCount = SyncLimits.pendingMax + 1
        let count = conflictCount + 2_100
        for (replica, writeCount) in [(a, conflictCount), (b, count)] {
            var batch = WriteBatch()
            let dataset = try replica.dataset()
            for number in 0..<writeCount {
                batch.put(replica.name, for: "key \(10_000 + number)", in: dataset)
            }
            try replica.store.write(batch)
        }
        var options = Self.options(pageRecordsMax: 2_000)
        options.policy = .leavePending
        for _ in 0..<2 {
            let watching = Watching(b.responder)
            let error = await #expect(throws: SyncError.self) {
                try await a.dataset().synchronize(with: watching, options: options)
            }
            #expect(error?.code == .conflictPending)
            #expect(watching.kinds.contains("pull"))
            #expect(try a.dataset().count() == count)
            #expect(try !a.dataset().vector.covers(b.dataset().vector))
        }
        try await a.dataset().synchronize(
            with: b.transport, options: Self.options(pageRecordsMax: 2_000))
        try expectEqual([a, b])
    }

    // MARK: - Held writes

    /// A write of the peer's that is dated too far ahead is held as in a pull.
    @Test func whatIsDatedAheadIsHeld() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        b.clock.putForward(bySeconds: 3_600)
        try b.dataset().put([9], for: Self.key(5))
        let watching = Watching(b.responder)
        try await a.dataset().synchronize(with: watching, options: Self.options())
        #expect(watching.starts.count == Self.keyCount / 20)
        #expect(try a.dataset().quarantined().count == 1)
        #expect(try a.dataset().count() == Self.keyCount - 1)
        #expect(try a.dataset().vector == b.dataset().vector)
        a.clock.putForward(bySeconds: 7_200)
        try await a.dataset().synchronize(with: b.transport, options: Self.options())
        #expect(try a.dataset().get(Self.key(5)) == [9])
        try expectEqual([a, b])
    }

    /// What the peer holds is claimed by no sweep, comes with the pull behind it, and no merge of
    /// the sweep takes it for seen, though other versions of the page have seen it.
    @Test func whatThePeerHoldsIsNotSwallowed() async throws {
        let c = try TestReplica("c", in: a.directory)
        try Self.write(0..<Self.keyCount, 1, to: b)
        try await c.dataset().synchronize(with: b.transport)
        c.clock.putForward(bySeconds: 3_600)
        try c.dataset().put([9], for: Self.key(0))
        try await b.dataset().synchronize(with: c.transport)
        #expect(try b.dataset().quarantined().count == 1)
        try Self.write(1..<Self.keyCount, 3, to: b)
        a.clock.putForward(bySeconds: 60)
        try Self.write(0..<Self.keyCount, 2, to: a)
        let watching = Watching(b.responder)
        let result = try await a.dataset().synchronize(
            with: watching, options: Self.options(pageRecordsMax: 1_000))
        #expect(watching.starts.count == 1 && result.conflicts == Self.keyCount)
        #expect(try a.dataset().quarantined().count == 1)
        #expect(try a.dataset().get(Self.key(0)) == [2])
        for replica in [a, b, c] { replica.clock.putForward(bySeconds: 7_200) }
        for _ in 0..<2 {
            for replica in [a, c] { try await replica.dataset().synchronize(with: b.transport) }
        }
        for replica in [a, b, c] { #expect(try replica.dataset().get(Self.key(0)) == [9]) }
        try expectEqual([a, b, c])
    }

    // MARK: - Forgotten deletions

    @Test(arguments: [false, true])
    func whoIsLateDoesNotSweep(_ isAsker: Bool) async throws {
        let c = try TestReplica("c", in: a.directory)
        try Self.write(0..<40, 1, to: a)
        for replica in [b, c] { try await replica.dataset().synchronize(with: a.transport) }
        for number in 0..<10 { try a.dataset().delete(Self.key(number)) }
        try await b.dataset().synchronize(with: a.transport)
        try a.store.retire(c.store.replicaID)
        try a.store.compact()
        #expect(try !a.dataset().knowledge().forgotten.isEmpty)
        try c.dataset().put([3], for: Self.key(3))
        let (asker, responder) = isAsker ? (c, a) : (a, c)
        let watching = Watching(responder.responder)
        try await asker.dataset().synchronize(with: watching, options: Self.options())
        #expect(watching.starts.isEmpty)
        for replica in [a, c] {
            #expect(try replica.dataset().get(Self.key(3)) == [3])
            #expect(try replica.dataset().get(Self.key(4)) == nil)
        }
    }

    /// The deletions lie behind the sweep when the peer gives the asker up and forgets them.
    @Test func whatIsForgottenMeanwhileIsNotMissed() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        try await a.dataset().synchronize(with: b.transport)
        try Self.write(0..<100, 2, to: b)
        for number in 150..<160 { try b.dataset().delete(Self.key(number)) }
        let (store, asker) = (b.store, a.store.replicaID)
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "sweep", point.numberOfKind == 3,
                point.moment == .beforeRequest
            else { return }
            try store.retire(asker)
            try store.compact()
        }
        try await a.dataset().synchronize(with: transport, options: Self.options())
        #expect(transport.messageCount(of: "sweep") >= 3)
        #expect(transport.messageCount(of: "inquiry") > 0)
        #expect(try !b.dataset().knowledge().forgotten.isEmpty)
        for number in 150..<160 { #expect(try a.dataset().get(Self.key(number)) == nil) }
        #expect(try a.dataset().get(Self.key(7)) == [2])
        try expectEqual([a, b])
    }

    /// What was left out when the peer pushed to us is claimed by no sweep, and holds none up.
    @Test func aPeerThatLeftSomethingOutIsSweptAndNotClaimed() async throws {
        try Self.write(0..<Self.keyCount, 1, to: b)
        let refused = Self.key(5)
        struct Refusal: Error {}
        let strict = SyncResponder(store: a.store) { record in
            if record.key == refused { throw Refusal() }
        }
        let theirs = try b.dataset()
        do throws(SyncError) {
            try await theirs.synchronize(with: InMemoryTransport(strict))
        } catch {
            #expect(error.code == .recordRefused, "\(error)")
        }
        #expect(try a.dataset().count() == Self.keyCount - 1)
        for _ in 0..<2 {
            try await a.dataset().synchronize(with: b.transport, options: Self.options())
        }
        let seen = try a.dataset().vector
        #expect(try a.dataset().get(refused) != nil || !seen.covers(b.dataset().vector))
    }
}
