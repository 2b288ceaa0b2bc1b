import Foundation

extension HubSettings {
    /// Reads all settings: from the command line, else from the environment, else from a file. What
    /// is nowhere has its default.
    ///
    /// A setting `listen.port` is called `{"listen": {"port": 8080}}` in the file, and
    /// `TIDEMARK_LISTEN_PORT` in the environment. What comes more than once has a list of names of
    /// its own making, and its settings below each: `pools` and `pool.NAME.id`. The article Hub has
    /// the table of all.
    ///
    /// - Parameters:
    ///   - file: of JSON; nil for none.
    ///   - environment: its variables; nil for those of the process.
    ///   - flags: from the command line, by the names of settings.
    /// - Throws: for what cannot be read or used: it names the setting, and says what may stand
    ///   there.
    public static func read(
        file: String?, environment: [String: String]? = nil, flags: [String: SettingValue] = [:]
    ) throws(HubSettingsError) -> HubSettings {
        var reader = try SettingsReader(
            file: file, environment: environment ?? ProcessInfo.processInfo.environment,
            flags: flags)
        var settings = try HubSettings(&reader)
        try reader.checkUnknownKeys()
        settings.warnings = reader.unknownVariables()
        try settings.check()
        return settings
    }

    /// Asks for each setting. Nothing is checked that concerns more than one of them.
    init(_ reader: inout SettingsReader) throws(HubSettingsError) {
        self.init()
        try readServer(&reader)
        try readAccess(&reader)
        try readBearers(&reader)
        try limits.read(&reader)
        try protection.read(&reader)
        for name in try reader.names("issuers") {
            issuers.append(try IssuerSettings(&reader, below: "issuer.\(name)"))
        }
        for name in try reader.names("pools") {
            pools.append(try PoolSettings(&reader, name))
        }
    }

    private mutating func readServer(
        _ reader: inout SettingsReader
    ) throws(HubSettingsError) {
        try reader.take("listen.host", into: &host)
        try reader.take("listen.port", into: &port)
        let reloadSeconds = try reader.number("tls.reloadSeconds")
        if let certificateFile = try reader.text("tls.certificateFile") {
            var tls = TLS(
                certificateFile: certificateFile, keyFile: try reader.required("tls.keyFile"))
            if let reloadSeconds { tls.reloadSeconds = reloadSeconds }
            self.tls = tls
        } else if try reader.text("tls.keyFile") != nil {
            throw HubSettingsError(
                "tls.certificateFile", allowed: "the path of a file, beside tls.keyFile")
        }
        allowedOrigins = try reader.list("cors.origins") ?? allowedOrigins
        try reader.take("metrics.isOpen", into: &hasOpenMetrics)
        try reader.take("tracing.isOn", into: &traces)
        try reader.take("log.requests", into: &logsRequests)
        try reader.take("sync.messageBytesMax", into: &messageBytesMax)
        try reader.take("sync.replicatesHub", into: &replicatesHub)
    }

    private mutating func readAccess(
        _ reader: inout SettingsReader
    ) throws(HubSettingsError) {
        secrets = try reader.secret("secret")
        adminToken = try reader.secret("adminToken")
        try reader.take("region", into: &region)
        try reader.take("credentials.seconds", into: &credentialSeconds)
        for name in try reader.names("accessKeys") {
            let prefix = "accessKey.\(name)"
            accessKeys.append(
                AccessKey(
                    id: try reader.required("\(prefix).id"),
                    secret: try reader.requiredSecret("\(prefix).secret"),
                    pools: try reader.list("\(prefix).pools")))
        }
    }
}

extension SettingsReader {
    /// Keeps what is there already if the setting is nowhere.
    fileprivate mutating func take(
        _ key: String, into value: inout Int
    ) throws(HubSettingsError) {
        value = try number(key) ?? value
    }

    fileprivate mutating func take(
        _ key: String, into value: inout String
    ) throws(HubSettingsError) {
        value = try text(key) ?? value
    }

    fileprivate mutating func take(
        _ key: String, into value: inout Bool
    ) throws(HubSettingsError) {
        value = try truth(key) ?? value
    }

    /// A list of `NAME=CHOICE`.
    fileprivate mutating func choices<Choice: RawRepresentable & CaseIterable>(
        _ key: String, _ type: Choice.Type
    ) throws(HubSettingsError) -> [String: Choice] where Choice.RawValue == String {
        var choices: [String: Choice] = [:]
        for entry in try list(key) ?? [] {
            let parts = entry.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, let choice = Choice(rawValue: String(parts[1])),
                choices.updateValue(choice, forKey: String(parts[0])) == nil
            else {
                let all = Choice.allCases.map(\.rawValue).joined(separator: ", ")
                throw HubSettingsError(
                    key, value: entry,
                    allowed: "DATASET=CHOICE, each dataset once, with a choice of \(all)")
            }
        }
        return choices
    }

    fileprivate mutating func endpoint(
        _ prefix: String
    ) throws(HubSettingsError) -> PoolSettings.Endpoint? {
        guard let url = try text("\(prefix).url") else { return nil }
        return PoolSettings.Endpoint(url: url, secret: try requiredSecret("\(prefix).secret"))
    }
}

extension HubLimits {
    fileprivate mutating func read(
        _ reader: inout SettingsReader
    ) throws(HubSettingsError) {
        try reader.take("limits.datasetsPerIdentityMax", into: &datasetsPerIdentityMax)
        try reader.take("limits.recordsPerDatasetMax", into: &recordsPerDatasetMax)
        try reader.take("limits.datasetBytesMax", into: &datasetBytesMax)
        try reader.take("limits.tombstonesPerRecordMax", into: &tombstonesPerRecordMax)
        try reader.take("limits.recordKeyMax", into: &recordKeyMax)
        try reader.take("limits.recordValueMax", into: &recordValueMax)
        try reader.take("limits.patchesMax", into: &patchesMax)
        try reader.take("limits.pageRecordsMax", into: &pageRecordsMax)
        try reader.take("limits.pageDatasetsMax", into: &pageDatasetsMax)
        try reader.take("limits.devicesPerIdentityMax", into: &devicesPerIdentityMax)
        try reader.take("limits.subscriptionsPerDatasetMax", into: &subscriptionsPerDatasetMax)
    }
}

extension ProtectionSettings {
    fileprivate mutating func read(
        _ reader: inout SettingsReader
    ) throws(HubSettingsError) {
        try reader.take("protection.connectionsMax", into: &connectionsMax)
        try reader.take("protection.connectionsPerAddressMax", into: &connectionsPerAddressMax)
        try reader.take("protection.headSeconds", into: &headSeconds)
        try reader.take("protection.idleSeconds", into: &idleSeconds)
        try reader.take("protection.bodyBytesPerSecondMin", into: &bodyBytesPerSecondMin)
        try reader.take("protection.headFieldsMax", into: &headFieldsMax)
        try reader.take("protection.headBytesMax", into: &headBytesMax)
        try reader.take("protection.bodyBytesMax", into: &bodyBytesMax)
        try reader.take("protection.otherBodyBytesMax", into: &otherBodyBytesMax)
        try reader.take("protection.bodiesBytesMax", into: &bodiesBytesMax)
        try reader.take("protection.requestsPerSecondOfAddress", into: &requestsPerSecondOfAddress)
        try reader.take("protection.requestBurstOfAddress", into: &requestBurstOfAddress)
        try reader.take(
            "protection.requestsPerSecondOfIdentity", into: &requestsPerSecondOfIdentity)
        try reader.take("protection.requestBurstOfIdentity", into: &requestBurstOfIdentity)
        try reader.take(
            "protection.newIdentitiesPerSecondOfAddress", into: &newIdentitiesPerSecondOfAddress)
        try reader.take("protection.newIdentityBurstOfAddress", into: &newIdentityBurstOfAddress)
        try reader.take("protection.ratesMax", into: &ratesMax)
        try reader.take("protection.storeCallsMax", into: &storeCallsMax)
        try reader.take("protection.readers", into: &readers)
        try reader.take("protection.writers", into: &writers)
        try reader.take("protection.drainSeconds", into: &drainSeconds)
    }
}

extension IssuerSettings {
    fileprivate init(
        _ reader: inout SettingsReader, below prefix: String
    ) throws(HubSettingsError) {
        var algorithms: Set<Algorithm> = []
        for text in try reader.list("\(prefix).algorithms") ?? [] {
            guard let algorithm = Algorithm(rawValue: text) else {
                throw HubSettingsError(
                    "\(prefix).algorithms", value: text, allowed: "HS256, RS256, ES256")
            }
            algorithms.insert(algorithm)
        }
        let path = try reader.text("\(prefix).keysFile")
        let url = try reader.text("\(prefix).keysURL")
        let secret = try reader.secret("\(prefix).secret")
        let keys: Keys
        switch (path, url, secret) {
        case (let path?, nil, nil): keys = .file(path: path)
        case (nil, let url?, nil): keys = .url(url)
        case (nil, nil, let secret?): keys = .shared(secret)
        default:
            throw HubSettingsError(
                "\(prefix).keysFile",
                allowed: "exactly one of keysFile, keysURL and secretFile must be there")
        }
        let issuer = try reader.required("\(prefix).issuer")
        self.init(
            provider: try reader.text("\(prefix).provider") ?? Self.provider(of: issuer),
            issuer: issuer, audiences: try reader.list("\(prefix).audiences") ?? [],
            algorithms: algorithms, keys: keys)
        if let leeway = try reader.number("\(prefix).leewaySeconds") {
            leewaySeconds = Int64(leeway)
        }
    }

    /// An address without its scheme, as OpenID Connect providers are called in `Logins`.
    private static func provider(of issuer: String) -> String {
        let scheme = "https://"
        return issuer.hasPrefix(scheme) ? String(issuer.dropFirst(scheme.count)) : issuer
    }
}

extension PoolSettings {
    fileprivate init(
        _ reader: inout SettingsReader, _ name: String
    ) throws(HubSettingsError) {
        let prefix = "pool.\(name)"
        self.init(
            id: try reader.required("\(prefix).id"),
            name: try reader.text("\(prefix).name") ?? name)
        try reader.take("\(prefix).allowsGuests", into: &allowsGuests)
        providers = try reader.list("\(prefix).providers") ?? []
        developerProvider = try reader.text("\(prefix).developerProvider")
        strategy = try reader.choice("\(prefix).strategy", Strategy.self) ?? strategy
        datasetStrategies = try reader.choices("\(prefix).datasetStrategies", Strategy.self)
        try reader.take("\(prefix).usesDeviceDates", into: &usesDeviceDates)
        resolver = try reader.endpoint("\(prefix).resolver")
        trigger = try reader.endpoint("\(prefix).trigger")
        stream = try Self.stream(&reader, below: "\(prefix).stream")
        try reader.take("\(prefix).stream.bytesMax", into: &streamBytesMax)
        push = try Self.push(&reader, below: "\(prefix).push")
    }

    private enum StreamKind: String, CaseIterable {
        case endpoint, file, stdout
    }

    private enum PushKind: String, CaseIterable {
        case none, log, endpoint
    }

    private static func stream(
        _ reader: inout SettingsReader, below prefix: String
    ) throws(HubSettingsError) -> Stream? {
        let endpoint = try reader.endpoint(prefix)
        let path = try reader.text("\(prefix).path")
        switch try reader.choice("\(prefix).kind", StreamKind.self) {
        case nil: return nil
        case .stdout?: return .standardOutput
        case .file?:
            guard let path else {
                throw HubSettingsError("\(prefix).path", allowed: "the path of a file")
            }
            return .file(path: path)
        case .endpoint?:
            guard let endpoint else {
                throw HubSettingsError("\(prefix).url", allowed: "an address of http or https")
            }
            return .endpoint(endpoint)
        }
    }

    private static func push(
        _ reader: inout SettingsReader, below prefix: String
    ) throws(HubSettingsError) -> Push {
        let endpoint = try reader.endpoint(prefix)
        switch try reader.choice("\(prefix).kind", PushKind.self) {
        case nil, PushKind.none?: return .none
        case .log?: return .log
        case .endpoint?:
            guard let endpoint else {
                throw HubSettingsError("\(prefix).url", allowed: "an address of http or https")
            }
            return .endpoint(endpoint)
        }
    }
}
