/// An identity pool: whom it lets in, and what happens with what they write.
public struct PoolSettings: Hashable, Sendable {
    /// Who wins when a device changes what another one has changed meanwhile.
    public enum Strategy: String, Hashable, Sendable, CaseIterable {
        /// Nobody: the call fails, as in Cognito Sync, and the device merges.
        case reject
        /// The one that comes later, or whose device says so with `usesDeviceDates`.
        case lastWriterWins
        /// Both, where values are JSON and do not change the same thing; else as by `reject`.
        case autoMerge
        /// What the resolver says: an endpoint, or a closure of the embedding process.
        case resolver
    }

    /// An HTTP or HTTPS endpoint, and the secret that signs what is posted to it.
    public struct Endpoint: Hashable, Sendable {
        public var url: String
        public var secret: HubSecret

        public init(url: String, secret: HubSecret) {
            self.url = url
            self.secret = secret
        }
    }

    /// Where every change goes, at least once and in the order of each dataset.
    public enum Stream: Hashable, Sendable {
        case endpoint(Endpoint)
        /// Appended, a line of JSON each.
        case file(path: String)
        case standardOutput
    }

    /// Where notices go besides the devices that are connected.
    public enum Push: Hashable, Sendable {
        case none
        case log
        case endpoint(Endpoint)
    }

    /// Such as `us-east-1:` and a UUID.
    public var id: String
    /// For people.
    public var name: String
    /// Whether who has not signed in anywhere gets an identity.
    public var allowsGuests = false
    /// Providers of the issuers whose logins count. Each is one of the settings' issuers.
    public var providers: [String] = []
    /// Under which name the app's own service knows its users; nil for no such users.
    public var developerProvider: String?
    public var strategy = Strategy.reject
    /// By the name of a dataset, in place of `strategy`.
    public var datasetStrategies: [String: Strategy] = [:]
    /// Whether `lastWriterWins` goes by the clocks of devices. They may be wrong; without it the
    /// hub's is used.
    public var usesDeviceDates = false
    public var resolver: Endpoint?
    /// In place of a Lambda function: sees each update before it is written. What SetCognitoEvents
    /// may name; nil for none but closures.
    public var trigger: Endpoint?
    /// What SetIdentityPoolConfiguration may turn on; nil for none.
    public var stream: Stream?
    /// Bytes of changes that wait for a stream that does not take them. Beyond, it is turned off.
    public var streamBytesMax = 1 << 30
    public var push = Push.none

    public init(id: String, name: String) {
        self.id = id
        self.name = name
    }
}
