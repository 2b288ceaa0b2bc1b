extension Store {
    /// Applies a batch if datasets have not changed at all since the caller looked: for whoever
    /// decides by what a whole dataset is, as servers do that answer with its sync count.
    ///
    ///     let count = try notes.syncCount
    ///     let size = try notes.size()
    ///     guard size.recordCount < 1_024 else { throw TooMany() }
    ///     var batch = WriteBatch()
    ///     batch.put("new", for: "key", in: notes)
    ///     try store.write(batch, expecting: [(dataset: notes, count: count)])
    ///
    /// Where it goes through, the sync counts of a dataset's writes are known: the first one has
    /// the count after the expected one, and each further write to the dataset the next.
    ///
    /// Costs what ``write(_:durability:)`` does and O(1) for each expected count. A
    /// ``Transaction`` looks at what was read only, and so fails less often.
    ///
    /// - Parameter counts: each dataset with the sync count that it must have. None is like
    ///   ``write(_:durability:)``. With an empty batch nothing is looked at.
    /// - Throws: `transactionConflict` if a dataset has another count or was deleted, and what
    ///   ``write(_:durability:)`` throws. Nothing was written then, but for `writerStopped`,
    ///   `diskFull` and `inputOutput`, after which it is uncertain.
    public func write(
        _ batch: WriteBatch, durability: Durability? = nil,
        expecting counts: [(dataset: Dataset, count: SyncCount)]
    ) throws(StoreError) {
        guard !batch.isEmpty else { return }
        for dataset in batch.datasets + counts.map(\.dataset) where dataset.engine !== engine {
            throw StoreError(
                .invalidArgument,
                "the dataset \(dataset.name) in the batch is of another store")
        }
        try engine.commit(
            batch, durability: durability,
            validate: { (_) throws(StoreError) in
                for expected in counts {
                    let state = expected.dataset.state
                    guard state.isVisible, state.syncCount == expected.count.rawValue else {
                        throw StoreError.transactionConflict(state.name)
                    }
                }
            })
        for dataset in batch.datasets {
            engine.waiters.wakeAll(for: dataset.name)
        }
    }

    /// Waits until everything that can be read now is as durable as a write of this moment would
    /// be: for whoever promises what somebody else has written, which is there for all to see
    /// before it is durable.
    ///
    /// - Throws: what stops a writer.
    package func acknowledgePresent() throws(StoreError) {
        try engine.acknowledgePresent()
    }
}
