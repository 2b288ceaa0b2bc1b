import AsyncHTTPClient
import Logging
import TidemarkSync

/// What the hub's settings, and the process that embeds it, have a pool do. What the pool's own
/// configuration turns on of it is in its ``PoolRecord``.
struct PoolBehavior: Sendable {
    enum Trigger: Sendable {
        case endpoint(Webhook)
        case closure(SyncTriggerHandler)
    }

    enum Strategy: Sendable {
        case reject
        case lastWriterWins(usesDeviceDates: Bool)
        case autoMerge(AutoMerge)
        case endpoint(Webhook)
        case closure(ConflictHandler)
    }

    var trigger: Trigger?
    var strategy = Strategy.reject
    /// By the name of a dataset, in place of `strategy`.
    var datasetStrategies: [String: Strategy] = [:]
    var stream: (any StreamTarget)?
    /// Bytes that wait for the stream. Beyond three quarters it is turned off.
    var streamBytesMax = 1 << 30
    /// Where notices go besides the devices that are connected.
    var gateway: (any PushGateway)?

    init() {}

    func strategy(for dataset: APIDatasetName) -> Strategy {
        datasetStrategies[dataset.text] ?? strategy
    }
}

extension PoolBehavior {
    /// - Parameters:
    ///   - settings: checked.
    ///   - http: must not follow redirects.
    init(
        _ settings: PoolSettings, _ extensions: HubExtensions, http: HTTPClient,
        clock: any SyncEnvironment, logger: Logger
    ) {
        self.init()
        func webhook(_ endpoint: PoolSettings.Endpoint) -> Webhook {
            Webhook(
                url: endpoint.url, secret: endpoint.secret.bytes, http: http, clock: clock,
                logger: logger)
        }
        if let closure = extensions.triggers[settings.id] {
            trigger = .closure(closure)
        } else {
            trigger = settings.trigger.map { .endpoint(webhook($0)) }
        }
        let resolver: Strategy? =
            if let closure = extensions.resolvers[settings.id] {
                .closure(closure)
            } else {
                settings.resolver.map { .endpoint(webhook($0)) }
            }
        let usesDeviceDates = settings.usesDeviceDates
        func strategy(_ setting: PoolSettings.Strategy) -> Strategy {
            switch setting {
            case .reject: .reject
            case .lastWriterWins: .lastWriterWins(usesDeviceDates: usesDeviceDates)
            case .autoMerge: .autoMerge(AutoMerge())
            // The settings are refused without one; nothing is lost by this if they were not.
            case .resolver: resolver ?? .reject
            }
        }
        self.strategy = strategy(settings.strategy)
        datasetStrategies = settings.datasetStrategies.mapValues { strategy($0) }
        stream = settings.stream.map { setting -> any StreamTarget in
            switch setting {
            case .endpoint(let endpoint): WebhookTarget(webhook: webhook(endpoint))
            case .file(let path): FileTarget(path: path)
            case .standardOutput: StandardOutputTarget()
            }
        }
        streamBytesMax = settings.streamBytesMax
        if let gateway = extensions.gateways[settings.id] {
            self.gateway = gateway
        } else {
            switch settings.push {
            case .none: gateway = nil
            case .log: gateway = LogGateway(logger: logger)
            case .endpoint(let endpoint): gateway = WebhookGateway(webhook: webhook(endpoint))
            }
        }
    }
}
