import AsyncHTTPClient
import Logging
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// A device that listens is let go when its identity is no more, and no other one is.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ClosedConnectionsTests {
    let fixture: IdentityFixture
    private var store: Store { fixture.store }

    init() throws {
        fixture = try IdentityFixture()
    }

    /// A hub's parts in whose pool all identities are.
    private func withParts(_ body: (HubParts) async throws -> Void) async throws {
        var settings = HubSettings()
        settings.pools = [PoolSettings(id: fixture.pool.text, name: "one")]
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let http = HTTPClient(eventLoopGroupProvider: .singleton)
        let server = HubServer(
            settings: settings, stores: fixture.threads.stores, extensions: HubExtensions(),
            registry: nil, environment: fixture.time, logger: logger, onListening: nil)
        let outcome: Result<Void, any Error>
        do {
            try await body(try HubParts(server, threads: fixture.threads, http: http))
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        try await http.shutdown()
        try outcome.get()
    }

    private func listening(
        _ facts: IdentityFacts, at devices: ConnectedDevices
    ) throws -> DeviceConnection {
        let connection = DeviceConnection(
            device: try #require(DeviceID("d")), identity: facts.id, pool: facts.pool,
            endsAt: .max)
        #expect(devices.open(connection))
        return connection
    }

    @Test("a hub lets go of whoever listens for an identity that is deleted by its API")
    func hub() async throws {
        let (gone, other) = (try fixture.identity("a"), try fixture.identity("b"))
        try await withParts { parts in
            let ofGone = try listening(gone, at: parts.pools.connected)
            let ofOther = try listening(other, at: parts.pools.connected)
            let body = #"{"IdentityIdsToDelete": ["\#(gone.id)"]}"#
            _ = try await parts.handler.endpoints.identity.answer(
                .deleteIdentities, body: Array(body.utf8),
                principal: .developer(keyID: "k", pools: nil))
            #expect(ofGone.take().isClosed)
            #expect(!ofOther.take().isClosed)
        }
        #expect(try fixture.facts(gone) == nil)
    }

    @Test("merging, deleting and unlinking close the connections of the identity that goes alone")
    func directory() throws {
        let devices = ConnectedDevices(connectionsMax: 10)
        fixture.identities.whenAccessEnds { devices.closeAll(of: $0) }
        let kept = try fixture.identity("a", "x")
        let gone = try fixture.identity("b")
        let (ofKept, ofGone) = (try listening(kept, at: devices), try listening(gone, at: devices))
        try fixture.identities.merge(gone.id, into: kept.id, in: store)
        #expect(ofGone.take().isClosed)
        #expect(!ofKept.take().isClosed)
        // As long as a login is left it is somebody's.
        _ = try fixture.identities.unlink(
            [IdentityFixture.login("a"), IdentityFixture.login("b")], from: kept.id, in: store)
        #expect(!ofKept.take().isClosed)
        _ = try fixture.identities.unlink(
            [IdentityFixture.login("x")], from: kept.id, in: store)
        #expect(ofKept.take().isClosed)
        let last = try fixture.identity("c")
        let ofLast = try listening(last, at: devices)
        #expect(try fixture.identities.delete(last.id, in: store))
        #expect(ofLast.take().isClosed)
    }

    @Test("who listens as a guest is let go when somebody signs in as that guest")
    func signedIn() throws {
        let devices = ConnectedDevices(connectionsMax: 10)
        fixture.identities.whenAccessEnds { devices.closeAll(of: $0) }
        let (guest, other) = (try fixture.identity(), try fixture.identity())
        let ofGuest = try listening(guest, at: devices)
        let ofOther = try listening(other, at: devices)
        let asked = AskedIdentity(id: guest.id, isProven: false)
        let login = IdentityFixture.login("a")
        let facts = try fixture.identities.identity(
            for: [login], asked: asked, in: fixture.pool, store
        ).facts
        #expect(facts.id == guest.id)
        #expect(ofGuest.take().isClosed)
        #expect(!ofOther.take().isClosed)
        // One who has signed in stays when another login comes to it.
        let again = try listening(facts, at: devices)
        let both = [login, IdentityFixture.login("b")]
        _ = try fixture.identities.identity(for: both, in: fixture.pool, store)
        #expect(!again.take().isClosed)
    }
}
