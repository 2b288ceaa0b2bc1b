import Tidemark
import TidemarkSync

/// What logins have led to.
enum IdentityLookup: Hashable, Sendable {
    case found(IdentityFacts)
    case created(IdentityFacts)
    /// They were of several identities, which are one now.
    case linked(kept: IdentityFacts, merged: [IdentityID])

    var facts: IdentityFacts {
        switch self {
        case .found(let facts), .created(let facts), .linked(let facts, _): facts
        }
    }
}

/// An identity that a request names besides its logins.
struct AskedIdentity: Hashable, Sendable {
    let id: IdentityID
    /// Whether the caller has shown that it is theirs, or may say whose it is. Else one of the
    /// logins must be the identity's, unless it is a guest: to know the id of a guest is to be it.
    let isProven: Bool
}

extension IdentityDirectory {
    /// The identity that logins are of. A login that nobody has had goes to the identity of the
    /// others, to the one that is asked for, or to a new one. Where they are of several identities,
    /// those become one: see ``preferred(_:_:)`` for which one stays.
    ///
    /// - Parameters:
    ///   - logins: verified, each within its bounds; none only with `asked` or for a new guest.
    ///   - asked: of the same pool.
    /// - Throws: `StoreError`; `APIFailure` with `resourceNotFound` if there is no such identity,
    ///   `notAuthorized` if none of the logins is the asked identity's, `limitExceeded` for too
    ///   many logins, `tooManyRequests` if others are at work on it.
    func identity(
        for logins: [VerifiedLogin], asked: AskedIdentity? = nil, in pool: PoolID, _ store: Store
    ) throws -> IdentityLookup {
        var merged: [IdentityID] = []
        // Each login can be of another identity, of which one is merged at a time.
        for _ in 0..<(Self.attemptsMax + logins.count) {
            let owners = try owners(of: logins, asked, in: pool, store)
            // What was stopped in the middle comes first; then they are looked at anew.
            if try resume(owners, in: store) { continue }
            guard let kept = owners.min(by: Self.preferred) else {
                do throws(StoreError) {
                    return .created(try create(logins, in: pool, store))
                } catch {
                    guard error.code == .versionMismatch else { throw error }
                    continue
                }
            }
            if let other = owners.first(where: { $0.id != kept.id }) {
                try merge(other.id, into: kept.id, in: store)
                merged.append(other.id)
                continue
            }
            guard let facts = try attach(logins, to: kept, in: store) else { continue }
            return merged.isEmpty ? .found(facts) : .linked(kept: facts, merged: merged)
        }
        throw Self.overtaken
    }

    /// Whether one of two identities is the one that stays: who has signed in before a guest, then
    /// the older one.
    static func preferred(_ one: IdentityFacts, _ other: IdentityFacts) -> Bool {
        if one.isGuest != other.isGuest { return other.isGuest }
        if one.created != other.created { return one.created < other.created }
        return one.id.text < other.id.text
    }

    /// Whose the logins are, each identity once, and the one that is asked for.
    private func owners(
        of logins: [VerifiedLogin], _ asked: AskedIdentity?, in pool: PoolID, _ store: Store
    ) throws -> [IdentityFacts] {
        var owners: [IdentityFacts] = []
        func add(_ id: IdentityID) throws {
            guard !owners.contains(where: { $0.id == id }) else { return }
            guard let facts = try identity(id, in: store) else { return }
            owners.append(facts)
        }
        for login in logins {
            if let id = try owner(of: login, in: pool, store) { try add(id) }
        }
        guard let asked else { return owners }
        let others = Set(owners.map(\.id))
        try add(asked.id)
        guard let facts = owners.first(where: { $0.id == asked.id }), facts.pool == pool else {
            throw APIFailure(.resourceNotFound, "Identity '\(asked.id)' not found.")
        }
        // One that was merged just now is the identity of the logins.
        if let into = facts.mergedInto, others.contains(into) {
            return owners.filter { $0.id != asked.id }
        }
        guard facts.isEnabled else {
            throw APIFailure(
                .notAuthorized, "Identity '\(asked.id)' is not in use any more; get another id")
        }
        guard asked.isProven || facts.isGuest || others.contains(asked.id) else {
            throw APIFailure(
                .notAuthorized,
                "Logins don't match. Please include at least one valid login for this identity.")
        }
        return owners
    }

    /// - Returns: whether there was anything to go on with.
    private func resume(_ owners: [IdentityFacts], in store: Store) throws -> Bool {
        var wasStopped = false
        for facts in owners {
            if try resume(facts, in: store) { wasStopped = true }
        }
        return wasStopped
    }

    /// nil if somebody has got one of the logins meanwhile.
    private func attach(
        _ logins: [VerifiedLogin], to kept: IdentityFacts, in store: Store
    ) throws -> IdentityFacts? {
        let lacking = logins.filter { !kept.logins.contains($0) }
        guard !lacking.isEmpty else { return kept }
        guard let held = try held(kept.id, in: store), held.facts == kept else { return nil }
        var facts = kept
        var batch = WriteBatch()
        facts.logins += lacking
        facts.modified = clock.now()
        guard facts.logins.count <= IdentityFacts.loginsMax else {
            throw APIFailure(
                .limitExceeded,
                "an identity has at most \(IdentityFacts.loginsMax) logins; unlink some")
        }
        try put(facts, over: held.dot, &batch, store)
        try own(lacking, facts, &batch, store)
        guard try Self.wrote(batch, store) else { return nil }
        // What a guest was given is good for nothing from here on.
        if kept.isGuest { endAccess(of: kept.id) }
        return facts
    }
}
