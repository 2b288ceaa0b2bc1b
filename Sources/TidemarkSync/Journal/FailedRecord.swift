public import Tidemark

/// A record that could not be exchanged, and was left out so that the rest could be.
///
/// ```swift
/// for failed in try notes.failedRecords() {
///     print("\(failed.direction) \(failed.keyText ?? "?"): \(failed.message)")
///     try notes.retry(failed)
/// }
/// ```
///
/// It goes from the list by itself when the key gets another version that can be exchanged, here or
/// on the other side.
public struct FailedRecord: Hashable, Sendable {
    public enum Direction: String, Hashable, Sendable, CaseIterable {
        /// The other side's version was refused here: by ``SyncOptions/validate``, or because it is
        /// beyond the limits of the store.
        case incoming
        /// The other side takes no message as large as this version needs, refuses it, or has
        /// another one in conflict with it that was refused here.
        case outgoing
    }

    public enum State: String, Hashable, Sendable {
        /// Nothing is done about it.
        case waiting
        /// `Dataset.retry` was called: the next exchanges try again.
        case due
        /// `Dataset.drop` was called: it is not listed unless asked for, and never tried again.
        case dropped
    }

    public let dataset: String
    public let key: [UInt8]
    public let direction: Direction
    /// The version that failed.
    public let write: Dot
    /// The other side.
    public let peer: ReplicaID
    public let code: SyncError.Code
    /// What was wrong, in words, of at most ``SyncLimits/reasonBytesMax`` bytes.
    public let message: String
    /// How often it was tried: 1...
    public let attempts: Int
    /// When it first failed, by this store's clock. No two of a dataset and direction have the same
    /// time.
    public let since: HybridTime
    /// When it last failed.
    public let last: HybridTime
    public let state: State
    /// Of a due one: whether its peer is giving all anew that is not seen here.
    var isGivenAnew = false

    /// The key as text; nil if it is not UTF-8.
    public var keyText: String? { String(validating: key, as: UTF8.self) }
}

extension FailedRecord {
    /// The same after another attempt, or in another state.
    func changed(
        write: Dot? = nil, _ error: SyncError? = nil, at time: HybridTime? = nil, state: State
    ) -> FailedRecord {
        FailedRecord(
            dataset: dataset, key: key, direction: direction, write: write ?? self.write,
            peer: peer, code: error?.code ?? code,
            message: error.map { $0.message.cut(toBytes: SyncLimits.reasonBytesMax) } ?? message,
            attempts: attempts + (error == nil ? 0 : 1), since: since, last: time ?? last,
            state: state)
    }
}

extension SyncError {
    /// Whether a smaller page, or one without a certain record, may pass.
    var concernsRecords: Bool { code == .tooLarge || code == .recordRefused }
}
