/// Names of the hub's own datasets that hold what belongs to identities. Nothing that a client
/// names reaches them: see `StoreNames`.
enum HubDatasets {
    /// Identity id -> ``IdentityFacts`` as JSON.
    static let identities = StoreNames.ownPrefix + "identities"
    /// Pool, provider and subject, with a zero byte between them -> identity id.
    static let logins = StoreNames.ownPrefix + "logins"
    /// Beginning with a dataset's name in the store and a zero byte.
    static let sheets = StoreNames.ownPrefix + "sheets"
    static let subscriptions = StoreNames.ownPrefix + "subscriptions"
    /// Beginning with an identity id and a zero byte.
    static let devices = StoreNames.ownPrefix + "devices"
    /// Beginning with a pool id, an identity id, and a zero byte behind each.
    static let notices = StoreNames.ownPrefix + "notices"
}
