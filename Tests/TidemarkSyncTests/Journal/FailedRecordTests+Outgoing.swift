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
}
