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
            case .adopt, .resolve, .rewrite: break
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
        do throws(StoreError) {
            let cursor = try dataset.keys(includingDeleted: true)
            var keys: [[UInt8]] = []
            while let key = try cursor.next() {
                keys.append(key)
                guard keys.count == options.pageRecordsMax else { continue }
                observer(.localChanged(dataset: dataset.name, keys: keys))
                keys = []
            }
            if !keys.isEmpty { observer(.localChanged(dataset: dataset.name, keys: keys)) }
        } catch {
            // Deleted again meanwhile: there is nothing to tell of.
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
