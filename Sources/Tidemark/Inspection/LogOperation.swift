/// One operation as it lies in a segment.
public struct LogOperation: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A record got a value.
        case put
        /// A record was deleted.
        case delete
        /// A dataset was created, or revived.
        case datasetCreated
        /// A dataset was deleted.
        case datasetDeleted
        /// A dataset took over the records that another replica had sealed, as they lay there, or
        /// made ready for it.
        case datasetAdopted
        /// How far the exchange with a peer has come was noted.
        case peerCheckpoint
        /// What a peer had seen was joined into what the dataset has seen.
        case vectorJoined
        /// The store took a new ``ReplicaID``.
        case replicaRenamed
        /// What was seen of a replica counts no more, because two stores wrote under its id.
        case replicaDisowned
        /// From now on nothing need be left of some deletions; who lacks them starts afresh.
        case deletionsForgotten
        /// A peer was retired: it is no longer waited for.
        case peerRetired
    }

    public let kind: Kind
    /// The file's name within the store's directory.
    public let segment: String
    /// Of the block that holds the operation, in bytes from the start of the file.
    public let offset: UInt64
    /// Empty for operations on the whole store.
    public let dataset: String
    /// nil for operations that are no writes of a record.
    public let key: [UInt8]?
    /// Zero for operations that do not count.
    public let syncCount: SyncCount
    /// nil for operations that are no writes of a record.
    public let version: Version?
    /// Bytes of the value before compression; 0 where there is none.
    public let valueBytes: Int
    /// When the record counts as deleted, in milliseconds since 1970-01-01 UTC; nil if it does not
    /// expire. A deletion that has it took the place of a value that had expired.
    public let expiresAt: UInt64?
    /// One line about operations that are no writes of a record; else empty.
    public let detail: String

    public init(
        kind: Kind, segment: String, offset: UInt64, dataset: String, key: [UInt8]? = nil,
        syncCount: SyncCount = .zero, version: Version? = nil, valueBytes: Int = 0,
        expiresAt: UInt64? = nil, detail: String = ""
    ) {
        self.kind = kind
        self.segment = segment
        self.offset = offset
        self.dataset = dataset
        self.key = key
        self.syncCount = syncCount
        self.version = version
        self.valueBytes = valueBytes
        self.expiresAt = expiresAt
        self.detail = detail
    }
}

extension Store {
    /// Every operation that is still in a segment: the sealed ones first, oldest first, each
    /// dataset by dataset in the order of change; then the logs, as they were written.
    ///
    /// - Parameter dataset: nil for all.
    public func operations(
        in dataset: String? = nil
    ) throws(StoreError) -> OperationCursor {
        try operations(in: dataset) { _ in true }
    }

    /// The same of some files only.
    ///
    /// - Parameter isWanted: is asked about the name of each log and sealed segment.
    package func operations(
        in dataset: String?, fileIs isWanted: (String) -> Bool
    ) throws(StoreError) -> OperationCursor {
        let view = try engine.moment().view
        return try OperationCursor(view, of: engine, dataset: dataset, fileIs: isWanted)
    }

    /// The names of all logs and sealed segments of the present moment, the logs first, each newest
    /// first.
    package func segmentFiles() throws(StoreError) -> [String] {
        let view = try engine.moment().view
        return view.memtables.map { FileName.log($0.log.number) }
            + view.segments.map { FileName.sealed($0.number) }
    }
}
