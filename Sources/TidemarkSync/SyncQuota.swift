import Tidemark

/// What a peer that is not trusted may store at a responder: ``SyncResponder/Limits/quota``.
///
/// What is beyond is refused before anything of it is stored. Of a record the answer is
/// `recordRefused`: the asker leaves it out and exchanges everything else. Of a whole dataset it is
/// `peerFailed`, with the remedy.
///
/// Requests at the same time are each held against what is there before them, so that together they
/// may go beyond a bound by what is under way.
public struct SyncQuota: Hashable, Sendable {
    /// Datasets that exist, of those that the peer can name.
    public var datasetsMax = Int.max
    /// Datasets that exist or existed: that one was deleted is remembered for ever.
    public var datasetNamesMax = Int.max
    /// Live records of a dataset.
    public var recordsMax = Int.max
    /// Bytes of their keys and values.
    public var bytesMax = Int.max
    /// Deletions that a dataset remembers.
    public var tombstonesMax = Int.max
    /// Writes to a dataset that are dated too far ahead, and so are held beside its records. They
    /// have ``bytesMax`` together, too.
    public var heldMax = Int.max
    /// Replicas that exchange a dataset: of each it is remembered how far it has come.
    public var peersMax = Int.max
    /// Replicas that have written to a dataset: entries of any vector in a request, and of all that
    /// a dataset remembers together.
    public var writersMax = SyncLimits.vectorEntriesMax

    public init() {}
}
