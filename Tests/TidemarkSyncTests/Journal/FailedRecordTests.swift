import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Records that cannot be exchanged: they are left out and listed, the rest goes on, and they can
/// be tried again or given up.
struct FailedRecordTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    /// Expects that everything was exchanged but some record.
    func expectFailure(
        _ code: SyncError.Code, _ from: TestReplica, _ transport: any SyncTransport,
        _ options: SyncOptions = SyncOptions()
    ) async throws {
        let error = await #expect(throws: SyncError.self) {
            try await from.dataset().synchronize(with: transport, options: options)
        }
        #expect(error?.code == code)
    }

    func failed(_ replica: TestReplica) throws -> FailedRecord {
        let all = try replica.dataset().failedRecords()
        #expect(all.count == 1)
        return try #require(all.first)
    }

    // MARK: - Incoming

    @Test func whatIsRefusedHereIsLeftOutAndAskedForAgainByItsKey() async throws {
        for number in 0..<6 { try put("fine", b, "key \(number)") }
        try put("bad", b, "key 3")
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        for number in 0..<6 where number != 3 {
            #expect(try a.dataset().text("key \(number)") == "fine")
        }
        #expect(try a.dataset().text("key 3") == nil)
        for isReopened in [false, true] {
            if isReopened { try a.reopen() }
            let failed = try failed(a)
            #expect(failed.keyText == "key 3" && failed.direction == .incoming)
            #expect(failed.peer == b.store.replicaID && failed.code == .recordRefused)
            #expect(failed.message.contains("no such value"))
            #expect(failed.attempts == 1 && failed.state == .waiting)
            let write = try b.dataset().record(for: "key 3")?.version.dot
            #expect(failed.write == write)
        }
        // Nothing happens by itself, and nobody is told that it is here.
        let asked = gate.askedCount
        let idle = try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(idle.failedCount == 0 && !idle.isComplete && gate.askedCount == asked)
        try await c.dataset().synchronize(with: a.transport)
        try await c.dataset().synchronize(with: b.transport)
        #expect(try c.dataset().text("key 3") == "bad")
        // Tried again it fails again, until it does not.
        #expect(try a.dataset().retry(failed(a)))
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        #expect(try failed(a).attempts == 2)
        #expect(try failed(a).state == .waiting)
        gate.open()
        try a.dataset().retryFailedRecords()
        let result = try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(result.isComplete && result.pulled == 1)
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().text("key 3") == "bad")
        try expectEqual([a, b])
        #expect(try !a.dataset().holdsBackVectors())
    }

    /// The record that is refused here is also one of ours: it is left out of the push, which goes
    /// on, and the peer's newer version of it comes.
    @Test func aRefusedRecordThatIsAlsoOursHoldsUpNeitherSide() async throws {
        try put("base", a)
        try await a.dataset().synchronize(with: b.transport)
        try put("ours", a)
        try put("new", a, "other")
        try put("bad", b)
        let gate = RecordGate()
        let keepRemote = gate.options(.keepRemote)
        try await expectFailure(.recordRefused, a, b.transport, keepRemote)
        #expect(try b.dataset().text("other") == "new")
        #expect(try b.dataset().text("key") == "bad")
        #expect(try a.dataset().text("key") == "ours")
        let directions = Set(try a.dataset().failedRecords().map(\.direction))
        #expect(directions == [.incoming, .outgoing])
        // More goes both ways meanwhile.
        try put("newer", a, "other")
        try put("more", b, "another")
        try await a.dataset().synchronize(with: b.transport, options: keepRemote)
        #expect(try b.dataset().text("other") == "newer")
        #expect(try a.dataset().text("another") == "more")
        // The next version over there is fine: it comes, settles the conflict, and nothing is left.
        try put("good again", b)
        try await a.dataset().synchronize(with: b.transport, options: keepRemote)
        #expect(try a.dataset().text("key") == "good again")
        try await a.dataset().synchronize(with: b.transport, options: keepRemote)
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    /// The same where ours wins in the end, with its own dot: it is sent as soon as what it was in
    /// conflict with has gone.
    @Test func oursIsSentWhenTheRefusedOneHasGone() async throws {
        for replica in [a, b] { replica.clock.stop() }
        try put("bad", b)
        // Made before its clock goes ahead, or B would be ahead, too, having heard when it was.
        _ = try a.dataset()
        a.clock.putForward(bySeconds: 240)
        try put("ours, later", a)
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        try put("good", b)
        try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(try a.dataset().text("key") == "ours, later")
        try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(try b.dataset().text("key") == "ours, later")
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    @Test func whatIsBeyondTheLimitsIsLeftOut() async throws {
        for number in 0..<4 { try put("fine", b, "key \(number)") }
        let responder = b.responder
        // A peer whose version of one record no store can hold.
        let transport = ScriptedTransport { request throws(SyncError) in
            let answer = responder.respond(to: request)
            guard case .pullAnswer(var pulled) = try SyncMessage(MessageFrame.decoded(answer))
            else { return answer }
            pulled.page.records = pulled.page.records.map { record in
                guard record.keyText == "key 2" else { return record }
                let version = Version(
                    dot: record.version.dot, vector: record.version.vector,
                    time: HybridTime(rawValue: 1 << 63))
                return Record(
                    key: record.key, value: record.value, version: version,
                    syncCount: record.syncCount, isDirty: false)
            }
            return try SyncMessage.pullAnswer(pulled).encoded()
        }
        try await expectFailure(.recordRefused, a, transport)
        for number in 0..<4 {
            #expect(try a.dataset().text("key \(number)") == (number == 2 ? nil : "fine"))
        }
        #expect(try failed(a).keyText == "key 2")
        // The peer is mended.
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: b.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    @Test func whatThePeerHasNoMoreIsLetGo() async throws {
        try put("bad", b)
        let gate = RecordGate()
        _ = try a.dataset()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        try b.store.deleteDataset("notes")
        _ = try b.dataset()
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().text("key") == nil)
    }

    /// Nobody need try it again when the dataset was deleted with it.
    @Test func whatADeletionReachedIsLetGo() async throws {
        try put("bad", b)
        try put("bad, too", b, "dropped")
        let gate = RecordGate()
        _ = try a.dataset()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        let failed = try a.dataset().failedRecords().first { $0.keyText == "dropped" }
        let dropped = try #require(failed)
        #expect(try a.dataset().drop(dropped))
        try b.store.deleteDataset("notes")
        try put("fine", b, "other")
        let result = try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(result.isComplete)
        #expect(try a.dataset().failedRecords(includingDropped: true).isEmpty)
        #expect(try !a.dataset().holdsBackVectors())
        #expect(try a.dataset().vector == b.dataset().vector)
        try expectEqual([a, b])
    }

    /// A deletion here has not seen what was refused here, so that it is still to be had.
    @Test func whatADeletionHasNotSeenIsNotClaimed() async throws {
        try put("bad", b)
        let bad = try #require(try b.dataset().record(for: "key")?.version.dot)
        let gate = RecordGate()
        _ = try a.dataset()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        try a.store.deleteDataset("notes")
        try put("new", a, "other")
        try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(try !a.dataset().vector.contains(bad))
        #expect(try failed(a).write == bad)
        gate.open()
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(try a.dataset().text("key") == "bad")
        try expectEqual([a, b])
    }

    /// The peer that had it is never met again, but another one has it from there.
    @Test func anotherPeerIsAskedForWhatIsDue() async throws {
        try put("base", b)
        for peer in [a, c] { try await peer.dataset().synchronize(with: b.transport) }
        try put("bad", b)
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        gate.open()
        try a.dataset().retryFailedRecords()
        // C has only what the refused version descends from: it stays due.
        try await a.dataset().synchronize(with: c.transport, options: gate.options())
        #expect(try failed(a).state == .due)
        #expect(try a.dataset().text("key") == "base")
        let bad = try failed(a).write
        #expect(try !a.dataset().vector.contains(bad))
        try await c.dataset().synchronize(with: b.transport)
        // C has it now, and it comes with what is new there.
        try await a.dataset().synchronize(with: c.transport, options: gate.options())
        #expect(try a.dataset().text("key") == "bad")
        try await a.dataset().synchronize(with: c.transport, options: gate.options())
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try !a.dataset().holdsBackVectors())
        #expect(try a.dataset().vector.contains(bad))
        try expectEqual([a, c])
    }

    /// The position is past C's version as past B's, so that it comes only when it is asked for.
    @Test func whatSeveralPeersHaveIsAskedForOnce() async throws {
        try put("bad", b)
        try await c.dataset().synchronize(with: b.transport)
        let gate = RecordGate()
        for peer in [b, c] {
            try await expectFailure(.recordRefused, a, peer.transport, gate.options())
        }
        let both = try a.dataset().failedRecords()
        #expect(both.count == 2)
        // Tried again in vain, the other one's entry alone is no reason to ask C each time.
        let ofB = try #require(both.first { $0.peer == b.store.replicaID })
        #expect(try a.dataset().retry(ofB))
        let asked = gate.askedCount
        try await a.dataset().synchronize(with: c.transport, options: gate.options())
        #expect(gate.askedCount == asked)
        gate.open()
        try a.dataset().retryFailedRecords()
        let transport = CountingTransport(c.transport)
        try await a.dataset().synchronize(with: transport, options: gate.options())
        let questions = try transport.messages().compactMap { message -> [[UInt8]]? in
            if case .records(let request) = message { request.keys } else { nil }
        }
        #expect(questions == [[Array("key".utf8)]])
        #expect(try a.dataset().text("key") == "bad")
        // B's entry ended with the same version.
        #expect(try a.dataset().failedRecords().isEmpty)
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b, c])
    }

    static func large(_ count: Int) -> [UInt8] {
        var random = SeededGenerator(seed: 7)
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    // MARK: - Given up

    @Test func whatIsDroppedIsNeverTriedAgainAndNeverClaimed() async throws {
        try put("bad", b)
        try a.dataset().put(Self.large(9_000), for: Array("large".utf8))
        let gate = RecordGate()
        let small = SyncResponder(
            store: b.store, limits: SyncResponder.Limits(requestBytesMax: 3_000))
        let transport = InMemoryTransport(small)
        try await expectFailure(.recordRefused, a, transport, gate.options())
        let failed = try a.dataset().failedRecords()
        #expect(failed.count == 2)
        for one in failed { #expect(try a.dataset().drop(one)) }
        #expect(try a.dataset().failedRecords().isEmpty)
        let dropped = try a.dataset().failedRecords(includingDropped: true)
        #expect(dropped.map(\.state) == [.dropped, .dropped])
        try a.dataset().retryFailedRecords()
        let asked = gate.askedCount
        for _ in 0..<2 {
            let result = try await a.dataset().synchronize(
                with: transport, options: gate.options())
            #expect(result.isComplete && result.failedCount == 0)
        }
        #expect(gate.askedCount == asked)
        let ours = try #require(try a.dataset().record(for: "large")?.version.dot)
        let theirs = try #require(try b.dataset().record(for: "key")?.version.dot)
        #expect(try !b.dataset().vector.contains(ours))
        #expect(try !a.dataset().vector.contains(theirs))
        // Another version ends it.
        try put("good", b)
        try put("small", a, "large")
        try await a.dataset().synchronize(with: transport, options: gate.options())
        try await a.dataset().synchronize(with: transport, options: gate.options())
        #expect(try a.dataset().failedRecords(includingDropped: true).isEmpty)
        try expectEqual([a, b])
    }

    @Test func whatIsNotInTheListCannotBeTriedAgain() async throws {
        try put("bad", b)
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        let failed = try failed(a)
        try put("good", b)
        for _ in 0..<2 {
            try await a.dataset().synchronize(with: b.transport, options: gate.options())
        }
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try !a.dataset().retry(failed))
        #expect(try !a.dataset().drop(failed))
    }

    @Test func failuresAreToldByEvents() async throws {
        try put("bad", b)
        try put("fine", b, "other")
        let gate = RecordGate()
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport,
            options: SynchronizerOptions(exchange: gate.options()),
            environment: VirtualEnvironment(passesBySleeping: true))
        let events = synchronizer.events()
        let report = try await synchronizer.synchronizeEach()
        #expect(report["notes"]?.error?.code == .recordRefused)
        #expect(report["notes"]?.result?.failed == [Array("key".utf8)])
        #expect(report["notes"]?.result?.pulled == 1)
        let labels = await collect(events, completions: 1).map(\.label)
        #expect(
            labels == ["started all", "failed notes key", "local notes other", "ended notes"])
        await synchronizer.shutdown()
    }

    /// That no vector contains the write of a record which is neither there nor superseded there.
    private func expectNoClaims(_ replicas: [TestReplica], _ seed: UInt64) throws {
        for claimant in replicas {
            let dataset = try claimant.dataset()
            let vector = try dataset.vector
            for owner in replicas where owner !== claimant {
                for record in try owner.dataset().records().collect() {
                    guard vector.contains(record.version.dot) else { continue }
                    let ours = try dataset.record(for: record.keyText ?? "")
                    #expect(
                        ours?.version.vector.contains(record.version.dot) == true,
                        "seed \(seed): \(claimant.name) claims \(record) of \(owner.name)")
                }
            }
        }
    }

    /// Over random writes of three replicas, some of which nobody takes for a while: in the end
    /// all hold the same, and nothing is left in any list.
    @Test(arguments: 0..<6)
    func whatFailedArrivesInTheEnd(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let replicas = [a, b, c]
        for replica in replicas { _ = try replica.dataset() }
        let gate = RecordGate()
        func exchange(_ from: TestReplica, _ to: TestReplica) async throws {
            var options = gate.options()
            options.pageRecordsMax = Int.random(in: 1..<5, using: &random)
            do {
                try await from.dataset().synchronize(with: gate.before(to), options: options)
            } catch let error as SyncError {
                let isOfRecords = error.code == .recordRefused || error.code == .conflictPending
                #expect(isOfRecords, "seed \(seed): \(error.code): \(error)")
            }
            try expectNoClaims(replicas, seed)
        }
        for _ in 0..<60 {
            let from = replicas[Int.random(in: 0..<3, using: &random)]
            if Bool.random(using: &random) {
                let isBad = Int.random(in: 0..<4, using: &random) == 0
                let key = "key \(Int.random(in: 0..<6, using: &random))"
                try put("\(isBad ? "bad" : "fine") \(random.next() % 1_000)", from, key)
            } else {
                let others = replicas.filter { $0 !== from }
                try await exchange(from, others[Int.random(in: 0..<2, using: &random)])
            }
        }
        gate.open()
        for _ in 0..<4 {
            for (from, to) in [(a, b), (b, c), (c, a)] {
                try from.dataset().retryFailedRecords()
                try await exchange(from, to)
                try to.dataset().retryFailedRecords()
                try await exchange(to, from)
            }
        }
        try expectEqual(replicas, "seed \(seed)")
        for replica in replicas {
            #expect(
                try replica.dataset().failedRecords(includingDropped: true).isEmpty,
                "seed \(seed)")
            #expect(try !replica.dataset().holdsBackVectors(), "seed \(seed)")
        }
    }

    @Test func anEntryOfALaterFormIsNotOverlooked() async throws {
        for direction in FailedRecord.Direction.allCases {
            let list = FailedBook.list(of: try a.dataset(), direction)
            try list.home().put([2, 9, 9], for: list.key(at: list.nextTime()))
        }
        try put("1", a)
        try put("2", b, "other")
        try await a.dataset().synchronize(with: b.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        let ours = try #require(try a.dataset().record(for: "key")?.version.dot)
        let theirs = try #require(try b.dataset().record(for: "other")?.version.dot)
        #expect(try !a.dataset().vector.contains(theirs))
        #expect(try !b.dataset().vector.contains(ours))
        #expect(try b.dataset().text("key") == "1")
    }
}
