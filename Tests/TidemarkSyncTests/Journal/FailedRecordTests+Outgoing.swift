import Testing
import Tidemark

@testable import TidemarkSync

/// What fails on its way to a peer.
extension FailedRecordTests {
    @Test func whatIsTooLargeForThePeerIsLeftOut() async throws {
        for number in 0..<9 { try put("fine", a, "key \(number)") }
        try a.dataset().put(Self.large(9_000), for: Array("key 4".utf8))
        let small = SyncResponder(
            store: b.store, limits: SyncResponder.Limits(requestBytesMax: 3_000))
        try await expectFailure(.tooLarge, a, InMemoryTransport(small))
        for number in 0..<9 {
            #expect(try b.dataset().text("key \(number)") == (number == 4 ? nil : "fine"))
        }
        let left = try failed(a)
        #expect(left.keyText == "key 4" && left.direction == .outgoing && left.code == .tooLarge)
        // B must not claim to have it, or C would never get it by way of B.
        #expect(try !b.dataset().vector.contains(left.write))
        // More is pushed meanwhile, and a full exchange does not try it again, either.
        try put("new", a, "other")
        let transport = CountingTransport(InMemoryTransport(small))
        let result = try await a.dataset().synchronize(with: transport)
        #expect(result.failedCount == 0 && !result.isComplete && result.pushed == 1)
        var full = SyncOptions()
        full.isFull = true
        let again = try await a.dataset().synchronize(with: transport, options: full)
        #expect(again.failedCount == 0)
        // The peer takes more now.
        #expect(try a.dataset().retry(left))
        let whole = try await a.dataset().synchronize(with: b.transport)
        #expect(whole.isComplete)
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
        let dirty = try a.dataset().records().collect().filter(\.isDirty)
        #expect(dirty.isEmpty)
    }

    /// Pages that are too large only together are sent again in smaller ones, and nothing fails.
    @Test func pagesThatAreTooLargeAreMadeSmaller() async throws {
        for number in 0..<40 {
            try a.dataset().put(Self.large(500), for: Array("key \(number)".utf8))
        }
        let small = SyncResponder(
            store: b.store, limits: SyncResponder.Limits(requestBytesMax: 3_000))
        let result = try await a.dataset().synchronize(with: InMemoryTransport(small))
        #expect(result.isComplete && result.failedCount == 0 && result.pushed == 40)
        try expectEqual([a, b])
    }

    @Test func aSmallerVersionIsPushedAndEndsTheFailure() async throws {
        try a.dataset().put(Self.large(9_000), for: Array("key".utf8))
        let small = SyncResponder(
            store: b.store, limits: SyncResponder.Limits(requestBytesMax: 3_000))
        try await expectFailure(.tooLarge, a, InMemoryTransport(small))
        try put("small", a)
        let result = try await a.dataset().synchronize(with: InMemoryTransport(small))
        #expect(result.isComplete)
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    @Test func whatThePeerRefusesIsFoundAndLeftOut() async throws {
        for number in 0..<20 { try put("fine", a, "key \(number)") }
        for number in [3, 11] { try put("bad", a, "key \(number)") }
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, gate.before(b))
        #expect(try b.dataset().count() == 18)
        let left = try a.dataset().failedRecords()
        #expect(Set(left.map(\.keyText)) == ["key 3", "key 11"])
        #expect(left.allSatisfy { $0.message.contains("no such value") })
        gate.open()
        try a.dataset().retryFailedRecords()
        let result = try await a.dataset().synchronize(with: gate.before(b))
        #expect(result.isComplete && result.pushed == 2)
        try expectEqual([a, b])
    }

    // MARK: - Peers that are given up

    /// What was refused of a peer that is gone for good would be asked for for ever, and nobody's
    /// vector joined for as long.
    @Test func whatWasRefusedOfAPeerThatIsGivenUpIsOver() async throws {
        try put("fine", c, "other")
        try put("bad", b)
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        try await a.dataset().synchronize(with: c.transport)
        #expect(try failed(a).peer == b.store.replicaID)
        #expect(try !a.dataset().vector.covers(c.dataset().vector))
        #expect(try a.dataset().retire(b.store.replicaID))
        try await a.dataset().synchronize(with: c.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().vector.covers(c.dataset().vector))
        // It comes again all the same, and what it has is new.
        try await expectFailure(.recordRefused, a, b.transport, gate.options())
        gate.open()
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: b.transport, options: gate.options())
        #expect(try a.dataset().text("key") == "bad")
        try expectEqual([a, b])
    }

    @Test func whatAPeerRefusedThatIsGivenUpIsOver() async throws {
        try put("bad", a)
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, gate.before(b))
        #expect(try failed(a).direction == .outgoing)
        #expect(try a.dataset().retire(b.store.replicaID))
        try await a.dataset().synchronize(with: c.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        gate.open()
        try await a.dataset().synchronize(with: gate.before(b))
        try expectEqual([a, b, c])
    }

    // MARK: - Who asks nobody, and who keeps a part

    /// A hub would go on holding back its vector because of a record that it has.
    @Test func whatWasRefusedOfABundleIsOverOnceItIsPushed() async throws {
        try put("bad", b)
        let path = b.directory.path + "/bundle"
        try b.store.exportBundle(of: "notes", to: path)
        let gate = RecordGate()
        await #expect(throws: SyncError.self) {
            try await a.store.importBundle(from: path, options: gate.options())
        }
        #expect(try failed(a).code == .recordRefused)
        for _ in 0..<2 { try await b.dataset().synchronize(with: a.transport) }
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().vector == b.dataset().vector)
        try expectEqual([a, b])
    }

    /// What the peer refused while all was kept lies behind the position of a part, which would
    /// never look at it again.
    @Test func whatThePeerRefusedIsHandedOnByAPart() async throws {
        try put("bad", a)
        try put("fine", a, "other")
        let gate = RecordGate()
        try await expectFailure(.recordRefused, a, gate.before(b))
        try a.dataset().setSyncScope(.nothing, leaving: .drop)
        try await a.dataset().synchronize(with: gate.before(b))
        #expect(try failed(a).keyText == "key")
        try a.dataset().retryFailedRecords()
        try await expectFailure(.recordRefused, a, gate.before(b))
        #expect(try a.dataset().text("key") == "bad")
        gate.open()
        try await a.dataset().synchronize(with: gate.before(b))
        #expect(try b.dataset().text("key") == "bad")
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().text("key") == nil)
    }
}
