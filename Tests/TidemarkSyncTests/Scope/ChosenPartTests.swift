import Testing
import Tidemark

@testable import TidemarkSync

/// A part that is chosen while an exchange of the whole dataset is under way:
///
///     whole   hello ── pull ────────────────────── page ──✗
///     part             scope ── hello ─▶ done
struct ChosenPartTests {
    let hub: TestReplica
    let part: TestReplica

    init() throws { (hub, part) = try TestReplica.two() }

    /// After the other exchange nobody would look at what comes now, and it would stay.
    @Test(arguments: [false, true])
    func anExchangeOfTheWholeEndsThere(comparesOneByOne: Bool) async throws {
        try put("theirs", hub, "other")
        let (dataset, plain) = (try part.dataset(), hub.transport)
        let transport = InterposedTransport(hub.responder) { point in
            guard point.kind == "pull", point.moment == .beforeAnswer else { return }
            try dataset.setSyncScope(.prefix("key"))
            try await dataset.synchronize(with: plain)
        }
        var options = SyncOptions()
        options.comparesOneByOne = comparesOneByOne
        let error = await #expect(throws: SyncError.self) {
            try await dataset.synchronize(with: transport, options: options)
        }
        #expect(error?.code == .contended)
        #expect(transport.messageCount(of: "pull") == 1)
        try put("ours", hub)
        try await dataset.synchronize(with: hub.transport)
        #expect(try dataset.text("key") == "ours" && dataset.text("other") == nil)
    }
}
