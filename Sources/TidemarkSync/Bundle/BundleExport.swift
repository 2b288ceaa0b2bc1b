import Tidemark

// What a responder does for one pull after the other, done for a file. Nobody asks, so nothing is
// learnt of who will read it:
//
// - The receiver's position moves here only when it says so itself, in an exchange or by a bundle
//   of its own. That a bundle was made proves nothing.
// - Before anything leaves, the store notes that there may be somebody who has it, as it does of a
//   peer, or it would forget deletions.

extension ReplicaID {
    /// Whoever has a bundle that was made for nobody in particular. No store has this id.
    static let bearer = ReplicaID(high: 0, low: 1)
}

struct BundleExport {
    let store: Store
    let dataset: Dataset
    let limits: SyncResponder.Limits

    /// - Throws: `store` with `datasetNotFound` if nothing is known of the dataset.
    init(store: Store, dataset name: String, limits: SyncResponder.Limits) throws(SyncError) {
        self.store = store
        self.limits = limits
        dataset = try engine(name) { () throws(StoreError) -> Dataset in
            guard let dataset = try store.datasetForSync(name, creating: false) else {
                throw StoreError(
                    .datasetNotFound, "there is no dataset \(name) to export; correct the name")
            }
            return dataset
        }
    }

    /// How far the exchange with the receiver has come.
    func checkpoint(of receiver: ReplicaID) throws(SyncError) -> PeerCheckpoint {
        guard receiver != store.replicaID else {
            throw SyncError(
                StoreError(
                    .invalidArgument,
                    "a bundle for this store itself; give the id of the store that is to have it"),
                dataset: dataset.name)
        }
        return try engine(dataset.name) { () throws(StoreError) -> PeerCheckpoint in
            var checkpoint = try dataset.checkpoint(for: receiver)
            // As an exchange has it: a position beyond the end is none.
            if checkpoint.pushedThrough > (try dataset.knowledge().syncCount) {
                checkpoint.pushedThrough = .zero
            }
            return checkpoint
        }
    }

    func write(
        to path: String, since: SyncCount, leavingOut required: VersionVector,
        for receiver: ReplicaID?
    ) throws(SyncError) -> BundleSummary {
        let sender = store.replicaID
        let header = try begin(sender, since: since, leavingOut: required, for: receiver)
        var writer = try engine(dataset.name) { () throws(StoreError) in
            try BundleWriter(path: path)
        }
        do throws(SyncError) {
            try writer.append(header)
            let last = try writePages(after: header, to: &writer)
            // Records may have gone before the last page was read, which claims all that was seen.
            try refusePart()
            // Another exchange may have found out meanwhile that this store was copied.
            guard store.replicaID == sender, try !isDisputed() else { throw goneBack() }
            try writer.finish()
            return BundleSummary(
                header, last.knowledge, through: last.through,
                recordCount: Int(writer.recordCount), pageCount: Int(writer.pageCount),
                byteCount: writer.byteCount)
        } catch {
            writer.abandon()
            throw error
        }
    }

    /// Notes the receiver, and draws what is to be shown with what leaves.
    private func begin(
        _ sender: ReplicaID, since: SyncCount, leavingOut required: VersionVector,
        for receiver: ReplicaID?
    ) throws(SyncError) -> BundleHeader {
        try refusePart()
        guard try !isDisputed() else { throw goneBack() }
        return try engine(dataset.name) { () throws(StoreError) -> BundleHeader in
            let knowledge = try dataset.knowledge()
            guard since <= knowledge.syncCount else {
                throw StoreError(
                    .invalidArgument,
                    "changes since \(since) of a dataset that has \(knowledge.syncCount); "
                        + "give the count up to which the receiver has them")
            }
            let peer = receiver ?? .bearer
            let checkpoint = try dataset.checkpoint(for: peer)
            try dataset.remember(checkpoint, of: peer)
            _ = try dataset.told(knowledge)
            return BundleHeader(
                sender: sender, dataset: dataset.name, receiver: receiver, since: since,
                acknowledged: checkpoint.pulledThrough, required: required,
                drawn: try BatonBook(dataset).drawn(by: sender))
        }
    }

    /// - Returns: the last page.
    private func writePages(
        after header: BundleHeader, to writer: inout BundleWriter
    ) throws(SyncError) -> RecordPage {
        var position = header.since
        let memory = ChangeMemory(changesMin: SyncLimits.walkedChangesMin)
        while true {
            let page = try engine(dataset.name) { () throws(StoreError) -> RecordPage in
                let page = try dataset.writtenPage(
                    since: position,
                    recordsMax: dataset.recordsPerPage(atMost: limits.pageRecordsMax),
                    bytesMax: limits.pageBytesMax, excluding: header.required, after: [],
                    remembering: memory)
                var told = try dataset.told(page)
                // It may reach one for whom something was left out, in a page that is passed over.
                if try !FailedBook(dataset, .outgoing).isEmpty {
                    told.knowledge.vector = VersionVector()
                }
                // After reading, so that all of the page is durable before it leaves.
                try store.sync()
                return told
            }
            try writer.append(page)
            if page.isLast { return page }
            position = page.through
        }
    }

    /// Whether what lies here under a former id is still to be compared with what others have.
    private func isDisputed() throws(SyncError) -> Bool {
        try engine(dataset.name) { () throws(StoreError) in
            try !BatonBook(dataset).disputed.isEmpty
        }
    }

    /// What is missing in a part would be taken for deleted, or for never written.
    private func refusePart() throws(SyncError) {
        let isPart = try engine(dataset.name) { () throws(StoreError) in
            try PartBook.isPart(dataset)
        }
        guard isPart else { return }
        throw SyncError(
            .partialReplica,
            "only a part of the dataset is kept here, and a bundle speaks for all of it; export it "
                + "from a store that keeps all of it", dataset: dataset.name)
    }

    private func goneBack() -> SyncError {
        SyncError(
            .peerChanged,
            "this store, or one whose writes it has, is a copy or went back in time, and what was "
                + "written since is not settled; exchange the dataset with a peer once, or import "
                + "a bundle of all of it, and then export it again", dataset: dataset.name)
    }
}
