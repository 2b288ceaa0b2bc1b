import Tidemark
import TidemarkSync

/// What is posted of one synchronization: the members of a Kinesis record of Cognito Streams, with
/// all records inline. Dates are milliseconds since 1970.
enum StreamDocument {
    struct Change: Sendable {
        let key: String
        /// nil if the record was removed.
        let value: String?
        /// The API's.
        let count: UInt64
        let modifiedMilliseconds: UInt64
        let deviceMilliseconds: Int64?
    }

    /// - Parameter count: the API's, of the dataset behind these changes.
    static func encoded(
        _ changes: [Change], pool: PoolID, identity: IdentityID, dataset: APIDatasetName,
        count: UInt64, modifiedMilliseconds: UInt64
    ) -> [UInt8] {
        let isRemoval = !changes.isEmpty && changes.allSatisfy { $0.value == nil }
        let document = JSONObject([
            ("identityPoolId", JSONValue.string(pool.text)),
            ("identityId", JSONValue.string(identity.text)),
            ("dataSetName", JSONValue.string(dataset.text)),
            ("operation", JSONValue.string(isRemoval ? "remove" : "replace")),
            ("kinesisSyncRecords", JSONValue.array(changes.map { encoded($0) })),
            ("lastModifiedDate", number(modifiedMilliseconds)),
            ("kinesisSyncRecordsURL", JSONValue.null),
            ("payloadType", JSONValue.string("Inline")),
            ("syncCount", number(count)),
        ])
        return JSONValue.object(document).encoded
    }

    private static func encoded(_ change: Change) -> JSONValue {
        let device = change.deviceMilliseconds.map { UInt64(clamping: $0) }
        return .object(
            JSONObject([
                ("key", JSONValue.string(change.key)),
                ("value", change.value.map { JSONValue.string($0) } ?? JSONValue.null),
                ("syncCount", number(change.count)),
                ("lastModifiedDate", number(change.modifiedMilliseconds)),
                ("deviceLastModifiedDate", number(device ?? change.modifiedMilliseconds)),
                ("op", JSONValue.string(change.value == nil ? "remove" : "replace")),
            ]))
    }

    private static func number(_ value: UInt64) -> JSONValue {
        .number(JSONNumber(Int(clamping: value)))
    }
}

/// Part of what has changed in a dataset since a sync count of the store.
struct StreamSpan: Sendable {
    /// nil if there is nothing to tell.
    let document: [UInt8]?
    /// Everything up to here is told with this.
    let through: UInt64
    /// Whether nothing is left.
    let isLast: Bool

    /// Of one document.
    static let recordsMax = 1_024
    static let bytesMax = 512 << 10

    /// Records that are not UTF-8 in key or value are passed over, as they are in ListRecords. So
    /// are deletions that are forgotten.
    ///
    /// - Parameters:
    ///   - key: of a span.
    ///   - now: milliseconds since 1970, by which records have expired.
    init(_ key: Outbox.Key, now: UInt64, in store: Store) throws(StoreError) {
        guard let parsed = StoreNames.parsed(key.dataset),
            let dataset = try store.existingDataset(key.dataset)
        else {
            // Deleted since.
            self.document = nil
            self.through = key.position
            self.isLast = true
            return
        }
        // As a peer is given them: whatever is forgotten, it can go on from any count.
        let page = try dataset.changesPage(
            since: SyncCount(rawValue: key.position), recordsMax: Self.recordsMax,
            bytesMax: Self.bytesMax, excluding: VersionVector())
        self.through = page.through.rawValue
        self.isLast = page.isLast
        // Read behind the records, so that it knows all of them.
        let counts = try DatasetCount.map(of: key.dataset, in: store)
        let changes = page.records.compactMap { Self.change($0, counts, now: now) }
        guard let newest = changes.map(\.modifiedMilliseconds).max() else {
            self.document = nil
            return
        }
        self.document = StreamDocument.encoded(
            changes, pool: key.pool, identity: parsed.identity, dataset: parsed.name,
            count: counts.count(at: page.through.rawValue), modifiedMilliseconds: newest)
    }

    private static func change(
        _ record: Record, _ counts: CountMap, now: UInt64
    ) -> StreamDocument.Change? {
        guard let key = record.keyText, record.value == nil || record.valueText != nil else {
            return nil
        }
        let isExpired = record.expiresAt.map { $0 <= now } ?? false
        return StreamDocument.Change(
            key: key, value: isExpired ? nil : record.valueText,
            count: counts.count(at: record.syncCount.rawValue),
            modifiedMilliseconds: record.version.time.milliseconds, deviceMilliseconds: nil)
    }
}
