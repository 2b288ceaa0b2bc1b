extension Dataset {
    /// Seals what is in the log, and merges all that the segments hold of a range of keys, dropping
    /// what retention does not need: then nothing superseded beyond history is left in the range,
    /// and no tombstone that can go. Reads and writes go on meanwhile.
    ///
    /// Segments that hold no key of the range stay as they are, so that the work is in proportion
    /// to those that do: O(bytes in them). Worth its time after many deletions, and where
    /// ``Store/compact()`` would rewrite far more.
    ///
    ///     let report = try orders.compact(.prefix("2024-"))
    ///     print("\(report.bytesReclaimed) bytes are free again")
    ///
    /// - Throws: `datasetNotFound`, `readOnly`, `writerStopped`, `closed` also if the store is
    ///   closed meanwhile, `corruption`, `inputOutput`, `diskFull`.
    @discardableResult
    public func compact(_ range: KeyRange = .all) throws(StoreError) -> CompactionReport {
        try engine.compact(range, of: state)
    }

    /// The same, and tells how far it has come, as ``Store/compact(progress:)``.
    ///
    /// - Throws: as ``compact(_:)``.
    @discardableResult
    public func compact(
        _ range: KeyRange = .all, progress: @escaping (CompactionProgress) -> Void
    ) throws(StoreError) -> CompactionReport {
        try engine.compact(range, of: state, CompactionMeter(progress))
    }
}
