import Testing
import Tidemark

@testable import TidemarkSync

/// What a peer that is not trusted can make grow at a responder, and that each of it has an end.
struct SyncQuotaTests {
    let a: TestReplica
    let hub: TestReplica
    let c: TestReplica

    init() throws { (a, hub, c) = try TestReplica.three() }

    private func responder(
        requestBytesMax: Int = SyncLimits.messageBytesMax, _ change: (inout SyncQuota) -> Void
    ) -> SyncResponder {
        var quota = SyncQuota()
        change(&quota)
        return SyncResponder(
            store: hub.store, namespace: DatasetNamespace(prefix: "x:"),
            limits: SyncResponder.Limits(requestBytesMax: requestBytesMax, quota: quota))
    }

    private func transport(_ change: (inout SyncQuota) -> Void) -> InMemoryTransport {
        InMemoryTransport(responder(change))
    }

    private func expectRefused(
        _ code: SyncError.Code, _ replica: TestReplica, _ transport: any SyncTransport,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let error = await #expect(throws: SyncError.self, sourceLocation: sourceLocation) {
            try await replica.dataset().synchronize(with: transport)
        }
        #expect(error?.code == code, sourceLocation: sourceLocation)
    }

    private func failure(_ message: SyncMessage, at responder: SyncResponder) throws -> String? {
        let answer = responder.respond(to: try message.encoded())
        guard case .failure(let failure) = try SyncMessage(MessageFrame.decoded(answer)) else {
            return nil
        }
        return failure.code
    }

    @Test func recordsBeyondTheBoundAreLeftOut() async throws {
        try fill(a, 0..<5, "text")
        try await expectRefused(.recordRefused, a, transport { $0.recordsMax = 3 })
        let count = try hub.dataset("x:notes").count()
        #expect((1...3).contains(count))
        #expect(try a.dataset().failedRecords().count == 5 - count)
        // What takes no more room goes, also beside what is left out.
        let key = try #require(try hub.dataset("x:notes").records().next()?.key)
        try a.dataset().put(Array("other".utf8), for: key)
        _ = try? await a.dataset().synchronize(with: transport { $0.recordsMax = count })
        #expect(try hub.dataset("x:notes").get(key) == Array("other".utf8))
        #expect(try hub.dataset("x:notes").count() == count)
        // And so does the rest when it may.
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: transport { $0.recordsMax = 5 })
        try expectEqual([a.dataset(), hub.dataset("x:notes")])
        // One for another in one page is no growth.
        try a.dataset().delete("key 0")
        try a.dataset().put("new", for: "key 9")
        try await a.dataset().synchronize(with: transport { $0.recordsMax = 5 })
        try expectEqual([a.dataset(), hub.dataset("x:notes")])
    }

    @Test func bytesBeyondTheBoundAreLeftOut() async throws {
        let strict = transport { $0.bytesMax = 100 }
        try a.dataset().put(String(repeating: "1", count: 80), for: "first")
        try await a.dataset().synchronize(with: strict)
        try a.dataset().put(String(repeating: "2", count: 80), for: "second")
        try await expectRefused(.recordRefused, a, strict)
        let size = try hub.dataset("x:notes").size()
        #expect(size.recordCount == 1 && size.keyBytes + size.valueBytes == 85)
        // To write less is allowed, also where there is too much already.
        try a.dataset().put("short", for: "first")
        _ = try? await a.dataset().synchronize(with: transport { $0.bytesMax = 1 })
        #expect(try hub.dataset("x:notes").text("first") == "short")
    }

    @Test func deletionsHaveABoundToo() async throws {
        let strict = transport { $0.tombstonesMax = 2 }
        try fill(a, 0..<6, "text")
        try await a.dataset().synchronize(with: strict)
        for number in 0..<6 { try a.dataset().delete("key \(number)") }
        try await expectRefused(.recordRefused, a, strict)
        let extent = try hub.dataset("x:notes").extent()
        #expect((1...2).contains(extent.tombstoneCount))
        #expect(extent.tombstoneCount + extent.size.recordCount == 6)
    }

    @Test func datasetsHaveABound() async throws {
        var options = SyncOptions()
        options.parallelDatasetsMax = 1
        for name in ["d0", "d1", "d2"] { try a.dataset(name).put("1", for: "key") }
        try hub.dataset("y:other").put("1", for: "key")
        let strict = transport { $0.datasetsMax = 2 }
        let report = await a.store.synchronizeEach(with: strict, options: options)
        let refused = report.datasets.filter { !$0.isComplete }
        #expect(refused.map(\.error?.code) == [.peerFailed])
        let kept = try hub.store.datasetNames(prefix: "x:")
        #expect(kept.count == 2)
        // One that is gone makes room for another, as long as there are names left.
        try hub.store.deleteDataset(try #require(kept.first))
        let names = refused.map(\.dataset)
        let named = transport { $0.datasetNamesMax = 2 }
        let second = await a.store.synchronizeEach(
            with: named, datasets: names, options: options)
        #expect(second.datasets.map(\.error?.code) == [.peerFailed])
        _ = try await a.store.synchronize(with: strict, datasets: names, options: options)
        #expect(try hub.store.datasetNames(prefix: "x:").count == 2)
        #expect(try hub.store.datasetNames(prefix: "y:") == ["y:other"])
    }

    @Test func peersHaveABound() async throws {
        let strict = transport { $0.peersMax = 1 }
        try put("1", a)
        try await a.dataset().synchronize(with: strict)
        try put("2", c)
        try await expectRefused(.peerFailed, c, strict)
        try await a.dataset().synchronize(with: strict)
        #expect(try hub.dataset("x:notes").peers().map(\.replica) == [a.store.replicaID])
        #expect(try hub.dataset("x:notes").retire(a.store.replicaID))
        try await c.dataset().synchronize(with: strict)
        let active = try hub.dataset("x:notes").peers().filter { !$0.isRetired }
        #expect(active.map(\.replica) == [c.store.replicaID])
    }

    @Test func writesFromTheFutureHaveABound() async throws {
        c.clock.putForward(bySeconds: 3_600)
        try fill(c, 0..<4, "future")
        try await expectRefused(.recordRefused, c, transport { $0.heldMax = 2 })
        let held = try hub.dataset("x:notes").quarantined().count
        #expect((1...2).contains(held))
        #expect(try hub.dataset("x:notes").count() == 0)
        // They take room, too, which that of the records does not show.
        try c.dataset("large").put(String(repeating: "1", count: 80), for: "first")
        let strict = transport { $0.bytesMax = 100 }
        try await c.dataset("large").synchronize(with: strict)
        try c.dataset("large").put(String(repeating: "2", count: 80), for: "second")
        let error = await #expect(throws: SyncError.self) {
            try await c.dataset("large").synchronize(with: strict)
        }
        #expect(error?.code == .recordRefused)
        #expect(try hub.dataset("x:large").quarantined().count == 1)
    }

    @Test func vectorsHaveABound() throws {
        let strict = responder { $0.writersMax = 300 }
        func vector(_ count: Int) -> VersionVector {
            VersionVector(
                (0..<count).map {
                    Dot(replica: ReplicaID(high: 5, low: UInt64($0)), counter: 1)
                })
        }
        let address = Address(from: a.store.replicaID, to: hub.store.replicaID, dataset: "notes")
        func pull(_ count: Int) -> SyncMessage {
            .pull(
                PullRequest(
                    address: address, since: .zero, recordsMax: 1, bytesMax: 1,
                    vector: vector(count)))
        }
        #expect(try failure(pull(301), at: strict) == "badMessage")
        #expect(try failure(pull(300), at: strict) == "store", "there is no such dataset")
        // Few bytes, and a vector for each record.
        let (origin, seen) = (ReplicaID(high: 7, low: 7), vector(300))
        let records = (0..<4_000).map { number in
            Record(
                key: [UInt8(number & 255), UInt8(number >> 8)], value: nil,
                version: Version(
                    dot: Dot(replica: origin, counter: UInt64(number) + 1), vector: seen,
                    time: HybridTime(rawValue: 1)),
                syncCount: 0, isDirty: false)
        }
        let page = RecordPage(
            records: records, through: .zero, isLast: true, knowledge: MessageTests.knowledge)
        let push = SyncMessage.push(
            PushRequest(address: address, since: .zero, acknowledged: .zero, page: page))
        #expect(try failure(push, at: strict) == "tooLarge")
        #expect(try hub.store.datasetNamesForSync().isEmpty)
    }

    /// A small message can be a large one when it is unpacked.
    @Test func whatIsUnpackedHasABound() throws {
        let page = RecordPage(
            records: [
                MessageTests.record([1], [UInt8](repeating: 65, count: 1 << 20), counter: 1)
            ], through: .zero, isLast: true, knowledge: MessageTests.knowledge)
        let address = Address(from: a.store.replicaID, to: hub.store.replicaID, dataset: "notes")
        let push = SyncMessage.push(
            PushRequest(address: address, since: .zero, acknowledged: .zero, page: page))
        #expect(try push.encoded().count < 10_000)
        #expect(try failure(push, at: responder(requestBytesMax: 10_000) { _ in }) == "tooLarge")
        let trusting = SyncResponder(
            store: hub.store, limits: SyncResponder.Limits(requestBytesMax: 10_000))
        #expect(try failure(push, at: trusting) != "tooLarge")
    }

    /// Whoever says that it has seen writes of the store that it never made makes it take a new
    /// id, which concerns all who exchange with it; a stranger can do so once.
    @Test func aForgedForkIsBelievedOnce() async throws {
        try hub.dataset("x:notes").put("1", for: "key")
        func forge(_ responder: SyncResponder) throws -> String? {
            let id = hub.store.replicaID
            return try failure(
                .pull(
                    PullRequest(
                        address: Address(from: a.store.replicaID, to: id, dataset: "notes"),
                        since: .zero, recordsMax: 1, bytesMax: 1,
                        vector: VersionVector([Dot(replica: id, counter: 1_000)]))),
                at: responder)
        }
        let first = hub.store.replicaID
        #expect(try forge(responder { _ in }) == "peerChanged")
        let second = hub.store.replicaID
        #expect(second != first)
        for _ in 0..<3 { #expect(try forge(responder { _ in }) == "badMessage") }
        #expect(hub.store.replicaID == second && hub.store.formerReplicaIDs == [first])
        // Everybody goes on.
        try put("2", a, "other")
        for _ in 0..<2 { try await a.dataset().synchronize(with: transport { _ in }) }
        try expectEqual([a.dataset(), hub.dataset("x:notes")])
        // Who is trusted is believed, and after a restart, when it may be true, strangers are.
        let trusting = SyncResponder(
            store: hub.store, namespace: DatasetNamespace(prefix: "x:"))
        #expect(try forge(trusting) == "peerChanged")
        try hub.reopen()
        let third = hub.store.replicaID
        #expect(third != second)
        #expect(try forge(responder { _ in }) == "peerChanged")
        #expect(hub.store.replicaID != third)
    }

    /// The hub is restored from a backup, and strangers have what it lost.
    @Test func aRestoredHubGetsBackWhatStrangersHave() async throws {
        try put("1", a, "before")
        try await a.dataset().synchronize(with: transport { _ in })
        try hub.backUp()
        for number in 0..<4 { try hub.dataset("x:notes").put("\(number)", for: "lost \(number)") }
        try await a.dataset().synchronize(with: transport { _ in })
        try hub.restore()
        for number in 0..<6 { try hub.dataset("x:notes").put("\(number)", for: "new \(number)") }
        let id = hub.store.replicaID
        for _ in 0..<2 { try await a.dataset().synchronize(with: transport { _ in }) }
        #expect(hub.store.replicaID != id)
        try expectEqual([a.dataset(), hub.dataset("x:notes")])
        #expect(try hub.dataset("x:notes").text("lost 3") == "3")
        #expect(try a.dataset().text("new 5") == "5")
    }
}
