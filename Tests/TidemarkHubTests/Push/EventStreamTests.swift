import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// Server-sent events, as they are written to a connection.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct EventStreamTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Keeps what was written.
    final class Written: Sendable {
        private let state = Mutex((text: "", isFinished: false))

        var text: String { state.withLock { $0.text } }
        var isFinished: Bool { state.withLock { $0.isFinished } }

        func append(_ text: String) {
            state.withLock { $0.text += text }
        }

        func finish() {
            state.withLock { $0.isFinished = true }
        }
    }

    struct Writer: ResponseBodyWriter {
        let written: Written

        mutating func write(_ buffer: ByteBuffer) async throws {
            written.append(String(buffer: buffer))
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
            written.finish()
        }
    }

    /// A hub that pushes, with a device of Alice's and who she is to it.
    private func pushingWorld() async throws -> (PoolWorld, DeviceID, Principal) {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let device = try await world.device("t", of: world.alice)
        let principal = Principal.identity(world.alice, pool: world.pool, isAuthenticated: true)
        return (world, device, principal)
    }

    private static func refusal(
        _ world: PoolWorld, _ principal: Principal, _ device: String?
    ) async -> APIFailure.Kind? {
        do throws(APIFailure) {
            _ = try await world.parts.events.response(to: principal, device: device)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("who is not let in any more once the connection is listed is told nothing")
    func letInNoMore() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let device = try await world.device("t", of: world.alice)
        let principal = Principal.identity(world.alice, pool: world.pool, isAuthenticated: false)
        let response = try await world.parts.events.response(
            to: principal, device: device.text, isStillLetIn: { false })
        let written = Written()
        try await response.body.write(Writer(written: written))
        #expect(written.isFinished && written.text.isEmpty)
        #expect(world.parts.connected.count == 0)
        try await world.end()
    }

    @Test("a device is told all counts when it comes, then each change, until it is closed")
    func events() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        try await world.update("notes", of: world.alice, ["a": "1"])
        try await world.update("tasks", of: world.alice, ["t": "1"])
        let device = try await world.device("t", of: world.alice)
        let writer = try #require(DeviceID("writer"))
        try await world.subscribe(device, to: "notes", of: world.alice)
        let principal = Principal.identity(world.alice, pool: world.pool, isAuthenticated: true)
        let response = try await world.parts.events.response(to: principal, device: device.text)
        #expect(response.status == .ok)
        #expect(response.headers[.contentType] == "text/event-stream")
        let written = Written()
        let connection = Task { try await response.body.write(Writer(written: written)) }
        func event(_ count: Int) -> String {
            "event: sync\nid: \(count)\ndata: {\"source\":\"cognito-sync\",\"identityPoolId\":\""
                + "\(world.pool)\",\"identityId\":\"\(world.alice)\",\"datasetName\":\"notes\","
                + "\"syncCount\":\(count)}\n\n"
        }
        var expected = "retry: 2000\n\n" + event(1)
        let first = expected
        try await eventually("told") { written.text == first }
        try await world.update("notes", of: world.alice, ["a": "2"], device: writer)
        try await world.update("tasks", of: world.alice, ["t": "2"], device: writer)
        expected += event(2)
        let second = expected
        try await eventually("told again") { written.text == second }
        world.parts.connected.tick(now: world.clock.now(), isBeat: true)
        let third = second + ": \n\n"
        try await eventually("alive") { written.text == third }
        #expect(world.parts.connected.count == 1)
        world.parts.connected.tick(
            now: world.clock.now() + EventStream.connectionMilliseconds, isBeat: false)
        try await connection.value
        #expect(written.isFinished)
        #expect(written.text == third)
        #expect(world.parts.connected.count == 0)
        try await world.end()
    }

    @Test("the writer's own connection hears nothing of what it writes")
    func writer() async throws {
        let (world, device, principal) = try await pushingWorld()
        try await world.update("notes", of: world.alice, ["a": "1"])
        try await world.subscribe(device, to: "notes", of: world.alice)
        let response = try await world.parts.events.response(to: principal, device: device.text)
        let written = Written()
        let connection = Task { try await response.body.write(Writer(written: written)) }
        try await eventually("told") { written.text.contains("id: 1\n") }
        try await world.update("notes", of: world.alice, ["a": "2"], device: device)
        try await world.update("notes", of: world.alice, ["a": "3"])
        try await eventually("told of the other's") { written.text.contains("id: 3\n") }
        #expect(!written.text.contains("id: 2\n"))
        connection.cancel()
        _ = await connection.result
        #expect(world.parts.connected.count == 0)
        try await world.end()
    }

    /// Of a device that does not read: what is written to it does not end before it is cut off.
    struct StuckWriter: ResponseBodyWriter {
        struct CutOff: Error {}

        let cuts: AsyncStream<Void>

        mutating func write(_ buffer: ByteBuffer) async throws {
            for await _ in cuts {}
            throw CutOff()
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test("a device that does not read is cut off when its credentials end")
    func stuck() async throws {
        let (world, device, principal) = try await pushingWorld()
        let endsAt = world.clock.now() + 60_000
        let (cuts, cut) = AsyncStream.makeStream(of: Void.self)
        let response = try await world.parts.events.response(
            to: principal, device: device.text, endsAt: endsAt, cut: { cut.finish() })
        let connection = Task { try await response.body.write(StuckWriter(cuts: cuts)) }
        try await eventually("connected") { world.parts.connected.count == 1 }
        for seconds in [0, 5, 10] as [UInt64] {
            world.parts.connected.tick(now: endsAt + seconds * 1_000, isBeat: true)
        }
        await #expect(throws: StuckWriter.CutOff.self) { try await connection.value }
        #expect(world.parts.connected.count == 0)
        try await world.end()
    }

    @Test("credentials that end close the connection")
    func expiry() async throws {
        let (world, device, principal) = try await pushingWorld()
        let endsAt = world.clock.now() + 60_000
        let response = try await world.parts.events.response(
            to: principal, device: device.text, endsAt: endsAt)
        let written = Written()
        let connection = Task { try await response.body.write(Writer(written: written)) }
        try await eventually("connected") { world.parts.connected.count == 1 }
        world.parts.connected.tick(now: endsAt, isBeat: false)
        try await connection.value
        #expect(written.isFinished)
        try await world.end()
    }

    @Test("a device that is forgotten before its connection is listed hears nothing and is let go")
    func forgotten() async throws {
        let (world, device, principal) = try await pushingWorld()
        try await world.update("notes", of: world.alice, ["a": "1"])
        try await world.subscribe(device, to: "notes", of: world.alice)
        let response = try await world.parts.events.response(to: principal, device: device.text)
        // As a merge or a deletion of the identity does it.
        try world.store.dataset(DeviceBook.devicesName).delete(
            DeviceBook.deviceKey(world.alice, device))
        let written = Written()
        try await response.body.write(Writer(written: written))
        #expect(written.isFinished)
        #expect(written.text == "retry: 2000\n\n")
        #expect(world.parts.connected.count == 0)
        try await world.end()
    }

    @Test("who may not listen is told why")
    func refusals() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let alice = Principal.identity(world.alice, pool: world.pool, isAuthenticated: true)
        let bob = Principal.identity(world.bob, pool: world.pool, isAuthenticated: true)
        #expect(await Self.refusal(world, alice, "d") == .invalidConfiguration)
        try await world.turnOnPush()
        let device = try await world.device("t", of: world.alice)
        #expect(await Self.refusal(world, .anonymous, device.text) == .notAuthorized)
        #expect(await Self.refusal(world, .admin, device.text) == .notAuthorized)
        #expect(await Self.refusal(world, world.developer, device.text) == .notAuthorized)
        #expect(await Self.refusal(world, alice, nil) == .invalidParameter)
        #expect(await Self.refusal(world, alice, "") == .invalidParameter)
        #expect(await Self.refusal(world, alice, "unknown") == .resourceNotFound)
        #expect(await Self.refusal(world, bob, device.text) == .resourceNotFound)
        #expect(await Self.refusal(world, alice, device.text) == nil)
        // Nobody ever asked for the body.
        #expect(world.parts.connected.count == 0)
        world.parts.connected.closeAll()
        #expect(await Self.refusal(world, alice, device.text) == .serviceUnavailable)
        try await world.end()
    }
}
