public import TidemarkSync

/// Where a hub listens and whom it lets in.
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
}
