public import Tidemark

extension Dataset {
    /// Exchanges changes with a peer until both sides hold the same: pulls, settles conflicts,
    /// pushes. Nothing is pushed until everything is pulled and every conflict settled.
    ///
    /// ```swift
    /// let result = try await notes.synchronize(with: transport)
    /// print("\(result.pulled) in, \(result.pushed) out, \(result.conflicts) conflicts")
    /// ```
    ///
    /// Writes go on meanwhile; those made after the last page was read leave with the next
    /// exchange. Interrupted at any point, the next call goes on after the last page that both
    /// sides know to be applied: at most one page comes a second time.
    /// Takes memory for one page and time in proportion to the changes since the last exchange.
    @discardableResult
    public func synchronize(
        with transport: any SyncTransport, options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> SyncResult {
        try await StoreExchange(store: store, transport: transport, options: options).run(self)
    }
}

extension Store {
    /// Exchanges several datasets with a peer, a few at a time (see
    /// ``SyncOptions/parallelDatasetsMax``), and gives what was done in the order of their names.
    ///
    /// If one of them stops for a reason of its own (an unsettled conflict, a deletion, too many
    /// writes), the others are exchanged all the same and its error is thrown in the end.
    /// ``synchronizeEach(with:datasets:options:)`` tells what became of each.
    ///
    /// Without names, a dataset in which neither side has changed anything since the last such
    /// exchange with the peer is not looked at, and has no result. That is known of the last 16
    /// peers, also after either store was closed and opened again; else, as after a crash, every
    /// dataset is looked at, a thousand in a round trip. If nothing has changed at all it costs one
    /// round trip of a few hundred bytes, whatever the number of datasets.
    ///
    /// - Parameter datasets: their names; nil for all datasets of both sides. A name that neither
    ///   side knows is a `store` error with `datasetNotFound`.
    @discardableResult
    public func synchronize(
        with transport: any SyncTransport, datasets: [String]? = nil,
        options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> [SyncResult] {
        try await synchronizeEach(with: transport, datasets: datasets, options: options).results()
    }

    /// The same, with an outcome for each dataset: what was done, or what was done before an error
    /// and the error. No error of one dataset hides what became of the others.
    ///
    /// If the exchange as a whole ends early, the report says why, and the datasets that did not
    /// have their turn are in it with that error.
    public func synchronizeEach(
        with transport: any SyncTransport, datasets: [String]? = nil,
        options: SyncOptions = SyncOptions()
    ) async -> SyncReport {
        await StoreExchange(store: self, transport: transport, options: options)
            .report(names: datasets)
    }
}
