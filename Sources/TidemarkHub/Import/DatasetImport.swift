import Tidemark
import TidemarkSync

/// Writes datasets into the store of a hub as they are somewhere else.
///
/// A dataset is one batch, with its sheet and a note of how far its own sync count came by it. As
/// long as the note fits nobody else has written to the dataset, and it can be brought up to date.
struct DatasetImport: Sendable {
    enum Outcome: Hashable, Sendable {
        /// Live records and removals that were written.
        case written(records: Int, removals: Int)
        /// It would take too many writes to bring its count up.
        case tooHighCount(UInt64)
    }

    /// Name in the store -> the store's sync count of the dataset after its import, 8 bytes.
    static let notesName = StoreNames.ownPrefix + "imports"

    let store: Store
    let name: APIDatasetName
    let identity: IdentityID

    var storeName: String { StoreNames.dataset(name, of: identity) }

    /// Which changes are wanted: those after a count of the API, or all.
    enum Start: Hashable, Sendable {
        case all
        case after(UInt64)
        /// None: somebody has written to it here, or it came here without an import.
        case nothing
    }

    /// - Throws: an `APIFailure` if the sheet cannot be read, and what the store throws.
    func start() throws -> Start {
        guard let dataset = try store.existingDataset(storeName) else { return .all }
        let position = try dataset.syncCount.rawValue
        if position == 0 { return .all }
        guard try notedPosition() == position else { return .nothing }
        return .after(try countMap().count(at: position))
    }

    private func notedPosition() throws(StoreError) -> UInt64? {
        guard let notes = try store.existingDataset(Self.notesName),
            let bytes = try notes.get(Array(storeName.utf8))
        else { return nil }
        var rest = bytes[...]
        return BigEndian.take(&rest)
    }

    private func countMap() throws -> CountMap {
        try Sheet(of: storeName, in: store)?.countMap() ?? CountMap()
    }

    /// Removes what is here, because it was deleted there; the notes stay.
    func delete() throws(StoreError) {
        try store.deleteDataset(storeName)
    }

    /// - Parameters:
    ///   - records: all, or those that are newer than the start's count.
    ///   - count: of the dataset there.
    /// - Throws: `transactionConflict` if somebody writes to it meanwhile; what the store throws.
    func write(_ records: [ListRecordsAnswer.Record], through count: UInt64) throws -> Outcome {
        let last = max(count, records.map(\.syncCount).max() ?? 0)
        if try store.existingDataset(storeName) == nil {
            // Before there is one, that would be empty.
            guard ImportPlan.isWithinReach(last, from: 0) else { return .tooHighCount(last) }
        }
        let dataset = try store.dataset(storeName)
        let expected = try dataset.syncCount
        let map = try countMap()
        var listed: [[UInt8]: ListRecordsAnswer.Record] = [:]
        // The last one of a key, should it be on two pages because it was changed in between.
        for record in records { listed[Array(record.key.utf8)] = record }
        let plan = ImportPlan(
            listed.map { key, record in
                ListedRecord(
                    key: key, value: record.value, count: max(1, record.syncCount))
            }, through: count, after: expected.rawValue, map: map)
        guard let plan else { return .tooHighCount(last) }
        guard !plan.writes.isEmpty else { return .written(records: 0, removals: 0) }

        var batch = WriteBatch()
        for write in plan.writes {
            if let value = write.value {
                batch.put(Array(value.utf8), for: write.key, in: dataset)
            } else {
                batch.delete(write.key, in: dataset)
            }
        }
        let sheet = Sheet(of: storeName, in: try store.dataset(Sheet.datasetName))
        for (key, position) in plan.positions {
            guard let record = listed[key] else { continue }
            let entry = SheetEntry(
                position: position, lastModifiedBy: record.lastModifiedBy ?? identity.text,
                deviceMilliseconds: Self.milliseconds(record.deviceLastModifiedDate))
            batch.put(entry.encoded, for: sheet.entryKey(of: key), in: sheet.home)
        }
        if plan.map != map { batch.put(plan.map.encoded, for: sheet.mapKey, in: sheet.home) }
        batch.put(
            BigEndian.bytes(plan.position), for: Array(storeName.utf8),
            in: try store.dataset(Self.notesName))
        try store.write(batch, expecting: [(dataset: dataset, count: expected)])
        let removals = listed.values.count(where: { $0.value == nil })
        return .written(records: listed.count - removals, removals: removals)
    }

    /// Notes that datasets of the identity are to go into this one.
    func noteMerged(_ names: [APIDatasetName]) throws(StoreError) {
        for name in names {
            let merged = StoreNames.dataset(name, of: identity)
            guard try store.existingDataset(merged) != nil, merged != storeName else { continue }
            // From which identity it came stands in its name, after the dot, if anywhere.
            let origin = name.text.split(separator: ".").last.map(String.init) ?? ""
            try store.noteMerged(
                MergedDataset(name: merged, origin: IdentityID(origin)?.text ?? ""),
                into: storeName)
        }
    }

    /// nil for what is no date that can be told.
    private static func milliseconds(_ seconds: Double?) -> Int64? {
        guard let seconds, seconds.magnitude < 1e12 else { return nil }
        return Int64((seconds * 1_000).rounded())
    }
}
