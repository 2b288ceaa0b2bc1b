import Tidemark

// How one who keeps a part of a dataset is answered, and how others are when only a part is kept
// here: those who want no more of it than is kept here are told what is here, and nobody else is
// told anything. Who keeps a part cannot say what became of a record that is not here; so nothing
// is said of what left the scope, nothing is claimed, and nothing is noted of the asker.
//
// Of each change since the asker's position it is told
// - the record, if it belongs to the scope;
// - the tombstone, if the record may have belonged to it, as far as its key says;
// - that the newest version does not belong to it, by key and version, if the key alone does not
//   say so: the asker may have an older one that did;
// - nothing, if the key alone says that no version of it ever belonged to the scope.
//
// The asker keeps no vector of what it was told, only positions. So it is left out nothing because
// of what it claims to have seen: what it has let go it may want again.

extension SyncResponder {
    func answer(to request: ScopedPullRequest) throws(SyncError) -> ScopedPullAnswer {
        try check(request.address)
        let dataset = try dataset(request.address.dataset, creating: false)
        let asker = request.address.from
        if asker != .nobody {
            try checkForks(
                VersionVector(), request.batons, known: request.disputed, dataset,
                request.address)
        }
        try admit(request, dataset)
        return try engine(dataset.name) { () throws(StoreError) in
            if asker != .nobody, !request.takesOnly {
                try acknowledge(request.since, of: asker, isPart: true, dataset)
            }
            let recordsMax = min(request.recordsMax, limits.pageRecordsMax)
            // The asker's position is past what was left out of what we pushed to it: nothing is
            // taken for told, and nothing is claimed.
            let failed = try failed(with: asker, seen: VersionVector(), dataset)
            let end = SyncCount(rawValue: .max)
            let hasLeftOut = try failed.holdsBack(from: asker, at: end)
            let mayPassBy = !request.takesOnly && !hasLeftOut
            var pass = ScopedPass(
                request.scope, mayPassBy ? request.former : nil,
                recordsMax: try dataset.recordsPerPage(atMost: recordsMax),
                bytesMax: min(max(1, request.bytesMax), limits.pageBytesMax))
            let claim = try dataset.vectorWithoutHeld()
            let run = try dataset.withChanges(
                since: request.since, in: request.scope.keyRange,
                skipsMax: SyncLimits.scopedChangesMax, scanMax: pass.budget.changesMax
            ) { (change) throws(StoreError) in try pass.take(change) }
            var page = try dataset.told(
                RecordPage(pass.written, run), isDrawing: asker != .nobody)
            let holdsBack = try failed.holdsBack(from: asker, at: page.through)
            page.knowledge.vector = request.takesOnly || holdsBack ? VersionVector() : claim
            if request.takesOnly { page.knowledge.forgotten = ForgottenDeletions() }
            if asker != .nobody { try store.syncBeforeSending() }
            // After the changes were read, so that none of them was forgotten before unnoticed.
            return ScopedPullAnswer(
                page: page, outside: request.takesOnly ? [] : pass.outside,
                forgottenThrough: request.takesOnly ? .zero : try dataset.forgottenThrough())
        }
    }

    func answer(to request: LookupRequest) throws(SyncError) -> LookupAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        let asker = request.address.from
        return try engine(dataset.name) { () throws(StoreError) in
            let bytesMax = min(max(1, request.bytesMax), limits.pageBytesMax)
            let budget = ScopeBudget(request.scope)
            var found = FoundRecords()
            let heldBefore = try QuarantineBook(dataset).keys()
            for item in request.items {
                // Of each at least one is answered.
                guard found.answered == 0 || found.hasRoom(in: budget, bytesMax) else { break }
                found.note(try dataset.storedRecord(for: item.key), of: item, request.scope)
            }
            // After the records were read, so that it covers no less than they do.
            let knowledge = try dataset.told(
                try dataset.knowledge(), isDrawing: asker != .nobody)
            // What is held was seen, too, and is not missing.
            let held = try heldBefore.union(QuarantineBook(dataset).keys())
            if asker != .nobody { try store.syncBeforeSending() }
            return LookupAnswer(
                answered: found.answered,
                page: RecordPage(
                    records: found.records, through: .zero, isLast: true, knowledge: knowledge),
                outside: found.outside,
                missing: found.missing.filter { !held.contains($0) })
        }
    }

    // MARK: - Only a part is kept here

    /// Lets pass who asks about a part for what is kept here: if that is a part, too, the asker has
    /// to know it, and to want no more.
    ///
    /// - Throws: `partialReplica`; also if only a part is kept and this store disputes an id. Under
    ///   that lies here what may be another write elsewhere, until a peer that keeps everything was
    ///   asked.
    private func admit(_ request: ScopedPullRequest, _ dataset: Dataset) throws(SyncError) {
        guard request.takesOnly else { return try refusePart(dataset.name) }
        let (part, isDisputing) = try engine(dataset.name) { () throws(StoreError) in
            (try PartBook(dataset)?.part, try !BatonBook(dataset).disputed.isEmpty)
        }
        guard let part else { return }
        guard part.scope.surelyHolds(request.scope) else {
            throw SyncError(
                .partialReplica,
                "the peer keeps a part of the dataset that does not hold all that is asked for; "
                    + "ask for no more than it keeps, or exchange with one that keeps all of it",
                dataset: dataset.name)
        }
        guard !isDisputing else {
            throw SyncError(
                .partialReplica,
                "the peer keeps a part of the dataset, and went back in time; let it exchange "
                    + "with one that keeps all of it first", dataset: dataset.name)
        }
    }

    /// A dataset that is kept whole here: nobody else can say what is not there.
    func wholeDataset(_ name: String, creating: Bool) throws(SyncError) -> Dataset {
        let dataset = try dataset(name, creating: creating)
        try refusePart(name)
        return dataset
    }

    /// Refuses to answer for a dataset of which only a part is kept here: what is missing would be
    /// taken for deleted, or for never written.
    func refusePart(_ name: String) throws(SyncError) {
        let isPart = try engine(name) { () throws(StoreError) in
            try store.datasetForSync(name, creating: false).map { dataset throws(StoreError) in
                try PartBook.isPart(dataset)
            } ?? false
        }
        guard isPart else { return }
        throw SyncError(
            .partialReplica,
            "the peer keeps only a part of the dataset; exchange with one that keeps all of it, or "
                + "set a scope that the part holds",
            dataset: name)
    }
}

/// Sorts changes into what one answer about a part tells of them.
private struct ScopedPass {
    private let scope: SyncScope
    private let former: ScopedPullRequest.Former?
    private let recordsMax: Int
    private let bytesMax: Int
    /// How much may be looked at, told or not.
    let budget: ScopeBudget
    private(set) var written = WrittenRecords(after: [])
    private(set) var outside: [OutsideNotice] = []
    private var bytes = 0
    private var changeCount = 0
    private var valueBytes = 0

    init(
        _ scope: SyncScope, _ former: ScopedPullRequest.Former?, recordsMax: Int, bytesMax: Int
    ) {
        self.scope = scope
        self.former = former
        self.recordsMax = max(1, recordsMax)
        self.bytesMax = bytesMax
        budget = ScopeBudget(scope, former?.scope)
    }

    private enum Telling {
        case record
        case notice
        case nothing
    }

    /// - Returns: false if there is no room for the change, or enough was looked at. Of each answer
    ///   the first one has room.
    mutating func take(_ change: ChangeView) throws(StoreError) -> Bool {
        guard
            changeCount == 0
                || changeCount < budget.changesMax && valueBytes < budget.valueBytesMax
        else { return false }
        let key = change.key
        let telling = try telling(of: change, key)
        let size: Int
        switch telling {
        case .record: size = key.count + change.valueCount
        case .notice: size = key.count + Self.noticeBytes
        case .nothing: size = 0
        }
        let count = written.count + outside.count
        guard size == 0 || count == 0 || count < recordsMax && bytes + size <= bytesMax else {
            return false
        }
        changeCount += 1
        bytes += size
        switch telling {
        case .record: try written.add(change)
        case .notice: outside.append(OutsideNotice(key: key, change.version))
        case .nothing: break
        }
        return true
    }

    /// About what a notice takes beside its key.
    private static let noticeBytes = 24

    private mutating func telling(
        of change: ChangeView, _ key: [UInt8]
    ) throws(StoreError) -> Telling {
        let verdict = scope.verdict(onKey: key)
        // The mark of a record that was dropped from a part says something here alone.
        guard verdict != false, change.counter > 0 else { return .nothing }
        let former = former.flatMap { change.syncCount <= $0.through ? $0.scope : nil }
        var formerVerdict: Bool? = false
        if let former { formerVerdict = former.verdict(onKey: key) }
        if change.isDeleted { return formerVerdict == false ? .record : .nothing }
        if formerVerdict == true { return .nothing }
        if verdict == true, formerVerdict == false { return .record }
        valueBytes += change.valueCount
        guard let value = try change.value() else { return .nothing }
        // Who was told of it under the former scope knows by itself what becomes of it.
        if let former, former.matches(key: key, value: value) { return .nothing }
        return scope.matches(key: key, value: value) ? .record : .notice
    }
}

/// What is found for the keys of a lookup.
private struct FoundRecords {
    private(set) var records: [Record] = []
    private(set) var outside: [OutsideNotice] = []
    private(set) var missing: [[UInt8]] = []
    private(set) var answered = 0
    private(set) var bytes = 0
    /// Of the values that were read, told or not.
    private var valueBytes = 0

    /// Whether another one may be looked at.
    func hasRoom(in budget: ScopeBudget, _ bytesMax: Int) -> Bool {
        bytes < bytesMax && valueBytes < budget.valueBytesMax
    }

    mutating func note(_ record: Record?, of item: LookupRequest.Item, _ scope: SyncScope?) {
        answered += 1
        bytes += item.key.count
        valueBytes += record?.value?.count ?? 0
        guard let record, !record.isDropped else {
            missing.append(item.key)
            return
        }
        // A record that was buried is deleted under its own version.
        let isBuried = record.isDeleted && record.expiresAt == nil
        if record.version.dot == item.dot, !isBuried { return }
        if let scope, let value = record.value, !scope.matches(key: record.key, value: value) {
            outside.append(OutsideNotice(key: record.key, record.version))
        } else {
            records.append(record)
            bytes += record.value?.count ?? 0
        }
    }
}
