import AsyncHTTPClient
import FoundationEssentials
import Logging
import Metrics
import Tidemark
import TidemarkSync

/// The parts of a hub, each made with those that it needs.
struct HubParts: Sendable {
    let handler: RequestHandler
    let pools: PoolParts
    /// What the API keeps in memory of datasets.
    let books: SyncBooks

    /// - Throws: for secrets that cannot be used, and if the store cannot be read.
    init(_ server: HubServer, threads: HubThreads, http: HTTPClient) throws {
        let (settings, clock, logger) = (server.settings, server.environment, server.logger)
        let secrets = try Self.secrets(settings, logger)
        let identities = IdentityDirectory(clock: clock)
        let poolIDs = Set(settings.pools.compactMap { PoolID($0.id) })
        pools = try PoolParts(
            behaviors: PoolParts.behaviors(
                of: settings.pools, server.extensions, http: http, clock: clock, logger: logger),
            region: settings.region, limits: settings.limits, threads: threads,
            directory: identities, clock: clock, logger: logger)
        let connected = pools.connected
        identities.whenAccessEnds { connected.closeAll(of: $0) }
        identities.passChanges(to: pools.sink)
        books = SyncBooks(isInUse: { id, store in
            guard let facts = try identities.identity(id, in: store) else { return false }
            return facts.isEnabled && facts.merging == nil
        })
        let issuer = CredentialIssuer(
            secrets: secrets, clock: clock, lifetimeSeconds: Int64(settings.credentialSeconds))
        let tokens = TokenVerifier(
            issuers: settings.issuers,
            source: SystemKeySource(http: http, threads: threads, clock: clock), clock: clock,
            logger: logger)
        let identityTokens = IdentityTokens(secrets: secrets, clock: clock)
        let takesHubToken = settings.authModes.contains(.hub)
        let admin = takesHubToken ? settings.adminToken.map { AdminTokenMode($0.bytes) } : nil
        let logins = LoginMode(
            tokens: tokens, threads: threads, identities: identities, pools: settings.pools)
        let bearers = Self.bearers(
            settings, hub: admin, IdentityTokenMode(tokens: identityTokens), logins)
        let gate = IdentityGate(threads: threads, identities: identities, pools: poolIDs)
        let access = RequestAccess(
            authenticator: Authenticator(
                issuer: issuer, keys: StaticKeys(settings.accessKeys), region: settings.region,
                bearers: bearers, clock: clock),
            gate: gate,
            admin: admin, hasOpenMetrics: settings.hasOpenMetrics)
        let sync = SyncAPI(handlers: [
            RecordOperations(
                threads: threads, limits: settings.limits, secrets: secrets, clock: clock,
                trigger: pools.trigger, resolver: pools.resolver, sink: pools.sink, books: books),
            DatasetOperations(
                threads: threads, limits: settings.limits, identities: identities,
                pools: poolIDs, secrets: secrets, clock: clock, books: books),
            pools.operations,
            pools.devices,
        ])
        let metrics = HubMetrics(factory: server.registry ?? MetricsSystem.factory)
        let endpoints = RequestEndpoints(
            sync: sync,
            identity: IdentityAPI(
                threads: threads, identities: identities, pools: settings.pools, tokens: tokens,
                identityTokens: identityTokens, issuer: issuer, secrets: secrets),
            native: NativeResponder(
                threads: threads,
                namespaces: NativeNamespaces(
                    settings.limits, adminRequestBytesMax: settings.messageBytesMax,
                    replicatesHub: settings.replicatesHub, sink: pools.sink),
                environment: clock),
            push: pools.events,
            console: Console(
                ConsoleParts(
                    threads: threads, identities: identities, gate: gate, connected: connected,
                    sink: pools.sink, books: books, metrics: metrics, settings: settings,
                    clock: clock)))
        handler = Self.handler(server, threads: threads, access, endpoints, metrics)
    }

    /// What proves who asks, in the order in which it is tried.
    private static func bearers(
        _ settings: HubSettings, hub: AdminTokenMode?, _ identities: IdentityTokenMode,
        _ logins: LoginMode
    ) -> [any BearerMode] {
        let hasPools = !settings.pools.isEmpty
        return settings.authModes.compactMap { mode -> (any BearerMode)? in
            switch mode {
            case .hub: hub
            case .bearers:
                settings.bearers.isEmpty ? nil : StaticBearerMode(settings.bearers)
            case .identities: hasPools ? identities : nil
            case .issuers: hasPools ? logins : nil
            }
        }
    }

    /// What stands at some value goes to the metrics.
    func sample(_ threads: HubThreads) {
        let metrics = handler.metrics
        metrics.sample(threads, connections: handler.protection.connections.count)
        metrics.pushConnections.set(Int64(pools.connected.count))
        metrics.outboxEntries.set(Int64(pools.waitingLaneCount))
    }

    private static func handler(
        _ server: HubServer, threads: HubThreads, _ access: RequestAccess,
        _ endpoints: RequestEndpoints, _ metrics: HubMetrics
    ) -> RequestHandler {
        let settings = server.settings
        // What runs beside the requests goes by the system's clock.
        let disk = DiskGuard(
            threads: threads, environment: SystemSyncEnvironment(), logger: server.logger,
            freeBytes: server.freeBytes)
        var metricsText: (@Sendable () -> String)?
        if let registry = server.registry { metricsText = { registry.text() } }
        return RequestHandler(
            access: access, endpoints: endpoints,
            protection: Self.protection(
                settings.protection, server.environment, disk, server.logger),
            readiness: Readiness(disk: disk), metrics: metrics,
            log: AccessLog(logsAll: settings.logsRequests),
            tracing: RequestTracing(isOn: settings.traces),
            cors: CORS(origins: settings.allowedOrigins), metricsText: metricsText,
            openAPI: OpenAPIDocument.text())
    }

    private static func protection(
        _ settings: ProtectionSettings, _ clock: any SyncEnvironment, _ disk: DiskGuard,
        _ logger: Logger
    ) -> RequestProtection {
        let connectionsMax = DescriptorLimit.current.map {
            DescriptorLimit.connections(settings.connectionsMax, of: $0)
        }
        if let connectionsMax, connectionsMax < settings.connectionsMax {
            logger.warning(
                "the process may open too few files for protection.connectionsMax; raise its limit",
                metadata: ["connectionsMax": "\(connectionsMax)"])
        }
        let budget = BodyBudget(bytesMax: settings.bodiesBytesMax)
        return RequestProtection(
            settings: settings,
            connections: ConnectionLimits(
                connectionsMax: connectionsMax ?? settings.connectionsMax,
                connectionsPerAddressMax: settings.connectionsPerAddressMax),
            rates: RequestRates(settings, environment: clock), budget: budget,
            bodies: RequestBodyReading(
                budget: budget, environment: clock, graceSeconds: settings.headSeconds,
                bytesPerSecondMin: settings.bodyBytesPerSecondMin),
            disk: disk)
    }

    /// Those of the settings, or one that nobody knows and that ends with the process.
    private static func secrets(
        _ settings: HubSettings, _ logger: Logger
    ) throws(HubSettingsError) -> HubSecrets {
        if let secrets = settings.secrets { return try HubSecrets(text: secrets.text) }
        if !settings.pools.isEmpty {
            logger.warning(
                "there is no secretFile: credentials and tokens end with this process")
        }
        // 366 random bits, drawn by the system's generator for secrets.
        let random = "\(UUID())\(UUID())\(UUID())"
        return try HubSecrets(keys: [Digests.sha256(Array(random.utf8))])
    }
}
