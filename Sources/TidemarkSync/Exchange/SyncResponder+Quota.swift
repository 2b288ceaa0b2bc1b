import Tidemark

// What a peer that is not trusted may store here. Everything that it can make grow has a bound, be
// it records, deletions, names of datasets, writes from the future, peers or vectors.

extension SyncResponder.Limits {
    /// What one request may take. A quota bounds memory, too: a compressed body can be two hundred
    /// times as large as it travels, and vectors are written once and stand for many.
    var messageBounds: MessageBounds {
        guard let quota else { return MessageBounds() }
        return MessageBounds(
            bodyBytesMax: requestBytesMax, vectorEntriesMax: quota.writersMax,
            messageVectorEntriesMax: SyncLimits.strangersVectorEntriesMax)
    }
}

extension SyncResponder {
    /// Refuses a replica that would be one too many to be remembered.
    func admitPeer(_ address: Address) throws(SyncError) {
        guard let peersMax = limits.quota?.peersMax, address.from != .nobody else { return }
        let count = try engine(address.dataset) { () throws(StoreError) -> Int in
            let dataset = try store.datasetForSync(address.dataset, creating: false)
            return try dataset?.peerCount(beside: address.from) ?? 0
        }
        guard count < peersMax else {
            throw SyncError(
                .peerFailed,
                "the dataset is exchanged by \(count) replicas, and no more may be; have those "
                    + "retired that are gone", dataset: address.dataset)
        }
    }

    /// Refuses a page after which the peer would have more here than it may.
    ///
    /// - Parameters:
    ///   - records: of the page.
    ///   - isPart: whether they are of one who keeps a part.
    /// - Throws: `recordRefused` if fewer of them might pass, `peerFailed` if none would.
    func admit(
        _ records: [Record], _ request: PushRequest, isPart: Bool
    ) throws(SyncError) {
        guard let quota = limits.quota else { return }
        let name = request.address.dataset
        let dataset = try engine(name) { () throws(StoreError) in
            try store.datasetForSync(name, creating: false)
        }
        if dataset == nil { try admitName(name, quota) }
        let exists = try engine(name) { () throws(StoreError) in
            try store.existingDataset(name) != nil
        }
        if !exists {
            let isMade = try records.isEmpty ? makes(request, dataset) : true
            if isMade { try admitDataset(name, quota) }
        }
        let growth = try engine(name) { () throws(StoreError) in
            try Growth(
                records, wiping: request.page.knowledge.lifecycle.wiped, in: dataset,
                isPart: isPart)
        }
        try check(growth, quota, name)
        try checkHeld(records, of: dataset, quota, name)
        try checkWriters(records, request, of: dataset, quota)
    }

    private func admitName(_ name: String, _ quota: SyncQuota) throws(SyncError) {
        guard quota.datasetNamesMax < .max else { return }
        let count = try engine(name) { () throws(StoreError) in
            try store.datasetNamesForSync(
                prefix: namespace.prefix, limit: quota.datasetNamesMax
            ).count
        }
        guard count < quota.datasetNamesMax else {
            throw SyncError(
                .peerFailed,
                "\(count) datasets were made, deleted ones included, and no more may be; use one "
                    + "of their names", dataset: name)
        }
    }

    private func admitDataset(_ name: String, _ quota: SyncQuota) throws(SyncError) {
        guard quota.datasetsMax < .max else { return }
        let count = try engine(name) { () throws(StoreError) in
            try store.datasetNames(prefix: namespace.prefix, limit: quota.datasetsMax).count
        }
        guard count < quota.datasetsMax else {
            throw SyncError(
                .peerFailed,
                "there are \(count) datasets, and no more may be; delete one", dataset: name)
        }
    }

    /// Whether a dataset that does not exist does so after a page, be it an empty one.
    private func makes(_ request: PushRequest, _ dataset: Dataset?) throws(SyncError) -> Bool {
        let theirs = request.page.knowledge.lifecycle
        guard !theirs.isDeleted else { return false }
        return try engine(request.address.dataset) { () throws(StoreError) -> Bool in
            guard let dataset else { return true }
            return theirs.isLater(than: PeerLifecycle(try dataset.knowledge().lifecycle))
        }
    }

    /// Refuses a page that would have more replicas remembered as writers than may be: a vector
    /// that is stored is only ever added to, and what one request leaves out the next may bring.
    private func checkWriters(
        _ records: [Record], _ request: PushRequest, of dataset: Dataset?, _ quota: SyncQuota
    ) throws(SyncError) {
        let theirs = request.page.knowledge
        var told = Set(theirs.batons.map(\.replica))
        let vectors = [
            theirs.vector, theirs.lifecycle.wiped, theirs.forgotten.vector, request.seen,
            request.settled,
        ]
        for vector in vectors { for dot in vector.dots { told.insert(dot.replica) } }
        for record in records {
            for dot in record.version.vector.dots { told.insert(dot.replica) }
        }
        let name = request.address.dataset
        let (known, reached) = try engine(name) {
            () throws(StoreError) -> (Set<ReplicaID>, VersionVector) in
            guard let dataset else { return ([], VersionVector()) }
            let shown = try BatonBook(dataset).records.keys
            let reached = try dataset.checkpoint(for: request.address.from).vector
            return (try dataset.writers().union(shown), reached)
        }
        guard !told.isSubset(of: known) else { return }
        told.formUnion(known)
        for dot in reached.dots { told.insert(dot.replica) }
        guard told.count > quota.writersMax else { return }
        throw SyncError(
            .peerFailed,
            "\(told.count) replicas would have written to the dataset, of which "
                + "\(quota.writersMax) are allowed; delete it, and go on in one of another name",
            dataset: name)
    }

    private func check(
        _ growth: Growth, _ quota: SyncQuota, _ name: String
    ) throws(SyncError) {
        // What takes nothing more is welcome, also where there is too much already.
        let problem: String? =
            if growth.records > 0, growth.after.records > quota.recordsMax {
                "\(growth.after.records) records, of which \(quota.recordsMax) are allowed"
            } else if growth.bytes > 0, growth.after.bytes > quota.bytesMax {
                "\(growth.after.bytes) bytes, of which \(quota.bytesMax) are allowed"
            } else if growth.tombstones > 0, growth.after.tombstones > quota.tombstonesMax {
                "\(growth.after.tombstones) deletions, of which \(quota.tombstonesMax) are allowed"
            } else {
                nil
            }
        guard let problem else { return }
        throw SyncError(
            .recordRefused, "with this the dataset would have \(problem)", dataset: name)
    }

    /// What is held lies beside the records, and has as much room as they.
    private func checkHeld(
        _ records: [Record], of dataset: Dataset?, _ quota: SyncQuota, _ name: String
    ) throws(SyncError) {
        let ahead = records.filter { store.isAhead($0.version) }
        guard !ahead.isEmpty else { return }
        // By their names: a peer can give any number of writes one dot.
        let held = try engine(name) { () throws(StoreError) -> [HeldName: Int] in
            guard let dataset else { return [:] }
            var sizes: [HeldName: Int] = [:]
            try QuarantineBook(dataset).each { (record) throws(StoreError) in
                sizes[HeldName(record)] = record.byteCount
                return true
            }
            return sizes
        }
        var new: [HeldName: Int] = [:]
        for record in ahead { new[HeldName(record)] = record.byteCount }
        for name in held.keys { new[name] = nil }
        guard !new.isEmpty else { return }
        let count = held.count + new.count
        let bytes = held.values.reduce(0, +) + new.values.reduce(0, +)
        guard count > quota.heldMax || bytes > quota.bytesMax else { return }
        throw SyncError(
            .recordRefused,
            "\(count) writes with \(bytes) bytes would be dated too far ahead, of which "
                + "\(quota.heldMax) with \(quota.bytesMax) are allowed; correct the clock",
            dataset: name)
    }
}

/// What a page would add to a dataset, if all of it were stored.
private struct Growth {
    struct Total {
        var records = 0
        var bytes = 0
        var tombstones = 0

        init() {}

        /// What a record takes; nil for none.
        init(_ record: Record?) {
            guard let record else { return }
            if record.isDeleted {
                tombstones = 1
            } else {
                (records, bytes) = (1, record.byteCount)
            }
        }

        mutating func add(_ other: Total, _ sign: Int = 1) {
            records += sign * other.records
            bytes += sign * other.bytes
            tombstones += sign * other.tombstones
        }

        /// Without what is less than nothing.
        var positive: Total {
            var total = Total()
            total.records = max(0, records)
            total.bytes = max(0, bytes)
            total.tombstones = max(0, tombstones)
            return total
        }
    }

    private var added = Total()
    private(set) var after = Total()

    var records: Int { added.records }
    var bytes: Int { added.bytes }
    var tombstones: Int { added.tombstones }

    /// O(records), and O(records in the dataset) if they are more than what they replace.
    ///
    /// - Parameters:
    ///   - records: of a page, which has each key once.
    ///   - theirs: what the page says is wiped. It goes before the records come.
    ///   - dataset: nil if nothing is known of it. A deleted one may still have tombstones.
    ///   - isPart: whether they are of one who keeps a part.
    init(
        _ records: [Record], wiping theirs: VersionVector, in dataset: Dataset?, isPart: Bool
    ) throws(StoreError) {
        let wiped = try dataset?.knowledge().lifecycle.wiped.union(theirs) ?? theirs
        for record in records {
            let local = try dataset?.storedRecord(for: record.key)
            let isAhead = dataset?.store.isAhead(record.version) ?? false
            added.add(
                Self.growth(
                    of: local, by: record, wiped: wiped, isAhead: isAhead, isPart: isPart))
        }
        guard let dataset, added.records > 0 || added.bytes > 0 || added.tombstones > 0 else {
            after = added
            return
        }
        let (size, tombstoneCount) = try dataset.extent()
        after.records = size.recordCount + added.records
        after.bytes = size.keyBytes + size.valueBytes + added.bytes
        after.tombstones = tombstoneCount + added.tombstones
    }

    /// What comes of one record, at most.
    ///
    /// Room is made only by what surely takes the place of what is here. What is in conflict with
    /// it, is held or is judged to be dead does not, and what a peer says of its own writes, like
    /// that two of them have one dot, need not be true.
    private static func growth(
        of local: Record?, by record: Record, wiped: VersionVector, isAhead: Bool, isPart: Bool
    ) -> Total {
        var change = Total(record)
        change.add(Total(local), -1)
        if let local, wiped.covers(local.version.vector) {
            return wiped.covers(record.version.vector) ? Total() : change
        }
        // What a part brings may outlive what is compared here.
        if isPart, local?.isDeleted ?? true { return change.positive }
        switch Comparison(
            local: local, incoming: record, seen: VersionVector(), wiped: wiped)
        {
        case .ignore:
            return Total()
        case .adopt(let value, _, _):
            if let local, value == local.value { return Total() }
            let isSure =
                !isAhead && record.version.vector.covers(local?.version.vector ?? VersionVector())
            return isSure ? change : change.positive
        case .conflict, .renew:
            return change.positive
        }
    }
}

extension Record {
    /// Of key and value.
    fileprivate var byteCount: Int { key.count + (value?.count ?? 0) }
}
