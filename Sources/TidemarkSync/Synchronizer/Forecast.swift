import Glibc
public import Tidemark

// A dry run: the whole exchange, carried out on a fork of the store and against a peer that only
// says what it would do.
//
//   backup of the store ─▶ fork with an id of its own ─▶ exchange as nobody ─▶ report, fork removed
//
// The fork is what lets policies and handlers decide as they would, page after page, and lets the
// push follow from the pull. Its sealed segments are the store's own files under second names, so
// it costs a copy of the logs. A peer that is asked by nobody (the replica id of all zeros)
// remembers no position, applies nothing and notes no dataset.

extension ReplicaID {
    /// Whoever asks under this id is answered and not remembered. No store has it.
    static let nobody = ReplicaID(high: 0, low: 0)
}

extension SyncOptions {
    /// As whom to ask.
    func asker(_ store: Store) -> ReplicaID { isDryRun ? .nobody : store.replicaID }
}

extension Store {
    /// What an exchange would do now, without doing it: neither this store nor the peer changes.
    ///
    /// The result says what would be pulled and pushed, which conflicts would be met and how they
    /// would be settled, and how many bytes it takes. It holds for this moment: what is written
    /// after the call began is not in it. The bytes are those of an exchange without positions,
    /// which is as much or a little more. Every dataset is looked at, also one in which nothing has
    /// changed, which an exchange of all datasets passes by.
    ///
    /// Policies and handlers are asked as in earnest, and given records of the fork. Of a dataset
    /// that was deleted here and has records of others there, all of them count as changed.
    ///
    /// Costs a copy of the logs and one hard link for each segment, in a directory beside the
    /// store that is gone when this returns, and a walk over the changes of each dataset on both
    /// sides.
    ///
    /// - Parameter datasets: their names; nil for all datasets of both sides.
    /// - Throws: `store` if the fork cannot be made, for one because the disk is full.
    public func forecast(
        with transport: any SyncTransport, datasets: [String]? = nil,
        options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> SyncReport {
        var exchange = options
        exchange.isDryRun = true
        let fork = try StoreFork(of: self)
        let report = await fork.store.synchronizeEach(
            with: transport, datasets: datasets, options: exchange)
        try fork.remove()
        return report
    }
}

/// A copy of a store that nobody else sees, in a directory that goes with it.
final class StoreFork {
    let store: Store
    private let directory: String
    private var isRemoved = false

    init(of original: Store) throws(SyncError) {
        let number = String(SystemStorage().randomUInt64(), radix: 16)
        let directory = "\(original.path).fork-\(number)"
        self.directory = directory
        do throws(StoreError) {
            // The directory itself is made by the backup: no two forks share one.
            try SystemStorage().createDirectory(directory)
            try original.backup(to: Self.backupPath(directory))
            try Store.restore(
                from: Self.backupPath(directory), to: Self.storePath(directory), linksFiles: true)
            var options = original.options
            options.isReadOnly = false
            // Nothing of it is to outlive anything.
            options.durability = .memory
            options.compactsAutomatically = false
            store = try Store.open(at: Self.storePath(directory), options: options)
        } catch {
            Self.removeAll(directory)
            throw SyncError(error)
        }
    }

    deinit {
        guard !isRemoved else { return }
        try? store.close()
        Self.removeAll(directory)
    }

    /// - Throws: what closing the fork threw. Its files are gone in any case.
    func remove() throws(SyncError) {
        isRemoved = true
        defer { Self.removeAll(directory) }
        try engine { () throws(StoreError) in try store.close() }
    }

    private static func backupPath(_ directory: String) -> String { "\(directory)/backup" }

    private static func storePath(_ directory: String) -> String { "\(directory)/store" }

    /// Removes the two directories and everything in them. What cannot be removed stays; it belongs
    /// to nothing.
    private static func removeAll(_ directory: String) {
        let storage = SystemStorage()
        for path in [storePath(directory), backupPath(directory)] {
            for name in (try? storage.listDirectory(path)) ?? [] {
                try? storage.remove("\(path)/\(name)")
            }
            // A path is a text that ends with a zero byte, which is all that the call reads.
            _ = unsafe rmdir(path)
        }
        _ = unsafe rmdir(directory)
    }
}
