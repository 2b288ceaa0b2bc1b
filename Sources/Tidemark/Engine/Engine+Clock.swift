// Whose time is believed. The hybrid clock goes along with what it sees, so that a write is later
// than all that it has seen. One clock that is years ahead would drag all others along, and from
// then on none of them would say anything. So what is dated further ahead of the wall clock than
// `StoreOptions.clockAheadMax` moves nothing: neither when it comes, nor when a log is replayed.
//
// A write that has seen such a one may therefore be dated before it. It wins all the same, because
// it descends from it (`Version.relation`).

extension EngineParts {
    /// The latest time of anybody else's write that this store believes.
    var latestBelieved: HybridTime {
        .latestBelieved(at: storage, aheadMax: options.clockAheadMax)
    }
}

extension EngineState {
    /// Takes note of somebody else's time, if it is believed.
    func see(_ time: HybridTime) {
        // Mostly it is no news, and then the wall clock need not be asked.
        guard time > clock.last else { return }
        clock.see(time, notAfter: latestBelieved)
    }
}

extension HybridTime {
    /// The end of the millisecond that is so far ahead of the wall clock.
    static func latestBelieved(at storage: any Storage, aheadMax: Duration) -> HybridTime {
        let (sum, overflow) = storage.wallClockMilliseconds().addingReportingOverflow(
            aheadMax.millisecondsClamped)
        return HybridTime(endOfMillisecond: overflow ? .max : sum)
    }

    /// So little later that nothing else lies in between. Whoever asks has bounded the time.
    var next: HybridTime { HybridTime(rawValue: rawValue &+ 1) }
}
