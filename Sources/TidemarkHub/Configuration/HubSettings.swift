import TidemarkSync

/// All that a hub can be told. The defaults listen on this machine alone, and let nobody in.
///
/// `tidemark serve` reads them from flags, the environment and a file; a process that embeds the
/// hub sets what it needs. ``check()`` is called when the hub starts.
public struct HubSettings: Sendable {
    /// Files in the form PEM. Both are read anew when they have changed.
    public struct TLS: Hashable, Sendable {
        /// The hub's certificate first, then those that lead to a root.
        public var certificateFile: String
        public var keyFile: String
        /// How often it is looked whether the files have changed.
        public var reloadSeconds = 60

        public init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// Permanent credentials of whoever runs the app's service.
    public struct AccessKey: Hashable, Sendable {
        public var id: String
        /// At least 16 bytes.
        public var secret: HubSecret
        /// Ids of the pools that it is good for; nil for all.
        public var pools: [String]?

        public init(id: String, secret: HubSecret, pools: [String]? = nil) {
            self.id = id
            self.secret = secret
            self.pools = pools
        }
    }

    /// Ways in which a bearer's token can be good.
    public enum AuthMode: String, Hashable, Sendable, CaseIterable {
        /// It is ``HubSettings/adminToken``.
        case hub
        /// It is one of ``HubSettings/bearers``.
        case bearers
        /// The hub itself gave it to an identity.
        case identities
        /// An issuer signed it.
        case issuers
    }

    /// A token for native synchronisation that does not change, for replicas that have none of an
    /// issuer.
    public struct StaticBearer: Hashable, Sendable {
        /// What a replica with the token sees.
        public enum Reach: Hashable, Sendable {
            /// Datasets that all bearers of one space share, and nobody else has but the admin.
            case space(String)
            /// Those of an identity, as if it had signed in.
            case identity(String, pool: String)
        }

        /// At least 16 bytes of visible ASCII.
        public var token: HubSecret
        public var reach: Reach

        public init(token: HubSecret, reach: Reach) {
            self.token = token
            self.reach = reach
        }
    }

    /// A name or address of this machine; `0.0.0.0` for all of IPv4, `::` for all.
    public var host = "127.0.0.1"
    /// 0 for any free port.
    public var port = 8080
    /// Without it the hub speaks plain HTTP/1.1; with it HTTP/2 as well.
    public var tls: TLS?
    /// What signs credentials and tokens of the hub's own: 1...8 secrets of 32 bytes or more, in
    /// base64 on a line of its own. The first one signs, all verify: put a new one in front to
    /// change it. Without any one is made at each start, and what it signed ends with the process.
    public var secrets: HubSecret?
    /// Opens all datasets but the hub's own to replicas, and usage and metrics. nil: nobody has it.
    public var adminToken: HubSecret?
    public var bearers: [StaticBearer] = []
    /// In which order bearers' tokens are tried. What is left out is not taken.
    public var authModes = AuthMode.allCases
    /// Of the Cognito API.
    public var region = "us-east-1"
    /// Of temporary credentials: 900...43,200.
    public var credentialSeconds = 3_600
    public var accessKeys: [AccessKey] = []
    public var issuers: [IssuerSettings] = []
    public var pools: [PoolSettings] = []
    public var limits = HubLimits()
    public var protection = ProtectionSettings()
    /// Origins of web pages that may call the hub, such as `https://app.example.com`; `*` for all.
    public var allowedOrigins: [String] = []
    /// Whether `GET /metrics` answers those without the admin token, too.
    public var hasOpenMetrics = false
    /// Whether spans are made for swift-distributed-tracing.
    public var traces = false
    /// Whether a line is logged for each request that is answered; refusals and failures always
    /// are.
    public var logsRequests = false
    /// Bytes of a message of the sync protocol. More: 413.
    public var messageBytesMax = SyncLimits.messageBytesMax
    /// Whether the admin token sees the hub's own datasets too, so that one hub can be the replica
    /// of another.
    public var replicatesHub = false
    /// What was read and has no effect, a line each, such as variables of the environment that are
    /// no settings. The hub logs them when it starts.
    public internal(set) var warnings: [String] = []

    public init() {}
}
