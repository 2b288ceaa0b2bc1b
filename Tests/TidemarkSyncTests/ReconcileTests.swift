import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Replicas that share no checkpoint: they find out where they differ, exchange that, and share one
/// from then on.
struct ReconcileTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private static func key(_ number: Int) -> String { "\(1_000_000 + number)" }

    private func fill(
        _ replica: TestReplica, _ numbers: some Sequence<Int>, _ text: String
    ) throws {
        let dataset = try replica.dataset()
        var batch = WriteBatch()
        for number in numbers {
            let value = Array("\(text) \(number)".utf8)
            batch.put(value, for: Array(Self.key(number).utf8), in: dataset)
        }
        try replica.store.write(batch)
    }

    /// Both have the same records.
    private func prepare(_ count: Int = 3_000) async throws {
        try fill(a, 0..<count, "first")
        try await b.dataset().synchronize(with: a.transport)
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
    }

    /// Neither side remembers how far the two had come.
    private func forgetCheckpoints(_ one: TestReplica, _ other: TestReplica) throws {
        try one.dataset().remember(PeerCheckpoint(), of: other.store.replicaID)
        try other.dataset().remember(PeerCheckpoint(), of: one.store.replicaID)
    }

    /// Exchanges and tells how many messages of a kind it took.
    private func synchronize(
        _ asker: TestReplica, _ responder: TestReplica, options: SyncOptions = SyncOptions()
    ) async throws -> (result: SyncResult, transport: InterposedTransport) {
        let transport = InterposedTransport(responder.responder) { _ in }
        let result = try await asker.dataset().synchronize(with: transport, options: options)
        return (result, transport)
    }

    /// An exchange after all that finds nothing to do, and asks for no ranges.
    private func expectSettled(_ asker: TestReplica, _ responder: TestReplica) async throws {
        let (result, transport) = try await synchronize(asker, responder)
        #expect(transport.messageCount(of: "reconcile") == 0 && transport.messageCount <= 3)
        #expect(result.pulled == 0 && result.pushed == 0)
        try expectEqual([asker, responder])
    }

    // MARK: - Lost checkpoints

    @Test func aLostCheckpointCostsTheDifferences() async throws {
        try await prepare()
        try fill(a, [5, 700, 2_100], "ours")
        try fill(b, [6, 700, 2_999, 5_000], "theirs")
        try a.dataset().delete(Self.key(9))
        try forgetCheckpoints(a, b)
        let (result, transport) = try await synchronize(a, b)
        #expect(transport.messageCount(of: "reconcile") > 1)
        #expect(transport.messageCount(of: "fetch") == 1)
        #expect(result.pulled == 4 && result.pushed == 4 && result.conflicts == 1)
        #expect(result.isComplete && result.attempts == 1)
        #expect(result.bytesSent + result.bytesReceived < 20_000)
        try expectEqual([a, b])
        try await expectSettled(a, b)
        try await expectSettled(b, a)
    }

    @Test func equalSidesProveItWithOneSum() async throws {
        try await prepare()
        try forgetCheckpoints(a, b)
        let (result, transport) = try await synchronize(a, b)
        #expect(transport.messageCount(of: "reconcile") == 1)
        #expect(transport.messageCount(of: "fetch") == 0)
        #expect(result.pulled == 0 && result.pushed == 0)
        #expect(result.bytesSent + result.bytesReceived < 4_000)
        try await expectSettled(a, b)
        try await expectSettled(b, a)
    }

    @Test(arguments: [false, true])
    func oneSideThatForgotIsEnough(_ isAsker: Bool) async throws {
        try await prepare()
        try fill(b, [1_500], "theirs")
        let (one, other) = isAsker ? (a, b) : (b, a)
        try one.dataset().remember(PeerCheckpoint(), of: other.store.replicaID)
        let (result, transport) = try await synchronize(a, b)
        #expect(transport.messageCount(of: "reconcile") > 0)
        #expect(result.pulled == 1 && result.pushed == 0)
        try await expectSettled(a, b)
    }

    @Test func whoSharesACheckpointNeverSearches() async throws {
        try await prepare()
        try fill(a, 0..<1_200, "ours")
        try fill(b, 1_100..<2_500, "theirs")
        let (result, transport) = try await synchronize(a, b)
        #expect(transport.messageCount(of: "reconcile") == 0)
        #expect(result.pulled > 0 && result.pushed > 0)
        try expectEqual([a, b])
    }

    /// Two datasets that have nothing in common are not compared: all of it is missing.
    @Test func whatIsKnownToBeMissingIsNotSearchedFor() async throws {
        try fill(a, 0..<2_000, "ours")
        try fill(b, 3_000..<5_000, "theirs")
        let (result, transport) = try await synchronize(a, b)
        #expect(transport.messageCount(of: "reconcile") == 0)
        #expect(result.pulled == 2_000 && result.pushed == 2_000)
        try expectEqual([a, b])
    }

    /// Both were filled by a third one and meet for the first time.
    @Test func twoThatNeverMetCompareWhatAThirdOneGaveThem() async throws {
        try fill(c, 0..<2_500, "third")
        try await a.dataset().synchronize(with: c.transport)
        try await b.dataset().synchronize(with: c.transport)
        try fill(a, [3], "ours")
        try fill(b, [4], "theirs")
        let (result, transport) = try await synchronize(a, b)
        #expect(transport.messageCount(of: "reconcile") > 0)
        #expect(result.pulled == 1 && result.pushed == 1)
        #expect(result.bytesSent + result.bytesReceived < 10_000)
        try await expectSettled(a, b)
    }

    // MARK: - Restored and repaired stores

    /// The backup is older than the acquaintance of the two.
    @Test(arguments: [false, true])
    func aRestoredBackupFindsWhatItLacks(_ isAsker: Bool) async throws {
        try fill(c, 0..<3_000, "third")
        try await a.dataset().synchronize(with: c.transport)
        try await b.dataset().synchronize(with: c.transport)
        try b.backUp()
        try fill(a, 100..<140, "ours")
        try await b.dataset().synchronize(with: a.transport)
        try expectEqual([a, b])
        try b.restore()
        let (asker, responder) = isAsker ? (b, a) : (a, b)
        let (result, transport) = try await synchronize(asker, responder)
        #expect(transport.messageCount(of: "reconcile") > 0)
        #expect(isAsker ? result.pulled == 40 : result.pushed == 40)
        #expect(result.bytesSent + result.bytesReceived < 30_000)
        try expectEqual([a, b])
        try await expectSettled(asker, responder)
    }

    @Test func aRestoredBackupThatSharesACheckpointGoesOnFromThere() async throws {
        try await prepare()
        try b.backUp()
        try fill(a, 100..<140, "ours")
        try await b.dataset().synchronize(with: a.transport)
        try b.restore()
        let (result, transport) = try await synchronize(b, a)
        #expect(transport.messageCount(of: "reconcile") == 0)
        #expect(result.pulled == 40)
        try expectEqual([a, b])
    }

    /// A repaired store does not claim to have seen anything, because it cannot tell what it lost.
    /// Without a search it would be sent everything, and send everything.
    private func repair(
        _ replica: TestReplica, from other: TestReplica, without lost: Set<String>
    ) throws {
        var batch = ReplicationBatch()
        for record in try other.dataset().records(includingDeleted: true).collect() {
            guard !lost.contains(String(decoding: record.key, as: UTF8.self)) else { continue }
            batch.writes.append(
                ReplicatedWrite(
                    key: record.key, content: .adopt(value: record.value, version: record.version),
                    expected: nil))
        }
        #expect(try replica.dataset().replicate(batch).isEmpty)
        #expect(try replica.dataset().vector.isEmpty)
    }

    @Test(arguments: [false, true])
    func aRepairedStoreGetsBackWhatItLost(_ isAsker: Bool) async throws {
        try fill(a, 0..<3_000, "first")
        let lost = Set([0, 17, 1_500, 1_501, 2_999].map(Self.key))
        try repair(b, from: a, without: lost)
        try fill(b, [17], "written since")
        let (asker, responder) = isAsker ? (b, a) : (a, b)
        let (result, transport) = try await synchronize(asker, responder)
        #expect(transport.messageCount(of: "reconcile") > 0)
        #expect(result.conflicts == 1)
        #expect(result.bytesSent + result.bytesReceived < 20_000)
        let (again, _) = try await synchronize(b, a)
        #expect(again.isComplete)
        try expectEqual([a, b])
        #expect(try b.dataset().count() == 3_000)
        #expect(try b.dataset().vector.covers(a.dataset().vector))
        try await expectSettled(asker, responder)
    }

    // MARK: - What may happen meanwhile

    /// Both sides write at each point of the exchange. None of it is lost or passed over, as the
    /// positions that are noted are those of the beginning.
    @Test(arguments: 0..<6)
    func writesDuringTheExchangeAreNotPassedOver(_ round: Int) async throws {
        let seed = baseSeed &+ UInt64(round)
        print("writesDuringTheExchangeAreNotPassedOver: seed \(seed)")
        let random = Mutex(SeededGenerator(seed: seed))
        try await prepare(1_500)
        try fill(a, (0..<40).map { $0 * 31 }, "ours")
        try fill(b, (0..<40).map { $0 * 29 }, "theirs")
        try forgetCheckpoints(a, b)
        let (ours, theirs) = (try a.dataset(), try b.dataset())
        let transport = InterposedTransport(b.responder) { point in
            let (key, other, isDeletion) = random.withLock { random in
                (
                    Self.key(Int.random(in: 0..<1_600, using: &random)),
                    Self.key(Int.random(in: 0..<1_600, using: &random)),
                    Int.random(in: 0..<4, using: &random) == 0
                )
            }
            try ours.put("ours at \(point.number)", for: key)
            if isDeletion {
                try theirs.delete(other)
            } else {
                try theirs.put("theirs at \(point.number)", for: other)
            }
        }
        try await ours.synchronize(with: transport, options: SyncOptions(pageRecordsMax: 16))
        #expect(transport.messageCount(of: "reconcile") > 1)
        let (_, later) = try await synchronize(a, b)
        #expect(later.messageCount(of: "reconcile") == 0)
        try expectEqual([a, b], "seed \(seed)")
        try await expectSettled(a, b)
    }

    @Test(arguments: 1..<9, [FaultyTransport.Fault.losesRequest, .losesAnswer])
    func cutOffItBeginsAgainOrGoesOn(
        _ goodMessages: Int, _ fault: FaultyTransport.Fault
    ) async throws {
        try await prepare(1_500)
        try fill(a, [5, 700], "ours")
        try fill(b, [6, 700, 1_400], "theirs")
        try forgetCheckpoints(a, b)
        let broken = FaultyTransport(b.responder, fault, after: goodMessages)
        do {
            try await a.dataset().synchronize(with: broken)
        } catch let error as SyncError {
            #expect(error.code == .unreachable)
        }
        let (result, _) = try await synchronize(a, b)
        #expect(result.isComplete)
        try expectEqual([a, b])
        try await expectSettled(a, b)
    }

    /// What was agreed of the peer's dataset is void when that is deleted.
    @Test func aDatasetDeletedMeanwhileIsNotTakenForEqual() async throws {
        try await prepare(1_500)
        try fill(a, [5, 700], "ours")
        try forgetCheckpoints(a, b)
        let theirs = b.store
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "reconcile", point.numberOfKind == 2 else { return }
            guard point.moment == .beforeRequest else { return }
            try theirs.deleteDataset("notes")
        }
        let result = try await a.dataset().synchronize(
            with: transport, options: SyncOptions(onDatasetDeleted: .keepAndRecreate))
        #expect(result.attempts == 2)
        #expect(try a.dataset().count() == 1_500)
        try expectEqual([a, b])
    }

    /// What was agreed holds but for what waits: the position moves on, and no vector does.
    @Test func nothingIsPushedOrClaimedBeforeConflictsAreSettled() async throws {
        try await prepare(1_500)
        try fill(a, [700, 701], "ours")
        try fill(b, [700], "theirs")
        try forgetCheckpoints(a, b)
        let before = try (Contents(a.dataset()), Contents(b.dataset()))
        let seen = try (a.dataset().vector, b.dataset().vector)
        let theirs = try #require(try b.dataset().record(for: Self.key(700)))
        // However often it is tried, and also after the store was closed.
        for isReopened in [false, true] {
            if isReopened { try a.reopen() }
            let error = await #expect(throws: SyncError.self) {
                try await synchronize(a, b, options: SyncOptions(policy: .custom { _ in .stop }))
            }
            #expect(error?.code == .conflictPending)
            #expect(try Contents(a.dataset()) == before.0)
            #expect(try Contents(b.dataset()) == before.1)
            #expect(try a.dataset().vector == seen.0)
            #expect(try b.dataset().vector == seen.1)
            let waiting = try a.dataset().pendingConflicts()
            #expect(waiting.map(\.conflict.key) == [theirs.key])
            #expect(waiting.map(\.conflict.remote.version) == [theirs.version])
            #expect(waiting.map(\.conflict.remote.value) == [theirs.value])
            #expect(try a.dataset().holdsBackVectors())
        }
        // Nothing is to be searched for again: what waits is settled from where it waits.
        let (result, transport) = try await synchronize(a, b)
        #expect(transport.messageCount(of: "reconcile") == 0)
        #expect(result.conflicts == 1 && result.isComplete)
        #expect(try a.dataset().pendingConflicts().isEmpty)
        #expect(try !a.dataset().holdsBackVectors())
        #expect(try a.dataset().vector.covers(seen.1))
        try expectEqual([a, b])
        try await expectSettled(a, b)
    }

    /// The peer has deleted a record, and has forgotten that it had, since it knew of nobody.
    @Test(arguments: [false, true])
    func aForgottenDeletionIsNotUndone(_ isAsker: Bool) async throws {
        try fill(b, 0..<1_500, "first")
        try repair(a, from: b, without: [])
        var batch = ReplicationBatch()
        batch.seen = try b.dataset().vector
        _ = try a.dataset().replicate(batch)
        try b.dataset().delete(Self.key(7))
        try b.store.compact()
        #expect(try b.dataset().record(for: Self.key(7), includingDeleted: true) == nil)
        let (asker, responder) = isAsker ? (b, a) : (a, b)
        let (result, transport) = try await synchronize(asker, responder)
        #expect(transport.messageCount(of: "reconcile") > 0 && result.isComplete)
        #expect(try b.dataset().get(Self.key(7)) == nil)
        #expect(try b.dataset().count() == 1_499)
    }

    // MARK: - Other peers

    @Test func aPeerThatDoesNotKnowTheQuestionIsAskedAsEver() async throws {
        try await prepare(1_500)
        try fill(a, [5], "ours")
        try fill(b, [6], "theirs")
        try forgetCheckpoints(a, b)
        let responder = b.responder
        let old = ScriptedTransport { request throws(SyncError) in
            guard MessageLabel.kind(of: request) == "reconcile" else {
                return responder.respond(to: request)
            }
            return try SyncMessage.failure(
                Failure(code: "badMessage", message: "a message is of the unknown kind 4")
            ).encoded()
        }
        let result = try await a.dataset().synchronize(with: old)
        #expect(result.pulled == 1 && result.pushed == 1)
        try await expectSettled(a, b)
    }

    @Test func whatWaitsIsNotClaimed() async throws {
        let (a, b) = (a, b)
        try await prepare()
        try fill(a, [5], "ours")
        try fill(b, [5, 6], "theirs")
        try forgetCheckpoints(a, b)
        let transport = InterposedTransport(b.responder) { _ in }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(
                with: transport, options: SyncOptions(policy: .leavePending))
        }
        #expect(error?.code == .conflictPending)
        #expect(transport.messageCount(of: "reconcile") > 1)
        #expect(try a.dataset().text(Self.key(6)) == "theirs 6")
        #expect(try a.dataset().pendingConflicts().map(\.conflict.key) == [Array(Self.key(5).utf8)])
        #expect(try !a.dataset().vector.covers(b.dataset().vector))
        #expect(try a.dataset().settle(Array(Self.key(5).utf8), with: .keepRemote))
        _ = try await synchronize(a, b)
        #expect(try a.dataset().pendingConflicts().isEmpty)
        #expect(try a.dataset().text(Self.key(5)) == "theirs 5")
        try await expectSettled(a, b)
    }

    @Test func whatIsRefusedIsLeftOutOnBothSides() async throws {
        let (a, b) = (a, b)
        try await prepare()
        try fill(a, [7, 8, 9], "ours")
        try fill(b, [20, 21], "theirs")
        try forgetCheckpoints(a, b)
        let (ours, theirs) = (Array(Self.key(8).utf8), Array(Self.key(20).utf8))
        struct Unwanted: Error {}
        let choosy = SyncResponder(
            store: b.store, validate: { record in if record.key == ours { throw Unwanted() } })
        var options = SyncOptions()
        options.validate = { record in if record.key == theirs { throw Unwanted() } }
        let chosen = options
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: InMemoryTransport(choosy), options: chosen)
        }
        #expect(error?.code == .recordRefused)
        #expect(try b.dataset().text(Self.key(7)) == "ours 7")
        #expect(try b.dataset().text(Self.key(8)) == "first 8")
        #expect(try b.dataset().text(Self.key(9)) == "ours 9")
        #expect(try a.dataset().text(Self.key(20)) == "first 20")
        #expect(try a.dataset().text(Self.key(21)) == "theirs 21")
        #expect(try Set(a.dataset().failedRecords().map(\.key)) == [ours, theirs])
        #expect(try !a.dataset().vector.covers(b.dataset().vector))
        #expect(try !b.dataset().vector.covers(a.dataset().vector))
    }

    @Test func recordsThatNobodyAskedForAreRefused() async throws {
        try await prepare(1_500)
        try fill(b, [6], "theirs")
        try forgetCheckpoints(a, b)
        let responder = b.responder
        let forged = ScriptedTransport { request throws(SyncError) in
            let frame = try MessageFrame.decoded(responder.respond(to: request))
            guard case .fetchAnswer(var answer) = try SyncMessage(frame) else {
                return responder.respond(to: request)
            }
            answer.page.records = answer.page.records.map { record in
                Record(
                    key: [1, 2, 3], value: record.value, version: record.version,
                    syncCount: record.syncCount, isDirty: false)
            }
            return try SyncMessage.fetchAnswer(answer).encoded()
        }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: forged)
        }
        #expect(error?.code == .badMessage)
        #expect(try a.dataset().get([1, 2, 3]) == nil)
        let (again, _) = try await synchronize(a, b)
        #expect(again.isComplete)
        try expectEqual([a, b])
    }

    // MARK: - Cost

    /// 1,000 differences among 100,000 records, half of them on either side.
    @Test(arguments: [10, 1_000])
    func bytesOnTheWireGoWithTheDifferences(_ count: Int) async throws {
        let recordCount = 100_000
        try await prepare(recordCount)
        let step = 2 * recordCount / count
        try fill(a, stride(from: 0, to: recordCount, by: step), "ours")
        try fill(b, stride(from: step / 2, to: recordCount, by: step), "theirs")
        try forgetCheckpoints(a, b)
        let (result, _) = try await synchronize(a, b)
        #expect(result.pulled == count / 2 && result.pushed == count / 2)
        let bytes = result.bytesSent + result.bytesReceived
        print("\(count) differences in \(recordCount) records: \(bytes) bytes")
        #expect(bytes < (count == 10 ? 32 << 10 : 768 << 10))
        try expectEqual([a, b])
    }
}
