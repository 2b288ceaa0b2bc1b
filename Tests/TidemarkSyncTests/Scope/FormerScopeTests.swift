import Testing
import Tidemark

@testable import TidemarkSync

/// An exchange of a part that is under way while the scope becomes another one.
struct FormerScopeTests {
    /// Holds what a part hands over, and nothing else.
    private struct PushGate: SyncTransport {
        let plain: any SyncTransport
        let gated: GatedTransport

        func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            guard MessageLabel.kind(of: request) == "partPush" else {
                return try await plain.send(request)
            }
            return try await gated.send(request)
        }
    }

    /// What would go then is missing where the dataset claims to have it, and comes no more.
    @Test func nothingGoesFromTheWholeUnderAFormerScope() async throws {
        let (hub, part) = try TestReplica.two()
        try hub.dataset().put("1", for: "a/1")
        let dataset = try part.dataset()
        try dataset.setSyncScope(.prefix("a/"))
        _ = try await dataset.synchronize(with: hub.transport)
        try dataset.put("1", for: "b/1")
        let gate = GatedTransport(hub.transport)
        let transport = PushGate(plain: hub.transport, gated: gate)
        let late = Task { () async throws in _ = try await dataset.synchronize(with: transport) }
        await gate.untilArrived(1)
        try dataset.setSyncScope(nil)
        _ = try await dataset.synchronize(with: hub.transport)
        #expect(try dataset.syncScope() == nil)
        gate.open()
        let outcome = await late.result
        let error = #expect(throws: SyncError.self) { try outcome.get() }
        #expect(error?.code == .contended)
        #expect(try dataset.records().collect().compactMap(\.keyText) == ["a/1", "b/1"])
        try expectEqual([part, hub])
    }
}
