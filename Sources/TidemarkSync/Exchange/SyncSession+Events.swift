import Tidemark

// What is told to whoever observes an exchange, always after it happened and while no lock is
// held. Nothing of it is made if nobody observes.

extension SyncSession {
    /// Which values here are others now, after a page was applied.
    func tellApplied(_ batch: ReplicationBatch?, _ settled: [SyncResult.Settlement]) {
        guard let observer = options.observer else { return }
        if !settled.isEmpty { observer(.conflictsSettled(dataset: dataset.name, settled)) }
        let kept = Set(settled.lazy.filter { $0.decision == .local }.map(\.key))
        var changed: [[UInt8]] = []
        for write in batch?.writes ?? [] where !kept.contains(write.key) {
            switch write.content {
            case .adopt(_, let version, _) where version.dot == write.expected?.dot:
                // The same write, of which more is known now.
                continue
            case .rewrite(_, let version, _, true, _) where version == write.expected:
                // The same write under a new dot.
                continue
            case .outlive(.some, let version, _) where version.dot == write.expected?.dot:
                continue
            case .adopt, .resolve, .rewrite, .outlive: break
            }
            // A settled conflict may be two writes to its key, one after the other.
            if changed.last != write.key { changed.append(write.key) }
        }
        guard !changed.isEmpty else { return }
        observer(.localChanged(dataset: dataset.name, keys: changed))
    }

    /// The same of a page that the store merged as it lay in its message.
    func tellMerged(
        _ page: MergePage, _ outcome: MergeOutcome, _ settled: [SyncResult.Settlement]
    ) {
        guard let observer = options.observer else { return }
        if !settled.isEmpty { observer(.conflictsSettled(dataset: dataset.name, settled)) }
        guard !outcome.changed.isEmpty else { return }
        let keys = outcome.changed.map { page.key(at: Int($0)) }
        observer(.localChanged(dataset: dataset.name, keys: keys))
    }

    /// Which records are here now that the whole dataset was taken over: as many in an event as
    /// may be in a page.
    func tellAdopted() throws(SyncError) {
        guard let observer = options.observer else { return }
        let name = dataset.name
        try ifThere { () throws(StoreError) in
            let cursor = try dataset.keys(includingDeleted: true)
            try tell({ () throws(StoreError) in try cursor.next() }) { keys in
                observer(.localChanged(dataset: name, keys: keys))
            }
        }
    }

    /// Which records the peer has now that the dataset was handed over as it lay here up to a
    /// count: as many in an event as may be in a page.
    func tellHandedOver(through count: SyncCount) throws(SyncError) {
        guard let observer = options.observer else { return }
        let name = dataset.name
        try ifThere { () throws(StoreError) in
            let cursor = try dataset.records(includingDeleted: true)
            let next = { () throws(StoreError) -> [UInt8]? in
                while let record = try cursor.next() {
                    if record.syncCount <= count { return record.key }
                }
                return nil
            }
            try tell(next) { keys in observer(.remoteChanged(dataset: name, keys: keys)) }
        }
    }

    private func tell(
        _ next: () throws(StoreError) -> [UInt8]?, _ event: ([[UInt8]]) -> Void
    ) throws(StoreError) {
        var keys: [[UInt8]] = []
        while let key = try next() {
            keys.append(key)
            guard keys.count == options.pageRecordsMax else { continue }
            event(keys)
            keys = []
        }
        if !keys.isEmpty { event(keys) }
    }

    /// If the dataset was deleted again meanwhile, there is nothing to tell of.
    private func ifThere(_ tell: () throws(StoreError) -> Void) throws(SyncError) {
        do throws(StoreError) {
            try tell()
        } catch {
            guard error.code == .datasetNotFound else {
                throw SyncError(error, dataset: dataset.name)
            }
        }
    }

    /// Which records of ours the peer has now.
    func tellPushed(_ page: RecordPage, _ outcome: PushAnswer.Outcome) {
        guard let observer = options.observer else { return }
        let refused: Set<[UInt8]>
        switch outcome {
        case .gap, .late, .accepted(changed: 0), .conflicts(_, changed: 0): return
        case .accepted: refused = []
        case .conflicts(let keys, _):
            // Of more conflicts than can be listed it is not known which records they are.
            guard keys.count < SyncLimits.conflictKeysMax else { return }
            refused = Set(keys)
        }
        let keys = page.records.lazy.map(\.key).filter { !refused.contains($0) }
        guard !keys.isEmpty else { return }
        observer(.remoteChanged(dataset: dataset.name, keys: Array(keys)))
    }
}
