import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import TidemarkHub

/// Bounds of connections, bodies and heads, each by itself.
struct ProtectionTests {
    private final class Connection: Sendable {}

    @Test("so many connections in all, and of one address")
    func connections() {
        let limits = ConnectionLimits(connectionsMax: 4, connectionsPerAddressMax: 2)
        let all = (0..<6).map { _ in Connection() }
        let ids = all.map { ObjectIdentifier($0) }
        #expect(limits.admit(ids[0], from: "a"))
        #expect(limits.admit(ids[1], from: "a"))
        #expect(!limits.admit(ids[2], from: "a"))
        #expect(limits.admit(ids[2], from: "b"))
        #expect(limits.admit(ids[3], from: nil))
        #expect(!limits.admit(ids[4], from: "c"))
        #expect(limits.count == 4)
        #expect(limits.isFresh(ids[0]))
        limits.release(ids[0], from: "a")
        #expect(!limits.isFresh(ids[0]))
        #expect(limits.admit(ids[4], from: "a"))
        #expect(!limits.admit(ids[5], from: "a"))
        for (id, address) in zip(ids[1...4], ["a", "b", nil, "a"]) {
            limits.release(id, from: address)
        }
        #expect(limits.count == 0)
        #expect(limits.admit(ids[5], from: "a"))
    }

    @Test("a connection of HTTP/2 is quiet since its last stream ended")
    func streams() {
        let streams = StreamActivity()
        let (one, other) = (Connection(), Connection())
        let (first, second) = (ObjectIdentifier(one), ObjectIdentifier(other))
        let begin = NIODeadline.now()
        #expect(streams.quietSince(first) == nil)
        streams.began(on: first, at: begin)
        streams.began(on: first, at: begin)
        streams.ended(on: first, at: begin + .seconds(1))
        #expect(streams.quietSince(first) == nil)
        streams.ended(on: first, at: begin + .seconds(2))
        #expect(streams.quietSince(first) == begin + .seconds(2))
        #expect(streams.quietSince(second) == nil)
        streams.began(on: first, at: begin + .seconds(3))
        #expect(streams.quietSince(first) == nil)
        streams.forget(first)
        // A stream may be told of as the last thing of its connection.
        streams.ended(on: first, at: begin + .seconds(4))
        #expect(streams.quietSince(first) == nil)
        withExtendedLifetime((one, other)) {}
    }

    @Test("connections leave the store descriptors for its files")
    func descriptors() throws {
        #expect(DescriptorLimit.connections(4_096, of: 65_536) == 4_096)
        #expect(DescriptorLimit.connections(4_096, of: 1_024) == 768)
        #expect(DescriptorLimit.connections(4_096, of: 300) == 150)
        #expect(DescriptorLimit.connections(4_096, of: 1) == 1)
        #expect(DescriptorLimit.connections(4_096, of: .max) == 4_096)
        DescriptorLimit.raise()
        #expect(try #require(DescriptorLimit.current) > 0)
    }

    @Test("bodies share a room, and one alone has always enough")
    func budget() {
        let budget = BodyBudget(bytesMax: 100)
        do {
            let large = BodyShare(budget)
            #expect(large.reach(150))
            let small = BodyShare(budget)
            #expect(!small.reach(1))
            #expect(budget.bytes == 150)
            #expect(!large.isFinished)
        }
        #expect(budget.bytes == 0)
        let (first, second) = (BodyShare(budget), BodyShare(budget))
        #expect(first.reach(60) && first.reach(50))
        #expect(budget.bytes == 60)
        #expect(second.reach(40))
        #expect(!second.reach(41))
        #expect(budget.bytes == 100)
        withExtendedLifetime((first, second)) {}
    }

    /// Takes what an answer writes.
    private struct Taker: ResponseBodyWriter {
        final class Taken: Sendable {
            let bytes = Atomic<Int>(0)
        }

        let taken: Taken

        mutating func write(_ buffer: ByteBuffer) async throws {
            taken.bytes.wrappingAdd(buffer.readableBytes, ordering: .relaxed)
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test("large answers share the room until they are taken, beside the body of their request")
    func answers() async throws {
        let budget = BodyBudget(bytesMax: 100_000)
        let large = ResponseBody(byteBuffer: ByteBuffer(repeating: 7, count: 60_000))
        let small = ResponseBody(byteBuffer: ByteBuffer(repeating: 7, count: 1_000))
        do {
            let share = BodyShare(budget)
            #expect(share.reach(500))
            let answer = try #require(share.holding(large))
            #expect(answer.contentLength == 60_000)
            #expect(budget.bytes == 60_500)
            let second = BodyShare(budget)
            #expect(second.reach(500))
            #expect(second.holding(large) == nil)
            #expect(budget.bytes == 61_000)
            #expect(second.holding(small)?.contentLength == 1_000)
            #expect(budget.bytes == 61_000)
            let taken = Taker.Taken()
            try await answer.write(Taker(taken: taken))
            #expect(taken.bytes.load(ordering: .relaxed) == 60_000)
            withExtendedLifetime((share, second)) {}
        }
        #expect(budget.bytes == 0)
        // One request alone has always room.
        let alone = BodyShare(BodyBudget(bytesMax: 1_000))
        #expect(alone.reach(900))
        #expect(alone.holding(large) != nil)
    }

    private func reading(_ clock: VirtualEnvironment) -> RequestBodyReading {
        RequestBodyReading(
            budget: BodyBudget(bytesMax: 1_000), environment: clock, graceSeconds: 10,
            bytesPerSecondMin: 10)
    }

    private static func head(_ fields: HTTPFields = [:]) -> HTTPRequest {
        HTTPRequest(method: .post, scheme: "http", authority: "a", path: "/", headerFields: fields)
    }

    private static func outcome(
        _ reading: RequestBodyReading, _ body: RequestBody, _ head: HTTPRequest,
        bytesMax: Int = 100
    ) async -> Result<[UInt8], BodyFailure> {
        do throws(BodyFailure) {
            return .success(
                try await reading.bytes(
                    of: body, head, bytesMax: bytesMax, BodyShare(reading.budget)))
        } catch {
            return .failure(error)
        }
    }

    @Test("a body that is too large is refused by what it declares, or by what comes")
    func sizes() async {
        let reading = reading(VirtualEnvironment())
        let body = RequestBody(buffer: ByteBuffer(repeating: 7, count: 101))
        #expect(await Self.outcome(reading, body, Self.head()) == .failure(.tooLarge(100)))
        let declared = Self.head([.contentLength: "101"])
        #expect(await Self.outcome(reading, body, declared) == .failure(.tooLarge(100)))
        let fitting = RequestBody(buffer: ByteBuffer(repeating: 7, count: 100))
        let bytes = [UInt8](repeating: 7, count: 100)
        #expect(await Self.outcome(reading, fitting, Self.head()) == .success(bytes))
        // One that ends early is no body at all.
        let longer = Self.head([.contentLength: "100"])
        let short = RequestBody(buffer: ByteBuffer(repeating: 7, count: 99))
        #expect(await Self.outcome(reading, short, longer) == .failure(.incomplete))
    }

    @Test("a body takes room as it comes, whatever it declares")
    func roomOfBody() async throws {
        let budget = BodyBudget(bytesMax: 1 << 20)
        let reading = RequestBodyReading(
            budget: budget, environment: VirtualEnvironment(), graceSeconds: 10,
            bytesPerSecondMin: 10)
        let (body, source) = RequestBody.makeStream()
        let head = Self.head([.contentLength: "1000000"])
        let share = BodyShare(budget)
        let reader = Task { () -> Int in
            do throws(BodyFailure) {
                return try await reading.bytes(of: body, head, bytesMax: 2_000_000, share).count
            } catch {
                return -1
            }
        }
        await source.yield(ByteBuffer(repeating: 7, count: 1_000))
        try await eventually("read") { budget.bytes > 0 }
        #expect(budget.bytes == 65_536)
        await source.yield(ByteBuffer(repeating: 7, count: 99_000))
        try await eventually("read") { budget.bytes > 65_536 }
        #expect(budget.bytes == 131_072)
        for _ in 0..<9 { await source.yield(ByteBuffer(repeating: 7, count: 100_000)) }
        source.finish()
        #expect(await reader.value == 1_000_000)
        // No more than it declared.
        #expect(budget.bytes == 1_000_000)
        withExtendedLifetime(share) {}
    }

    @Test("a body is none if it is said to be empty, or if its method has none and nothing says so")
    func noBody() {
        func head(_ method: HTTPRequest.Method, _ fields: HTTPFields = [:]) -> HTTPRequest {
            HTTPRequest(
                method: method, scheme: "http", authority: "a", path: "/", headerFields: fields)
        }
        for method in [HTTPRequest.Method.get, .head, .delete, .post] {
            #expect(RequestBodyReading.hasNone(head(method, [.contentLength: "0"])))
            #expect(!RequestBodyReading.hasNone(head(method, [.contentLength: "1"])))
            #expect(!RequestBodyReading.hasNone(head(method, [.transferEncoding: "chunked"])))
            #expect(RequestBodyReading.hasNone(head(method)) == (method != .post))
        }
    }

    @Test("nothing is unpacked")
    func encoded() async {
        let reading = reading(VirtualEnvironment())
        let body = RequestBody(buffer: ByteBuffer(string: "x"))
        for encoding in ["gzip", "deflate", "br", "identity, gzip"] {
            let head = Self.head([.contentEncoding: encoding])
            #expect(await Self.outcome(reading, body, head) == .failure(.encoded))
        }
        let plain = Self.head([.contentEncoding: "identity"])
        #expect(await Self.outcome(reading, body, plain) == .success([0x78]))
    }

    @Test("a body that trickles is given up")
    func slow() async {
        let clock = VirtualEnvironment()
        let reading = reading(clock)
        let (body, source) = RequestBody.makeStream()
        let sending = Task {
            for _ in 0..<60 {
                await source.yield(ByteBuffer(string: "x"))
                clock.advance(by: .seconds(1))
            }
            source.finish()
        }
        #expect(
            await Self.outcome(reading, body, Self.head(), bytesMax: 1_000)
                == .failure(.tooSlow))
        sending.cancel()
    }

    @Test("a head has bounds of its own")
    func heads() throws {
        let clock = VirtualEnvironment()
        let settings = ProtectionSettings()
        let budget = BodyBudget(bytesMax: 1)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let directory = try TemporaryDirectory()
        let threads = HubThreads(
            stores: StoreHolder(try directory.store("hub")), readers: 1, writers: 1, callsMax: 1,
            logger: logger)
        let protection = RequestProtection(
            settings: settings,
            connections: ConnectionLimits(connectionsMax: 1, connectionsPerAddressMax: 1),
            rates: RequestRates(settings, environment: clock), budget: budget,
            bodies: reading(clock),
            disk: DiskGuard(threads: threads, environment: clock, logger: logger))
        try protection.checkHead(of: Self.head([.accept: "x"]))
        var many: HTTPFields = [:]
        for number in 0...64 {
            many.append(HTTPField(name: try #require(HTTPField.Name("x-\(number)")), value: "1"))
        }
        var long: HTTPFields = [:]
        long[.accept] = String(repeating: "x", count: 17_000)
        for fields in [many, long] {
            let error = #expect(throws: APIFailure.self) {
                try protection.checkHead(of: Self.head(fields))
            }
            #expect(error?.kind == .requestHeadTooLarge)
            #expect(error?.kind.status == 431)
        }
        let packed = #expect(throws: APIFailure.self) {
            try protection.checkHead(of: Self.head([.contentEncoding: "gzip"]))
        }
        #expect(packed?.kind.status == 415)
    }

    @Test("an address of IPv6 counts by its first half, and one of IPv4 within it as itself")
    func addresses() throws {
        func name(_ text: String) throws -> String? {
            ClientAddress.name(of: try SocketAddress(ipAddress: text, port: 1))
        }
        #expect(try name("192.0.2.17") == "192.0.2.17")
        #expect(try name("::ffff:192.0.2.17") == "192.0.2.17")
        #expect(try name("2001:db8:1:2::1") == name("2001:db8:1:2:ffff::9"))
        #expect(try name("2001:db8:1:2::1") != name("2001:db8:1:3::1"))
        #expect(ClientAddress.name(of: nil) == nil)
    }
}
