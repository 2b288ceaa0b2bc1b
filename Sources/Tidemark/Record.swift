/// One record as a dataset holds it: a key, a value or the mark of its deletion, and its version.
public struct Record: Hashable, Sendable {
    public let key: [UInt8]
    /// nil if the record was deleted. An empty value is a value.
    public let value: [UInt8]?
    public let version: Version
    /// The place of this version in the dataset's own order of change on this replica.
    public let syncCount: SyncCount
    /// Whether this version was written here and no peer is known to have it yet.
    public let isDirty: Bool
    /// When the record counts as deleted, in milliseconds since 1970-01-01 UTC; nil if it does
    /// not expire. Of a record that has expired it is still there.
    public let expiresAt: UInt64?

    public init(
        key: [UInt8], value: [UInt8]?, version: Version, syncCount: SyncCount, isDirty: Bool,
        expiresAt: UInt64? = nil
    ) {
        self.key = key
        self.value = value
        self.version = version
        self.syncCount = syncCount
        self.isDirty = isDirty
        self.expiresAt = expiresAt
    }

    /// Whether this is a tombstone: the mark that the key was deleted, and by which write.
    public var isDeleted: Bool { value == nil }

    /// Whether this is no deletion, but the mark of a record that was let go here because it is
    /// outside of the part of the dataset that is kept: other replicas have it all the same. Its
    /// dot has the counter 0.
    public var isDropped: Bool { version.dot.counter == 0 }

    /// The key as text; nil if it is not UTF-8.
    public var keyText: String? { String(validating: key, as: UTF8.self) }

    /// The value as text; nil if it is not UTF-8 or the record is a tombstone.
    public var valueText: String? { value.flatMap { String(validating: $0, as: UTF8.self) } }
}
