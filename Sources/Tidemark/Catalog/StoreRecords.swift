/// The store's own records: dataset number 0 of the sealed segments, as of the end of the newest
/// sealed log. A dataset's name leads to its state, and the number of its records to its name.
///
/// A number that any entry had belongs to one name for ever, since it is never given out again. So
/// the newest record of a number is never wrong, only needless: once the sealed state of its name
/// has another number.
struct StoreRecords {
    private let view: ReadView
    private let path: String

    init(_ view: ReadView, of path: String) {
        self.view = view
        self.path = path
    }

    // MARK: - Keys

    /// Stands in front of a number; no name begins with it, and all names come after it.
    private static let numberMark: UInt8 = 0

    /// The mark and four bytes, the highest first: so numbers are in their order.
    static func key(ofNumber id: DatasetID) -> [UInt8] {
        [numberMark] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: id >> $0) }
    }

    /// Where names begin.
    static let firstName: [UInt8] = [numberMark + 1]

    /// nil if it is the key of a name.
    static func number(inKey key: ByteView) -> DatasetID? {
        guard key.count == 5, unsafe key.base.load(as: UInt8.self) == numberMark else {
            return nil
        }
        return unsafe DatasetID(
            bigEndian: key.base.loadUnaligned(fromByteOffset: 1, as: DatasetID.self))
    }

    // MARK: - Finding. O(1) in each run

    func state(named name: String) throws(StoreError) -> DatasetState? {
        try find(Array(name.utf8)) { (value) throws(Malformed) in
            try DatasetState(name: name, decoding: value)
        }
    }

    /// The state of the dataset whose records have, or once had, that number.
    func state(numbered id: DatasetID) throws(StoreError) -> DatasetState? {
        guard let name = try name(ofNumber: id) else { return nil }
        return try state(named: name)
    }

    func name(ofNumber id: DatasetID) throws(StoreError) -> String? {
        try find(Self.key(ofNumber: id)) { (value) throws(Malformed) in
            try Self.name(value)
        }
    }

    private func find<Result>(
        _ key: [UInt8], _ decode: (ByteView) throws(Malformed) -> Result
    ) throws(StoreError) -> Result? {
        try key.withBytes { (key) throws(StoreError) -> Result? in
            try view.withNewest(of: key, in: 0, sequenceMax: .max) {
                (entry, _) throws(StoreError) -> Result? in
                guard let entry else { return nil }
                do throws(Malformed) {
                    return try decode(entry.valueField)
                } catch {
                    throw error.error(in: path, at: nil)
                }
            }
        }
    }

    static func name(_ bytes: ByteView) throws(Malformed) -> String {
        guard let name = String(validating: bytes.array, as: UTF8.self),
            DatasetName.isStorable(name)
        else { throw Malformed("the record of a dataset has an invalid name") }
        return name
    }

    // MARK: - Compaction

    /// Whether one of these records is still needed. A state always is, also that of a deleted
    /// dataset. A number is needed as long as the sealed state has it: logs that are not sealed
    /// yet may name it, and it is only by this record that recovery knows whose it is.
    func isNeeded(_ entry: Entry) throws(StoreError) -> Bool {
        guard let id = Self.number(inKey: entry.key) else { return true }
        let name: String
        do throws(Malformed) {
            name = try Self.name(entry.valueField)
        } catch {
            throw error.error(in: path, at: nil)
        }
        return try state(named: name)?.recordsID == id
    }
}
