import Testing
import Tidemark

@testable import TidemarkSync

/// A part that is to be whole again, on a hub that is never quiet:
///
///     part  hello ── pull all ── push ── whole
///     hub      write ── write ── write ──▶
struct EndingPartTests {
    let hub: TestReplica
    let part: TestReplica

    init() throws { (hub, part) = try TestReplica.two() }

    /// What others write meanwhile is not claimed. Only what the part itself handed on the hub may
    /// have stored anew, and that is pulled once before.
    @Test(arguments: [false, true])
    func aPartBecomesWholeOnABusyHub(handsOn: Bool) async throws {
        try fill(hub, 0..<10, "theirs")
        try part.dataset().setSyncScope(.prefix("key 1"))
        try await part.dataset().synchronize(with: hub.transport)
        try part.dataset().setSyncScope(nil)
        if handsOn { try part.dataset().put("ours", for: "mine") }
        let theirs = try hub.dataset()
        let transport = InterposedTransport(hub.responder) { point in
            guard point.moment == .beforeRequest else { return }
            try theirs.put("busy", for: "busy \(point.number)")
        }
        let result = try await part.dataset().synchronize(with: transport)
        #expect(try part.dataset().syncScope() == nil)
        #expect(result.attempts == (handsOn ? 2 : 1))
        for _ in 0..<2 { try await part.dataset().synchronize(with: hub.transport) }
        try expectEqual([hub, part])
        #expect(try hub.dataset().text("mine") == (handsOn ? "ours" : nil))
    }
}
