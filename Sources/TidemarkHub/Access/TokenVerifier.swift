import FoundationEssentials
import Logging
import TidemarkSync

/// Verifies tokens by which people show that they have signed in: JSON Web Tokens of the issuers in
/// the settings.
///
/// A token is believed if its algorithm is one that its issuer's settings allow and its key is for,
/// one of the issuer's keys has signed it, and its issuer, audience and times fit. Keys are read
/// when they are first needed, again each hour, and when a token names one that is not there: but
/// not more than once a minute, whatever tokens come.
actor TokenVerifier {
    private struct Keys {
        var keys: [TokenKey] = []
        /// When they were last asked for, in milliseconds since 1970; nil for never.
        var askedAt: UInt64?
        /// Those who need them wait for one reading.
        var reading: Task<[TokenKey]?, Never>?
    }

    /// By provider.
    private let issuers: [String: IssuerSettings]
    /// In the order of the settings.
    private let inOrder: [IssuerSettings]
    private let source: any KeySource
    private let clock: any SyncEnvironment
    private let logger: Logger
    /// By provider.
    private var known: [String: Keys] = [:]

    private static let readAgainMilliseconds: UInt64 = 60_000
    private static let keptMilliseconds: UInt64 = 3_600_000
    /// For a token that names no key.
    private static let keysTriedMax = 8

    init(
        issuers: [IssuerSettings], source: any KeySource, clock: any SyncEnvironment,
        logger: Logger
    ) {
        var table: [String: IssuerSettings] = [:]
        for issuer in issuers { table[issuer.provider] = issuer }
        self.issuers = table
        inOrder = issuers
        self.source = source
        self.clock = clock
        self.logger = logger
    }

    /// - Parameter provider: what the client says whose token it is; nil to go by the token itself.
    /// - Throws: `notAuthorized`, `serviceUnavailable` if the issuer's keys cannot be read.
    func verify(_ token: String, provider: String?) async throws(APIFailure) -> VerifiedLogin {
        let head = try TokenHead(token)
        guard let issuer = issuer(of: token, provider) else {
            throw Self.invalid("its issuer is none of those that this hub trusts")
        }
        guard issuer.algorithms.contains(head.algorithm) else {
            throw Self.invalid("its algorithm is not one of its issuer's")
        }
        for isNew in [false, true] {
            let candidates = Self.candidates(
                for: head, in: try await keys(of: issuer, isNew: isNew))
            for key in candidates {
                guard let claims = await key.claims(of: token) else { continue }
                return try login(claims, issuer)
            }
            // The key that the token names is there. One without a name can be another one by now.
            if candidates.contains(where: { $0.id != nil && $0.id == head.keyID }) { break }
        }
        throw Self.invalid("none of its issuer's keys has signed it")
    }

    static func invalid(_ reason: String) -> APIFailure {
        APIFailure(.notAuthorized, "Invalid login token; \(reason)")
    }

    /// By what the client says, else by what the token says, of which nothing is verified yet.
    private func issuer(of token: String, _ provider: String?) -> IssuerSettings? {
        if let provider { return issuers[provider] }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let json = Base64.decodedFromURL(parts[1]),
            let claims = try? JSONDecoder().decode(LoginClaims.self, from: Data(json)),
            let name = claims.issuer
        else { return nil }
        // One issuer can be in the settings for several apps, each a provider with an audience of
        // its own: whose token it is may not depend on chance.
        let named = inOrder.filter { $0.issuer == name }
        return named.first { !Set($0.audiences).isDisjoint(with: claims.audiences) } ?? named.first
    }

    private static func candidates(for head: TokenHead, in keys: [TokenKey]) -> [TokenKey] {
        let fitting = keys.filter { key in
            // A shared secret of the settings has no name and takes any.
            key.algorithm == head.algorithm
                && (head.keyID == nil || key.id == nil || key.id == head.keyID)
        }
        return Array(fitting.prefix(keysTriedMax))
    }

    private func login(
        _ claims: LoginClaims, _ issuer: IssuerSettings
    ) throws(APIFailure) -> VerifiedLogin {
        guard claims.issuer == issuer.issuer else {
            throw Self.invalid("it is of another issuer than \(issuer.provider)")
        }
        guard claims.audiences.contains(where: { issuer.audiences.contains($0) }) else {
            throw Self.invalid("it is not meant for this hub's clients; see its audience")
        }
        let now = Double(clock.now()) / 1_000
        let leeway = Double(issuer.leewaySeconds)
        // Comparisons with what is no number are false, and so refuse it.
        guard let expires = claims.expires, now < expires + leeway else {
            throw Self.invalid("it has expired; sign in again")
        }
        if let notBefore = claims.notBefore {
            guard notBefore <= now + leeway else {
                throw Self.invalid("it is not good yet; check the clocks")
            }
        }
        let login = VerifiedLogin(provider: issuer.provider, subject: claims.subject ?? "")
        guard login.isWithinBounds else {
            throw Self.invalid("its subject is missing or not usable")
        }
        return login
    }

    // MARK: - Keys

    /// - Parameter isNew: whether a key is missing from those that are known.
    private func keys(
        of issuer: IssuerSettings, isNew: Bool
    ) async throws(APIFailure) -> [TokenKey] {
        let entry = known[issuer.provider] ?? Keys()
        if entry.reading == nil, let askedAt = entry.askedAt,
            isFresh(askedAt, isNew: isNew || entry.keys.isEmpty)
        {
            // Without any they could not be read a moment ago.
            guard !entry.keys.isEmpty else { throw Self.unreadable }
            return entry.keys
        }
        // A token whose key is known does not wait for what another one has begun.
        if entry.reading != nil, !isNew, !entry.keys.isEmpty { return entry.keys }
        let reading = entry.reading ?? startReading(issuer)
        let found = await reading.value
        // What was known before the wait may have changed, so only what was found is looked at.
        if let found, !found.isEmpty { return found }
        let kept = known[issuer.provider]?.keys ?? []
        guard !kept.isEmpty else { throw Self.unreadable }
        return kept
    }

    private func isFresh(_ askedAt: UInt64, isNew: Bool) -> Bool {
        let now = clock.now()
        // A clock that was set back makes nothing old.
        let age = now >= askedAt ? now - askedAt : 0
        return age < (isNew ? Self.readAgainMilliseconds : Self.keptMilliseconds)
    }

    private func startReading(_ issuer: IssuerSettings) -> Task<[TokenKey]?, Never> {
        let reading = Task { await self.read(issuer) }
        known[issuer.provider, default: Keys()].askedAt = clock.now()
        known[issuer.provider, default: Keys()].reading = reading
        return reading
    }

    /// nil if they cannot be read; those that are known stay then.
    private func read(_ issuer: IssuerSettings) async -> [TokenKey]? {
        defer { known[issuer.provider]?.reading = nil }
        do {
            let keys: [TokenKey]
            if case .shared(let secret) = issuer.keys {
                keys = [await TokenKey.shared(secret.bytes)]
            } else {
                keys = try await KeySet.tokenKeys(
                    in: try await source.bytes(of: issuer.keys), allowed: issuer.algorithms)
            }
            known[issuer.provider]?.keys = keys
            return keys
        } catch {
            logger.error(
                "the keys of an issuer cannot be read",
                metadata: ["provider": "\(issuer.provider)", "error": "\(error)"])
            return nil
        }
    }

    private static let unreadable = APIFailure(
        .serviceUnavailable, "the keys of the token's issuer cannot be read; try again later",
        retryAfterSeconds: 60)
}
