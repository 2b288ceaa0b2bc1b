import Tidemark

// A bundle is a pull whose answers were written down before anybody asked. What the questions would
// have said must therefore hold now, or the answers are the wrong ones:
//
// - since: everything up to there is here. This store's own checkpoint about the sender says so.
// - vector: what was left out as known has been seen here.
// - batons: the sender is the one whose writes are known under its id.
//
// If a record were left out that is not here, the vector of the last page would claim it all the
// same, and it would never come. So a bundle that does not follow on is refused as a whole.

/// One import of one bundle.
struct BundleImport: Sendable {
    let store: Store
    let path: String
    let options: SyncOptions

    init(store: Store, path: String, options: SyncOptions) {
        self.store = store
        self.path = path
        var options = options.bounded
        // What is in the file is all at hand: there is nothing to be gained by taking half of it.
        options.recordsPerRunMax = nil
        self.options = options
    }

    @concurrent
    func run() async throws(SyncError) -> SyncResult {
        let (outcome, isLate) = await options.withinDeadline { await attempt() }
        do throws(SyncError) {
            return try outcome.get()
        } catch {
            throw isLate ? options.timedOut(error) : error
        }
    }

    private func attempt() async -> Result<SyncResult, SyncError> {
        do throws(SyncError) {
            let bundle = try BundleFile(path: path)
            do throws(SyncError) {
                return .success(try await takeUntilJudged(bundle))
            } catch {
                let summary = bundle.summary
                throw error.located(peer: summary.sender.description, dataset: summary.dataset)
            }
        } catch {
            return .failure(error)
        }
    }

    /// Deletions may be forgotten here while the pages are taken in, and then it must be found out
    /// anew which of them the maker lacked: as in an exchange, the import begins again.
    private func takeUntilJudged(_ bundle: BundleFile) async throws(SyncError) -> SyncResult {
        for _ in 0..<options.attemptsMax {
            do throws(SyncError) {
                return try await take(bundle)
            } catch {
                guard error.isOfLateness else { throw error }
            }
        }
        throw SyncError(
            .contended,
            "another exchange of the dataset has come half-way to forgotten deletions; import the "
                + "bundle again when it is over")
    }

    private func take(_ bundle: BundleFile) async throws(SyncError) -> SyncResult {
        let summary = bundle.summary
        let standing = try standing(before: summary)
        if standing.isNothingNew {
            return try knownAlready(summary)
        }
        let dataset = try engine(summary.dataset) { () throws(StoreError) -> Dataset in
            guard let dataset = try store.datasetForSync(summary.dataset, creating: true) else {
                throw StoreError(
                    .datasetNotFound, "the dataset cannot be made; import the bundle again")
            }
            return dataset
        }
        try refusePart(dataset)
        // Pages that are here need not be compared again, unless it is in doubt what is here.
        let unknown = bundle.pages.firstIndex { $0.through > standing.pulledThrough }
        let first = standing.isDisputed ? 0 : unknown ?? bundle.pages.count - 1
        let session = SyncSession(
            store: store, dataset: dataset,
            connection: PeerConnection(transport: BundleTransport(bundle, first: first)),
            options: options, peer: summary.sender)
        let outcome: Result<SyncResult, SyncError>
        do throws(SyncError) {
            outcome = .success(try await session.take(bundle, from: bundle.pages[first].since))
        } catch {
            // What waits, or was left out, is noted here, and everything else was taken in.
            guard error.code == .conflictPending || error == session.tally.firstFailure else {
                throw error
            }
            outcome = .failure(error)
        }
        try noteReached(standing.isDisputed ? .zero : standing.pulledThrough, summary, dataset)
        try engine(summary.dataset) { () throws(StoreError) in try store.sync() }
        return try outcome.get()
    }

    /// What a bundle meets.
    private struct Standing {
        /// Up to where this store has the sender's changes.
        var pulledThrough = SyncCount.zero
        /// Whether this store went back in time, or the bundle is the first to show that one did
        /// whose writes are here, so that all that it has is to be compared.
        var isDisputed = false
        /// Whether all that the bundle could bring is here.
        var isNothingNew = false
    }

    /// - Throws: `wrongBundle`, `sameReplica`, `partialReplica` if the bundle must not be taken in.
    private func standing(before bundle: BundleSummary) throws(SyncError) -> Standing {
        let existing = try engine(bundle.dataset) { () throws(StoreError) in
            try store.datasetForSync(bundle.dataset, creating: false)
        }
        guard let dataset = existing else {
            try refuseOwn(bundle)
            let standing = Standing()
            try check(bundle, standing, VersionVector())
            return standing
        }
        try refusePart(dataset)
        // First, since a copy of the sender has its id until it sees what the sender has drawn.
        let isForeign = try engine(bundle.dataset) { () throws(StoreError) -> Bool in
            // Ids of others are disputed once it is known that this bundle can settle them.
            try dataset.disputeForked(bundle.knowledge.batons, bundle.vector, contests: false)
            return try BatonBook(dataset).contradicts(bundle.batons)
        }
        try refuseOwn(bundle)
        guard !isForeign else {
            throw SyncError(
                .wrongBundle,
                "the bundle's maker is a copy of the store that is known here under its id, or "
                    + "went back in time; exchange with it over a network once, or import a bundle "
                    + "of this store there, and then let it export the dataset again")
        }
        return try standing(of: dataset, before: bundle)
    }

    private func standing(
        of dataset: Dataset, before bundle: BundleSummary
    ) throws(SyncError) -> Standing {
        var standing = Standing()
        let knowledge = try engine(bundle.dataset) { () throws(StoreError) -> DatasetKnowledge in
            standing.pulledThrough = try dataset.checkpoint(for: bundle.sender).pulledThrough
            let book = try BatonBook(dataset)
            standing.isDisputed =
                !book.disputed.isEmpty || !book.contested(bundle.knowledge.batons).isEmpty
            return try dataset.knowledge()
        }
        try check(bundle, standing, knowledge.vector)
        let holdsBack = try engine(bundle.dataset) { () throws(StoreError) in
            try dataset.holdsBackVectors()
        }
        standing.isNothingNew =
            !standing.isDisputed && !holdsBack && bundle.through <= standing.pulledThrough
            && knowledge.vector.covers(bundle.vector)
            && PeerLifecycle(knowledge.lifecycle).covers(bundle.knowledge.lifecycle)
        return standing
    }

    /// A part takes no vector for its own, and nobody would answer for the records that a bundle
    /// leaves out, or that it has and the part does not.
    private func refusePart(_ dataset: Dataset) throws(SyncError) {
        let isPart = try engine(dataset.name) { () throws(StoreError) in
            try PartBook.isPart(dataset)
        }
        guard isPart else { return }
        throw SyncError(
            .partialReplica,
            "only a part of the dataset is kept here, and a bundle is of all of it; import it into "
                + "a store that keeps all of it, and exchange with that one")
    }

    private func refuseOwn(_ bundle: BundleSummary) throws(SyncError) {
        guard bundle.sender != store.replicaID else {
            throw SyncError(
                .sameReplica,
                "this store made the bundle itself, or is a copy of the one that did; import it "
                    + "into another store")
        }
    }

    /// Whether the bundle goes on from what is here.
    private func check(
        _ bundle: BundleSummary, _ standing: Standing, _ seen: VersionVector
    ) throws(SyncError) {
        if standing.isDisputed {
            guard bundle.isWholeDataset else {
                throw wrong(
                    bundle,
                    "this store, or one whose writes it has, is a copy or went back in time, and "
                        + "all that is here must be compared",
                    since: .zero)
            }
            return
        }
        if store.has(.bundleUnchecked) { return }
        guard bundle.since <= standing.pulledThrough else {
            throw wrong(
                bundle,
                "the bundle begins after change \(bundle.since) of its maker, and this store has "
                    + "its changes up to \(standing.pulledThrough)", since: standing.pulledThrough)
        }
        guard seen.covers(bundle.required) else {
            let receiver = bundle.receiver.map { "replica \($0)" } ?? "its receiver"
            throw wrong(
                bundle,
                "the bundle leaves out what \(receiver) has, and not all of that is here",
                since: standing.pulledThrough)
        }
    }

    private func wrong(
        _ bundle: BundleSummary, _ problem: String, since: SyncCount
    ) -> SyncError {
        let needed =
            since == .zero
            ? "a bundle of the whole dataset" : "one of its changes since \(since), or an earlier"
        return SyncError(
            .wrongBundle,
            "\(problem); nothing was imported; needed is \(needed), from replica "
                + "\(bundle.sender): export it there since \(since)")
    }

    /// Keeps an old bundle from moving back how far this store has come; and takes from one that
    /// was made for this store how far its maker has come here, so that the next bundle for that
    /// need not begin before. Writes nothing if all is as it was.
    private func noteReached(
        _ pulledThrough: SyncCount, _ bundle: BundleSummary, _ dataset: Dataset
    ) throws(SyncError) {
        let isForUs = bundle.receiver == store.replicaID
        try engine(bundle.dataset) { () throws(StoreError) in
            let stored = try dataset.checkpoint(for: bundle.sender)
            var checkpoint = stored
            checkpoint.pulledThrough = max(stored.pulledThrough, pulledThrough)
            if isForUs, bundle.acknowledged <= (try dataset.knowledge().syncCount) {
                checkpoint.pushedThrough = max(stored.pushedThrough, bundle.acknowledged)
            }
            guard checkpoint != stored else { return }
            try dataset.remember(checkpoint, of: bundle.sender)
        }
    }

    /// The result of an import that has nothing to do.
    private func knownAlready(_ bundle: BundleSummary) throws(SyncError) -> SyncResult {
        var result = SyncResult(dataset: bundle.dataset, remoteReplica: bundle.sender)
        let dataset = try engine(bundle.dataset) { () throws(StoreError) in
            try store.datasetForSync(bundle.dataset, creating: false)
        }
        if let dataset {
            try noteReached(.zero, bundle, dataset)
            result.localSyncCount = try engine(bundle.dataset) { () throws(StoreError) in
                try dataset.knowledge().syncCount
            }
        }
        result.remoteSyncCount = bundle.through
        result.isComplete = true
        return result
    }
}

extension SyncSession {
    /// Takes in the pages that the connection hands out: a pull, behind which there is no push.
    ///
    /// - Parameter start: where the first of them follows on.
    /// - Throws: as any exchange, also if a conflict waits or a record was left out.
    func take(
        _ bundle: BundleFile, from start: SyncCount
    ) async throws(SyncError) -> SyncResult {
        result.attempts = 1
        isOneWay = true
        _ = try noteFork(bundle.summary.knowledge)
        // Whoever disputes compares with all that the maker has; what was found out since the
        // bundle was looked at is met by the next import.
        guard doubts.ours.isEmpty || (bundle.summary.isWholeDataset && start == .zero) else {
            throw .forked
        }
        let checkpoint = try engine(dataset.name) { () throws(StoreError) in
            try dataset.checkpoint(for: peer)
        }
        // How much of its writes the sender remembers to be here, a bundle does not say.
        doubts.known = (checkpoint.vector, .zero)
        positions.pull = start
        doubts.isOfFile = true
        defer { endFreshStart() }
        try meet(bundle)
        try await admitHeld()
        let isAll = try await pull()
        _ = try await settle(hasAll: isAll)
        if let failure = tally.firstFailure { throw failure }
        try checkHeldPending()
        let lacksAny = try hasFailures([.incoming])
        result.isComplete = isAll && !lacksAny
        return try finished()
    }

    /// Finds out whether either side lacks deletions that the other has forgotten. What the bundle
    /// has is then judged record by record; of what is here its maker cannot be asked.
    ///
    /// So if this side is late, the bundle itself has to say of each record here that has not seen
    /// what was forgotten what the maker would: an import that was cut off, or left something out,
    /// has brought such records. Its pages are read once for each 100,000 of them.
    private func meet(_ bundle: BundleFile) throws(SyncError) {
        let theirs = bundle.summary.knowledge
        let ours = try engine(dataset.name) { () throws(StoreError) in try dataset.knowledge() }
        // All pages are here, so what stands in the last one holds for each.
        remote = theirs
        seenByPeer = theirs.vector
        late.judgesPeer = !doubts.trusted(theirs.vector).covers(ours.forgotten.vector)
        guard !ours.vector.covers(theirs.forgotten.vector) else { return }
        // Before anything is looked at.
        try beginFreshStart(theirs.forgotten)
        try settleHeldWrites(with: bundle)
        var through = SyncCount.zero
        while true {
            let page = try engine(dataset.name) { () throws(StoreError) in
                try dataset.unsettledPage(
                    since: through, lacking: theirs.forgotten.vector, isOwn: false,
                    countMax: try dataset.recordsPerPage(atMost: SyncLimits.pageRecordsMax),
                    bytesMax: SyncLimits.pageBytesMax)
            }
            try settle(page.versions, with: bundle)
            through = page.through
            if page.isLast { break }
        }
        // What comes after that was written while the pages are taken in.
        late.settled = (theirs.forgotten, through)
    }

    /// Finds out from a bundle what its maker has seen and holds of some records.
    ///
    /// - One of which it has the same version, an ancestor or a descendant is compared when that
    ///   comes, or was when that came.
    /// - One of whose key a whole bundle has nothing, and which the maker has not seen, outlives.
    ///
    /// - Throws: `wrongBundle` if there is any other.
    private func settle(
        _ versions: [UnsettledVersion], with bundle: BundleFile
    ) throws(SyncError) {
        guard !versions.isEmpty else { return }
        var unknown: [[UInt8]: Version] = [:]
        for unsettled in versions { unknown[unsettled.key] = unsettled.version }
        for index in bundle.pages.indices where !unknown.isEmpty {
            for record in try bundle.page(at: index).records {
                guard let version = unknown[record.key] else { continue }
                guard record.version.relation(to: version) != .concurrent,
                    !doubts.contain(version.dot), !doubts.contain(record.version.dot)
                else { throw .lateForBundle }
                unknown[record.key] = nil
            }
        }
        guard !unknown.isEmpty else { return }
        let theirs = bundle.summary.knowledge
        let isUnseen = unknown.values.allSatisfy { version in
            !doubts.trusted(theirs.vector).contains(version.dot) && !doubts.contain(version.dot)
        }
        guard bundle.summary.isWholeDataset, theirs.saysWhatWasSeen, isUnseen
        else { throw .lateForBundle }
        try settle(versions.filter { unknown[$0.key] != nil }, theirs)
    }

    /// What is held here because of its date, was seen by the maker of a bundle and is not in it
    /// may be deleted there.
    private func settleHeldWrites(with bundle: BundleFile) throws(SyncError) {
        let theirs = bundle.summary.knowledge
        let held = try engine(dataset.name) { () throws(StoreError) in
            try QuarantineBook(dataset).dots()
        }
        var unknown = Set(
            held.filter { dot in
                !theirs.saysWhatWasSeen || theirs.hasSeen(dot, doubts.trusted(theirs.vector))
            })
        for index in bundle.pages.indices where !unknown.isEmpty {
            for record in try bundle.page(at: index).records {
                unknown.remove(record.version.dot)
            }
        }
        guard unknown.isEmpty else { throw .lateForBundle }
    }
}

extension PeerKnowledge {
    /// Whether the vector tells of a write that it was not seen: that of a bundle may be empty.
    fileprivate var saysWhatWasSeen: Bool { vector.covers(forgotten.vector) }
}

extension SyncError {
    fileprivate static let lateForBundle = SyncError(
        .wrongBundle,
        "the bundle's maker has forgotten deletions of which this store has not heard, so "
            + "that records here may be dead; exchange with it over a network once, and "
            + "then import bundles again")
}
