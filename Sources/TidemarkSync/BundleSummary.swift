public import Tidemark

/// What a bundle is: a file that carries changes of one dataset from one store to others.
///
/// ```swift
/// let made = try store.exportBundle(of: "notes", to: "notes.bundle")
/// // ... the file is carried to another machine ...
/// let result = try await other.importBundle(from: "notes.bundle")
/// ```
///
/// A bundle is checked against damage. It is neither signed nor encrypted: what it says is believed
/// as what a peer says is. See the article <doc:Bundles>.
public struct BundleSummary: Hashable, Sendable {
    /// The store that made it.
    public let sender: ReplicaID
    public let dataset: String
    /// Whom it was made for; nil if for whoever it reaches.
    public let receiver: ReplicaID?
    /// In the sender's order of change: it holds what changed after this...
    public let since: SyncCount
    /// ... and up to this.
    public let through: SyncCount
    /// Writes that it leaves out: whoever imports it must have seen them.
    public let required: VersionVector
    /// What the sender had seen of the dataset; empty if any record was left out of its exchanges.
    public let vector: VersionVector
    /// Whether the dataset is deleted at the sender.
    public let isDeleted: Bool
    public let recordCount: Int
    public let pageCount: Int
    /// Of the file.
    public let byteCount: UInt64

    /// What the sender knew with the last page.
    let knowledge: PeerKnowledge
    /// The tokens that the sender drew last under its id.
    let drawn: [Baton]
    /// In the receiver's order of change: the sender has everything up to there.
    let acknowledged: SyncCount

    init(
        _ header: BundleHeader, _ knowledge: PeerKnowledge, through: SyncCount, recordCount: Int,
        pageCount: Int, byteCount: UInt64
    ) {
        sender = header.sender
        dataset = header.dataset
        receiver = header.receiver
        since = header.since
        self.through = through
        required = header.required
        vector = knowledge.vector
        isDeleted = knowledge.lifecycle.isDeleted
        self.recordCount = recordCount
        self.pageCount = pageCount
        self.byteCount = byteCount
        self.knowledge = knowledge
        drawn = header.drawn
        acknowledged = header.acknowledged
    }

    /// Reads a bundle through and checks every byte of it. O(bytes of the file); takes memory for
    /// one page.
    ///
    /// - Throws: `damagedBundle` with the place; `protocolMismatch` if it was made by a newer
    ///   version; `store` if it cannot be read.
    public init(ofFileAt path: String) throws(SyncError) {
        self = try BundleFile(path: path).summary
    }

    /// Whether it holds all that the sender had, so that a store that has nothing can take it in.
    public var isWholeDataset: Bool { since == .zero && required.isEmpty }

    /// All that it shows of the tokens drawn under the sender's id.
    var batons: [Baton] { drawn + knowledge.batons.filter { $0.replica == sender } }
}
