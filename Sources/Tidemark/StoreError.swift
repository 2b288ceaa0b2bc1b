/// What went wrong, where, and what to do about it.
///
/// Decide by ``code`` alone. The message is for people and may change; it ends with a remedy.
public struct StoreError: Error, Hashable, Sendable {
    /// The kinds of failure that a caller would answer differently.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// A name, key, value, option or cursor out of its bounds. Correct the call.
        public static let invalidArgument = Code("invalidArgument")
        /// The directory holds no store, or is none. Nothing was changed.
        public static let notAStore = Code("notAStore")
        /// Another process (or another `Store` in this one) writes this store.
        public static let locked = Code("locked")
        /// The store was written by a newer format than this build reads.
        public static let formatTooNew = Code("formatTooNew")
        /// The store was written by a format of before the first release. Make it anew.
        public static let formatTooOld = Code("formatTooOld")
        /// Bytes that must be whole are damaged. Nothing was dropped; see `location`.
        public static let corruption = Code("corruption")
        /// The file system is full or a quota is reached. Reads go on; make room and reopen.
        public static let diskFull = Code("diskFull")
        /// The operating system refused a read or a write; see `systemError`.
        public static let inputOutput = Code("inputOutput")
        /// An earlier write or sync failed, so nothing more is accepted. Reopen the store.
        public static let writerStopped = Code("writerStopped")
        /// The store was opened read-only, or is a backup, which must not be written.
        public static let readOnly = Code("readOnly")
        /// The store, snapshot or cursor was closed.
        public static let closed = Code("closed")
        /// A dataset of that name does not exist (any more).
        public static let datasetNotFound = Code("datasetNotFound")
        /// The record is not at the expected version. Read it again and decide anew.
        public static let versionMismatch = Code("versionMismatch")
        /// Something that a transaction has read has changed since. Run the transaction again.
        public static let transactionConflict = Code("transactionConflict")
        /// Changes that old are no longer told apart from absence. Read the dataset afresh.
        public static let changesExpired = Code("changesExpired")
        /// What could be read at that past moment may no longer all be kept. Ask for a later one.
        public static let historyExpired = Code("historyExpired")
    }

    /// A place in a file.
    public struct Location: Hashable, Sendable, CustomStringConvertible {
        public let path: String
        /// In bytes from the start of the file; nil if the whole file is meant.
        public let offset: UInt64?

        public init(path: String, offset: UInt64? = nil) {
            self.path = path
            self.offset = offset
        }

        public var description: String {
            offset.map { "\(path) at byte \($0)" } ?? path
        }
    }

    public let code: Code
    /// One line: what was wrong and what to do.
    public let message: String
    public let location: Location?
    /// The `errno` behind the failure, if there is one.
    public let systemError: Int32?
    /// Whether the disk could not read what lies there: nothing that was written is in doubt, as
    /// it is after a failed write or sync.
    package private(set) var isOfReading = false

    public init(
        _ code: Code, _ message: String, location: Location? = nil, systemError: Int32? = nil
    ) {
        self.code = code
        self.message = message
        self.location = location
        self.systemError = systemError
    }

    /// Whether another build may read what this one does not: then nothing is known to be damaged.
    var isOfFormat: Bool { code == .formatTooNew || code == .formatTooOld }

    /// The same, as the failure of a read.
    package func ofReading() -> StoreError {
        var error = self
        error.isOfReading = true
        return error
    }
}

/// What a body gives; nil if what it reads is damaged or missing.
///
/// - Throws: what the body throws if only this attempt failed: another one may find all whole.
func unlessDamaged<Result>(
    _ body: () throws(StoreError) -> Result
) throws(StoreError) -> Result? {
    do throws(StoreError) {
        return try body()
    } catch {
        guard !error.isOfEnvironment else { throw error }
        return nil
    }
}

extension StoreError: CustomStringConvertible {
    public var description: String {
        location.map { "\(message) [\($0)]" } ?? message
    }
}
