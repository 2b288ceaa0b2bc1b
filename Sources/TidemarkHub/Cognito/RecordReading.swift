import Metrics
import Tidemark

/// Tells records of one dataset in the words of the API.
struct RecordTeller: Sendable {
    let identity: IdentityID
    let map: CountMap
    /// Ids under which the hub's own store writes. What it wrote without an entry in the sheet was
    /// written through the API by the identity itself.
    let ownIDs: Set<ReplicaID>

    init(_ identity: IdentityID, _ map: CountMap, _ store: Store) {
        self.identity = identity
        self.map = map
        ownIDs = Set(store.formerReplicaIDs + [store.replicaID])
    }

    /// Who wrote a record.
    func author(of record: Record, _ entry: SheetEntry?) -> String {
        if let entry { return entry.lastModifiedBy }
        let (version, replica) = (record.version, record.version.dot.replica)
        if ownIDs.contains(replica) { return identity.text }
        return version.author.isEmpty ? replica.description : version.author
    }

    /// Writes a record, or of a deleted one everything but the value.
    ///
    /// - Returns: false if the record cannot be told, because its key or value is not UTF-8; then
    ///   nothing was written.
    func write(
        _ record: Record, _ entry: SheetEntry?, to answer: inout JSONAnswer
    ) -> Bool {
        guard JSONBounds.isUTF8(record.key), record.value.map(JSONBounds.isUTF8) ?? true else {
            return false
        }
        let modified = APIDate(clampingMilliseconds: record.version.time.milliseconds)
        let told = ToldRecord(
            key: record.key, value: record.value,
            syncCount: map.count(at: record.syncCount.rawValue), lastModified: modified,
            lastModifiedBy: author(of: record, entry),
            deviceLastModified: entry?.deviceMilliseconds.map {
                APIDate(clampingMilliseconds: $0)
            } ?? modified)
        told.write(to: &answer)
        return true
    }

    /// Counts what could not be told.
    static func noteUntellable(_ count: Int) {
        guard count > 0 else { return }
        Counter(label: "tidemark_hub_untellable_records").increment(by: count)
    }
}

/// `Record` of the service model.
struct ToldRecord: Hashable, Sendable {
    /// UTF-8, like the value.
    let key: [UInt8]
    /// nil if the record was removed. Then there is no such member: all clients go by that.
    let value: [UInt8]?
    let syncCount: UInt64
    let lastModified: APIDate
    let lastModifiedBy: String
    let deviceLastModified: APIDate

    func write(to answer: inout JSONAnswer) {
        answer.open("{")
        answer.add("Key", utf8: key)
        if let value { answer.add("Value", utf8: value) }
        answer.add("SyncCount", syncCount)
        answer.add("LastModifiedDate", lastModified)
        answer.add("LastModifiedBy", text: lastModifiedBy)
        answer.add("DeviceLastModifiedDate", deviceLastModified)
        answer.close("}")
    }
}

extension SyncBooks {
    /// The last change of a dataset; nil if nothing of it is left. O(1) if it was asked before.
    func lastChange(
        of dataset: Dataset, _ facts: inout DatasetFacts, _ identity: IdentityID,
        isKept: Bool = true
    ) throws -> DatasetFacts.LastChange? {
        if let last = facts.last { return last }
        guard facts.position > 0, let record = try Self.record(at: facts.position, in: dataset)
        else { return nil }
        let entry = try Sheet(of: dataset.name, in: dataset.store)?.entry(of: record)
        let teller = RecordTeller(identity, facts.map, dataset.store)
        let last = DatasetFacts.LastChange(
            milliseconds: record.version.time.milliseconds, author: teller.author(of: record, entry)
        )
        facts.last = last
        if isKept { cache.keep(facts, of: dataset.name) }
        return last
    }

    /// nil if the dataset was deleted at that count, or the record of it is forgotten.
    private static func record(
        at position: UInt64, in dataset: Dataset
    ) throws(StoreError) -> Record? {
        do throws(StoreError) {
            let cursor = try dataset.changes(since: SyncCount(rawValue: position - 1))
            guard let record = try cursor.next(), !record.isDropped else { return nil }
            return record
        } catch {
            guard error.code == .changesExpired else { throw error }
            return nil
        }
    }

    /// How much a dataset holds. O(1) if it was asked before, else O(records).
    func totals(
        of dataset: Dataset, _ facts: inout DatasetFacts, isKept: Bool = true
    ) throws(StoreError) -> DatasetTotals {
        if let totals = facts.totals { return totals }
        let totals = try DatasetTotals(of: dataset)
        facts.totals = totals
        // It may have moved on during the walk: then the totals are not those of that place.
        if isKept, try dataset.knowledge().syncCount.rawValue == facts.position {
            cache.keep(facts, of: dataset.name)
        }
        return totals
    }
}
