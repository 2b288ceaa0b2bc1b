/// Takes what is written and keeps nothing: for finding out how large files would become.
struct DiscardingStorage: Storage {
    /// Whose clock and randomness it has.
    let base: any Storage

    func createDirectory(_ path: String) throws(StoreError) {}

    func listDirectory(_ path: String) throws(StoreError) -> [String] { [] }

    func openFile(_ path: String, _ mode: FileMode) throws(StoreError) -> any StorageFile {
        DiscardingFile(path)
    }

    func rename(_ source: String, to target: String) throws(StoreError) {}

    func link(_ source: String, to target: String) throws(StoreError) -> Bool { false }

    func remove(_ path: String) throws(StoreError) {}

    func syncDirectory(_ path: String) throws(StoreError) {}

    func lock(_ directory: String) throws(StoreError) -> any StorageLock {
        DiscardingLock()
    }

    func wallClockMilliseconds() -> UInt64 { base.wallClockMilliseconds() }

    func monotonicNanoseconds() -> UInt64 { base.monotonicNanoseconds() }

    func randomUInt64() -> UInt64 { base.randomUInt64() }
}

private final class DiscardingLock: StorageLock {}

/// A file that takes everything. Nothing of it can be read.
private final class DiscardingFile: StorageFile {
    let path: String

    init(_ path: String) {
        self.path = path
    }

    private var holdsNothing: StoreError {
        StoreError(
            .inputOutput, "a file that is only measured holds nothing to be read",
            location: StoreError.Location(path: path))
    }

    func size() throws(StoreError) -> UInt64 { 0 }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(StoreError) {
        throw holdsNothing
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(StoreError) {}

    func sync() throws(StoreError) {}

    func truncate(to size: UInt64) throws(StoreError) {}

    func map(size: Int, reserving: Int) throws(StoreError) -> UnsafeMutableRawBufferPointer {
        throw holdsNothing
    }

    func reserve(_ size: Int) throws(StoreError) {}

    func mapForReading() throws(StoreError) -> UnsafeRawBufferPointer { throw holdsNothing }

    func populate(offset: Int, count: Int) throws(StoreError) {}

    func syncMapping(offset: Int, count: Int) throws(StoreError) {}
}
