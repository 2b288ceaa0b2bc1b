import Synchronization
import Tidemark

/// Lets through who is still somebody: the identity exists, is of the pool that is named, was not
/// merged into another one, and has not signed in since the caller was its guest. Signatures do not
/// tell, since credentials are kept nowhere.
///
/// What was found is remembered in memory for so long as no identity ceases to be, and for at most
/// 65,536 of them, so that a request of one that was seen lately reads nothing from the disk.
final class IdentityGate: Sendable {
    private struct Entry {
        let presence: Presence
        /// Of the directory when it was looked up; good in no other.
        let epoch: UInt64
    }

    private final class Stripe: Sendable {
        let entries = Mutex<[IdentityID: Entry]>([:])
    }

    private let threads: HubThreads
    private let identities: IdentityDirectory
    private let pools: Set<PoolID>
    private let stripes: [Stripe]

    private static let stripeCount = 16
    private static let entriesPerStripeMax = 4_096

    /// - Parameter pools: those of the settings.
    init(threads: HubThreads, identities: IdentityDirectory, pools: Set<PoolID>) {
        self.threads = threads
        self.identities = identities
        self.pools = pools
        stripes = (0..<Self.stripeCount).map { _ in Stripe() }
    }

    /// Lets a call in that the `Authorizer` lets through. Until the pass is ended the identity is
    /// neither merged nor deleted, so what the call writes stays what it was told.
    ///
    /// - Throws: towards developers `resourceNotFound` where the service model has it, else
    ///   `notAuthorized`; towards identities `notAuthorized`, upon which clients get another id;
    ///   `expiredToken` towards a guest that somebody has signed in as since, upon which clients
    ///   get new credentials; `tooManyRequests` while another identity is being merged into this
    ///   one.
    func enter(_ call: SyncCall) async throws(APIFailure) -> IdentityPass {
        guard let pool = call.route.poolID else { return IdentityPass(nil, identities.calls) }
        guard pools.contains(pool) else {
            throw Self.unknown("IdentityPool '\(pool)'", call)
        }
        guard let identity = call.route.identityID else {
            return IdentityPass(nil, identities.calls)
        }
        guard let pass = try await pass(for: identity, of: pool, call.principal) else {
            throw Self.unknown("Identity '\(identity)'", call)
        }
        return pass
    }

    /// For whoever is let in by other means than a route of the API names: replicas. Others than
    /// identities pass. Otherwise as for a call of the API.
    ///
    /// - Throws: `notAuthorized`, `expiredToken`, `tooManyRequests`.
    func enter(_ principal: Principal) async throws(APIFailure) -> IdentityPass {
        guard case .identity(let identity, let pool, _) = principal else {
            return IdentityPass(nil, identities.calls)
        }
        guard pools.contains(pool), let pass = try await pass(for: identity, of: pool, principal)
        else {
            throw APIFailure(
                .notAuthorized, "Identity '\(identity)' is not in use any more; get another id")
        }
        return pass
    }

    /// For what writes nothing, such as listening, or the time before a body was read.
    ///
    /// - Throws: `notAuthorized`, `expiredToken`, `tooManyRequests`.
    func check(_ principal: Principal) async throws(APIFailure) {
        try await enter(principal).end()
    }

    /// What is to be known of an identity that can be used.
    private struct Presence {
        let pool: PoolID
        let isGuest: Bool

        /// Whether a caller is one who showed nothing but the id of what was a guest then. It shows
        /// nothing any more once somebody has signed in.
        func isOutdated(_ caller: Principal) -> Bool {
            guard case .identity(_, _, let isAuthenticated) = caller else { return false }
            return !isAuthenticated && !isGuest
        }
    }

    private enum Finding {
        case there(Presence)
        case missing
        /// It goes into another one, or others into it.
        case moving(IdentityFacts)
    }

    /// nil if there is no such identity of that pool.
    ///
    /// - Parameter caller: whoever asks about it; an identity asks about itself alone.
    private func pass(
        for identity: IdentityID, of pool: PoolID, _ caller: Principal
    ) async throws(APIFailure) -> IdentityPass? {
        for _ in 0..<IdentityDirectory.attemptsMax {
            // Before anything is looked up: see `IdentityCalls`.
            identities.calls.begin(identity)
            let pass = IdentityPass(identity, identities.calls)
            let finding: Finding
            do throws(APIFailure) {
                finding = try await found(identity)
            } catch {
                pass.end()
                throw error
            }
            if case .there(let presence) = finding, presence.pool == pool {
                guard presence.isOutdated(caller) else { return pass }
                pass.end()
                throw Self.outdated
            }
            pass.end()
            guard case .moving(let facts) = finding else { return nil }
            // A merge that was stopped goes on here, and then it is looked up anew.
            let identities = identities
            _ = try await threads.write { store in try identities.resume(facts, in: store) }
        }
        throw IdentityDirectory.overtaken
    }

    private func found(_ identity: IdentityID) async throws(APIFailure) -> Finding {
        let stripe = stripes[abs(identity.hashValue % Self.stripeCount)]
        // Before the facts are read: what changes behind it makes what is found here old.
        let epoch = identities.epoch
        let known = stripe.entries.withLock { $0[identity] }
        if let known, known.epoch == epoch { return .there(known.presence) }
        let identities = identities
        let found = try await threads.read { store in try identities.identity(identity, in: store) }
        guard let facts = found, facts.isEnabled else { return .missing }
        guard facts.merging == nil, facts.absorbing.isEmpty else { return .moving(facts) }
        let presence = Presence(pool: facts.pool, isGuest: facts.isGuest)
        stripe.entries.withLock { entries in
            if entries.count >= Self.entriesPerStripeMax { entries.removeAll() }
            entries[identity] = Entry(presence: presence, epoch: epoch)
        }
        return .there(presence)
    }

    /// What clients of AWS take for the end of credentials: they ask for new ones by themselves,
    /// and get them if they have the login.
    private static let outdated = APIFailure(
        .expiredToken,
        "the identity has signed in since these credentials were given to a guest; ask for new "
            + "ones with the login")

    private static func unknown(_ what: String, _ call: SyncCall) -> APIFailure {
        switch (call.principal, call.route.operation) {
        case (.identity, _), (_, .listRecords), (_, .listDatasets):
            APIFailure(.notAuthorized, "\(what) is not known here; get another id")
        default:
            APIFailure(.resourceNotFound, "\(what) not found.")
        }
    }
}
