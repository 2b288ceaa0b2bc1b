/// How long to wait between two attempts: longer each time, and not for all replicas equally long.
///
/// The n-th wait is `first` times `factor` to the power n - 1, at most `longest`; of that a random
/// part, up to the share `jitter`, is taken away. So replicas that lost the same hub at the same
/// moment do not all come back at the same moment. (Brooker: "Exponential Backoff And Jitter",
/// 2015.)
public struct BackOff: Hashable, Sendable {
    public var first: Duration
    /// At least 1.
    public var factor: Double
    public var longest: Duration
    /// 0 (always the whole wait) to 1 (anything between nothing and the whole wait).
    public var jitter: Double

    public init(
        first: Duration = .milliseconds(100), factor: Double = 2, longest: Duration = .seconds(300),
        jitter: Double = 0.5
    ) {
        self.first = first
        self.factor = factor
        self.longest = longest
        self.jitter = jitter
    }

    /// How long to wait after so many failures in a row.
    ///
    /// - Parameters:
    ///   - failures: 1 for the first wait.
    ///   - random: 64 random bits.
    public func delay(after failures: Int, random: UInt64) -> Duration {
        let longest = max(longest, .zero)
        var delay = min(max(first, .zero), longest)
        let growth = factor.isFinite ? max(1, factor) : 1
        var steps = max(failures, 1) - 1
        // Stops at the bound, so that no number of failures takes long or overflows.
        while steps > 0, growth > 1, delay > .zero, delay < longest {
            delay = delay > longest / growth ? longest : delay * growth
            steps -= 1
        }
        let share = jitter.isNaN ? 0 : min(max(jitter, 0), 1)
        // The upper 53 bits: all that a Double can tell apart below 1.
        let fraction = Double(random >> 11) / Double(UInt64(1) << 53)
        return delay - delay * (share * fraction)
    }

    /// The same, but no less than the peer has asked for, as far as that is not beyond ``longest``:
    /// nobody's word makes a replica wait for ever.
    func delay(after failures: Int, random: UInt64, atLeast asked: Duration?) -> Duration {
        let delay = delay(after: failures, random: random)
        return max(delay, min(asked ?? .zero, max(longest, .zero)))
    }
}

extension SyncError {
    /// Whether the same exchange may succeed if it is simply repeated after a while: the peer is
    /// not there, is busy, failed by its own account, or became another one. Everything else stays
    /// as it is until somebody changes something, and is told at once.
    public var isTransient: Bool {
        [.unreachable, .contended, .peerChanged, .peerFailed].contains(code)
    }
}
