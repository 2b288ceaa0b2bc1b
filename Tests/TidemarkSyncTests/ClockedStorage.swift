import Synchronization
import TestSupport
import Tidemark

/// The wall clock of one replica: that of the system, put forward as a test likes.
final class TestClock: Sendable {
    private let aheadMilliseconds = Mutex<UInt64>(0)
    /// Where the system's clock is taken to stand; nil if it goes on.
    private let stopped = Mutex<UInt64?>(nil)

    /// For so many seconds to come, what is written here is later than what is written where the
    /// clock was put forward less: a day, where anything else is written there after it, is enough
    /// for the slowest machine.
    func putForward(bySeconds seconds: UInt64) {
        aheadMilliseconds.withLock { $0 += seconds * 1_000 }
    }

    /// Stands still from here on, but for being put forward: for tests in which something must
    /// not be later than what was written by a clock a few minutes ahead, however long they take.
    func stop() {
        stopped.withLock { $0 = $0 ?? SystemStorage().wallClockMilliseconds() }
    }

    fileprivate func milliseconds(_ system: SystemStorage) -> UInt64 {
        let now = stopped.withLock { $0 } ?? system.wallClockMilliseconds()
        return now + aheadMilliseconds.withLock { $0 }
    }
}

/// The real disk beside a clock of the replica's own.
struct ClockedStorage: WrappedStorage {
    let clock: TestClock
    /// Whether files can be told from their copies. Without that a directory that is put back is
    /// for its store what a snapshot of the whole machine is that is put back.
    let tellsCopies: Bool
    let base = SystemStorage()

    init(_ clock: TestClock, tellsCopies: Bool = false) {
        self.clock = clock
        self.tellsCopies = tellsCopies
    }

    func place(of path: String) -> FilePlace? { tellsCopies ? base.place(of: path) : nil }

    func wallClockMilliseconds() -> UInt64 { clock.milliseconds(base) }

    func monotonicNanoseconds() -> UInt64 { base.monotonicNanoseconds() }
}
