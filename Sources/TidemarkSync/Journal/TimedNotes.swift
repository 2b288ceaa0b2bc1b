import Tidemark

/// What one of the store's own datasets has about one dataset of a user, in the order of time: each
/// note under the dataset's name, a zero byte and a time of the store's clock, the highest byte
/// first. No two have the same time.
struct TimedNotes {
    let which: SystemDataset
    let dataset: Dataset
    /// The byte behind the name, where there are several lists of one dataset. No name has a byte
    /// as low as this.
    var part: UInt8 = 0

    private var prefix: [UInt8] { Array(dataset.name.utf8) + [part] }

    func key(at time: HybridTime) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(prefix)
        writer.putFixed(time.rawValue.byteSwapped)
        return writer.bytes
    }

    /// nil if it is none of these notes' keys.
    func time(in key: [UInt8]) -> HybridTime? {
        let prefix = prefix
        guard key.count == prefix.count + 8, key.starts(with: prefix) else { return nil }
        return HybridTime(
            rawValue: key.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }

    func range(since time: HybridTime = .zero) -> KeyRange {
        KeyRange(from: key(at: time), upTo: Array(dataset.name.utf8) + [part + 1])
    }

    /// A time of its own for a note.
    func nextTime() -> HybridTime { dataset.store.nextTime() }

    /// The dataset that the notes are in; nil if there never was any.
    func existing() throws(StoreError) -> Dataset? {
        try dataset.store.existingSystemDataset(which)
    }

    /// The same, made if it is not there.
    func home() throws(StoreError) -> Dataset {
        try dataset.store.systemDataset(which)
    }

    func isEmpty() throws(StoreError) -> Bool {
        try existing()?.keys(in: range(), limit: 1).next() == nil
    }

    /// Hands out notes with their times until the body says no. Notes of a later form are for the
    /// body to pass by.
    func forEach(
        since start: HybridTime = .zero, order: ScanOrder = .forward,
        _ body: (HybridTime, [UInt8]) throws(StoreError) -> Bool
    ) throws(StoreError) {
        guard let notes = try existing() else { return }
        let cursor = try notes.records(in: range(since: start), order: order)
        while let record = try cursor.next() {
            guard let time = time(in: record.key), let value = record.value else { continue }
            guard try body(time, value) else { return }
        }
    }

    /// Deletes the oldest ones that are too many, and those that are too old, as notes for a batch.
    /// O(notes).
    ///
    /// - Parameters:
    ///   - added: how many come with that batch.
    ///   - countMax: how many there may be then.
    ///   - start: those before it go.
    func trimming(
        adding added: Int, countMax: Int, before start: HybridTime
    ) throws(StoreError) -> [SystemNote] {
        guard let notes = try existing() else { return [] }
        let keys = try notes.keys(in: range()).collect()
        let excess = min(keys.count, max(0, keys.count + added - countMax))
        let tooOld = keys.dropFirst(excess).prefix { (time(in: $0) ?? .zero) < start }
        return keys.prefix(min(excess + tooOld.count, SyncLimits.journalTrimMax)).map {
            SystemNote(in: notes, key: $0, value: nil)
        }
    }
}
