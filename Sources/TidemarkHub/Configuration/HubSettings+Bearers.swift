// Tokens that bearers show: which there are, and in which order they are tried.

extension HubSettings {
    mutating func readBearers(
        _ reader: inout SettingsReader
    ) throws(HubSettingsError) {
        if let names = try reader.list("auth.modes") {
            authModes = []
            for name in names {
                guard let mode = AuthMode(rawValue: name) else {
                    throw HubSettingsError("auth.modes", value: name, allowed: Self.allModes)
                }
                authModes.append(mode)
            }
        }
        for name in try reader.names("bearers") {
            let prefix = "bearer.\(name)"
            let token = try reader.requiredSecret("\(prefix).token")
            let space = try reader.text("\(prefix).space")
            let identity = try reader.text("\(prefix).identity")
            let pool = try reader.text("\(prefix).pool")
            let reach: StaticBearer.Reach
            switch (identity, pool, space) {
            case (nil, nil, _):
                reach = .space(space ?? name)
            case (let identity?, let pool?, nil):
                reach = .identity(identity, pool: pool)
            default:
                throw HubSettingsError(
                    "\(prefix).identity", value: identity,
                    allowed: "an identity's id with \(prefix).pool, or neither of them")
            }
            bearers.append(StaticBearer(token: token, reach: reach))
        }
    }

    private static let allModes =
        AuthMode.allCases.map(\.rawValue).joined(separator: ", ") + ", each once"

    func checkBearers() throws(HubSettingsError) {
        try Self.check(
            Set(authModes).count == authModes.count, "auth.modes",
            authModes.map(\.rawValue).joined(separator: ","), Self.allModes)
        var tokens: Set<HubSecret> = []
        if let adminToken { tokens.insert(adminToken) }
        for bearer in bearers {
            let bytes = bearer.token.bytes
            try Self.check(
                bytes.count >= 16 && bytes.allSatisfy { (0x21...0x7E).contains($0) },
                "bearer.token", nil, "16 or more visible ASCII characters")
            try Self.check(
                tokens.insert(bearer.token).inserted, "bearer.token", nil,
                "a token that no other bearer has, nor the hub itself")
            try check(bearer.reach)
        }
    }

    private func check(_ reach: StaticBearer.Reach) throws(HubSettingsError) {
        switch reach {
        case .space(let space):
            try Self.check(
                (1...64).contains(space.utf8.count) && space.utf8.allSatisfy(Self.isWordOrDash),
                "bearer.space", space, "1...64 of A-Z, a-z, 0-9, _ and -")
        case .identity(let identity, let pool):
            try Self.check(
                IdentityID(identity) != nil, "bearer.identity", identity,
                "1...55 bytes such as us-east-1:3e0e5eb2-2c5c-4bba-8a4d-bd1ad5c1c6f1")
            try Self.check(
                pools.contains { $0.id == pool }, "bearer.pool", pool,
                "ids of the pools of these settings")
        }
    }
}
