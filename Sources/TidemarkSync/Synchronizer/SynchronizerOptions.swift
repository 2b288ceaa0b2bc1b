/// How a ``Synchronizer`` works.
public struct SynchronizerOptions: Sendable {
    /// Under which name the store keeps the subscriptions and the times of exchanges: at most 255
    /// bytes of UTF-8. Of a store that is synchronised with several peers, each synchronizer needs
    /// a name of its own.
    public var name: String
    /// How each exchange is carried out.
    public var exchange: SyncOptions
    /// How often a run is tried in all, while its errors are such as pass: 1...1,000.
    public var attemptsMax: Int
    /// How long to wait between two attempts.
    public var backOff: BackOff
    /// How long one run may take, its waits included; nil for any time. After that it is cancelled
    /// and fails with ``SyncError/Code/timedOut``; what was applied until then stays.
    public var deadline: Duration?
    /// Which networks may be used.
    public var network: NetworkPolicy
    /// How long to wait between two questions for news, where the peer or the way to it cannot
    /// hold back its answer; at least a millisecond.
    public var pollInterval: Duration
    /// How many events are kept for a consumer that is behind: 1...1,000,000.
    public var eventsMax: Int
    /// How many datasets one question for news is about: fewer only in tests.
    var watchItemsMax = SyncLimits.watchedDatasetsMax

    public init(
        name: String = "", exchange: SyncOptions = SyncOptions(), attemptsMax: Int = 5,
        backOff: BackOff = BackOff(), deadline: Duration? = nil,
        network: NetworkPolicy = .anyNetwork, pollInterval: Duration = .seconds(15),
        eventsMax: Int = 1_024
    ) {
        self.name = name
        self.exchange = exchange
        self.attemptsMax = attemptsMax
        self.backOff = backOff
        self.deadline = deadline
        self.network = network
        self.pollInterval = pollInterval
        self.eventsMax = eventsMax
    }

    /// The same options with each number moved into its bounds.
    var bounded: SynchronizerOptions {
        var options = self
        options.attemptsMax = min(max(attemptsMax, 1), 1_000)
        options.pollInterval = max(pollInterval, .milliseconds(1))
        options.eventsMax = min(max(eventsMax, 1), 1_000_000)
        options.watchItemsMax = min(max(watchItemsMax, 1), SyncLimits.watchedDatasetsMax)
        return options
    }
}
