/// Who makes a request, as far as that was proved.
enum Principal: Hashable, Sendable {
    case anonymous
    /// Has an access key of the hub's settings.
    ///
    /// - Parameter pools: those that the key is good for; nil for all.
    case developer(keyID: String, pools: Set<PoolID>?)
    /// Has temporary credentials, or a token of an issuer that the pool trusts.
    ///
    /// - Parameter isAuthenticated: false for a guest, who never signed in anywhere.
    case identity(IdentityID, pool: PoolID, isAuthenticated: Bool)
    /// Has a token of the settings for native synchronisation: sees the datasets of a space.
    case replica(space: String)
    /// Has the hub's own token: sees all datasets but the hub's own, metrics and all usage.
    case admin
}
