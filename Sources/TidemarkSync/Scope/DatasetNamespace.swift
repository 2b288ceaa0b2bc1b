public import Tidemark

/// Which datasets of a store a peer can name, and how: for a server that keeps the datasets of many
/// in one store, and lets each of them see only its own.
///
/// ```swift
/// let responder = SyncResponder(store: store, namespace: DatasetNamespace(prefix: "alice:"))
/// ```
///
/// What the peer calls `notes` is `alice:notes` in the store. Whatever a peer calls its datasets,
/// their names in the store begin with the prefix, so no name leads out of it as long as no prefix
/// that is in use begins with another one.
///
/// It is applied in one place: to each request when it was taken apart, and to each answer before
/// it is put together. Nothing between the two knows of it.
public struct DatasetNamespace: Hashable, Sendable {
    /// Every dataset under its own name.
    public static let all = DatasetNamespace(prefix: "")

    /// What stands in front of the peer's names.
    public let prefix: String
    /// Bytes of a name as the peer calls it.
    public let nameBytesMax: Int
    /// Datasets of the store whose names begin so are nobody's here; nil for none.
    public let hiddenPrefix: String?

    /// - Parameters:
    ///   - prefix: of the characters of names; empty for none.
    ///   - nameBytesMax: what is longer is refused. With the prefix no name is longer than
    ///     `Limits.datasetNameBytesMax`.
    ///   - hiddenPrefix: datasets of the store whose names begin so cannot be named, and are not
    ///     listed: what the server keeps for itself.
    public init(
        prefix: String, nameBytesMax: Int = Limits.datasetNameBytesMax,
        hiding hiddenPrefix: String? = nil
    ) {
        self.prefix = prefix
        self.nameBytesMax = nameBytesMax
        self.hiddenPrefix = hiddenPrefix
    }

    /// Whether a peer is told of a dataset of the store.
    func contains(_ storeName: String) -> Bool {
        guard storeName.utf8.starts(with: prefix.utf8),
            storeName.utf8.count > prefix.utf8.count
        else { return false }
        return hiddenPrefix.map { !storeName.utf8.starts(with: $0.utf8) } ?? true
    }

    /// What the store calls a dataset of the peer's. Whether the store takes such a name is for the
    /// store to say.
    ///
    /// - Throws: `badMessage` for one that the peer cannot have.
    func storeName(of name: String) throws(SyncError) -> String {
        guard self != .all else { return name }
        let storeName = prefix + name
        // Servers put names into paths, where one or two dots mean something else.
        let isPath = !prefix.isEmpty && (name == "." || name == "..")
        guard contains(storeName), name.utf8.count <= nameBytesMax, !isPath else {
            throw .badMessage("no dataset here can be called \(name.prefix(280).debugDescription)")
        }
        return storeName
    }

    /// What the peer calls a dataset of the store; nil if it cannot name it.
    func peerName(of storeName: String) -> String? {
        contains(storeName) ? String(storeName.dropFirst(prefix.count)) : nil
    }

    /// A text about datasets as the peer may read it: with its own names for them.
    func cleaned(_ text: String) -> String {
        prefix.isEmpty ? text : text.replacing(prefix, with: "")
    }
}

/// Told of datasets that a peer is about to change, on the thread that changes them.
package struct PushObserver: Sendable {
    /// By its name in the store. If it throws, nothing is changed.
    package let willChange: @Sendable (String) throws(StoreError) -> Void
    /// It was changed, or not after all.
    package let didChange: @Sendable (String) -> Void

    package init(
        willChange: @escaping @Sendable (String) throws(StoreError) -> Void,
        didChange: @escaping @Sendable (String) -> Void
    ) {
        self.willChange = willChange
        self.didChange = didChange
    }
}
