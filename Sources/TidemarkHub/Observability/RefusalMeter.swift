import Synchronization

/// Lets so many lines of refusals into the log each second, and counts the others: whoever has
/// nothing but a flood of requests must not fill the disk with what the hub says of them.
final class RefusalMeter: Sendable {
    private struct State {
        /// Of the second that is counted; nil before the first line.
        var began: ContinuousClock.Instant?
        var lineCount = 0
        var omittedCount = 0
    }

    private let linesPerSecond: Int
    private let state = Mutex(State())

    init(linesPerSecond: Int) {
        self.linesPerSecond = linesPerSecond
    }

    /// Counts a line.
    ///
    /// - Returns: nil if it is to be left out; else how many have been since the last one.
    func admit(at now: ContinuousClock.Instant) -> Int? {
        state.withLock { state in
            if now - (state.began ?? now) >= .seconds(1) || state.began == nil {
                state.began = now
                state.lineCount = 0
            }
            guard state.lineCount < linesPerSecond else {
                state.omittedCount += 1
                return nil
            }
            state.lineCount += 1
            defer { state.omittedCount = 0 }
            return state.omittedCount
        }
    }
}
