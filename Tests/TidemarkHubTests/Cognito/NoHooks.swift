import Tidemark

@testable import TidemarkHub

/// Takes part in updates and does nothing.
struct NoHooks: SyncTrigger, ConflictResolver, ChangeSink {
    func changed(
        _ records: [TriggerRecord], _ context: UpdateContext
    ) async throws(APIFailure) -> [TriggerRecord]? {
        nil
    }

    func isNeeded(_ context: UpdateContext) -> Bool { false }

    func decision(
        _ conflict: RecordConflict, _ context: UpdateContext
    ) async throws(APIFailure) -> ConflictDecision {
        .reject
    }

    func append(
        to batch: inout WriteBatch, _ changes: [AppliedChange], count: UInt64,
        _ context: UpdateContext
    ) throws(StoreError) {}

    func committed(count: UInt64, _ context: UpdateContext) {}

    func willChange(_ storeNames: [String]) throws(StoreError) {}

    func didChange(_ storeNames: [String]) {}
}
