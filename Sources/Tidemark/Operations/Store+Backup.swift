/// What a backup or a restore did.
public struct BackupReport: Hashable, Sendable {
    /// Files of which the destination has a second name now (a hard link): no bytes were moved.
    public internal(set) var filesLinked = 0
    /// Files that were copied, the logs among them.
    public internal(set) var filesCopied = 0
    /// Files that were there from an earlier backup.
    public internal(set) var filesKept = 0
    /// Files of an earlier backup that are no longer part of it.
    public internal(set) var filesRemoved = 0
    /// Bytes that were written to the destination.
    public internal(set) var bytesCopied: UInt64 = 0
    /// Bytes of all files that the backup consists of, however they came there.
    public internal(set) var bytesTotal: UInt64 = 0
}

/// How far a backup or a restore has come.
public struct BackupProgress: Hashable, Sendable {
    public let bytesDone: UInt64
    public let bytesTotal: UInt64
}

extension Store {
    /// Makes a backup of one moment of the whole store, while it is read, written and compacted.
    ///
    /// The destination is a directory that is missing, empty, or holds an earlier backup of this
    /// store. Of an earlier one everything that is still needed stays where it is, and only what
    /// is new is linked or copied; it remains whole and readable until the new one has taken its
    /// place, in one step, durably. What is in the backup has been made durable in the store
    /// before, so that a write can never be in the backup and lost in the store.
    ///
    /// A backup is a store that nobody writes: open it with ``StoreOptions/isReadOnly``, or make a
    /// store of it with ``restore(from:to:linksFiles:observer:progress:)``.
    ///
    /// Costs one hard link for each new segment and a copy of the logs, or O(new bytes) where
    /// files are copied. Writers wait for nothing of it.
    ///
    /// - Parameters:
    ///   - linksFiles: whether sealed segments may be hard links where the file system has them.
    ///     That is fast and takes no space, and guards against mistakes, not against the failure
    ///     of the disk: damage to a file is damage to all of its names.
    ///   - progress: called on the calling thread.
    /// - Throws: `invalidArgument` if the destination holds anything but a backup of this store;
    ///   `locked` while another backup is made there; `diskFull`, `inputOutput`, after which the
    ///   earlier backup is whole and the call may be repeated; `corruption` if a log or the
    ///   earlier backup is damaged; `writerStopped` if the store cannot make durable what it has
    ///   acknowledged; `closed`.
    @discardableResult
    public func backup(
        to destination: String, linksFiles: Bool = true,
        progress: ((BackupProgress) -> Void)? = nil
    ) throws(StoreError) -> BackupReport {
        let start = engine.ticks
        let image = try engine.image()
        let writer = BackupWriter(
            image, to: destination, linksFiles: linksFiles, storage: engine.storage,
            progress: progress)
        let report = try writer.writeBackup { () throws(StoreError) in
            try engine.makeDurable(image)
        }
        engine.events.tell(.backupEnded(engine.duration(since: start), report))
        return report
    }

    /// Makes a store of a backup, or a copy of any store that can be opened.
    ///
    /// The new store takes a new ``ReplicaID``, since the old one may go on writing, or has
    /// written since; what it wrote under the old one stays its own. The destination is a store
    /// only when all of it is durable: the name of its manifest comes last.
    ///
    /// - Parameters:
    ///   - destination: a directory that is missing or empty.
    ///   - linksFiles: whether the store may share its sealed segments with the backup, which
    ///     neither will ever change. See ``backup(to:linksFiles:progress:)`` for what that means.
    ///   - observer: is told at the end, on the calling thread, of the destination.
    ///   - progress: called on the calling thread.
    /// - Throws: `invalidArgument` if the destination is not empty; what opening the backup
    ///   throws: `notAStore`, `formatTooNew`, `corruption`; `diskFull`, `inputOutput`.
    @discardableResult
    public static func restore(
        from backup: String, to destination: String, linksFiles: Bool = false,
        observer: (any StoreObserver)? = nil, progress: ((BackupProgress) -> Void)? = nil
    ) throws(StoreError) -> BackupReport {
        let storage = SystemStorage()
        let start = storage.monotonicNanoseconds()
        let report = try restore(
            from: backup, to: destination, linksFiles: linksFiles, storage: storage,
            progress: progress)
        observer?.observe(.restoreEnded(storage.duration(since: start), report), of: destination)
        return report
    }

    /// The same behind any make of the door to the operating system.
    @discardableResult
    package static func restore(
        from backup: String, to destination: String, linksFiles: Bool,
        storage: any Storage, progress: ((BackupProgress) -> Void)? = nil
    ) throws(StoreError) -> BackupReport {
        var options = StoreOptions(isReadOnly: true, blockCacheBytes: 0)
        options.createsIfMissing = false
        let engine = try Engine.open(at: backup, options: options, storage: storage)
        let image = try engine.image()
        let writer = BackupWriter(
            image, to: destination, linksFiles: linksFiles, storage: storage, progress: progress)
        let id = ReplicaID(high: storage.randomUInt64(), low: storage.randomUInt64())
        let report = try writer.writeRestored(as: id) { () throws(StoreError) in
            try engine.makeDurable(image)
        }
        try engine.close()
        return report
    }
}
