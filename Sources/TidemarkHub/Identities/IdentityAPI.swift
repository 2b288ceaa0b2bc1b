import Tidemark

/// Answers the Cognito Identity API: `POST /` with the operation in `X-Amz-Target`.
///
/// Who guesses an identity's id gets nothing by it: ids are random, one that has signed in
/// anywhere is opened by a token of such a login alone, and a guest's id is all that a guest has.
struct IdentityAPI: Sendable {
    let threads: HubThreads
    let identities: IdentityDirectory
    let pools: [PoolID: PoolSettings]
    let tokens: TokenVerifier
    let identityTokens: IdentityTokens
    let issuer: CredentialIssuer
    let secrets: HubSecrets

    static let loginsMax = 10

    /// - Parameters:
    ///   - pools: of the settings; ids that are none are passed over.
    ///   - secrets: for the tokens of next pages.
    init(
        threads: HubThreads, identities: IdentityDirectory, pools: [PoolSettings],
        tokens: TokenVerifier, identityTokens: IdentityTokens, issuer: CredentialIssuer,
        secrets: HubSecrets
    ) {
        self.threads = threads
        self.identities = identities
        var table: [PoolID: PoolSettings] = [:]
        for pool in pools {
            if let id = PoolID(pool.id) { table[id] = pool }
        }
        self.pools = table
        self.tokens = tokens
        self.identityTokens = identityTokens
        self.issuer = issuer
        self.secrets = secrets
    }

    /// The JSON of the answer, whose status is 200.
    ///
    /// - Parameters:
    ///   - body: all of it.
    ///   - principal: who signed the request, where ``IdentityOperation/isSigned`` says that
    ///     somebody must; else it is not looked at.
    /// - Throws: what the client is told.
    func answer(
        _ operation: IdentityOperation, body: [UInt8], principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        try JSONBounds.check(body)
        switch operation {
        case .getID: return try await getID(IdentityInput.decoded(body))
        case .getCredentials: return try await getCredentials(IdentityInput.decoded(body))
        case .getOpenIDToken: return try await getOpenIDToken(IdentityInput.decoded(body))
        case .unlinkIdentity: return try await unlink(IdentityInput.decoded(body))
        case .getDeveloperToken:
            return try await developerToken(IdentityInput.decoded(body), principal)
        case .lookupDeveloper: return try await lookup(IdentityInput.decoded(body), principal)
        case .mergeDevelopers: return try await merge(IdentityInput.decoded(body), principal)
        case .unlinkDeveloper:
            return try await unlinkDeveloper(IdentityInput.decoded(body), principal)
        case .describeIdentity: return try await describe(IdentityInput.decoded(body), principal)
        case .listIdentities: return try await list(IdentityInput.decoded(body), principal)
        case .deleteIdentities: return try await delete(IdentityInput.decoded(body), principal)
        }
    }

    // MARK: - Without a signature

    private func getID(_ input: IdentityInput.GetID) async throws(APIFailure) -> [UInt8] {
        let pool = try pool(input.poolID)
        let proof = try await proof(input.logins ?? [:], pool)
        if proof.isEmpty, !pool.settings.allowsGuests {
            throw APIFailure(
                .notAuthorized,
                "Unauthenticated access is not supported for this identity pool.")
        }
        let asked = proof.identity.map { AskedIdentity(id: $0, isProven: !proof.isOfGuest) }
        let facts = try await found(proof.logins, asked, pool.id)
        return try IdentityOutput.encoded(IdentityOutput.Identity(identityID: facts.id.text))
    }

    private func getCredentials(
        _ input: IdentityInput.Identity
    ) async throws(APIFailure) -> [UInt8] {
        let facts = try await proved(input)
        let credentials = issuer.issue(
            for: facts.id, in: facts.pool, isAuthenticated: !facts.isGuest)
        return try IdentityOutput.encoded(
            IdentityOutput.Identity(
                identityID: facts.id.text,
                credentials: IdentityOutput.Credentials(credentials)))
    }

    private func getOpenIDToken(
        _ input: IdentityInput.Identity
    ) async throws(APIFailure) -> [UInt8] {
        // Else whoever has got hold of one would have one for ever.
        guard input.logins?[IdentityTokens.provider] == nil else {
            throw APIFailure(
                .notAuthorized,
                "Invalid login token; one of the hub's own gets no other one: sign in again")
        }
        let facts = try await proved(input)
        let token = identityTokens.issue(
            for: facts.id, in: facts.pool, isAuthenticated: !facts.isGuest)
        return try IdentityOutput.encoded(
            IdentityOutput.Identity(identityID: facts.id.text, token: token))
    }

    /// The identity that the caller has shown to be.
    private func proved(
        _ input: IdentityInput.Identity
    ) async throws(APIFailure) -> IdentityFacts {
        let id = try Self.identity(input.identityID)
        let known = try await facts(of: id)
        let pool = try pool(known.pool.text)
        let proof = try await proof(input.logins ?? [:], pool)
        guard !proof.isEmpty else {
            guard known.isGuest, known.isEnabled, known.merging == nil,
                pool.settings.allowsGuests
            else {
                throw APIFailure(.notAuthorized, "Access to Identity '\(id)' is forbidden.")
            }
            return known
        }
        guard proof.identity == nil || proof.identity == id else {
            throw APIFailure(
                .notAuthorized,
                "Logins don't match. Please include at least one valid login for this identity.")
        }
        let asked = AskedIdentity(id: id, isProven: proof.identity == id && !proof.isOfGuest)
        return try await found(proof.logins, asked, pool.id)
    }

    private func unlink(_ input: IdentityInput.Unlink) async throws(APIFailure) -> [UInt8] {
        let id = try Self.identity(input.identityID)
        let pool = try pool(try await facts(of: id).pool.text)
        let proof = try await proof(input.logins, pool)
        let removed = proof.logins.filter { input.providers.contains($0.provider) }
        guard !input.providers.isEmpty, proof.identity == nil,
            Set(removed.map(\.provider)) == Set(input.providers)
        else {
            throw APIFailure(
                .invalidParameter,
                "LoginsToRemove must name logins, each with its token in Logins")
        }
        try await unlink(removed, id)
        return try IdentityOutput.encoded(IdentityOutput.Nothing())
    }

    // MARK: - Support

    /// A pool of the settings.
    struct Pool: Sendable {
        let id: PoolID
        let settings: PoolSettings
    }

    /// Who a caller has shown to be by tokens.
    struct Proof: Sendable {
        var logins: [VerifiedLogin] = []
        /// By a token of the hub's own.
        var identity: IdentityID?
        /// Whether that was given to a guest. It shows no more than the guest's id does, which is
        /// nothing as soon as somebody has signed in as that identity.
        var isOfGuest = false

        var isEmpty: Bool { logins.isEmpty && identity == nil }
    }

    /// - Throws: `invalidParameter` for what is no id, `resourceNotFound`.
    func pool(_ text: String) throws(APIFailure) -> Pool {
        guard let id = PoolID(text) else {
            throw APIFailure(
                .invalidParameter, "IdentityPoolId does not have the form that the API gives it")
        }
        guard let settings = pools[id] else {
            throw APIFailure(.resourceNotFound, "IdentityPool '\(id)' not found.")
        }
        return Pool(id: id, settings: settings)
    }

    static func identity(_ text: String) throws(APIFailure) -> IdentityID {
        guard let id = IdentityID(text) else {
            throw APIFailure(
                .invalidParameter, "IdentityId does not have the form that the API gives it")
        }
        return id
    }

    /// Verifies what stands in `Logins`.
    ///
    /// - Parameter developer: what has the developer's provider, whose users are believed; nil
    ///   where they are not.
    func proof(
        _ logins: [String: String], _ pool: Pool, developer: String? = nil
    ) async throws(APIFailure) -> Proof {
        guard logins.count <= Self.loginsMax else {
            throw APIFailure(
                .invalidParameter, "Logins has more than \(Self.loginsMax) entries")
        }
        var proof = Proof()
        for (provider, token) in logins.sorted(by: { $0.key < $1.key }) {
            if provider == IdentityTokens.provider {
                let claim = try identityTokens.verified(token)
                guard claim.pool == pool.id else {
                    throw APIFailure(.notAuthorized, "the token is of another identity pool")
                }
                proof.identity = claim.identity
                proof.isOfGuest = !claim.isAuthenticated
            } else if let developer, provider == developer {
                let login = VerifiedLogin(provider: provider, subject: token)
                guard login.isWithinBounds else {
                    throw APIFailure(
                        .invalidParameter, "a user's identifier has 1...1024 characters")
                }
                proof.logins.append(login)
            } else {
                guard pool.settings.providers.contains(provider) else {
                    throw APIFailure(
                        .notAuthorized,
                        "Token is not from a supported provider of this identity pool.")
                }
                proof.logins.append(try await tokens.verify(token, provider: provider))
            }
        }
        return proof
    }

    /// - Throws: `resourceNotFound`.
    func facts(of id: IdentityID) async throws(APIFailure) -> IdentityFacts {
        let identities = identities
        let known = try await threads.read { store in try identities.identity(id, in: store) }
        guard let facts = known else {
            throw APIFailure(.resourceNotFound, "Identity '\(id)' not found.")
        }
        return facts
    }

    /// See ``IdentityDirectory/identity(for:asked:in:_:)``.
    func found(
        _ logins: [VerifiedLogin], _ asked: AskedIdentity?, _ pool: PoolID
    ) async throws(APIFailure) -> IdentityFacts {
        let identities = identities
        return try await threads.write { store in
            try identities.identity(for: logins, asked: asked, in: pool, store).facts
        }
    }

    func unlink(_ logins: [VerifiedLogin], _ id: IdentityID) async throws(APIFailure) {
        let identities = identities
        let facts = try await threads.write { store in
            try identities.unlink(logins, from: id, in: store)
        }
        guard facts != nil else {
            throw APIFailure(.resourceNotFound, "Identity '\(id)' not found.")
        }
    }
}
