/// When the first record of a store expires, and when the next sweep may go after those that have.
/// Times are milliseconds since 1970.
///
/// Thread rule: under the store's writer lock.
struct ExpirySchedule {
    /// No record of any dataset expires before this; `.max` if none does.
    private(set) var first: UInt64
    /// The same of what was written since a walk over all datasets began; nil while there is none.
    private var firstInWalk: UInt64?
    /// The next sweep waits until then, so that sweeping never takes more than its share of time.
    private var sweepsFrom: UInt64 = 0

    /// Milliseconds between two sweeps at least.
    private static let restMin: UInt64 = 1_000
    /// A clock that was set is noticed after so many milliseconds.
    private static let sleepMax: UInt64 = 60_000

    init(first: UInt64) {
        self.first = first
    }

    /// Takes note of when the first record of a dataset expires in which one was written. Returns
    /// whether it is before all others.
    mutating func note(_ time: UInt64) -> Bool {
        if let known = firstInWalk { firstInWalk = min(known, time) }
        guard time < first else { return false }
        first = time
        return true
    }

    // MARK: - Walks over all datasets

    /// What is noted from now on counts beside what the walk finds. Until its end the old bound
    /// stands, since a log may end meanwhile and take it into the manifest.
    mutating func beginWalk() {
        firstInWalk = .max
    }

    /// - Parameter found: when the first record expires that the walk has met; nil if it was broken
    ///   off.
    mutating func endWalk(found: UInt64?) {
        if let found { first = min(found, firstInWalk ?? .max) }
        firstInWalk = nil
    }

    // MARK: - Sweeps

    /// Whether any record has expired.
    func hasExpired(at now: UInt64) -> Bool { first <= now }

    /// Whether to sweep now.
    func isDue(at now: UInt64) -> Bool { first <= now && sweepsFrom <= now }

    /// How long to sleep before it is looked again whether a sweep is due; nil if none ever is.
    func pause(at now: UInt64) -> UInt64? {
        let due = max(first, sweepsFrom)
        guard due < .max else { return nil }
        return due > now ? min(due - now, Self.sleepMax) : 1
    }

    /// Sweeping takes a tenth of the time at most, and a store with few records that expire one by
    /// one is not walked over for each of them. A clock that is set while a sweep runs makes
    /// neither a trap nor an endless rest.
    mutating func rest(afterSweepFrom start: UInt64, to end: UInt64) {
        let lasted = min(end > start ? end - start : 0, Self.sleepMax)
        let (next, isTooLate) = end.addingReportingOverflow(max(Self.restMin, 9 * lasted))
        sweepsFrom = isTooLate ? .max : next
    }

    /// Nothing is swept until the store is opened again.
    mutating func restForGood() {
        sweepsFrom = .max
    }
}
