/// Reads and writes that take effect as if nothing else happened between the first and the last of
/// them, or not at all.
///
/// Reads see one moment of the store, that of the beginning, and the transaction's own writes.
/// Writes are held in memory, and ``commit(durability:)`` applies them in one atomic batch, unless
/// something that was read has changed since: then it throws `transactionConflict`, nothing was
/// written, and the whole of it is to be run again.
/// ``Store/transaction(attemptsMax:durability:_:)`` does just that, and is what to use wherever the
/// work fits into a closure.
///
///     try store.transaction { transaction in
///         let left = try transaction.text("stock/17", in: shop).flatMap { Int($0) } ?? 0
///         guard left > 0 else { throw SoldOut() }
///         try transaction.put("\(left - 1)", for: "stock/17", in: shop)
///         try transaction.put("new", for: "order/\(number)", in: shop)
///     }
///
/// What has been read is every key asked for, found or not, and every range walked over, as far as
/// the walk went: a record that comes into such a range is a conflict too. A key that was only
/// written conflicts with nothing. A transaction that writes nothing always commits.
///
/// It is not for two threads at once. As long as it lives it holds the segments of its moment; end
/// it with ``commit(durability:)`` or ``cancel()``, or let it go. Not for loading data in bulk,
/// where nothing is read: a ``WriteBatch`` costs less. The article <doc:Transactions> says what is
/// guaranteed.
public final class Transaction {
    public let store: Store
    /// nil once it is over.
    private var moment: Moment?
    /// In the order in which they were first used.
    private var scopes: [TransactionScope] = []
    private var scopeIndexes: [ObjectIdentifier: Int] = [:]

    init(_ store: Store) throws(StoreError) {
        self.store = store
        moment = try store.engine.moment()
    }

    /// Whether it has been committed, refused or cancelled; then every call throws `closed`.
    public var isOver: Bool { moment == nil }

    /// The number of keys written so far.
    public var writeCount: Int { scopes.reduce(0) { $0 + $1.writes.count } }

    // MARK: - The end

    /// Applies the writes, all or none, if nothing that was read has changed since the beginning.
    /// Whatever comes of it, the transaction is over.
    ///
    /// Takes the store's writer lock while it looks at what changed: for each dataset read, as
    /// long as its changes since then, or the keys read of it, whichever are fewer; with ranges
    /// read, always the changes.
    ///
    /// - Parameter durability: in place of the store's own.
    /// - Throws: `transactionConflict`; `datasetNotFound` if a dataset written to is gone,
    ///   `invalidArgument` for a key or value out of bounds or more than
    ///   ``Limits/batchBytesMax``; `closed`, and what stops a writer. Nothing was written then,
    ///   but for `writerStopped`, `diskFull` and `inputOutput`, after which it is uncertain.
    public func commit(durability: Durability? = nil) throws(StoreError) {
        let moment = try opened()
        defer { cancel() }
        var batch = WriteBatch()
        for scope in scopes { scope.writes.add(to: &batch, in: scope.dataset) }
        guard !batch.isEmpty else { return }
        let reads = TransactionReads(moment, scopes)
        try store.write(batch, durability: durability, reads: reads)
    }

    /// Forgets the writes and lets go of the moment. Doing it twice is fine.
    public func cancel() {
        moment = nil
        scopes.removeAll()
        scopeIndexes.removeAll()
    }

    // MARK: - Within

    func opened() throws(StoreError) -> Moment {
        guard let moment else {
            throw StoreError(.closed, "the transaction is over; begin another")
        }
        return moment
    }

    /// What the transaction has done to a dataset so far.
    func scope(of dataset: Dataset) throws(StoreError) -> TransactionScope {
        let identifier = ObjectIdentifier(dataset.state)
        if let index = scopeIndexes[identifier] { return scopes[index] }
        _ = try opened()
        guard dataset.engine === store.engine else {
            throw StoreError(
                .invalidArgument,
                "the dataset \(dataset.name) is of another store than the transaction")
        }
        let scope = TransactionScope(dataset)
        scopeIndexes[identifier] = scopes.count
        scopes.append(scope)
        return scope
    }
}

// MARK: - Writing

extension Transaction {
    /// Puts a value when the transaction is committed; later reads of it see the value at once.
    /// Of several writes to one key the last counts.
    ///
    /// - Throws: `closed`, `invalidArgument` for a dataset of another store. Bounds of key and
    ///   value are checked by ``commit(durability:)``.
    public func put(
        _ value: [UInt8], for key: [UInt8], in dataset: Dataset
    ) throws(StoreError) {
        try scope(of: dataset).writes.set(value, for: key)
    }

    /// Puts a text as UTF-8.
    public func put(_ value: String, for key: String, in dataset: Dataset) throws(StoreError) {
        try put(Array(value.utf8), for: Array(key.utf8), in: dataset)
    }

    /// Puts a value that expires. By the clock of the moment at which the transaction began, so
    /// that what has expired by then is not read back.
    ///
    /// - Parameter expiresAt: milliseconds since 1970-01-01 UTC, less than 2^48; 0 stands for
    ///   never. ``Dataset/expiry(after:)`` gives it for a time to live.
    /// - Throws: as ``put(_:for:in:)-([UInt8],_,_)``; bounds are checked by
    ///   ``commit(durability:)``.
    public func put(
        _ value: [UInt8], for key: [UInt8], in dataset: Dataset, expiresAt: UInt64
    ) throws(StoreError) {
        try scope(of: dataset).writes.set(value, for: key, expiresAt: expiresAt)
    }

    public func put(
        _ value: String, for key: String, in dataset: Dataset, expiresAt: UInt64
    ) throws(StoreError) {
        try put(Array(value.utf8), for: Array(key.utf8), in: dataset, expiresAt: expiresAt)
    }

    /// Deletes a record when the transaction is committed.
    /// - Throws: as ``put(_:for:in:)-([UInt8],_,_)``.
    public func delete(_ key: [UInt8], in dataset: Dataset) throws(StoreError) {
        try scope(of: dataset).writes.set(nil, for: key)
    }

    public func delete(_ key: String, in dataset: Dataset) throws(StoreError) {
        try delete(Array(key.utf8), in: dataset)
    }
}
