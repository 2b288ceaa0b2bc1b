import Tidemark

/// What the API keeps of a dataset beside its records, in the hub's own dataset `hub:sheets`.
///
/// | key | value |
/// | --- | --- |
/// | name, 0, 0 | `CountMap` |
/// | name, 0, 1, key of a record | `SheetEntry` |
///
/// The name is that of the dataset in the store, in which no byte is 0. All of it is written in one
/// batch with the records that it is about. The map outlives the dataset's deletion, because sync
/// counts go on from where they were; entries that a deletion leaves behind are of no record.
struct Sheet {
    static let datasetName = StoreNames.ownPrefix + "sheets"
    /// Keys of records that no client of the API can have written have no entries.
    static let recordKeyBytesMax = 4 * APINames.recordKeyCharactersMax

    /// Of the dataset in the store.
    let storeName: String
    /// That of all sheets.
    let home: Dataset

    /// - Parameter home: of all sheets.
    init(of storeName: String, in home: Dataset) {
        self.storeName = storeName
        self.home = home
    }

    /// nil as long as there is no sheet of any dataset.
    init?(of storeName: String, in store: Store) throws(StoreError) {
        guard let home = try store.existingDataset(Self.datasetName) else { return nil }
        self.init(of: storeName, in: home)
    }

    private static let mapMark: UInt8 = 0
    private static let entryMark: UInt8 = 1

    var mapKey: [UInt8] { Array(storeName.utf8) + [0, Self.mapMark] }

    var entryPrefix: [UInt8] { Array(storeName.utf8) + [0, Self.entryMark] }

    func entryKey(of recordKey: [UInt8]) -> [UInt8] { entryPrefix + recordKey }

    /// - Throws: an `APIFailure` if what is stored is no map: without it all counts would be wrong.
    func countMap() throws -> CountMap {
        guard let bytes = try home.get(mapKey) else { return CountMap() }
        guard let map = CountMap(encoded: bytes) else {
            throw APIFailure(
                .internalError,
                "the sync counts of the dataset cannot be read; restore the hub's store")
        }
        return map
    }

    /// What is kept of a record; nil if nothing is, or that of an earlier one.
    func entry(of record: Record) throws(StoreError) -> SheetEntry? {
        guard record.key.count <= Self.recordKeyBytesMax,
            let bytes = try home.get(entryKey(of: record.key))
        else { return nil }
        return SheetEntry(encoded: bytes).flatMap {
            $0.position == record.syncCount.rawValue ? $0 : nil
        }
    }

    /// What is kept of all records, by their keys. O(entries).
    func entries() throws(StoreError) -> [[UInt8]: SheetEntry] {
        let prefix = entryPrefix
        let cursor = try home.records(in: .prefix(prefix))
        var entries: [[UInt8]: SheetEntry] = [:]
        while let stored = try cursor.next() {
            guard let entry = stored.value.flatMap({ SheetEntry(encoded: $0) }) else { continue }
            entries[Array(stored.key.dropFirst(prefix.count))] = entry
        }
        return entries
    }

    /// Removes what was kept of records of a dataset that was deleted. What is written meanwhile to
    /// one of the same name stays.
    ///
    /// - Parameter position: the dataset's sync count before its deletion.
    func removeEntries(through position: UInt64) throws(StoreError) {
        let cursor = try home.records(in: .prefix(entryPrefix))
        var isOver = false
        while !isOver {
            var batch = WriteBatch()
            while batch.count < Self.removedAtOnce {
                guard let stored = try cursor.next() else {
                    isOver = true
                    break
                }
                let entry = stored.value.flatMap { SheetEntry(encoded: $0) }
                guard let entry, entry.position <= position else { continue }
                batch.delete(stored.key, in: home, ifAt: stored.version.dot)
            }
            do throws(StoreError) {
                try home.store.write(batch)
            } catch {
                // Somebody writes to a new dataset of the name. What stays is of no record.
                guard error.code == .versionMismatch else { throw error }
                return
            }
        }
    }

    private static let removedAtOnce = 512
}
