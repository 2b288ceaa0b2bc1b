import AsyncHTTPClient
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import TestSupport
import Testing
import Tidemark
import TidemarkHTTP
import TidemarkHub
import TidemarkSync

/// The hub over real connections on loopback.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct HubTests {
    let directory: TemporaryDirectory
    let hub: Store
    let a: Store
    let b: Store

    init() throws {
        directory = try TemporaryDirectory()
        hub = try directory.store("hub")
        a = try directory.store("a")
        b = try directory.store("b")
    }

    /// Of each request.
    private static let timeout = TimeAmount(Patience.limit)

    @Test func twoStoresMeetThroughIt() async throws {
        let (a, b) = (a, b)
        for number in 0..<200 {
            try a.dataset("notes").put("a \(number)", for: "key \(number)")
            try b.dataset("notes").put("b \(number)", for: "key \(number + 100)")
        }
        try a.dataset("only-a").put("1", for: "key")
        try await withHub(hub) { url, _ in
            let options = SyncOptions(pageRecordsMax: 50)
            try await synchronize(a, url, options: options)
            let results = try await synchronize(b, url, options: options)
            #expect(results.map(\.conflicts).reduce(0, +) == 100)
            try await synchronize(a, url, options: options)
        }
        for store in [b, hub] {
            #expect(
                try store.dataset("notes").digest() == a.dataset("notes").digest())
        }
        #expect(try b.dataset("only-a").text("key") == "1")
        #expect(try a.dataset("notes").text("key 250") == "b 150")
    }

    @Test func aCustomMergeOverHTTP() async throws {
        let (a, b) = (a, b)
        try await withHub(hub) { url, _ in
            try a.dataset("notes").put("base", for: "key")
            try await synchronize(a, url)
            try await synchronize(b, url)
            try a.dataset("notes").put("base+a", for: "key")
            try b.dataset("notes").put("base+b", for: "key")
            try await synchronize(a, url)
            let merge = MergePolicy.custom { conflict in
                #expect(conflict.ancestor?.valueText == "base")
                return .value((conflict.remote.value ?? []) + Array("+b".utf8))
            }
            try await synchronize(b, url, options: SyncOptions(policy: merge))
            try await synchronize(a, url)
        }
        #expect(try a.dataset("notes").text("key") == "base+a+b")
        #expect(try a.dataset("notes").digest() == b.dataset("notes").digest())
    }

    @Test func aWrongTokenIsRefused() async throws {
        let a = a
        try a.dataset("notes").put("1", for: "key")
        try await withHub(hub) { url, _ in
            for token in [
                nil, "", "wrong", testToken + "x", String(testToken.dropLast()), "no good",
            ] {
                let error = await #expect(throws: SyncError.self) {
                    try await synchronize(a, url, token: token)
                }
                #expect(error?.code == .unauthorized)
            }
        }
        #expect(try hub.datasets().isEmpty)
        #expect(try a.dataset("notes").text("key") == "1")
    }

    @Test func anOversizedRequestIsSentAgainInSmallerPages() async throws {
        let a = a
        for number in 0..<40 {
            let value = (0..<5_000).map { _ in UInt8.random(in: 0...255) }
            try a.dataset("notes").put(value, for: [UInt8(number)])
        }
        _ = try await withHub(hub, maxRequestBytes: 20_000) { url, _ in
            try await synchronize(a, url)
        }
        #expect(try hub.dataset("notes").digest() == a.dataset("notes").digest())
    }

    @Test func otherPathsAndMethodsAreAnsweredProperly() async throws {
        var timeouts = HTTPClient.Configuration()
        timeouts.timeout.connect = Self.timeout
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: timeouts)
        let cases: [(HTTPMethod, String, UInt, String)] = [
            (.GET, "/health", 200, #"{"status":"ok"}"#),
            (.POST, "/health", 405, "methodNotAllowed"),
            (.GET, "/v1/sync", 405, "methodNotAllowed"),
            (.POST, "/v1/sync", 401, "unauthorized"),
            (.GET, "/v1/watch", 405, "methodNotAllowed"),
            (.POST, "/v1/watch", 401, "unauthorized"),
            (.GET, "/", 405, "MethodNotAllowedException"),
            (.POST, "/v2/sync", 404, "notFound"),
        ]
        try await withHub(hub) { url, _ in
            for (method, path, status, text) in cases {
                var request = HTTPClientRequest(url: url + path)
                request.method = method
                let response = try await client.execute(request, timeout: Self.timeout)
                let body = try await response.body.collect(upTo: 10_000)
                #expect(response.status.code == status)
                #expect(String(decoding: body.readableBytesView, as: UTF8.self).contains(text))
                #expect(response.headers.first(name: "content-type") == "application/json")
            }
            // A message that is none is answered in the protocol, once it is let in.
            var request = HTTPClientRequest(url: url + "/v1/sync")
            request.method = .POST
            request.headers.add(name: "authorization", value: "Bearer \(testToken)")
            request.headers.add(name: "content-type", value: HTTPTransport.contentType)
            request.body = .bytes(ByteBuffer(string: "hello"))
            let response = try await client.execute(request, timeout: Self.timeout)
            #expect(response.status.code == 200)
            request.headers.replaceOrAdd(name: "content-type", value: "text/plain")
            let refused = try await client.execute(request, timeout: Self.timeout)
            #expect(refused.status.code == 415)
        }
        try await client.shutdown()
    }

    @Test func exchangesUnderWayEndProperlyOnShutdown() async throws {
        let hub = hub
        let stores = try (0..<4).map { try directory.store("client \($0)") }
        for (number, store) in stores.enumerated() {
            for index in 0..<300 {
                try store.dataset("notes").put("\(index)", for: "\(number)-\(index)")
            }
        }
        let address = try await withHub(hub) { url, services in
            await withTaskGroup(of: Void.self) { group in
                for store in stores {
                    group.addTask {
                        do throws(SyncError) {
                            try await synchronize(
                                store, url,
                                options: SyncOptions(attemptsMax: 50, pageRecordsMax: 10))
                        } catch {
                            #expect([.unreachable, .peerFailed].contains(error.code), "\(error)")
                        }
                    }
                }
                do {
                    // Some pages have come, and most have not.
                    try await eventually("under way") {
                        try (hub.existingDataset("notes")?.count() ?? 0) >= 100
                    }
                } catch {
                    Issue.record(error)
                }
                await services.triggerGracefulShutdown()
            }
            return url
        }
        // The hub is gone, its store is not: it holds whole pages, and the rest follows.
        let error = await #expect(throws: SyncError.self) {
            try await synchronize(stores[0], address)
        }
        #expect(error?.code == .unreachable)
        try await withHub(hub) { url, _ in
            for store in stores + stores {
                try await synchronize(store, url)
            }
        }
        #expect(try hub.dataset("notes").count() == 1_200)
        for store in stores {
            #expect(try store.dataset("notes").digest() == hub.dataset("notes").digest())
        }
        try hub.close()
    }

    @Test func aConfigurationThatCannotWorkIsRefused() async throws {
        let logger = Logger(label: "test")
        let configurations = [
            HubConfiguration(token: ""),
            HubConfiguration(port: 65_536, token: "t"),
            HubConfiguration(port: 0, token: "t", threads: 0),
            HubConfiguration(port: 0, token: "t", maxRequestBytes: 0),
        ]
        for configuration in configurations {
            let error = await #expect(throws: StoreError.self) {
                try await Hub(store: hub, configuration: configuration, logger: logger).run()
            }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func aPortThatIsTakenIsATypedError() async throws {
        let server = try CannedServer(nil)
        defer { server.stop() }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let configuration = HubConfiguration(port: server.port, token: "t")
        let error = await #expect(throws: StoreError.self) {
            try await Hub(store: hub, configuration: configuration, logger: logger).run()
        }
        #expect(error?.code == .inputOutput)
        #expect(error?.message.contains("\(server.port)") == true)
    }
}
