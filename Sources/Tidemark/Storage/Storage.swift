/// The one door to the operating system: files, directories, the clock, randomness.
///
/// Everything that the store does to the outside goes through it, so that tests can put a
/// simulated disk and clock behind it.
package protocol Storage: Sendable {
    /// Fine if it is there already.
    func createDirectory(_ path: String) throws(StoreError)

    /// Names within, without "." and "..", in any order.
    func listDirectory(_ path: String) throws(StoreError) -> [String]

    /// - Throws: `notAStore` if there is no such file.
    func openFile(_ path: String, _ mode: FileMode) throws(StoreError) -> any StorageFile

    /// Atomically takes the place of what is at the target.
    func rename(_ source: String, to target: String) throws(StoreError)

    /// Gives each of two directories the name of the other in one step: at no moment does nothing
    /// stand under one of the names. False if the system, or the file system, cannot.
    func exchange(_ first: String, with second: String) throws(StoreError) -> Bool

    /// Gives a file a second name that nothing has yet, so that both stand for the same bytes.
    /// False if the two names lie on different file systems, the file system has no such names,
    /// or the file is gone: then it can only be copied.
    func link(_ source: String, to target: String) throws(StoreError) -> Bool

    /// Fine if it is gone already.
    func remove(_ path: String) throws(StoreError)

    /// What the very file at a path has, and no copy of it, wherever that is made and whatever it
    /// keeps of the file's times. Stays as it is when the file is written to or renamed. nil if the
    /// file system does not tell.
    func place(of path: String) -> FilePlace?

    /// Makes creations, renames and removals within durable.
    func syncDirectory(_ path: String) throws(StoreError)

    /// Takes the exclusive lock of a directory, until the result is let go. Removing files in it
    /// takes the lock from nobody.
    /// - Throws: `locked` naming the holder's process id, as far as that is known.
    func lock(_ directory: String) throws(StoreError) -> any StorageLock

    /// Milliseconds since 1970-01-01 UTC.
    func wallClockMilliseconds() -> UInt64

    /// For measuring how long something takes: from some moment on, by a clock that nobody sets.
    func monotonicNanoseconds() -> UInt64

    func randomUInt64() -> UInt64
}

extension Storage {
    package func place(of path: String) -> FilePlace? { nil }

    /// By the wall clock, where a test sets that.
    package func monotonicNanoseconds() -> UInt64 { wallClockMilliseconds() &* 1_000_000 }

    /// Left to two renames.
    package func exchange(
        _ first: String, with second: String
    ) throws(StoreError) -> Bool { false }
}

/// Which file is meant, of all that there ever were on any file system: see ``Storage/place(of:)``.
package struct FilePlace: Hashable, Sendable {
    /// Its number on its file system.
    package let number: UInt64
    /// When it was made, in nanoseconds since 1970.
    package let made: UInt64

    package init(number: UInt64, made: UInt64) {
        self.number = number
        self.made = made
    }

    /// As the header of a log says it: never 0. Another file has the same once in 2^32.
    var mark: UInt32 {
        let numbers = [number.littleEndian, made.littleEndian]
        let hash = unsafe numbers.withUnsafeBytes { unsafe checksum64($0) }
        return max(1, UInt32(truncatingIfNeeded: hash))
    }
}

/// The exclusive lock of a directory, for as long as the object lives.
package protocol StorageLock: AnyObject, Sendable {
    /// Whether whoever comes now still finds the lock taken. False only where the file system lends
    /// locks for files alone, and the file of the lock was removed or replaced.
    var isHeld: Bool { get }
}

extension StorageLock {
    /// Nothing can take it away.
    package var isHeld: Bool { true }
}

package enum FileMode: Sendable {
    case read
    /// Creates a new file, or empties one that is there; for reading and writing.
    case create
    case readWrite
}

/// An open file; closed when the object is let go.
package protocol StorageFile: AnyObject, Sendable {
    var path: String { get }

    func size() throws(StoreError) -> UInt64

    /// Whether a path leads to this very file now, and to no other that took its name. False, too,
    /// if nobody can tell.
    func stands(at path: String) -> Bool

    /// Fills the whole buffer.
    /// - Throws: `corruption` if the file ends before.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(StoreError)

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(StoreError)

    /// Data and size are durable when it returns. After one failure it fails always: the system
    /// tells an open file only once of what could not be written.
    func sync() throws(StoreError)

    /// Has the disk take what was written, beginning now or, for what is waited for, ended now.
    /// This makes a later `sync` short and promises nothing. False if nothing can be begun ahead of
    /// `sync`.
    /// - Throws: what the system tells of a failure to write, here and not in `sync`.
    func writeBack(_ range: Range<UInt64>, isWaiting: Bool) throws(StoreError) -> Bool

    /// Whether something that was stored through the mapping may be gone from it, since the system
    /// could not write it and has let go of it. False only if the system would have told.
    func mayHaveLostWrites() -> Bool

    func truncate(to size: UInt64) throws(StoreError)

    /// Maps the file shared and writable up to a size, and reserves the first part of that. Only
    /// what is reserved may be touched. The mapping lives as long as the file object.
    func map(size: Int, reserving: Int) throws(StoreError) -> UnsafeMutableRawBufferPointer

    /// Reserves space up to the size, which reads as zeros, so that a full disk is an error now
    /// and not a signal at a store into the mapping.
    func reserve(_ size: Int) throws(StoreError)

    /// Maps a whole file that will not change any more, for reading. The mapping lives as long as
    /// the file object.
    func mapForReading() throws(StoreError) -> UnsafeRawBufferPointer

    /// Goes on by the mapping alone, so that the file takes none of the descriptors that a process
    /// may have. After `mapForReading`, and before the file is shared.
    func releaseDescriptor() throws(StoreError)

    /// Brings a range of the mapping into memory, so that what the disk cannot read is an error
    /// now and not a signal at a load.
    func populate(offset: Int, count: Int) throws(StoreError)

    /// Has a range of a writable mapping, which must be reserved, in place for stores, so that none
    /// of them meets a fault. Marks all of it as written, for which the next sync pays. A hint:
    /// what cannot be done is left to the stores.
    func populateForWriting(offset: Int, count: Int)

    /// Lets go of the memory that a range of a mapping for reading takes. It can be read as before,
    /// and takes memory again then.
    func release(offset: Int, count: Int)

    /// Has the first bytes of a writable mapping stay as they are, whatever becomes of the file:
    /// they are in memory of this process alone from then on. Nobody may store to them meanwhile.
    /// - Throws: `inputOutput` if there is no memory.
    func detachMapping(count: Int) throws(StoreError)

    /// Makes a range of the mapping durable.
    func syncMapping(offset: Int, count: Int) throws(StoreError)
}

extension StorageFile {
    /// Where nobody but this process touches files.
    package func stands(at path: String) -> Bool { true }

    /// Nothing to give back.
    package func releaseDescriptor() throws(StoreError) {}

    /// Where no kernel takes back what it could not write.
    package func detachMapping(count: Int) throws(StoreError) {}

    /// Stores do it.
    package func populateForWriting(offset: Int, count: Int) {}

    /// Nothing is let go.
    package func release(offset: Int, count: Int) {}

    /// Everything is left to `sync`.
    package func writeBack(
        _ range: Range<UInt64>, isWaiting: Bool
    ) throws(StoreError) -> Bool { false }

    /// Nobody tells.
    package func mayHaveLostWrites() -> Bool { true }
}
