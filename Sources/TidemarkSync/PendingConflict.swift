public import Tidemark

/// A conflict that waits: no policy has settled it. Nothing of the dataset is pushed to the peer
/// that has the other version until somebody does.
///
/// ```swift
/// for waiting in try notes.pendingConflicts() {
///     try notes.settle(waiting.conflict.key, with: .keepLocal)
/// }
/// ```
public struct PendingConflict: Hashable, Sendable {
    /// Why it waits.
    public enum Reason: Hashable, Sendable {
        /// ``MergePolicy/leavePending``.
        case left
        /// The handler returned ``Resolution/stop``.
        case stopped
        /// The handler threw; in words, of at most ``SyncLimits/reasonBytesMax`` bytes.
        case failed(String)
    }

    /// As it is now: with the version that is here at present, and the ancestor that goes with it.
    public let conflict: Conflict
    /// Who has the other version.
    public let peer: ReplicaID
    /// Since when it waits, by this store's clock.
    public let since: HybridTime
    public let reason: Reason
}

extension PendingConflict.Reason: CustomStringConvertible {
    public var description: String {
        switch self {
        case .left: "the merge policy leaves it to the application"
        case .stopped: "the merge policy left it undecided"
        case .failed(let error): "the merge policy failed with \"\(error)\""
        }
    }

    /// - Parameter error: what a handler threw. Its text is cut where it is too long.
    init(_ error: any Error) {
        self = .failed("\(error)".cut(toBytes: SyncLimits.reasonBytesMax))
    }
}

extension String {
    /// The longest beginning of whole characters that has at most so many bytes of UTF-8.
    func cut(toBytes countMax: Int) -> String {
        guard utf8.count > countMax else { return self }
        var cut = ""
        var count = 0
        for character in self {
            count += character.utf8.count
            guard count <= countMax else { break }
            cut.append(character)
        }
        return cut
    }
}
