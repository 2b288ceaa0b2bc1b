/// The log that is made ahead of need, with the table of the memtable that goes with it.
struct LogSupply {
    /// The log, once it is made.
    private(set) var log: LogSegment?
    /// Made with it, once it is known how large it should be.
    private var keys: KeyTable?
    /// Whether one is to be made, or being made.
    private(set) var isAwaited = false
    /// Of the memtable before the active one.
    private(set) var keyCountBefore = 0

    /// Whether there is none, and none is being made.
    var isMissing: Bool { log == nil && !isAwaited }

    /// To be called when it is missing.
    mutating func ask() {
        precondition(isMissing, "a log is asked for beside another")
        isAwaited = true
    }

    /// Takes in what was made; nil if that failed.
    mutating func add(_ made: LogSegment?, keys madeKeys: KeyTable?) {
        isAwaited = false
        log = made
        keys = madeKeys
    }

    /// The log, which is the caller's from then on.
    mutating func takeLog() -> LogSegment? {
        defer { log = nil }
        return log
    }

    /// The table for the memtable of the next log, which begins now.
    ///
    /// - Parameter keyCount: of the memtable before.
    mutating func takeKeys(after keyCount: Int) -> KeyTable? {
        keyCountBefore = keyCount
        defer { keys = nil }
        return keys
    }

    /// Gives up all that was made.
    mutating func empty() -> LogSegment? {
        defer { (log, keys) = (nil, nil) }
        return log
    }

    /// - Parameter active: the number of the active log.
    func checkInvariants(active: UInt64) {
        precondition(log == nil || !isAwaited, "a log is made beside one that waits")
        precondition(log.map { $0.number != active } ?? true, "the active log waits to be begun")
    }
}

/// The numbers that files get, each once.
struct FileNumbers {
    private(set) var next: UInt64

    init(next: UInt64) {
        self.next = next
    }

    mutating func draw() -> UInt64 {
        defer { next += 1 }
        return next
    }

    /// Takes note of a number that was given out before.
    mutating func noteUsed(_ number: UInt64) {
        next = max(next, number + 1)
    }
}
