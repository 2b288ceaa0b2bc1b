/// What the hub takes at most, from each and in all, so that nobody costs the others much. Each
/// bound has its answer: see the article Security.
public struct ProtectionSettings: Hashable, Sendable {
    /// Connections in all. Those beyond it are closed at once.
    public var connectionsMax = 4_096
    /// Connections of one address. Behind a proxy all have one: raise it there.
    public var connectionsPerAddressMax = 256
    /// Within which a connection must have brought the head of a request, with the handshake of
    /// TLS. It is closed then.
    public var headSeconds = 10
    /// After which a connection without a request, or with one that does not go on, is closed.
    public var idleSeconds = 75
    /// Bytes a second that the body of a request must bring on average once it has lasted
    /// `headSeconds`. The connection of a slower one is closed.
    public var bodyBytesPerSecondMin = 1_024
    /// Fields of a request's head. More: 431.
    public var headFieldsMax = 64
    /// Bytes of a request's head in all. More: 400 or 431.
    public var headBytesMax = 16_384
    /// Bytes of a body of the Cognito Sync API. More: 413.
    public var bodyBytesMax = 4 << 20
    /// Bytes of any other body but those of the sync protocol. More: 413.
    public var otherBodyBytesMax = 65_536
    /// Bytes of bodies that are in memory at once, in all, with those of answers of 32 KiB or more
    /// that have not been taken yet. More: 503.
    public var bodiesBytesMax = 256 << 20
    /// Requests a second of one address, on average. More: 429.
    public var requestsPerSecondOfAddress = 2_000
    /// Requests of one address at once, before the average counts.
    public var requestBurstOfAddress = 4_000
    /// Requests a second of one identity, on average. More: 429.
    public var requestsPerSecondOfIdentity = 50
    public var requestBurstOfIdentity = 200
    /// Calls of GetId a second of one address, on average, since each can make an identity.
    /// More: 429.
    public var newIdentitiesPerSecondOfAddress = 20
    public var newIdentityBurstOfAddress = 200
    /// Addresses and identities whose rates are remembered. The ones that asked longest ago give
    /// way.
    public var ratesMax = 65_536
    /// Calls that read the store, under way and waiting, and as many that write. More: 429.
    public var storeCallsMax = 1_024
    /// Threads that read the store.
    public var readers = 4
    /// Threads that write to it. They wait together for the disk.
    public var writers = 64
    /// How long requests under way may take to end once the hub shuts down.
    public var drainSeconds = 30

    public init() {}
}
