import Synchronization
import TestSupport
import Tidemark

/// A clock that stands still until a test moves it.
final class FixtureClock: Sendable {
    private let milliseconds: Mutex<UInt64>

    /// - Parameter start: milliseconds since 1970.
    init(_ start: UInt64) {
        milliseconds = Mutex(start)
    }

    var now: UInt64 { milliseconds.withLock { $0 } }

    func wait(minutes: UInt64) {
        milliseconds.withLock { $0 += minutes * 60_000 }
    }
}

/// A disk in memory beside a clock that several replicas share, on which a store gets a given id.
final class FixtureDisk: WrappedStorage {
    let base: SimulatedStorage
    private let clock: FixtureClock
    /// The first numbers that are drawn, which a new store makes its id of.
    private let given: Mutex<[UInt64]>
    private let aheadMilliseconds = Mutex<UInt64>(0)

    init(_ id: ReplicaID, _ clock: FixtureClock) {
        base = SimulatedStorage(seed: Seed(id.high))
        self.clock = clock
        given = Mutex([id.low, id.high])
    }

    /// From here on the clock of this disk alone is ahead of the common one.
    func putForward(milliseconds: UInt64) {
        aheadMilliseconds.withLock { $0 += milliseconds }
    }

    /// Every file of a directory but the lock as it is at this moment, without the zeros that a log
    /// has in reserve: what a process leaves behind that is killed now.
    func files(in directory: String) throws(StoreError) -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in try base.listDirectory(directory) where name != "LOCK" {
            var bytes = base.contents(of: "\(directory)/\(name)") ?? []
            if name.hasSuffix(".log") {
                let end = bytes.lastIndex { $0 != 0 } ?? 0
                bytes.removeLast(max(0, bytes.count - (end / 4_096 + 1) * 4_096))
            }
            files[name] = bytes
        }
        return files
    }

    func randomUInt64() -> UInt64 {
        given.withLock { $0.popLast() } ?? base.randomUInt64()
    }

    func wallClockMilliseconds() -> UInt64 {
        clock.now + aheadMilliseconds.withLock { $0 }
    }
}
