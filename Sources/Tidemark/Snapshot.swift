internal import Synchronization

/// One moment of all datasets of a store, unmoved by later writes and compaction.
///
/// A snapshot costs nothing to take. As long as it is open it keeps the segments of its moment on
/// disk, so close it, or let it go, when it has served.
public final class Snapshot: Sendable {
    private let engine: Engine
    private let moment: Mutex<Moment?>
    /// nil for the moment at which it was taken.
    private let past: PastMoment?
    /// The only dataset that can be read; nil for all.
    private let only: DatasetState?

    init(_ engine: Engine) throws(StoreError) {
        self.engine = engine
        moment = Mutex(try engine.moment())
        past = nil
        only = nil
    }

    init(
        _ engine: Engine, at past: PastMoment, of dataset: Dataset?
    ) throws(StoreError) {
        self.engine = engine
        moment = Mutex(try engine.moment(for: past, of: dataset?.state))
        self.past = past
        only = dataset?.state
    }

    /// Lets go of the segments. Further reads throw `closed`; closing twice is fine.
    public func close() {
        moment.withLock { $0 = nil }
    }

    /// The value of a key; nil if there was no live record.
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`; of a snapshot of the
    ///   past `historyExpired`.
    public func get(_ key: [UInt8], in dataset: Dataset) throws(StoreError) -> [UInt8]? {
        try record(for: key, in: dataset)?.value
    }

    /// The record of a key with its version.
    /// - Throws: as ``get(_:in:)``.
    public func record(
        for key: [UInt8], in dataset: Dataset, includingDeleted: Bool = false
    ) throws(StoreError) -> Record? {
        let moment = try opened()
        if let scope = try pastScope(of: dataset, moment) {
            return try key.withBytes { (key) throws(StoreError) in
                try engine.record(of: key, in: scope, includingDeleted: includingDeleted)
            }
        }
        return try key.withBytes { (key) throws(StoreError) in
            try engine.record(
                of: key, in: dataset.state, at: moment, includingDeleted: includingDeleted)
        }
    }

    /// Records in the order of their keys.
    ///
    /// - Parameter limit: the number of records at most; nil for no bound.
    /// - Throws: as ``get(_:in:)``.
    public func records(
        of dataset: Dataset, in range: KeyRange = .all, order: ScanOrder = .forward,
        limit: Int? = nil, includingDeleted: Bool = false
    ) throws(StoreError) -> RecordCursor {
        if let past = try pastSteps(
            of: dataset, in: range, order: order, includingDeleted: includingDeleted)
        {
            return RecordCursor(past, limit: limit)
        }
        let (steps, dirtiness) = try steps(
            of: dataset, in: range, order: order, includingDeleted: includingDeleted)
        return RecordCursor(steps, dirtiness, limit: limit)
    }

    /// The walk over a past moment; nil for a snapshot of the moment when it was taken.
    func pastSteps(
        of dataset: Dataset, in range: KeyRange, order: ScanOrder, includingDeleted: Bool
    ) throws(StoreError) -> PastSteps? {
        guard let scope = try pastScope(of: dataset, try opened()) else { return nil }
        return try PastSteps(
            scope, range: range, order: order, includingDeleted: includingDeleted)
    }

    func steps(
        of dataset: Dataset, in range: KeyRange, order: ScanOrder, includingDeleted: Bool
    ) throws(StoreError) -> (steps: ScanSteps, dirtiness: Dirtiness) {
        let moment = try opened()
        let (id, dirtiness) = try engine.scope(of: dataset.state, at: moment)
        let steps = try ScanSteps(
            moment, dataset: id, range: range, order: order, includingDeleted: includingDeleted,
            gapsOf: engine)
        return (steps, dirtiness)
    }

    /// The newest version of every key changed after the count, in the order of change.
    /// - Throws: `changesExpired`, `invalidArgument` for a snapshot of the past, and as
    ///   ``get(_:in:)``.
    public func changes(
        of dataset: Dataset, since syncCount: SyncCount
    ) throws(StoreError) -> RecordCursor {
        guard past == nil else {
            throw StoreError(
                .invalidArgument,
                "a snapshot of the past tells no changes; ask the dataset for its changes")
        }
        let changes = try engine.changes(
            of: dataset.state, since: syncCount, at: try opened())
        return RecordCursor(changes.steps, changes.dirtiness)
    }

    /// The number of live records. O(n).
    /// - Throws: as ``get(_:in:)``.
    public func count(of dataset: Dataset) throws(StoreError) -> Int {
        let cursor = try records(of: dataset)
        var count = 0
        while try cursor.next({ _, _ in true }) != nil {
            count += 1
        }
        return count
    }

    /// Finds out whether a dataset can be read.
    func check(_ dataset: Dataset) throws(StoreError) {
        _ = try pastScope(of: dataset, try opened())
    }

    /// nil for a snapshot of the present.
    private func pastScope(
        of dataset: Dataset, _ moment: Moment
    ) throws(StoreError) -> PastScope? {
        guard let past else { return nil }
        if let only, only !== dataset.state {
            throw StoreError(
                .invalidArgument,
                "the snapshot is of \(only.name) alone, since the count that it was taken at is; "
                    + "take one at a time to read several datasets")
        }
        return try engine.scope(of: dataset.state, at: past, moment)
    }

    private func opened() throws(StoreError) -> Moment {
        guard let moment = moment.withLock({ $0 }) else {
            throw StoreError(.closed, "the snapshot is closed; take another")
        }
        return moment
    }
}
