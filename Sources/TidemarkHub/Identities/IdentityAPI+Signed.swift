import Tidemark

/// The operations of the app's own service, signed with an access key of the settings.
extension IdentityAPI {
    private static let pageMax = 60

    // MARK: - Users of the developer's own

    /// GetOpenIdTokenForDeveloperIdentity: whom the app's service has signed in by itself.
    func developerToken(
        _ input: IdentityInput.DeveloperToken, _ principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        let pool = try pool(input.poolID)
        try Self.permit(principal, pool.id)
        let provider = try developerProvider(of: pool)
        let seconds = input.seconds ?? IdentityTokens.defaultSeconds
        guard (1...IdentityTokens.secondsMax).contains(seconds) else {
            throw APIFailure(.invalidParameter, "TokenDuration is not 1...86400")
        }
        guard let user = input.logins[provider] else {
            throw APIFailure(.invalidParameter, "Logins lacks \(provider)")
        }
        let proof = try await proof(input.logins, pool, developer: provider)
        guard proof.identity == nil else {
            throw APIFailure(
                .invalidParameter, "Logins cannot have \(IdentityTokens.provider) here")
        }
        var asked: AskedIdentity?
        if let text = input.identityID {
            let id = try Self.identity(text)
            let owner = try await owner(of: user, provider, pool.id)
            guard owner == nil || owner == id else {
                throw APIFailure(
                    .resourceConflict, "the user is registered with another identity")
            }
            asked = AskedIdentity(id: id, isProven: true)
        }
        let facts = try await found(proof.logins, asked, pool.id)
        let token = identityTokens.issue(
            for: facts.id, in: pool.id, isAuthenticated: true, seconds: seconds)
        return try IdentityOutput.encoded(
            IdentityOutput.Identity(identityID: facts.id.text, token: token))
    }

    func lookup(
        _ input: IdentityInput.Lookup, _ principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        let pool = try pool(input.poolID)
        try Self.permit(principal, pool.id)
        let provider = try developerProvider(of: pool)
        var asked: IdentityID?
        if let text = input.identityID { asked = try Self.identity(text) }
        if let user = input.user {
            guard let owner = try await owner(of: user, provider, pool.id) else {
                throw APIFailure(.resourceNotFound, "the user has no identity")
            }
            guard asked == nil || asked == owner else {
                throw APIFailure(.resourceConflict, "the user is not one of the identity")
            }
            asked = owner
        }
        guard let id = asked else {
            throw APIFailure(
                .invalidParameter, "IdentityId and DeveloperUserIdentifier are both missing")
        }
        let facts = try await facts(of: id)
        guard facts.pool == pool.id else {
            throw APIFailure(.resourceNotFound, "Identity '\(id)' not found.")
        }
        let users = facts.logins.filter { $0.provider == provider }.map(\.subject).sorted()
        let count = try Self.pageSize(input.count ?? Self.pageMax)
        let told = try position(input.nextToken, of: "users", pool.id).flatMap { Int($0) } ?? 0
        let page = users.dropFirst(max(0, told)).prefix(count)
        let next = told + page.count
        return try IdentityOutput.encoded(
            IdentityOutput.Users(
                identityID: id.text, users: Array(page),
                nextToken: next < users.count
                    ? token(at: String(next), of: "users", pool.id) : nil))
    }

    func merge(
        _ input: IdentityInput.Merge, _ principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        let pool = try pool(input.poolID)
        try Self.permit(principal, pool.id)
        let provider = try developerProvider(of: pool)
        guard input.provider == provider else {
            throw APIFailure(.invalidParameter, "DeveloperProviderName is not \(provider)")
        }
        guard let source = try await owner(of: input.source, provider, pool.id),
            let destination = try await owner(of: input.destination, provider, pool.id)
        else {
            throw APIFailure(.resourceNotFound, "one of the users has no identity")
        }
        let identities = identities
        try await threads.write { store in
            try identities.merge(source, into: destination, in: store)
        }
        return try IdentityOutput.encoded(
            IdentityOutput.Identity(identityID: destination.text))
    }

    func unlinkDeveloper(
        _ input: IdentityInput.UnlinkDeveloper, _ principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        let pool = try pool(input.poolID)
        try Self.permit(principal, pool.id)
        let provider = try developerProvider(of: pool)
        let id = try Self.identity(input.identityID)
        let login = VerifiedLogin(provider: provider, subject: input.user)
        guard input.provider == provider, login.isWithinBounds else {
            throw APIFailure(
                .invalidParameter,
                "DeveloperProviderName is not \(provider), or DeveloperUserIdentifier is not of "
                    + "1...1024 characters")
        }
        guard try await facts(of: id).pool == pool.id else {
            throw APIFailure(.resourceNotFound, "Identity '\(id)' not found.")
        }
        try await unlink([login], id)
        return try IdentityOutput.encoded(IdentityOutput.Nothing())
    }

    // MARK: - Identities

    func describe(
        _ input: IdentityInput.Identity, _ principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        let id = try Self.identity(input.identityID)
        try Self.permit(principal, nil)
        let facts = try await facts(of: id)
        try Self.permit(principal, facts.pool)
        return try IdentityOutput.encoded(IdentityOutput.Description(facts))
    }

    func list(
        _ input: IdentityInput.List, _ principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        let pool = try pool(input.poolID)
        try Self.permit(principal, pool.id)
        let count = try Self.pageSize(input.count)
        let after = try position(input.nextToken, of: "identities", pool.id)
            .flatMap { IdentityID($0) }
        let identities = identities
        let found = try await threads.read { store in
            try identities.identities(of: pool.id, after: after, limit: count, in: store)
        }
        let isFull = found.count == count
        let shown = found.filter { $0.isEnabled || input.hidesDisabled != true }
        return try IdentityOutput.encoded(
            IdentityOutput.List(
                poolID: pool.id.text, identities: shown.map { IdentityOutput.Description($0) },
                nextToken: isFull
                    ? found.last.map { token(at: $0.id.text, of: "identities", pool.id) } : nil))
    }

    func delete(
        _ input: IdentityInput.Delete, _ principal: Principal
    ) async throws(APIFailure) -> [UInt8] {
        try Self.permit(principal, nil)
        guard (1...Self.pageMax).contains(input.identityIDs.count) else {
            throw APIFailure(.invalidParameter, "IdentityIdsToDelete has not 1...60 ids")
        }
        var ids: [IdentityID] = []
        for text in input.identityIDs { ids.append(try Self.identity(text)) }
        var left: [IdentityOutput.Unprocessed.Entry] = []
        for id in ids {
            guard let code = await deleted(id, principal) else { continue }
            left.append(IdentityOutput.Unprocessed.Entry(identityID: id.text, code: code))
        }
        return try IdentityOutput.encoded(IdentityOutput.Unprocessed(entries: left))
    }

    /// Why it is not deleted; nil if it is, or was not there.
    private func deleted(_ id: IdentityID, _ principal: Principal) async -> String? {
        let identities = identities
        do throws(APIFailure) {
            let known = try await threads.read { store in
                try identities.identity(id, in: store)
            }
            guard let facts = known else { return nil }
            try Self.permit(principal, facts.pool)
            _ = try await threads.write { store in try identities.delete(id, in: store) }
            return nil
        } catch {
            return error.kind == .notAuthorized ? "AccessDenied" : "InternalServerError"
        }
    }

    // MARK: - Support

    /// - Parameter pool: nil if it is not known yet which.
    private static func permit(_ principal: Principal, _ pool: PoolID?) throws(APIFailure) {
        guard case .developer(_, let pools) = principal else {
            throw APIFailure(.notAuthorized, "the operation takes the access key of a developer")
        }
        guard let allowed = pools, let pool else { return }
        guard allowed.contains(pool) else {
            throw APIFailure(.notAuthorized, "the access key is not good for this identity pool")
        }
    }

    private func developerProvider(of pool: Pool) throws(APIFailure) -> String {
        guard let provider = pool.settings.developerProvider else {
            throw APIFailure(
                .invalidParameter, "the identity pool has no developer provider; see its settings")
        }
        return provider
    }

    private func owner(
        of user: String, _ provider: String, _ pool: PoolID
    ) async throws(APIFailure) -> IdentityID? {
        let login = VerifiedLogin(provider: provider, subject: user)
        guard login.isWithinBounds else {
            throw APIFailure(.invalidParameter, "a user's identifier has 1...1024 characters")
        }
        let identities = identities
        return try await threads.read { store in
            try identities.owner(of: login, in: pool, store)
        }
    }

    private static func pageSize(_ count: Int) throws(APIFailure) -> Int {
        guard (1...pageMax).contains(count) else {
            throw APIFailure(.invalidParameter, "MaxResults is not 1...60")
        }
        return count
    }

    /// Where the next page begins: behind that id, or so many of a list. Never what a client can
    /// make long.
    private func token(at text: String, of list: String, _ pool: PoolID) -> String {
        SealedToken.seal(Self.pagePrefix(list, pool) + Array(text.utf8), .page, secrets)
    }

    private func position(
        _ token: String?, of list: String, _ pool: PoolID
    ) throws(APIFailure) -> String? {
        guard let token else { return nil }
        let prefix = Self.pagePrefix(list, pool)
        guard let payload = SealedToken.open(token, .page, secrets), payload.starts(with: prefix),
            let text = String(validating: payload.dropFirst(prefix.count), as: UTF8.self)
        else {
            throw APIFailure(.invalidParameter, "NextToken is not one of this list; begin anew")
        }
        return text
    }

    /// No page token of the other API begins so.
    private static func pagePrefix(_ list: String, _ pool: PoolID) -> [UInt8] {
        Array("cognito-identity/\(list)/\(pool.text)/".utf8)
    }
}
