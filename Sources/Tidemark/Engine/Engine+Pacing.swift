internal import Synchronization

// Who waits for whom.
//
// Writers fill the active log faster than two threads can seal logs. Two logs may wait, and then
// writers have to. They do so in small steps: the active log may be filled as far as the sealing
// of the oldest one has come, so that no writer meets a wait as long as the sealing of a whole log.
//
// Merges come last. While writers wait for sealing a merge rests, so that sealing has the disk and
// a processor for itself; but not once there are many runs, since readers look into each of them.
// If there are still more, sealing takes its time, and with it the writers.

/// How far writers may fill the active log and its memtable.
struct WriterPace: Equatable {
    static let free = WriterPace(logBytes: .max, nodeBytes: .max)

    /// Of the log.
    private let logBytes: Int
    /// Of the memtable: small entries fill that long before the log.
    private let nodeBytes: Int

    private init(logBytes: Int, nodeBytes: Int) {
        self.logBytes = logBytes
        self.nodeBytes = nodeBytes
    }

    /// - Parameter parts: of 1,024.
    init(parts: Int, of memtable: Memtable, _ budget: MemoryBudget) {
        logBytes = memtable.log.capacity * parts / 1_024
        nodeBytes = memtable.nodeBytesMax(within: budget.memtableBytesMax) * parts / 1_024
    }

    @inline(__always)
    func holdsBack(_ memtable: Memtable) -> Bool {
        memtable.log.appended >= logBytes || memtable.nodeBytes >= nodeBytes
    }
}

/// How far the sealing of a log has come.
enum SealProgress {
    case begun
    /// So many of 1,024 parts are written.
    case merged(Int)
    /// What is left is to write the indexes and to sync.
    case written
}

extension EngineState {
    // MARK: - Writers

    /// Lets writers go as far as the sealing of the oldest log in the queue has come.
    func updatePace() {
        guard sealing.isFull, let active, let progress = sealing.progress
        else {
            pace = .free
            return
        }
        // To sort the log takes as long as a quarter of the whole, and to finish a fifth.
        switch progress {
        case .begun: pace = WriterPace(parts: 256, of: active, budget)
        case .merged(let parts):
            pace = WriterPace(parts: 256 + parts * 11 / 20, of: active, budget)
        case .written: pace = .free
        }
    }

    /// Takes note of how far the sealing of a log has come.
    func note(_ progress: SealProgress, ofSealing memtable: Memtable) {
        sealing.note(progress, of: memtable)
        if sealing.oldestLog == memtable.log.number { updatePace() }
    }
}

extension Engine {
    /// For the merge that seals a log: takes note of how far it has come, each time it is asked.
    func sealPause(_ memtable: Memtable) -> () -> Bool {
        let total = memtable.count + memtable.log.appended >> 10
        var done = 0
        return { [self] in
            done += SegmentMerge.stepsMax
            let parts = min(1_024, done * 1_024 / max(1, total))
            withLock { held in
                held.note(.merged(parts), ofSealing: memtable)
                if held.pace != .free { held.broadcast() }
            }
            // Where nobody merges in the background, to wait for that would be of no use.
            let runCount = options.compactsAutomatically ? currentView.runs.count : 0
            let delay = Self.sealDelay(runCount: runCount)
            if delay > 0, !withLock({ held in held.isClosing }) { rest(milliseconds: delay) }
            return false
        }
    }
}

extension EngineParts {
    /// Entries are sealed more slowly where there are many runs: milliseconds for each step.
    static func sealDelay(runCount: Int) -> UInt64 {
        UInt64(min(max(0, runCount - runsManyMax), sealDelayMax))
    }

    /// More runs than that slow the writers down.
    static let runsManyMax = 32
    private static let sealDelayMax = 16
}

extension Engine {
    // MARK: - Merges

    /// For a merge: asked now and then whether to give up because the store is closed. Answers
    /// after a rest, if one is due.
    func mergePause(_ writer: SegmentRunWriter) -> () -> Bool {
        var paid: UInt64 = 0
        return { [self] in
            let rate = UInt64(options.compactionBytesPerSecond)
            if rate > 0 {
                let (seconds, rest) = (writer.byteCount - paid).quotientAndRemainder(
                    dividingBy: rate)
                let milliseconds = seconds * 1_000 + rest * 1_000 / rate
                if milliseconds > 0 {
                    paid = writer.byteCount
                    wait(milliseconds: milliseconds)
                }
            }
            while withLock({ held in held.hasToYield }) { rest(milliseconds: Self.restMax) }
            return withLock { held in held.isClosing }
        }
    }
}

extension EngineState {
    /// Whether writers wait for sealing, and readers can bear some more runs.
    fileprivate var hasToYield: Bool {
        sealing.isFull && !isClosing && failure == nil
            && currentView.runs.count < Self.runsYieldMax
    }
}

extension EngineParts {
    /// With so many runs merges go on whoever waits.
    static let runsYieldMax = 16
}

extension Engine {
    /// Milliseconds of a rest in one piece, after which it is looked whether the store closes.
    private static let restMax: UInt64 = 5

    private func wait(milliseconds: UInt64) {
        var left = milliseconds
        while left > 0, !withLock({ held in held.isClosing }) {
            let step = min(left, Self.restMax)
            rest(milliseconds: step)
            left -= step
        }
        withLock { held in held.counted.mergeRestMilliseconds += milliseconds - left }
    }

    /// On a condition of its own, which nobody signals: others are told of far too many things.
    private func rest(milliseconds: UInt64) {
        pacing.lock()
        defer { pacing.unlock() }
        pacing.wait(milliseconds: milliseconds)
    }

    // MARK: - Logs

    /// The body of the thread that makes logs ahead of need, so that neither writers nor sealing
    /// wait for the disk.
    func runPreparing() {
        withLock { held in
            while !held.isClosed {
                if held.failure == nil, held.supply.isAwaited {
                    held.prepareLog()
                } else {
                    held.wait()
                }
            }
        }
    }
}

extension Store {
    /// For tests: whether closing has begun.
    package var isClosing: Bool { engine.withLock { held in held.isClosing } }

    /// For tests: how long merges were to rest since opening for the sake of
    /// ``StoreOptions/compactionBytesPerSecond``. How long they did is for the clock to say.
    package var mergeRestMilliseconds: UInt64 {
        engine.withLock { held in held.counted.mergeRestMilliseconds }
    }
}
