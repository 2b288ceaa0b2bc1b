import AsyncHTTPClient
import Logging
import TestSupport
import Testing
import TidemarkSync

@testable import TidemarkHub

/// What pools do by the settings, and by what the embedding process adds.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct PoolBehaviorTests {
    private static let id = "us-east-1:1"

    private static func behavior(
        _ settings: PoolSettings, _ extensions: HubExtensions = HubExtensions()
    ) async throws -> PoolBehavior? {
        let client = HTTPClient(eventLoopGroupProvider: .singleton)
        try await client.shutdown()
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let behaviors = PoolParts.behaviors(
            of: [settings], extensions, http: client, clock: VirtualEnvironment(), logger: logger)
        return try behaviors[#require(PoolID(id))]
    }

    @Test("without settings a pool does nothing but what Cognito Sync does")
    func nothing() async throws {
        let settings = PoolSettings(id: Self.id, name: "notes")
        let behavior = try #require(try await Self.behavior(settings))
        let isBare =
            behavior.trigger == nil && behavior.stream == nil && behavior.gateway == nil
        #expect(isBare)
        guard case .reject = behavior.strategy else {
            Issue.record("\(behavior.strategy)")
            return
        }
    }

    @Test("each setting does what it says")
    func settings() async throws {
        let endpoint = PoolSettings.Endpoint(
            url: "https://app.example.com/hook", secret: HubSecret("secret"))
        var settings = PoolSettings(id: Self.id, name: "notes")
        settings.trigger = endpoint
        settings.stream = .endpoint(endpoint)
        settings.streamBytesMax = 5_000
        settings.push = .endpoint(endpoint)
        settings.resolver = endpoint
        settings.strategy = .resolver
        settings.usesDeviceDates = true
        settings.datasetStrategies = ["a": .lastWriterWins, "b": .autoMerge, "c": .reject]
        let behavior = try #require(try await Self.behavior(settings))
        guard case .endpoint(let trigger)? = behavior.trigger else {
            Issue.record("no endpoint")
            return
        }
        #expect(trigger.url == "https://app.example.com/hook")
        #expect(trigger.secret == Array("secret".utf8))
        #expect(behavior.stream is WebhookTarget)
        #expect(behavior.streamBytesMax == 5_000)
        #expect(behavior.gateway is WebhookGateway)
        func strategy(_ name: String) throws -> PoolBehavior.Strategy {
            behavior.strategy(for: try #require(APIDatasetName(name)))
        }
        guard case .endpoint = try strategy("other"),
            case .lastWriterWins(usesDeviceDates: true) = try strategy("a"),
            case .autoMerge = try strategy("b"), case .reject = try strategy("c")
        else {
            Issue.record("not the strategies of the settings")
            return
        }
    }

    @Test("closures and gateways of the process go before endpoints")
    func extensions() async throws {
        let endpoint = PoolSettings.Endpoint(
            url: "https://app.example.com/hook", secret: HubSecret("secret"))
        var settings = PoolSettings(id: Self.id, name: "notes")
        settings.trigger = endpoint
        settings.resolver = endpoint
        settings.push = .log
        settings.strategy = .resolver
        var extensions = HubExtensions()
        extensions.triggers[Self.id] = { _ in [] }
        extensions.resolvers[Self.id] = { _ in .reject }
        extensions.gateways[Self.id] = RecordingGateway()
        let behavior = try #require(try await Self.behavior(settings, extensions))
        guard case .closure? = behavior.trigger, case .closure = behavior.strategy else {
            Issue.record("no closures")
            return
        }
        #expect(behavior.gateway is RecordingGateway)
        settings.stream = .file(path: "/nowhere")
        let plain = try #require(try await Self.behavior(settings))
        #expect(plain.gateway is LogGateway)
        #expect(plain.stream is FileTarget)
        settings.stream = .standardOutput
        let printing = try #require(try await Self.behavior(settings))
        #expect(printing.stream is StandardOutputTarget)
    }
}
