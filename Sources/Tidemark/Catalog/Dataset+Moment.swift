extension Dataset {
    /// The present moment, for records as they are stored: expired ones count, and those of a
    /// dataset that is deleted. With it the id of the dataset's records, 0 if it has none.
    ///
    /// - Parameter read: what else of the dataset is wanted as of that moment. Called under the
    ///   lock.
    func momentAsStored<Value>(
        _ read: (DatasetState) -> Value
    ) throws(StoreError) -> (Moment, DatasetID, Value) {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            let moment = engine.momentAsStored()
            return (moment, state.recordsID, read(state))
        }
    }
}
