/// A token of an issuer, as a bearer's: who signed in is the identity that the login is of, in the
/// first pool of the settings that takes logins of that issuer. One that was never seen gets an
/// identity, as by GetId.
struct LoginMode: BearerMode {
    private let tokens: TokenVerifier
    private let threads: HubThreads
    private let identities: IdentityDirectory
    /// By provider.
    private let pools: [String: PoolID]

    init(
        tokens: TokenVerifier, threads: HubThreads, identities: IdentityDirectory,
        pools: [PoolSettings]
    ) {
        self.tokens = tokens
        self.threads = threads
        self.identities = identities
        var table: [String: PoolID] = [:]
        for pool in pools {
            guard let id = PoolID(pool.id) else { continue }
            for provider in pool.providers where table[provider] == nil { table[provider] = id }
        }
        self.pools = table
    }

    func principal(of token: String) async throws(APIFailure) -> Principal {
        let login = try await tokens.verify(token, provider: nil)
        guard let pool = pools[login.provider] else {
            throw APIFailure(
                .notAuthorized, "no identity pool of this hub takes logins of \(login.provider)")
        }
        let identities = identities
        let known = try await threads.read { store in
            try identities.owner(of: login, in: pool, store)
        }
        if let known { return .identity(known, pool: pool, isAuthenticated: true) }
        let facts = try await threads.write { store in
            try identities.identity(for: [login], in: pool, store).facts
        }
        return .identity(facts.id, pool: pool, isAuthenticated: true)
    }
}
