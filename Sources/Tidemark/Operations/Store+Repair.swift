/// What a repair could save, and all that it could not.
public struct RepairReport: Hashable, Sendable {
    /// Something of the damaged store that is not in the new one, or not as it was.
    public struct Loss: Hashable, Sendable {
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// The manifest: the new store is made of all files that were found.
            case manifest
            /// A file that must be there is not.
            case missingFile
            /// A file of another store; left out.
            case foreignFile
            /// A part of a sealed segment or of a log: what it held is gone.
            case block
            /// Records are there, but not their versions: they have new ones, as if they had been
            /// written anew by the new store.
            case versions
        }

        public let kind: Kind
        /// The name within the store's directory.
        public let file: String
        /// Where it begins, in bytes from the start of the file; nil if the whole file is meant.
        public let offset: UInt64?
        /// How much of the file it is; 0 if that is not known.
        public let byteCount: UInt64
        /// Of which datasets something may be gone; empty if that is not known.
        public let datasets: [String]
        /// One line.
        public let what: String
    }

    /// What there is of one dataset in the new store.
    public struct Dataset: Hashable, Sendable {
        public let name: String
        /// Whether the name was lost and this one was made up.
        public let isNameMadeUp: Bool
        /// Versions of records, superseded ones and tombstones included.
        public internal(set) var entriesSaved = 0
        /// Versions that sealed segments say they had and that are gone. Of logs nobody knows.
        public internal(set) var entriesLost = 0
        /// Entries that have a new version because theirs was lost.
        public internal(set) var versionsLost = 0
    }

    /// The name under which the new store writes.
    public internal(set) var replicaID = ReplicaID(high: 0, low: 0)
    public internal(set) var filesRead = 0
    public internal(set) var blocksRead = 0
    /// In the order of their names.
    public internal(set) var datasets: [Dataset] = []
    public internal(set) var losses: [Loss] = []

    /// Whether every record of the damaged store is in the new one, with its version.
    public var isComplete: Bool { losses.isEmpty }
}

extension Store {
    /// Saves every intact record of a damaged store into a new one, and tells all that is lost.
    ///
    /// Works on what `open` refuses: without a manifest, with damaged or missing segments and
    /// logs. A block whose checksum matches is saved whatever lies around it. Of several versions
    /// of a key the newest by the order of the store is the one that counts; all keep their
    /// versions, that is dots, times, authors and vectors.
    ///
    /// The new store takes a new ``ReplicaID``. If anything is lost, its datasets no longer claim
    /// to have seen what they may not have any more: the next exchange with a peer brings back
    /// what the peer has.
    ///
    /// A file that this process may not read, or lacks a descriptor or memory for, may be whole: it
    /// is never a loss, and nothing is written. The repair itself keeps a handful of files open.
    ///
    /// Reads the source and never changes it. No process may be writing it meanwhile. The
    /// destination is a store only when all is durable. O(bytes of the store); takes memory for
    /// the entries of the logs.
    ///
    /// - Parameters:
    ///   - source: the directory of the damaged store.
    ///   - destination: a directory that is missing or empty.
    ///   - observer: is told at the end, on the calling thread, of the source.
    ///   - progress: called on the calling thread.
    /// - Throws: `notAStore` if no file of a store is there, `formatTooNew`, `invalidArgument` if
    ///   the destination is not empty, `diskFull`; `inputOutput`, with the path, if a file cannot
    ///   be read now and is not known to be damaged, or a write failed.
    @discardableResult
    public static func repair(
        at source: String, to destination: String, observer: (any StoreObserver)? = nil,
        progress: ((RepairProgress) -> Void)? = nil
    ) throws(StoreError) -> RepairReport {
        let storage = SystemStorage()
        let start = storage.monotonicNanoseconds()
        let report = try repair(
            at: source, to: destination, storage: storage, progress: progress)
        observer?.observe(.repairEnded(storage.duration(since: start), report), of: source)
        return report
    }

    /// The same behind any make of the door to the operating system.
    @discardableResult
    package static func repair(
        at source: String, to destination: String, storage: any Storage,
        progress: ((RepairProgress) -> Void)? = nil
    ) throws(StoreError) -> RepairReport {
        let telling = SalvageProgress(progress)
        let salvage = try Salvage(source, storage: storage, progress: telling)
        return try SalvageWriter(salvage, to: destination, storage: storage, progress: telling)
            .write()
    }

    /// Tells what ``repair(at:to:observer:progress:)`` would save and what it could not. Writes
    /// nothing, and needs no destination.
    ///
    /// The report is that of the repair, but for the ``RepairReport/replicaID``, which is all
    /// zeros: it is drawn when a store is made. O(bytes of the store).
    ///
    /// - Parameter progress: called on the calling thread.
    /// - Throws: `notAStore` if no file of a store is there, `formatTooNew`; `inputOutput`, with
    ///   the path, if a file cannot be read now and is not known to be damaged.
    public static func planRepair(
        at source: String, progress: ((RepairProgress) -> Void)? = nil
    ) throws(StoreError) -> RepairReport {
        try planRepair(at: source, storage: SystemStorage(), progress: progress)
    }

    /// The same behind any make of the door to the operating system.
    package static func planRepair(
        at source: String, storage: any Storage, progress: ((RepairProgress) -> Void)? = nil
    ) throws(StoreError) -> RepairReport {
        RepairReport(
            planning: try Salvage(
                source, storage: storage, progress: SalvageProgress(progress, isWriting: false)))
    }
}
