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
final class FixtureDisk: Storage {
    private let disk: SimulatedStorage
    private let clock: FixtureClock
    /// The first numbers that are drawn, which a new store makes its id of.
    private let given: Mutex<[UInt64]>
    private let aheadMilliseconds = Mutex<UInt64>(0)

    init(_ id: ReplicaID, _ clock: FixtureClock) {
        disk = SimulatedStorage(seed: Seed(id.high))
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
        for name in try disk.listDirectory(directory) where name != "LOCK" {
            var bytes = disk.contents(of: "\(directory)/\(name)") ?? []
            if name.hasSuffix(".log") {
                let end = bytes.lastIndex { $0 != 0 } ?? 0
                bytes.removeLast(max(0, bytes.count - (end / 4_096 + 1) * 4_096))
            }
            files[name] = bytes
        }
        return files
    }

    func randomUInt64() -> UInt64 {
        given.withLock { $0.popLast() } ?? disk.randomUInt64()
    }

    func wallClockMilliseconds() -> UInt64 {
        clock.now + aheadMilliseconds.withLock { $0 }
    }

    func createDirectory(_ path: String) throws(StoreError) { try disk.createDirectory(path) }

    func listDirectory(_ path: String) throws(StoreError) -> [String] {
        try disk.listDirectory(path)
    }

    func openFile(_ path: String, _ mode: FileMode) throws(StoreError) -> any StorageFile {
        try disk.openFile(path, mode)
    }

    func rename(_ source: String, to target: String) throws(StoreError) {
        try disk.rename(source, to: target)
    }

    func link(_ source: String, to target: String) throws(StoreError) -> Bool {
        try disk.link(source, to: target)
    }

    func remove(_ path: String) throws(StoreError) { try disk.remove(path) }

    func syncDirectory(_ path: String) throws(StoreError) { try disk.syncDirectory(path) }

    func lock(_ directory: String) throws(StoreError) -> any StorageLock {
        try disk.lock(directory)
    }
}
