/// When a ``Synchronizer`` synchronises by itself, between ``Synchronizer/start()`` and
/// ``Synchronizer/stop()``.
public struct SyncSchedule: Hashable, Sendable {
    /// From the end of one run to the beginning of the next. nil, the default: never by the clock.
    public var interval: Duration?
    /// From a change here, which the peer is not known to have, to the exchange of its dataset: so
    /// that writes in a row leave together. What does not arrive is tried again after waits that
    /// grow (see ``SynchronizerOptions/backOff``). nil, the default: writes wait for another
    /// occasion.
    public var afterWrite: Duration?
    /// When the last full exchange of all datasets is longer ago than this, the next run of all
    /// datasets is a full one. Measured from the last *full* one, so that short intervals do not
    /// put it off for ever. nil, the default: never by itself.
    public var fullSyncAfter: Duration?

    public init(
        interval: Duration? = nil, afterWrite: Duration? = nil, fullSyncAfter: Duration? = nil
    ) {
        self.interval = interval
        self.afterWrite = afterWrite
        self.fullSyncAfter = fullSyncAfter
    }

    /// - Parameters:
    ///   - last: when the last full exchange ended, in milliseconds since 1970; nil if unknown.
    ///   - now: in milliseconds since 1970.
    func isFullSyncDue(last: UInt64?, now: UInt64) -> Bool {
        guard let fullSyncAfter else { return false }
        // A clock that was set back says nothing of how long it is ago.
        guard let last, last <= now else { return true }
        return .milliseconds(now - last) >= fullSyncAfter
    }
}
