/// A part of a store's files that is known to be damaged, and what may lie in it.
///
///     for damage in try store.damage() {
///         print(damage.file, damage.offset ?? 0, damage.dataset ?? "?", damage.what)
///     }
///
/// Known is what somebody came upon since the store was opened: a reader, a merge, or
/// ``Store/verify(threads:progress:)``, which looks at everything.
public struct StoreDamage: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A block of records: none of them can be read.
        case records
        /// A value that lies apart from its key.
        case value
        /// An index that can be made anew out of the records of its segment, which are whole.
        case index
        /// A part of a file without which the file can be neither read nor replaced.
        case file
    }

    public let kind: Kind
    /// The name within the store's directory.
    public let file: String
    /// Where it begins, in bytes from the start of the file; nil if the whole file is meant.
    public let offset: UInt64?
    /// How much of the file it is; 0 if that is not known.
    public let byteCount: UInt64
    /// The dataset that has something in it; nil if it is what the store keeps for itself, of a
    /// dataset that was deleted, or not known. What holds records of several is told of for each.
    public let dataset: String?
    /// The range in which the keys lie; nil if `dataset` is.
    public let keys: KeyRange?

    /// One line.
    public var what: String {
        switch kind {
        case .records: "a block of records cannot be read"
        case .value: "a large value cannot be read"
        case .index: "an index is damaged; the records that it leads to are whole"
        case .file: "what the rest of the file is read by is damaged"
        }
    }
}

extension Store {
    /// What is known to be damaged in sealed segments and value files, as far as it is still part
    /// of the store, in no particular order.
    ///
    /// A thousand places are remembered at most, for as long as the store is open. Reads each block
    /// in question again, and for damaged values the segments that name their file. Damage to a
    /// log or the manifest keeps a store from being opened, and is not among it.
    ///
    /// - Throws: `closed`.
    public func damage() throws(StoreError) -> [StoreDamage] {
        try engine.surveyDamage().damages
    }
}

extension Dataset {
    /// As ``Store/damage()``, what of it may hold records of this dataset.
    /// - Throws: `closed`.
    public func damage() throws(StoreError) -> [StoreDamage] {
        try store.damage().filter { $0.dataset == name }
    }
}
