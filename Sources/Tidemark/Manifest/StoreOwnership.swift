internal import Synchronization

/// Knows whether the directory is still its writer's: the lock is held, and the manifest is the
/// file that the writer read or wrote last.
///
/// A cleaner, a copy or a restore into the directory of an open store takes the files from under
/// its writer, who would go on in files without a name: what is acknowledged then is lost. So the
/// writer asks before it acknowledges what is to survive the loss of power, before it replaces the
/// manifest, and every ``period`` milliseconds before what is to survive its own end.
///
/// Thread rule: any thread may ask. The lock is held while the manifest gets its name, so that
/// nobody takes the new one for a stranger's.
final class StoreOwnership: Sendable {
    private struct Holding {
        let lock: any StorageLock
        /// Open, so that no other file can have its number.
        var manifest: any StorageFile
    }

    /// Between two looks for commits that wait for no disk.
    private static let period: UInt64 = 100

    private let manifestPath: String
    /// nil when it was given up.
    private let holding: Mutex<Holding?>
    private let lookedAt = Atomic<UInt64>(0)

    /// - Parameter manifest: opened under the lock.
    init(_ directory: String, lock: any StorageLock, manifest: any StorageFile) {
        manifestPath = "\(directory)/\(Manifest.fileName)"
        holding = Mutex(Holding(lock: lock, manifest: manifest))
    }

    /// Gives up the lock. What is asked later is true.
    func release() {
        holding.withLock { $0 = nil }
    }

    /// Two system calls.
    ///
    /// - Throws: `writerStopped` if the directory is not ours any more.
    func check() throws(StoreError) {
        try holding.withLock { (holding) throws(StoreError) in try check(holding) }
    }

    /// The same, if nobody has looked for a while. O(1) without a system call otherwise.
    ///
    /// - Parameter now: by the wall clock, in milliseconds since 1970.
    @inline(__always)
    func check(at now: UInt64) throws(StoreError) {
        // A clock that was put back is a reason to look, too.
        guard now &- lookedAt.load(ordering: .relaxed) >= Self.period else { return }
        lookedAt.store(now, ordering: .relaxed)
        try check()
    }

    /// Gives a new manifest its name.
    ///
    /// - Parameters:
    ///   - file: the new one, durable under another name.
    ///   - rename: puts it in the place of the one before.
    /// - Throws: `closed` if the lock was given up; `writerStopped` if the one before is not ours
    ///   any more; what `rename` throws.
    func replaceManifest(
        by file: any StorageFile, _ rename: () throws(StoreError) -> Void
    ) throws(StoreError) {
        try holding.withLock { (holding) throws(StoreError) in
            // Whoever has the lock by now has a manifest of his own.
            guard holding != nil else { throw .closed(manifestPath) }
            try check(holding)
            try rename()
            holding?.manifest = file
        }
    }

    private func check(_ holding: Holding?) throws(StoreError) {
        guard let holding else { return }
        guard holding.lock.isHeld, holding.manifest.stands(at: manifestPath) else {
            throw StoreError(
                .writerStopped,
                "the manifest is gone, or another file has its name, while the store is open: "
                    + "somebody cleaned up, moved or restored the directory. Nothing more is "
                    + "accepted; close the store and see what is there",
                location: StoreError.Location(path: manifestPath))
        }
    }
}
