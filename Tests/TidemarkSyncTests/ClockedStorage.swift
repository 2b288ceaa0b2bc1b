import Synchronization
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
struct ClockedStorage: Storage {
    let clock: TestClock
    private let system = SystemStorage()

    init(_ clock: TestClock) {
        self.clock = clock
    }

    func wallClockMilliseconds() -> UInt64 { clock.milliseconds(system) }

    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }

    func randomUInt64() -> UInt64 { system.randomUInt64() }

    func createDirectory(_ path: String) throws(StoreError) { try system.createDirectory(path) }

    func listDirectory(_ path: String) throws(StoreError) -> [String] {
        try system.listDirectory(path)
    }

    func openFile(_ path: String, _ mode: FileMode) throws(StoreError) -> any StorageFile {
        try system.openFile(path, mode)
    }

    func rename(_ source: String, to target: String) throws(StoreError) {
        try system.rename(source, to: target)
    }

    func link(_ source: String, to target: String) throws(StoreError) -> Bool {
        try system.link(source, to: target)
    }

    func remove(_ path: String) throws(StoreError) { try system.remove(path) }

    func syncDirectory(_ path: String) throws(StoreError) { try system.syncDirectory(path) }

    func lock(_ directory: String) throws(StoreError) -> any StorageLock {
        try system.lock(directory)
    }
}
