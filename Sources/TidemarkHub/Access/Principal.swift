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
    /// Has the hub's own token: sees the shared datasets, the console and all usage.
    case admin
}
