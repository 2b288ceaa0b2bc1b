/// What a transaction has read, in the form in which it is checked.
struct TransactionReads {
    /// The moment that was read.
    let moment: Moment
    /// Everything up to this sequence is known not to have changed anything that was read.
    var checkedThrough: UInt64
    fileprivate let datasets: [DatasetReads]

    init(_ moment: Moment, _ scopes: [TransactionScope]) {
        self.moment = moment
        checkedThrough = moment.sequenceMax
        datasets = scopes.compactMap { scope in
            guard let id = scope.readID else { return nil }
            return DatasetReads(
                state: scope.dataset.state, id: id, keys: scope.keysRead,
                ranges: KeyRangeSet(scope.rangesRead.compactMap(\.covered)))
        }
    }
}

private struct DatasetReads {
    let state: DatasetState
    let id: DatasetID
    /// The sync count of the live record found; 0 if there was none.
    let keys: [[UInt8]: UInt64]
    let ranges: KeyRangeSet
}

// MARK: - Checking

// Every write has a sequence of its own, greater than all before, and memtables are told theirs.
// So as long as the oldest memtable of the present was already there at the transaction's moment,
// all that has come since lies in memtables, and no segment is looked at. A transaction that is
// older than that, because a log was sealed meanwhile, is compared by sync counts with what the
// segments hold now: once before the lock is taken, so that only what comes in between is left.

extension Engine {
    /// Checks a transaction that has seen a log go while it ran, without the writer lock.
    /// - Throws: `transactionConflict`, `corruption`, `inputOutput`.
    func validateAhead(_ reads: inout TransactionReads) throws(StoreError) {
        guard !isInMemtables(since: reads.checkedThrough, of: currentView) else { return }
        let now = try moment()
        for dataset in reads.datasets {
            try checkIsThere(dataset, since: reads.checkedThrough)
            try validateWhole(dataset, reads, at: now)
        }
        reads.checkedThrough = now.sequenceMax
    }
}

extension EngineState {
    /// Checks a transaction right before it is written. O(min(k, c) + c if there are ranges) for k
    /// keys read and c changes of their datasets since the moment.
    /// - Throws: `transactionConflict`; `corruption` and `inputOutput` if a log was sealed since
    ///   ``validateAhead(_:)`` looked.
    func validate(_ reads: TransactionReads) throws(StoreError) {
        guard sequence != reads.checkedThrough else { return }
        let now = momentAsStored()
        let isInMemtables = isInMemtables(since: reads.checkedThrough, of: now.view)
        for dataset in reads.datasets {
            try checkIsThere(dataset, since: reads.checkedThrough)
            if isInMemtables {
                guard !hasChanged(dataset, since: reads.checkedThrough, in: now.view) else {
                    throw .transactionConflict(dataset.state.name)
                }
            } else {
                try validateWhole(dataset, reads, at: now)
            }
        }
    }
}

extension EngineParts {
    /// A dataset that was deleted has another id when it is made again. One that took over the
    /// records of a replica may have had the id before, and another in between.
    fileprivate func checkIsThere(
        _ dataset: DatasetReads, since sequence: UInt64
    ) throws(StoreError) {
        guard dataset.state.visibleID == dataset.id, dataset.state.hasKeptID(since: sequence)
        else {
            throw .transactionConflict(dataset.state.name)
        }
    }

    fileprivate func isInMemtables(since sequence: UInt64, of view: ReadView) -> Bool {
        view.memtables.last.map { $0.sequenceBase <= sequence } ?? false
    }
}

extension EngineState {
    // MARK: - By memtables alone

    fileprivate func hasChanged(
        _ dataset: DatasetReads, since: UInt64, in view: ReadView
    ) -> Bool {
        let looksAtChanges =
            !dataset.ranges.isEmpty || sequence - since < UInt64(dataset.keys.count)
        guard looksAtChanges else {
            return dataset.keys.contains { key, count in
                hasChanged(key, of: dataset, readAt: count, since: since, in: view)
            }
        }
        for memtable in view.memtables {
            var node = unsafe memtable.tail(of: dataset.id)
            while let current = unsafe node {
                let entry = unsafe memtable.entry(of: current)
                guard entry.sequence > since else { return false }
                if dataset.ranges.contains(entry.key) { return true }
                if !dataset.keys.isEmpty {
                    let key = entry.key.array
                    if let count = dataset.keys[key],
                        hasChanged(key, of: dataset, readAt: count, since: since, in: view)
                    {
                        return true
                    }
                }
                unsafe node = current.pointee.previousChange
            }
        }
        return false
    }
}

extension EngineParts {
    fileprivate func hasChanged(
        _ key: [UInt8], of dataset: DatasetReads, readAt count: UInt64, since: UInt64,
        in view: ReadView
    ) -> Bool {
        unsafe key.withUnsafeBytes { buffer in
            let key = unsafe ByteView(buffer)
            let hash = view.keyHash.of(key, in: dataset.id)
            for memtable in view.memtables {
                guard
                    let entry = memtable.newest(
                        of: key, in: dataset.id, hash: hash, sequenceMax: .max)
                else { continue }
                // A deletion of what was not there changes nothing.
                return entry.sequence > since && !(entry.kind == .delete && count == 0)
            }
            return false
        }
    }

    // MARK: - By sync counts

    /// Compares what was read with what is there at another moment.
    fileprivate func validateWhole(
        _ dataset: DatasetReads, _ reads: TransactionReads, at now: Moment
    ) throws(StoreError) {
        for (key, count) in dataset.keys {
            let found = try key.withBytes { (key) throws(StoreError) in
                try now.view.withNewest(
                    of: key, in: dataset.id, sequenceMax: now.sequenceMax
                ) { (entry, _) throws(StoreError) -> UInt64 in
                    // By the clock of the beginning, so that time alone changes nothing.
                    entry.map { $0.isLive(at: reads.moment.now) ? $0.syncCount : 0 } ?? 0
                }
            }
            guard found == count else { throw .transactionConflict(dataset.state.name) }
        }
        guard !dataset.ranges.isEmpty else { return }
        let hasChanged =
            hasChange(of: dataset, since: reads.moment.sequenceMax, through: now)
            ? true : try hasSealedChange(of: dataset, reads.moment, now)
        guard !hasChanged else { throw .transactionConflict(dataset.state.name) }
    }

    fileprivate func hasChange(
        of dataset: DatasetReads, since: UInt64, through now: Moment
    ) -> Bool {
        for memtable in now.view.memtables {
            var node = unsafe memtable.tail(of: dataset.id)
            while let current = unsafe node {
                let entry = unsafe memtable.entry(of: current)
                guard entry.sequence > since else { return false }
                if entry.sequence <= now.sequenceMax, dataset.ranges.contains(entry.key) {
                    return true
                }
                unsafe node = current.pointee.previousChange
            }
        }
        return false
    }

    /// Looks only at segments that were not there at the first moment, and in them at changes
    /// after the last one that was.
    fileprivate func hasSealedChange(
        of dataset: DatasetReads, _ then: Moment, _ now: Moment
    ) throws(StoreError) -> Bool {
        let since = try lastCount(of: dataset.id, at: then)
        let known = Set(then.view.runs.map(ObjectIdentifier.init))
        for run in now.view.runs where !known.contains(ObjectIdentifier(run)) {
            for segment in run.segments {
                let parts = try segment.parts()
                // A deletion that is forgotten may have been of anything that was read.
                if try parts.losses()[dataset.id].collectedThrough > since { return true }
                var changes = SegmentChanges(parts, of: dataset.id, since: since)
                while let change = try changes.peek() {
                    let isRead = try parts.withEntry(of: change) {
                        (entry) throws(StoreError) in
                        dataset.ranges.contains(entry.key)
                    }
                    if isRead { return true }
                    changes.pop()
                }
            }
        }
        return false
    }

    /// The sync count of the last change of a dataset that is there at a moment. Later ones may
    /// have been there and be forgotten; nothing of them is left to be taken for a change.
    fileprivate func lastCount(
        of id: DatasetID, at moment: Moment
    ) throws(StoreError) -> UInt64 {
        for memtable in moment.view.memtables {
            var node = unsafe memtable.tail(of: id)
            while let current = unsafe node {
                let entry = unsafe memtable.entry(of: current)
                if entry.sequence <= moment.sequenceMax { return entry.syncCount }
                unsafe node = current.pointee.previousChange
            }
        }
        var last: UInt64 = 0
        for segment in moment.view.segments {
            let parts = try segment.parts()
            guard parts.changeBlockCount > 0 else { continue }
            let row = parts.changeRow(parts.changeRow(of: id, after: .max))
            guard row.dataset <= id else { continue }
            let changes = try parts.changes(row)
            last = max(last, changes.last { $0.dataset == id }?.syncCount ?? 0)
        }
        return last
    }
}

extension StoreError {
    static func transactionConflict(_ dataset: String) -> StoreError {
        StoreError(
            .transactionConflict,
            "something that the transaction has read in \(dataset) has changed since; nothing "
                + "was written: run the whole transaction again")
    }
}
