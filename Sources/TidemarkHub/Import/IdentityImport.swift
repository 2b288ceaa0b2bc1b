import Tidemark
import TidemarkSync

/// Writes facts of identities into the store of a hub: under the ids that their devices know.
struct IdentityImport: Sendable {
    let directory: IdentityDirectory
    let store: Store

    enum Outcome: Hashable, Sendable {
        case open
        /// It has logins, and nobody said whose: until then no credentials of it are given out,
        /// since otherwise whoever knows its id would be taken for its user.
        case closed
        /// A login that is another's here, or an identity that is of another pool or merged.
        case refused(String)
    }

    /// Whether what comes for an identity may be written: not if it is another pool's here, or is
    /// or goes into another one, whose devices would never see it. To be asked before anything of
    /// it is.
    func takes(_ id: IdentityID, of pool: PoolID) throws(StoreError) -> Bool {
        guard let facts = try directory.identity(id, in: store) else { return true }
        return Self.isOpen(facts, pool)
    }

    private static func isOpen(_ facts: IdentityFacts, _ pool: PoolID) -> Bool {
        facts.pool == pool && facts.mergedInto == nil && facts.merging == nil
            && facts.absorbing.isEmpty
    }

    static let refusal = "it is of another pool here, or was merged with another identity"

    /// - Parameters:
    ///   - hasLogins: whether it has any where it comes from.
    ///   - logins: those that are known.
    func write(
        _ id: IdentityID, in pool: PoolID, created: UInt64, hasLogins: Bool,
        logins: [VerifiedLogin]
    ) throws -> Outcome {
        let held = try directory.held(id, in: store)
        var facts = held?.facts ?? IdentityFacts(id: id, pool: pool, created: created)
        guard Self.isOpen(facts, pool) else { return .refused(Self.refusal) }
        var added: [VerifiedLogin] = []
        for login in logins where !facts.logins.contains(login) && !added.contains(login) {
            guard login.isWithinBounds else {
                return .refused("a login of \(login.provider) is out of bounds")
            }
            switch try directory.owner(of: login, in: pool, store) {
            case nil: added.append(login)
            case id?: continue
            case let owner?: return .refused("its login of \(login.provider) is of \(owner) here")
            }
        }
        facts.logins += added
        guard facts.logins.count <= IdentityFacts.loginsMax else {
            return .refused("it has more than \(IdentityFacts.loginsMax) logins")
        }
        // Also one that was a guest when it was brought over the last time.
        if hasLogins, facts.logins.isEmpty { facts.isEnabled = false }
        if !added.isEmpty { facts.isEnabled = true }
        if held == nil || facts != held?.facts {
            facts.modified = directory.clock.now()
            var batch = WriteBatch()
            try directory.put(facts, over: held?.dot, &batch, store)
            try directory.own(added, facts, &batch, store)
            try store.write(batch)
        }
        return facts.isEnabled ? .open : .closed
    }
}
