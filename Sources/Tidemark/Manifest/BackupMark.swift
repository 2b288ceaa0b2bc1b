/// The file that tells a backup from a store: a file header of its own kind, with the tag of the
/// store that the backup is of. It is there before anything else of the backup.
///
/// A backup must not be written, because its store goes on using the same ``ReplicaID``; and only
/// a directory with this mark is ever overwritten by a backup.
enum BackupMark {
    static let fileName = "BACKUP"
    static let temporaryName = "BACKUP.new"

    static func write(
        in directory: String, identity: StoreIdentity, storage: any Storage
    ) throws(StoreError) {
        let temporary = "\(directory)/\(temporaryName)"
        let file = try storage.openFile(temporary, .create)
        let header = FileHeader(
            kind: .backupMark, segment: 0, identity: identity,
            madeAt: storage.wallClockMilliseconds())
        try header.bytes.withBytes { (view) throws(StoreError) in
            try unsafe file.write(view.buffer, at: 0)
        }
        try file.sync()
        try storage.rename(temporary, to: "\(directory)/\(fileName)")
        try storage.syncDirectory(directory)
    }

    /// - Throws: `corruption`, `formatTooNew`, and `invalidArgument` if the backup is of another
    ///   store.
    static func check(
        in directory: String, identity: StoreIdentity, storage: any Storage
    ) throws(StoreError) {
        let path = "\(directory)/\(fileName)"
        let file = try storage.openFile(path, .read)
        let count = min(try file.size(), UInt64(FileHeader.byteCount))
        let bytes = unsafe try Block(count: Int(count)) { (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: 0)
        }
        let header = try FileHeader(
            bytes.bytes, expecting: .backupMark, segment: 0, identity: nil, path: path)
        guard header.identity == identity else { throw .otherBackup(directory) }
    }
}

extension StoreError {
    static func isBackup(_ path: String) -> StoreError {
        StoreError(
            .readOnly,
            "the directory is a backup, which must not be written; open it read-only, or restore "
                + "it to a new directory",
            location: Location(path: path))
    }

    static func otherBackup(_ path: String) -> StoreError {
        StoreError(
            .invalidArgument,
            "the destination holds a backup of another store; name another directory",
            location: Location(path: path))
    }

    static func notEmpty(_ path: String) -> StoreError {
        StoreError(
            .invalidArgument,
            "the destination is not empty; name a missing or empty directory",
            location: Location(path: path))
    }
}
