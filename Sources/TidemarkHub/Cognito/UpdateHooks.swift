import Tidemark

// Where the rest of the hub takes part in UpdateRecords: it may change what is written, settle what
// is in conflict, and add to the batch, so that what follows from a change is as durable as it.

/// Of what an update is.
struct UpdateContext: Hashable, Sendable {
    let pool: PoolID
    let identity: IdentityID
    let dataset: APIDatasetName
    /// The device that the caller says it is; it is not told of its own changes.
    let deviceID: DeviceID?
    let principal: Principal

    var storeName: String { StoreNames.dataset(dataset, of: identity) }
}

/// A record as a sync trigger sees it.
struct TriggerRecord: Hashable, Sendable {
    let key: String
    /// nil if there was none.
    let oldValue: String?
    /// nil if there is to be none.
    var newValue: String?
    /// Whether the caller changed it, or the trigger.
    var isChanged: Bool
}

/// Looks at an update before it is written, and may change it.
protocol SyncTrigger: Sendable {
    /// - Parameter records: all of the dataset, as they will be.
    /// - Returns: those that are to be written, of the caller's and of its own; nil if there is no
    ///   trigger for such a call, and the caller's stay as they are.
    /// - Throws: `invalidTriggerOutput`, `triggerThrottled`.
    func changed(
        _ records: [TriggerRecord], _ context: UpdateContext
    ) async throws(APIFailure) -> [TriggerRecord]?

    /// Whether there is one, so that nothing need be read for it.
    func isNeeded(_ context: UpdateContext) -> Bool
}

/// A patch that was made without knowledge of what is there now.
struct RecordConflict: Hashable, Sendable {
    let key: String
    /// nil for a removal.
    let incoming: String?
    /// nil if it was removed.
    let existing: String?
    /// What the caller had changed; nil if it is not known any more.
    let ancestor: String?
    /// By the caller's clock, in milliseconds since 1970; nil if it did not say.
    let incomingMilliseconds: Int64?
    /// By the hub's.
    let existingMilliseconds: Int64
}

enum ConflictDecision: Hashable, Sendable {
    /// The call fails, as it does in Cognito Sync.
    case reject
    case put(String)
    case remove
    /// What is there stays, and the caller is told of it as if it had written it.
    case keepExisting
}

/// Settles conflicts by the strategy of a pool or dataset.
protocol ConflictResolver: Sendable {
    func decision(
        _ conflict: RecordConflict, _ context: UpdateContext
    ) async throws(APIFailure) -> ConflictDecision
}

/// A record that an update has written.
struct AppliedChange: Hashable, Sendable {
    let key: String
    /// nil if it was removed.
    let value: String?
    /// The store's sync count of it.
    let position: UInt64
    /// As the device sent it, in milliseconds since 1970.
    let deviceMilliseconds: Int64?
}

/// Passes changes on: streams and push.
protocol ChangeSink: Sendable {
    /// Adds to the batch of an update what must not be lost with it. Called on a writer thread,
    /// again for each attempt.
    ///
    /// - Parameter count: the API's sync count of the call.
    func append(
        to batch: inout WriteBatch, _ changes: [AppliedChange], count: UInt64,
        _ context: UpdateContext
    ) throws(StoreError)

    /// The batch is durable. Must not block.
    func committed(count: UInt64, _ context: UpdateContext)

    /// A replica is about to push into datasets of the store. On a writer thread.
    func willChange(_ storeNames: [String]) throws(StoreError)

    /// It has, or has failed to. On a writer thread.
    func didChange(_ storeNames: [String])
}
