extension Store {
    /// The names of datasets that begin so, in their order: for services that put what belongs
    /// together under one prefix, like the datasets of one user among those of very many.
    ///
    /// ```swift
    /// var page = try store.datasetNames(prefix: "alice:", limit: 100)
    /// while let last = page.last {
    ///     page = try store.datasetNames(prefix: "alice:", after: last, limit: 100)
    /// }
    /// ```
    ///
    /// Costs in proportion to the answer, not to all datasets, and a look at each dataset that is
    /// in memory (some thousands).
    ///
    /// - Parameters:
    ///   - prefix: empty for all. No name begins with what no name can hold.
    ///   - after: only names behind this one, whether there is a dataset of that name or not; nil
    ///     for all.
    ///   - limit: at most so many; none if it is below 1.
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func datasetNames(
        prefix: String, after: String? = nil, limit: Int = .max
    ) throws(StoreError) -> [String] {
        guard let names = DatasetNameRange(prefix: prefix, after: after) else { return [] }
        return try engine.datasetNames(where: .visible, names, limit: limit)
    }
}
