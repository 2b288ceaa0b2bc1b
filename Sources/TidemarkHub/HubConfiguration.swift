import Tidemark
public import TidemarkSync

/// Where a hub listens and whom it lets in, for one that serves replicas alone.
///
/// It is the short form of ``HubSettings``, which have pools, keys, issuers and all limits.
public struct HubConfiguration: Sendable {
    /// A name or address of this machine; `0.0.0.0` for all of IPv4, `::` for all.
    public var host: String
    /// 0 for any free port; ``onListening`` tells which.
    public var port: Int
    /// What callers must present as `Authorization: Bearer`. Must not be empty.
    public var token: String
    /// Larger requests are refused with status 413 before more than this is read.
    public var maxRequestBytes: Int
    /// How many requests work on the store at once: 1...1,024. They block on the disk, which is
    /// why they run on threads of their own. Each holds its message in memory.
    public var threads: Int
    /// Called once with the port, when connections are accepted.
    public var onListening: (@Sendable (Int) async -> Void)?
    /// Measures how long those who wait for news have waited.
    package var environment: any SyncEnvironment = SystemSyncEnvironment()

    public init(
        host: String = "127.0.0.1", port: Int = 8080, token: String,
        maxRequestBytes: Int = SyncLimits.messageBytesMax, threads: Int = 8,
        onListening: (@Sendable (Int) async -> Void)? = nil
    ) {
        self.host = host
        self.port = port
        self.token = token
        self.maxRequestBytes = maxRequestBytes
        self.threads = threads
        self.onListening = onListening
    }

    /// The same as settings. Who has the token is trusted, and asks as often as it likes.
    var settings: HubSettings {
        var settings = HubSettings()
        settings.host = host
        settings.port = port
        settings.adminToken = HubSecret(token)
        settings.messageBytesMax = maxRequestBytes
        settings.protection.readers = threads
        settings.protection.writers = threads
        settings.protection.requestsPerSecondOfAddress = Self.unbounded
        settings.protection.requestBurstOfAddress = Self.unbounded
        settings.protection.connectionsPerAddressMax = settings.protection.connectionsMax
        return settings
    }

    private static let unbounded = 1_000_000_000

    /// In the words of this type, as the store's own error.
    func check() throws(StoreError) {
        let problem: String? =
            if token.isEmpty {
                "the hub's token is empty; give one that is hard to guess"
            } else if !(0...65_535).contains(port) {
                "port \(port) does not exist; give one of 0...65535"
            } else if !(1...1_024).contains(threads) {
                "\(threads) threads are out of bounds; give 1...1024"
            } else if maxRequestBytes < 1 {
                "no request has \(maxRequestBytes) bytes; give a positive limit"
            } else {
                nil
            }
        if let problem {
            throw StoreError(.invalidArgument, problem)
        }
    }
}
