public import Tidemark

extension Store {
    /// Writes what changed in a dataset into a file, which another store takes in by
    /// ``importBundle(from:options:)``.
    ///
    /// Everything in the bundle is durable here before it is written there, and the file has its
    /// name only once it is whole and durable itself; a bundle of that name is replaced. From now
    /// on deletions in the dataset are kept, since somebody may have what is deleted. The same
    /// state gives the same bytes each time.
    ///
    /// O(changes), and memory for one page. Writes go on meanwhile; those made before the last page
    /// was read are in the bundle.
    ///
    /// - Parameters:
    ///   - dataset: its name; one that was deleted carries its deletion.
    ///   - since: of the last change that the receiver has, in this store's order of change:
    ///     ``BundleSummary/through`` of the bundle before. Zero for the whole dataset.
    ///   - limits: bounds for a page.
    /// - Throws: `store` with `datasetNotFound`, with `invalidArgument` if the dataset has fewer
    ///   changes, with `readOnly`, or if the file cannot be written; `peerChanged` if the store
    ///   went back in time and has not met a peer since; `partialReplica` if only a part of the
    ///   dataset is kept here.
    @discardableResult
    public func exportBundle(
        of dataset: String, to path: String, since: SyncCount = .zero,
        limits: SyncResponder.Limits = SyncResponder.Limits()
    ) throws(SyncError) -> BundleSummary {
        let export = try BundleExport(store: self, dataset: dataset, limits: limits)
        return try export.write(to: path, since: since, leavingOut: VersionVector(), for: nil)
    }

    /// The same for one receiver: what it is known to have is left out.
    ///
    /// What is known of it comes from exchanges and from bundles of its own. If nothing is, the
    /// bundle has the whole dataset. That the bundle was made says nothing of its arrival: as long
    /// as nothing comes back, the next one has it all again.
    @discardableResult
    public func exportBundle(
        of dataset: String, to path: String, for receiver: ReplicaID,
        limits: SyncResponder.Limits = SyncResponder.Limits()
    ) throws(SyncError) -> BundleSummary {
        let export = try BundleExport(store: self, dataset: dataset, limits: limits)
        let known = try export.checkpoint(of: receiver)
        return try export.write(
            to: path, since: known.pushedThrough, leavingOut: known.vector, for: receiver)
    }

    /// Takes in what a bundle holds, as if it had been pulled from the store that made it:
    /// conflicts are settled by the policy, a deletion of the dataset by
    /// ``SyncOptions/onDatasetDeleted``, and what both come to is durable when this returns.
    ///
    /// The bundle is read through before anything of it is applied, so a damaged or cut one changes
    /// nothing; if its file is changed meanwhile, or the import ends for any other reason, whole
    /// pages are here, and importing it again goes on. Importing it twice changes nothing.
    ///
    /// Of the options that bound an exchange only ``SyncOptions/deadline`` counts: a bundle is
    /// taken in as a whole. O(bytes), and memory for two pages.
    ///
    /// - Returns: what was done. ``SyncResult/isComplete`` says that all of the bundle is here;
    ///   nothing was pushed.
    /// - Throws: `wrongBundle` if it begins after what is here, naming the one that is needed, if
    ///   its maker went back in time, or if it shows that a store did whose writes are here and is
    ///   not of the whole dataset; `damagedBundle` with the place; `sameReplica` if this
    ///   store made it; `partialReplica` if only a part of the dataset is kept here, and then
    ///   nothing has changed; `conflictPending` and `recordRefused` if everything else is here;
    ///   `peerChanged` if it turned out meanwhile that a store went back: import it again;
    ///   `datasetDeleted`, `contended`, `timedOut`, `cancelled` and `store` as
    ///   ``synchronize(with:datasets:options:)`` does.
    @discardableResult
    public func importBundle(
        from path: String, options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> SyncResult {
        try await BundleImport(store: self, path: path, options: options).run()
    }
}
