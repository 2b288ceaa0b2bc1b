extension HubSettings {
    /// Whether a hub can start with them. Files are looked at where they are used.
    ///
    /// - Throws: for the first one that is out of bounds or contradicts another.
    public func check() throws(HubSettingsError) {
        for bound in bounds {
            guard bound.range.contains(bound.value) else {
                let (least, most) = (bound.range.lowerBound, bound.range.upperBound)
                throw HubSettingsError(
                    bound.key, value: "\(bound.value)",
                    allowed: "a whole number of \(least)...\(most)")
            }
        }
        try Self.check(!host.isEmpty, "listen.host", host, "a name or an address of this machine")
        try Self.check(
            !region.isEmpty && region.utf8.allSatisfy(Self.isWordOrDash), "region", region,
            "a region's name, such as us-east-1")
        if let adminToken {
            let isVisible = adminToken.bytes.allSatisfy { (0x21...0x7E).contains($0) }
            try Self.check(
                !adminToken.bytes.isEmpty && isVisible, "adminToken", nil,
                "visible ASCII characters; without the setting nobody has the token")
        }
        for origin in allowedOrigins {
            try Self.check(
                origin == "*" || (Self.isURL(origin) && !origin.hasSuffix("/")), "cors.origins",
                origin, "* or origins such as https://app.example.com")
        }
        try checkBearers()
        try checkAccessKeys()
        try checkIssuers()
        try checkPools()
    }

    private struct Bound {
        let key: String
        let value: Int
        let range: ClosedRange<Int>
    }

    private var bounds: [Bound] {
        [
            Bound(key: "listen.port", value: port, range: 0...65_535),
            Bound(key: "tls.reloadSeconds", value: tls?.reloadSeconds ?? 1, range: 1...86_400),
            Bound(key: "credentials.seconds", value: credentialSeconds, range: 900...43_200),
            Bound(key: "sync.messageBytesMax", value: messageBytesMax, range: 1...Int.max),
        ] + limitBounds + protectionBounds
    }

    private var limitBounds: [Bound] {
        let numbers: [(String, Int)] = [
            ("datasetsPerIdentityMax", limits.datasetsPerIdentityMax),
            ("recordsPerDatasetMax", limits.recordsPerDatasetMax),
            ("datasetBytesMax", limits.datasetBytesMax),
            ("tombstonesPerRecordMax", limits.tombstonesPerRecordMax),
            ("recordKeyMax", limits.recordKeyMax),
            ("recordValueMax", limits.recordValueMax),
            ("patchesMax", limits.patchesMax),
            ("pageRecordsMax", limits.pageRecordsMax),
            ("pageDatasetsMax", limits.pageDatasetsMax),
            ("devicesPerIdentityMax", limits.devicesPerIdentityMax),
            ("subscriptionsPerDatasetMax", limits.subscriptionsPerDatasetMax),
        ]
        return numbers.map { Bound(key: "limits.\($0.0)", value: $0.1, range: 1...Self.countMax) }
    }

    private var protectionBounds: [Bound] {
        let own = protection
        let numbers: [(String, Int, ClosedRange<Int>)] = [
            ("connectionsMax", own.connectionsMax, 1...Self.countMax),
            ("connectionsPerAddressMax", own.connectionsPerAddressMax, 1...Self.countMax),
            ("headSeconds", own.headSeconds, 1...3_600),
            ("idleSeconds", own.idleSeconds, 1...86_400),
            ("bodyBytesPerSecondMin", own.bodyBytesPerSecondMin, 0...Self.countMax),
            ("headFieldsMax", own.headFieldsMax, 16...1_000),
            ("headBytesMax", own.headBytesMax, 4_096...81_920),
            ("bodyBytesMax", own.bodyBytesMax, 1_024...Self.countMax),
            ("otherBodyBytesMax", own.otherBodyBytesMax, 1_024...Self.countMax),
            ("bodiesBytesMax", own.bodiesBytesMax, 1_024...Int.max),
            ("requestsPerSecondOfAddress", own.requestsPerSecondOfAddress, 1...Self.countMax),
            ("requestBurstOfAddress", own.requestBurstOfAddress, 1...Self.countMax),
            ("requestsPerSecondOfIdentity", own.requestsPerSecondOfIdentity, 1...Self.countMax),
            ("requestBurstOfIdentity", own.requestBurstOfIdentity, 1...Self.countMax),
            (
                "newIdentitiesPerSecondOfAddress", own.newIdentitiesPerSecondOfAddress,
                1...Self.countMax
            ),
            ("newIdentityBurstOfAddress", own.newIdentityBurstOfAddress, 1...Self.countMax),
            ("ratesMax", own.ratesMax, 16...Self.countMax),
            ("storeCallsMax", own.storeCallsMax, 1...Self.countMax),
            ("readers", own.readers, 1...1_024),
            ("writers", own.writers, 1...1_024),
            ("drainSeconds", own.drainSeconds, 0...3_600),
        ]
        return numbers.map { Bound(key: "protection.\($0.0)", value: $0.1, range: $0.2) }
    }

    /// So that no sum or product of two of them overflows.
    private static let countMax = 1_000_000_000

    private func checkAccessKeys() throws(HubSettingsError) {
        var ids: Set<String> = []
        for key in accessKeys {
            let isID = (4...128).contains(key.id.utf8.count) && key.id.utf8.allSatisfy(Self.isWord)
            try Self.check(
                isID, "accessKey.id", key.id, "4...128 of A-Z, a-z, 0-9 and _, as AKIA…")
            // Temporary ones are told from them by this.
            try Self.check(
                !key.id.hasPrefix("ASIA"), "accessKey.id", key.id,
                "ids that do not begin with ASIA, as those of temporary credentials do")
            try Self.check(ids.insert(key.id).inserted, "accessKey.id", key.id, "each id once")
            try Self.check(
                key.secret.bytes.count >= 16
                    && key.secret.bytes.allSatisfy { (0x21...0x7E).contains($0) },
                "accessKey.secret", nil, "16 or more visible ASCII characters")
            for pool in key.pools ?? [] {
                try Self.check(
                    pools.contains { $0.id == pool }, "accessKey.pools", pool,
                    "ids of the pools of these settings")
            }
        }
    }

    private func checkIssuers() throws(HubSettingsError) {
        var providers: Set<String> = []
        for issuer in issuers {
            try Self.check(
                (1...128).contains(issuer.provider.utf8.count), "issuer.provider", issuer.provider,
                "1...128 bytes, as clients have it in Logins")
            try Self.check(
                providers.insert(issuer.provider).inserted, "issuer.provider", issuer.provider,
                "each provider once")
            try Self.check(!issuer.issuer.isEmpty, "issuer.issuer", "", "what stands in iss")
            try Self.check(
                !issuer.audiences.isEmpty, "issuer.audiences", nil,
                "one or more of which one stands in aud")
            try Self.check(
                (0...3_600).contains(issuer.leewaySeconds), "issuer.leewaySeconds",
                "\(issuer.leewaySeconds)", "0...3600")
            try check(issuer.keys, of: issuer)
        }
    }

    private func check(
        _ keys: IssuerSettings.Keys, of issuer: IssuerSettings
    ) throws(HubSettingsError) {
        try Self.check(
            !issuer.algorithms.isEmpty, "issuer.algorithms", "",
            "one or more of HS256, RS256, ES256")
        switch keys {
        case .shared(let secret):
            try Self.check(
                secret.bytes.count >= 32, "issuer.secret", nil, "32 bytes or more")
            // Else a public key could be taken for a shared one.
            try Self.check(
                issuer.algorithms == [.hs256], "issuer.algorithms",
                Self.list(issuer.algorithms.map(\.rawValue)), "HS256 alone, for a shared secret")
        case .file(let path):
            try Self.check(!path.isEmpty, "issuer.keysFile", path, "the path of a JSON file")
        case .url(let url):
            try Self.check(Self.isURL(url), "issuer.keysURL", url, "an address of http or https")
            try Self.check(
                !issuer.algorithms.contains(.hs256), "issuer.algorithms",
                Self.list(issuer.algorithms.map(\.rawValue)),
                "RS256 and ES256, for keys that everybody can read")
        }
    }

    private func checkPools() throws(HubSettingsError) {
        var ids: Set<String> = []
        for pool in pools {
            try Self.check(
                PoolID(pool.id) != nil, "pool.id", pool.id,
                "1...55 bytes such as us-east-1:3e0e5eb2-2c5c-4bba-8a4d-bd1ad5c1c6f1")
            try Self.check(ids.insert(pool.id).inserted, "pool.id", pool.id, "each id once")
            try Self.check(
                (1...128).contains(pool.name.utf8.count), "pool.name", pool.name, "1...128 bytes")
            for provider in pool.providers {
                try Self.check(
                    issuers.contains { $0.provider == provider }, "pool.providers", provider,
                    Self.list(issuers.map(\.provider)))
            }
            if let name = pool.developerProvider {
                let isName =
                    (1...128).contains(name.utf8.count)
                    && name.utf8.allSatisfy { Self.isWordOrDash($0) || $0 == UInt8(ascii: ".") }
                try Self.check(
                    isName && !pool.providers.contains(name), "pool.developerProvider", name,
                    "1...128 of A-Z, a-z, 0-9, _, . and -, and no issuer's provider")
            }
            for name in pool.datasetStrategies.keys {
                try Self.check(
                    APIDatasetName(name) != nil, "pool.datasetStrategies", name,
                    "names of datasets")
            }
            try checkEndpoints(of: pool)
            try Self.check(
                (4_096...Int.max).contains(pool.streamBytesMax), "pool.stream.bytesMax",
                "\(pool.streamBytesMax)", "4096 or more")
        }
    }

    private func checkEndpoints(of pool: PoolSettings) throws(HubSettingsError) {
        var endpoints: [(String, PoolSettings.Endpoint)] = []
        if let resolver = pool.resolver { endpoints.append(("resolver", resolver)) }
        if let trigger = pool.trigger { endpoints.append(("trigger", trigger)) }
        if case .endpoint(let stream)? = pool.stream { endpoints.append(("stream", stream)) }
        if case .endpoint(let push) = pool.push { endpoints.append(("push", push)) }
        for (name, endpoint) in endpoints {
            try Self.check(
                Self.isURL(endpoint.url), "pool.\(name).url", endpoint.url,
                "an address of http or https")
            try Self.check(
                endpoint.secret.bytes.count >= 16, "pool.\(name).secret", nil, "16 bytes or more")
        }
    }

    static func check(
        _ isFine: Bool, _ key: String, _ value: String?, _ allowed: String
    ) throws(HubSettingsError) {
        guard isFine else { throw HubSettingsError(key, value: value, allowed: allowed) }
    }

    private static func isURL(_ text: String) -> Bool {
        for scheme in ["https://", "http://"] where text.lowercased().hasPrefix(scheme) {
            let rest = text.dropFirst(scheme.count)
            return !rest.isEmpty && rest.first != "/" && rest.utf8.allSatisfy { $0 > 0x20 }
        }
        return false
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    static func isWordOrDash(_ byte: UInt8) -> Bool {
        isWord(byte) || byte == UInt8(ascii: "-")
    }

    private static func list(_ texts: [String]) -> String {
        texts.isEmpty ? "none, as these settings are" : texts.sorted().joined(separator: ", ")
    }
}
