import Tidemark

/// Subscribed datasets with conflicts that wait, and when the policy is asked about them again.
/// They hold up nothing else: whoever waits for news of other datasets waits on, for no longer than
/// until then.
struct UnsettledDatasets {
    private let backOff: BackOff
    private(set) var names: Set<String> = []
    /// Of these, what the peer would announce without end, because no position can move past what
    /// waits. It is not asked about until it is settled.
    private(set) var silenced: Set<String> = []
    /// How often in a row some were exchanged again and were not settled.
    private var rounds = 0
    /// When it began to wait, in milliseconds since 1970, and how long.
    private var start: UInt64 = 0
    private var delay = Duration.zero

    init(backOff: BackOff) {
        self.backOff = backOff
    }

    /// Forgets those to which nobody subscribes any more.
    mutating func keep(_ subscribed: Set<String>) {
        names.formIntersection(subscribed)
        silenced.formIntersection(subscribed)
        if names.isEmpty { rounds = 0 }
    }

    /// How long until they are to be exchanged again; nil if there are none. A clock that went back
    /// makes it no longer than it was at first.
    func pause(at now: UInt64) -> Duration? {
        guard !names.isEmpty else { return nil }
        let passed = Duration.milliseconds(Int64(clamping: now >= start ? now - start : 0))
        return max(.zero, delay - passed)
    }

    /// Which are to be exchanged now.
    func due(at now: UInt64) -> Set<String> {
        pause(at: now) == .zero ? names : []
    }

    /// Takes note of a run.
    ///
    /// - Parameters:
    ///   - left: those whose conflicts wait now.
    ///   - ran: what was exchanged.
    mutating func note(
        _ left: Set<String>, of ran: Set<String>, at now: UInt64, random: () -> UInt64
    ) {
        let wereThere = !names.isEmpty
        let wereDue = due(at: now) == names && ran.isSuperset(of: names)
        names = names.subtracting(ran).union(left.intersection(ran))
        silenced.formIntersection(names)
        guard !names.isEmpty else {
            rounds = 0
            return
        }
        // News of one of them are no reason to ask about the others earlier, or later.
        guard !wereThere || wereDue else { return }
        rounds += 1
        start = now
        // Never none at all, or they would be exchanged without a pause.
        delay = max(.milliseconds(1), backOff.delay(after: rounds, random: random()))
    }

    mutating func silence(_ name: String) {
        silenced.insert(name)
    }
}

extension Duration {
    /// 0 for what is negative.
    var millisecondsRoundedUp: Int {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        guard !overflow else { return .max }
        let (fraction, rest) = attoseconds.quotientAndRemainder(
            dividingBy: 1_000_000_000_000_000)
        let (sum, isTooMuch) = whole.addingReportingOverflow(fraction + (rest > 0 ? 1 : 0))
        return isTooMuch ? .max : Int(clamping: sum)
    }
}
