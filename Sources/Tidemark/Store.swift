/// An embedded, versioned, log-structured key-value store: a directory of datasets.
///
/// One process opens a store for writing, and any number of its threads use it. Other processes
/// may open it read-only at the same time. A call returns when what it did is as durable as was
/// asked (``Durability``).
///
///     let store = try Store.open(at: "/var/lib/notes")
///     let notes = try store.dataset("notes")
///     try notes.put("buy milk", for: "monday")
///     print(try notes.text("monday") ?? "nothing")
///     try store.close()
///
/// Not for values above 256 MiB, and not for several writing processes.
public final class Store: Sendable {
    let engine: Engine

    private init(_ engine: Engine) {
        self.engine = engine
    }

    /// Opens a store, or creates one in a missing or empty directory if the options allow it.
    ///
    /// Costs the replay of the log that was not yet sealed: at most three segments.
    ///
    /// - Parameter observer: is told what happens inside, from the opening to the closing; see
    ///   <doc:Observability>.
    /// - Throws: `locked` naming the process that writes the store; `notAStore`, `formatTooNew`,
    ///   `corruption` with file and offset, `invalidArgument` naming an option and its range,
    ///   `diskFull`, `inputOutput`.
    public static func open(
        at path: String, options: StoreOptions = StoreOptions(),
        observer: (any StoreObserver)? = nil
    ) throws(StoreError) -> Store {
        try open(at: path, options: options, storage: SystemStorage(), observer: observer)
    }

    /// The same behind any make of the door to the operating system.
    package static func open(
        at path: String, options: StoreOptions, storage: any Storage,
        observer: (any StoreObserver)? = nil
    ) throws(StoreError) -> Store {
        Store(
            try Engine.open(at: path, options: options, storage: storage, observer: observer))
    }

    deinit {
        // The safety net: whoever must know of a failure calls `close`.
        try? engine.close()
    }

    /// Makes everything durable, stops the background work and gives up the lock. Later calls on
    /// the store throw `closed`; closing twice is fine. Cursors and snapshots that are open go on
    /// reading what they see.
    ///
    /// A store that a failure keeps from writing makes nothing durable any more: a sync after one
    /// that failed would prove nothing (<doc:Durability>).
    ///
    /// - Throws: what the last sync failed with; `writerStopped` if a failure came before, and not
    ///   all that was written is known to be durable. The store is closed all the same.
    public func close() throws(StoreError) {
        try engine.close()
    }

    /// The directory.
    public var path: String { engine.path }

    public var options: StoreOptions { engine.options }

    /// The name under which this store writes.
    public var replicaID: ReplicaID { engine.withLock { held in held.replicaID } }

    // MARK: - Datasets

    /// Opens a dataset, creating it if there is none of that name.
    ///
    /// O(1), and memory alone for one that is in use or was lately.
    ///
    /// - Parameter name: 1...255 of the characters `a-z A-Z 0-9 _ . : -`.
    /// - Throws: `invalidArgument`; `readOnly` if it would have to be created; `corruption`,
    ///   `inputOutput`.
    public func dataset(_ name: String) throws(StoreError) -> Dataset {
        Dataset(try engine.openDataset(name), in: self)
    }

    /// Opens a dataset; nil if there is none of that name.
    /// - Throws: `invalidArgument` for a name that none can have; `corruption`, `inputOutput`.
    public func existingDataset(_ name: String) throws(StoreError) -> Dataset? {
        try DatasetName.check(name)
        guard let state = try engine.existingState(named: name), state.isVisible else { return nil }
        return Dataset(state, in: self)
    }

    /// All datasets in the order of their names. O(n), and each takes memory as long as its handle
    /// is held: where there are very many, ``datasetNames()`` serves better.
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func datasets() throws(StoreError) -> [Dataset] {
        try engine.visibleStates().map { Dataset($0, in: self) }
    }

    /// The names of all datasets, in their order. O(n).
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func datasetNames() throws(StoreError) -> [String] {
        try engine.datasetNames(where: .visible)
    }

    /// Deletes a dataset with all its records, at once and durably. One of the same name may be
    /// made again; its sync count goes on from where it was. False if there was none.
    @discardableResult
    public func deleteDataset(_ name: String) throws(StoreError) -> Bool {
        try engine.deleteDataset(name)
    }

    // MARK: - Batches, snapshots, maintenance

    /// Applies a batch: all of its writes or, after a crash, none.
    ///
    /// - Throws: `versionMismatch` if any condition in it does not hold; `invalidArgument` if it
    ///   is larger than ``Limits/batchBytesMax`` or any write in it is out of bounds. Then
    ///   nothing was written.
    public func write(
        _ batch: WriteBatch, durability: Durability? = nil
    ) throws(StoreError) {
        guard !batch.isEmpty else { return }
        for dataset in batch.datasets where dataset.engine !== engine {
            throw StoreError(
                .invalidArgument,
                "the dataset \(dataset.name) in the batch is of another store")
        }
        try engine.commit(batch, durability: durability)
        for dataset in batch.datasets {
            engine.waiters.wakeAll(for: dataset.name)
        }
    }

    /// One moment of all datasets. O(1).
    public func snapshot() throws(StoreError) -> Snapshot {
        try Snapshot(engine)
    }

    /// Makes everything acknowledged so far survive the loss of power.
    /// - Throws: `writerStopped` after a failure; a failed sync is final.
    public func sync() throws(StoreError) {
        try engine.syncWithMark(isMarkDurable: false)
    }

    /// Waits until what goes on in the background, sealing, merging and following deletions, has
    /// nothing left to do. For measurements and quiet moments; nothing depends on it.
    ///
    /// - Throws: `closed`, `readOnly`, `writerStopped`.
    public func waitForBackgroundWork() throws(StoreError) {
        try engine.waitForBackgroundWork()
    }

    /// Seals the active segment and merges all segments into one run, dropping what retention does
    /// not need. Reads and writes go on meanwhile. O(bytes in the store); for a part of it see
    /// ``Dataset/compact(_:)``.
    ///
    /// - Throws: `readOnly`, `writerStopped`, `closed` also if the store is closed meanwhile,
    ///   `corruption`, `inputOutput`, `diskFull`.
    @discardableResult
    public func compact() throws(StoreError) -> CompactionReport {
        try engine.compactAll()
    }

    /// The same, and tells how far it has come by the bytes of keys and values that have been read
    /// of those in the segments, before compression.
    ///
    /// - Parameter progress: called now and then on the calling thread; at the end all of the total
    ///   is done. The total grows if values are to be moved out of files that are hardly used any
    ///   more, which is known only after the merge. Not called for a store without records.
    /// - Throws: as ``compact()``.
    @discardableResult
    public func compact(
        progress: @escaping (CompactionProgress) -> Void
    ) throws(StoreError) -> CompactionReport {
        try engine.compactAll(CompactionMeter(progress))
    }
}
