import Tidemark

// Writes that are dated further ahead of this store's clock than it believes.
//
// Such a write must not win by its date before that date has come, and must not be lost. So it is
// kept apart from the records of its dataset, and goes on from here to others as if it were one of
// them. The records are as if it had never come: until its date is believed, until somebody here
// releases it, or until a record overwrites it that has seen it.
//
// Who holds it is for each replica's own clock to say. That makes no difference in the end:
// - A replica's vector claims a held write as any other. Whoever is given the vector is given the
//   write with it, in the last page (`Dataset.writtenPage`). Held writes have no place in the order
//   of change: whether a receiver has them its vector says.
// - When its date is believed it meets the record of its key as if it came then. What it comes to
//   is a step like any other (`Comparison`), and those lead to one outcome in whatever order.
// - What an operator decides is a new write, which descends from the held one.
//
// Only the last writer wins by a date. Where another policy settles conflicts nothing is held: see
// `SyncSession.admitHeld()`.

/// The held writes of one dataset, in the store's own dataset ``SystemDataset/quarantine``: under
/// the dataset's name, a zero, and the write's ``HeldName``. Under a zero and the name is up to
/// where what changed may have been held before.
struct QuarantineBook {
    private let dataset: Dataset
    /// nil if nothing was ever held here.
    private let book: Dataset?

    /// O(1).
    init(_ dataset: Dataset) throws(StoreError) {
        self.dataset = dataset
        book = try dataset.store.existingSystemDataset(.quarantine)
    }

    // MARK: - Looking

    /// Whether nothing is held of the dataset. O(log n).
    func isEmpty() throws(StoreError) -> Bool {
        guard let book else { return true }
        return try book.keys(in: .prefix(prefix)).next() == nil
    }

    /// Hands out all that is held, until the body returns false. O(held), and memory for one.
    func each(_ body: (Record) throws(StoreError) -> Bool) throws(StoreError) {
        guard let book else { return }
        let cursor = try book.records(in: .prefix(prefix))
        while let line = try cursor.next() {
            // What cannot be read again is as good as lost.
            guard let record = Self.record(decoding: line.value ?? []) else { continue }
            guard try body(record) else { return }
        }
    }

    /// The names of all that is held, so that each can be looked at while others are removed.
    /// O(held); no value is read for it.
    func names() throws(StoreError) -> [HeldName] {
        guard let book else { return [] }
        let prefix = prefix
        let cursor = try book.keys(in: .prefix(prefix))
        var names: [HeldName] = []
        while let key = try cursor.next() {
            if let name = HeldName(key.dropFirst(prefix.count)) { names.append(name) }
        }
        return names
    }

    /// Their dots.
    func dots() throws(StoreError) -> [Dot] { try names().map(\.dot) }

    /// The same by the keys that they were written to. O(held), and memory for one.
    ///
    /// - Parameter withDeletions: whether held deletions are among them.
    func dotsByKey(withDeletions: Bool = true) throws(StoreError) -> [[UInt8]: [Dot]] {
        var dots: [[UInt8]: [Dot]] = [:]
        try each { (record) throws(StoreError) in
            if withDeletions || !record.isDeleted {
                dots[record.key, default: []].append(record.version.dot)
            }
            return true
        }
        return dots
    }

    /// What is not to be taken for seen by what outlives forgotten deletions: see
    /// ``ForgottenDeletions/before(_:)``. A held deletion may be one of these itself, since others
    /// believe it. By their keys. O(held).
    func unforgotten() throws(StoreError) -> [[UInt8]: [Dot]] {
        try dotsByKey(withDeletions: false)
    }

    /// The same of some keys, but for one write.
    func unforgotten(
        of keys: Set<[UInt8]>, beside write: Dot? = nil
    ) throws(StoreError) -> [Dot] {
        try unforgotten().filter { keys.contains($0.key) }.values.joined().filter { $0 != write }
    }

    /// The names of all datasets of which anything is held, and the first date of all that is held
    /// of them; nil if nothing is. O(held), and memory for one.
    static func overview(
        of store: Store
    ) throws(StoreError) -> (names: [String], firstDate: HybridTime?) {
        guard let book = try store.existingSystemDataset(.quarantine) else { return ([], nil) }
        var names: [String] = []
        var name: ArraySlice<UInt8> = []
        var firstDate: HybridTime?
        // Behind the marks of what was held, which begin with a zero.
        let cursor = try book.records(in: KeyRange(from: [1]))
        while let line = try cursor.next() {
            let next = line.key.prefix { $0 != 0 }
            if next != name {
                name = next
                names.append(String(decoding: name, as: UTF8.self))
            }
            guard let date = Self.date(in: line.value ?? []) else { continue }
            firstDate = min(firstDate ?? date, date)
        }
        return (names, firstDate)
    }

    /// The keys of all that is held. O(held).
    func keys() throws(StoreError) -> Set<[UInt8]> {
        var keys: Set<[UInt8]> = []
        try each { (record) throws(StoreError) in
            keys.insert(record.key)
            return true
        }
        return keys
    }

    /// The write of that name; nil if it is not held (any more).
    func record(_ name: HeldName) throws(StoreError) -> Record? {
        guard let book, let bytes = try book.get(key(of: name)) else { return nil }
        return Self.record(decoding: bytes)
    }

    /// What is held of a key under a dot: one write, or more if a store went back in time or was
    /// copied. O(those under the dot).
    func records(of dot: Dot, key: [UInt8]) throws(StoreError) -> [Record] {
        guard let book else { return [] }
        let range = KeyRange.prefix(self.key(of: HeldName(dot: dot, content: nil)))
        var found: [Record] = []
        let cursor = try book.records(in: range)
        while let line = try cursor.next() {
            guard let record = Self.record(decoding: line.value ?? []), record.key == key else {
                continue
            }
            found.append(record)
        }
        return found
    }

    /// The very write as it is held, joined with what it was joined with here; nil if it is not
    /// held (any more).
    func held(_ write: Record) throws(StoreError) -> Record? { try record(name(of: write)) }

    /// Whether the write is held already with all of its version.
    func holds(_ write: Record) throws(StoreError) -> Bool {
        try held(write)?.version.vector.covers(write.version.vector) ?? false
    }

    /// Under which name a write is kept, or would be.
    private func name(of write: Record) throws(StoreError) -> HeldName {
        let name = HeldName(write)
        guard let kept = try record(name.plain), HeldName(kept) == name else { return name }
        return name.plain
    }

    // MARK: - Changing

    /// What notes a write as held, with all that either side's copy of it has been joined with;
    /// nil if that is known, or if it is too large to be kept in a record.
    ///
    /// - Throws: `invalidArgument` if it could never be let in, since no store takes such a record.
    func note(holding arrived: Record) throws(StoreError) -> SystemNote? {
        if let refusal = dataset.refusalByStore(of: arrived) { throw refusal }
        let name = try name(of: arrived)
        let known = try record(name)
        let vector = arrived.version.vector.union(known?.version.vector ?? VersionVector())
        guard vector != known?.version.vector else { return nil }
        let version = Version(
            dot: arrived.version.dot, vector: vector, time: arrived.version.time,
            author: arrived.version.author)
        let record = Record(
            key: arrived.key, value: arrived.value, version: version, syncCount: .zero,
            isDirty: false, expiresAt: arrived.expiresAt)
        let value = Self.encoded(record)
        guard value.count <= Limits.valueBytesMax else { return nil }
        if record.isDeleted, dataset.store.has(.forgetHeldDeletion) {
            return try note(dropping: record)
        }
        return SystemNote(
            in: try dataset.store.systemDataset(.quarantine), key: key(of: name), value: value)
    }

    /// What notes that a write is no longer held.
    func note(dropping record: Record) throws(StoreError) -> SystemNote {
        SystemNote(
            in: try dataset.store.systemDataset(.quarantine), key: key(of: try name(of: record)),
            value: nil)
    }

    // MARK: - What was held

    /// The count up to which records may have changed that the dataset's vector had claimed
    /// before, since they were held. As of an earlier count the vector claims what is not among
    /// the records.
    func admittedThrough() throws(StoreError) -> SyncCount {
        guard let book, let bytes = try book.get(Self.markKey(dataset)) else { return .zero }
        do throws(SyncError) {
            var reader = ByteReader(bytes)
            return SyncCount(rawValue: try reader.takeFixed(UInt64.self))
        } catch {
            return SyncCount(rawValue: .max)
        }
    }

    /// To be stored with each record that was held: that it was, at a count not known yet.
    func noteOfAdmission() throws(StoreError) -> SystemNote {
        SystemNote(
            in: try dataset.store.systemDataset(.quarantine), key: Self.markKey(dataset),
            value: Self.mark(.max))
    }

    /// Notes afterwards which count that was at most.
    func noteAdmitted() throws(StoreError) {
        let count = try dataset.knowledge().syncCount
        _ = try dataset.store.systemDataset(.quarantine)
            .put(Self.mark(count.rawValue), for: Self.markKey(dataset))
    }

    private static func mark(_ count: UInt64) -> [UInt8] {
        var writer = ByteWriter()
        writer.putFixed(count)
        return writer.bytes
    }

    /// No name begins with a zero.
    private static func markKey(_ dataset: Dataset) -> [UInt8] {
        [0] + Array(dataset.name.utf8)
    }

    // MARK: - Bytes

    private var prefix: [UInt8] { SystemDataset.prefix(of: dataset.name) }

    private func key(of name: HeldName) -> [UInt8] { prefix + name.bytes }

    /// A record as it stands in a message that names nothing before it.
    static func encoded(_ record: Record) -> [UInt8] {
        var writer = VersionWriter()
        writer.putRecord(record)
        return writer.bytes
    }

    /// The date of such a record; nil if it is none. O(1).
    private static func date(in bytes: [UInt8]) -> HybridTime? {
        do throws(SyncError) {
            return try VersionReader.date(ofRecordIn: bytes)
        } catch {
            return nil
        }
    }

    static func record(decoding bytes: [UInt8]) -> Record? {
        do throws(SyncError) {
            return try VersionReader.records(bytes, count: 1, after: []).first
        } catch {
            return nil
        }
    }
}
