public import Tidemark

/// What happens in a ``Synchronizer``, in the order in which it happens.
///
/// A run begins with ``started(datasets:)`` and ends with exactly one ``ended(_:)`` or
/// ``failed(_:)``, whatever becomes of it, and no two runs overlap.
public enum SyncEvent: Sendable {
    /// A run begins: of these datasets, or of all.
    case started(datasets: [String]?)
    /// Values of the other side, or merged ones, took the place of ours. One event for a page; the
    /// page is applied by then, but need not be durable.
    case localChanged(dataset: String, keys: [[UInt8]])
    /// The other side durably has these records of ours. It may have known some of them before.
    case remoteChanged(dataset: String, keys: [[UInt8]])
    /// Conflicts were settled, and the outcome is applied. One event for a page.
    case conflictsSettled(dataset: String, [SyncResult.Settlement])
    /// Conflicts of these keys wait, the first ``SyncLimits/settlementsMax`` of them, and keep the
    /// dataset from being pushed. Told once by each exchange until they are settled.
    case conflictsPending(dataset: String, keys: [[UInt8]])
    /// Records of these keys failed and were left out, for one page or one record; see
    /// `Dataset.failedRecords`.
    case recordsFailed(dataset: String, keys: [[UInt8]])
    /// Records of the other side are dated so far ahead that they are held here until their date
    /// has come: see ``QuarantinedWrite``. One event for a page.
    case quarantined(dataset: String, keys: [[UInt8]])
    /// The two sides held something else of these keys although both had seen the same writes, as
    /// happens after a store went back in time or was copied; they were settled anew.
    case overlooked(dataset: String, keys: [[UInt8]])
    /// The dataset was deleted on the other side and still lived here; this was or is now done.
    case datasetDeletedRemotely(DatasetDeletion, DatasetDeletedAction)
    /// The other side told of datasets that are to go into one of ours; this was decided, and is
    /// done now.
    case datasetsMerged(MergedDatasets, MergedDatasetsAction)
    /// An error that no caller is there to be told of. If it ended a run, the run's own completion
    /// follows.
    case backgroundFailure(SyncError)
    /// A run came to its end. A dataset that failed for a reason of its own is in the report.
    case ended(SyncReport)
    /// A run did not come to its end. What was exchanged before stays.
    case failed(SyncError)
    /// The consumer was too far behind, and so many events in a row were dropped in this place.
    case lost(Int)
}

/// A dataset that lives here and was deleted on the other side.
public struct DatasetDeletion: Hashable, Sendable {
    public let dataset: String
    /// The other side; it need not be who deleted it.
    public let peer: ReplicaID
    /// When it was deleted, by the clock of whoever did.
    public let time: HybridTime
}

/// Is told what happens in a ``Synchronizer``: one call at a time, in order, by a task of its own,
/// while no lock is held. Every method has an implementation that does nothing.
///
/// An actor can be a delegate. A slow one delays nobody but itself; when it is more than
/// ``SynchronizerOptions/eventsMax`` events behind, ``syncEventsLost(_:)`` says so.
public protocol SyncDelegate: Sendable {
    /// See ``SyncEvent/started(datasets:)``.
    func syncStarted(datasets: [String]?) async
    /// See ``SyncEvent/localChanged(dataset:keys:)``.
    func syncChangedLocal(_ keys: [[UInt8]], in dataset: String) async
    /// See ``SyncEvent/remoteChanged(dataset:keys:)``.
    func syncChangedRemote(_ keys: [[UInt8]], in dataset: String) async
    /// See ``SyncEvent/conflictsSettled(dataset:_:)``.
    func syncSettled(_ conflicts: [SyncResult.Settlement], in dataset: String) async
    /// See ``SyncEvent/conflictsPending(dataset:keys:)``.
    func syncFoundPending(_ keys: [[UInt8]], in dataset: String) async
    /// See ``SyncEvent/recordsFailed(dataset:keys:)``.
    func syncFailedRecords(_ keys: [[UInt8]], in dataset: String) async
    /// See ``SyncEvent/quarantined(dataset:keys:)``.
    func syncQuarantined(_ keys: [[UInt8]], in dataset: String) async
    /// See ``SyncEvent/overlooked(dataset:keys:)``.
    func syncFoundOverlooked(_ keys: [[UInt8]], in dataset: String) async
    /// See ``SyncEvent/datasetDeletedRemotely(_:_:)``. To be asked what to do, give
    /// ``SyncOptions/deletedDatasetHandler``.
    func syncFoundDeleted(_ deletion: DatasetDeletion, action: DatasetDeletedAction) async
    /// See ``SyncEvent/datasetsMerged(_:_:)``. To be asked what to do, give
    /// ``SyncOptions/mergedDatasetsHandler``.
    func syncFoundMerged(_ datasets: MergedDatasets, action: MergedDatasetsAction) async
    /// See ``SyncEvent/backgroundFailure(_:)``.
    func syncFailedInBackground(_ error: SyncError) async
    /// See ``SyncEvent/ended(_:)``.
    func syncEnded(_ report: SyncReport) async
    /// See ``SyncEvent/failed(_:)``.
    func syncFailed(_ error: SyncError) async
    /// See ``SyncEvent/lost(_:)``.
    func syncEventsLost(_ count: Int) async
}

extension SyncDelegate {
    public func syncStarted(datasets: [String]?) async {}
    public func syncChangedLocal(_ keys: [[UInt8]], in dataset: String) async {}
    public func syncChangedRemote(_ keys: [[UInt8]], in dataset: String) async {}
    public func syncSettled(_ conflicts: [SyncResult.Settlement], in dataset: String) async {}
    public func syncFoundPending(_ keys: [[UInt8]], in dataset: String) async {}
    public func syncFailedRecords(_ keys: [[UInt8]], in dataset: String) async {}
    public func syncQuarantined(_ keys: [[UInt8]], in dataset: String) async {}
    public func syncFoundOverlooked(_ keys: [[UInt8]], in dataset: String) async {}
    public func syncFoundDeleted(
        _ deletion: DatasetDeletion, action: DatasetDeletedAction
    ) async {}
    public func syncFoundMerged(
        _ datasets: MergedDatasets, action: MergedDatasetsAction
    ) async {}
    public func syncFailedInBackground(_ error: SyncError) async {}
    public func syncEnded(_ report: SyncReport) async {}
    public func syncFailed(_ error: SyncError) async {}
    public func syncEventsLost(_ count: Int) async {}

    func receive(_ event: SyncEvent) async {
        switch event {
        case .started(let datasets): await syncStarted(datasets: datasets)
        case .localChanged(let dataset, let keys): await syncChangedLocal(keys, in: dataset)
        case .remoteChanged(let dataset, let keys): await syncChangedRemote(keys, in: dataset)
        case .conflictsSettled(let dataset, let conflicts):
            await syncSettled(conflicts, in: dataset)
        case .conflictsPending(let dataset, let keys):
            await syncFoundPending(keys, in: dataset)
        case .recordsFailed(let dataset, let keys):
            await syncFailedRecords(keys, in: dataset)
        case .quarantined(let dataset, let keys): await syncQuarantined(keys, in: dataset)
        case .overlooked(let dataset, let keys): await syncFoundOverlooked(keys, in: dataset)
        case .datasetDeletedRemotely(let deletion, let action):
            await syncFoundDeleted(deletion, action: action)
        case .datasetsMerged(let datasets, let action):
            await syncFoundMerged(datasets, action: action)
        case .backgroundFailure(let error): await syncFailedInBackground(error)
        case .ended(let report): await syncEnded(report)
        case .failed(let error): await syncFailed(error)
        case .lost(let count): await syncEventsLost(count)
        }
    }
}
