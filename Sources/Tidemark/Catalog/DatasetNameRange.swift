/// Which names of datasets are asked for: those that begin so, and come after a given one.
///
/// Names are ASCII, so they are compared by their bytes, as they lie in the sealed segments.
struct DatasetNameRange: Sendable {
    static let all = DatasetNameRange()

    private let prefix: String
    private let after: String?

    private init() {
        prefix = ""
        after = nil
    }

    /// nil if no name can begin so.
    init?(prefix: String, after: String?) {
        guard prefix.isEmpty || DatasetName.isValid(prefix) else { return nil }
        self.prefix = prefix
        self.after = after
    }

    /// Where they begin among the keys of the store's own records.
    var firstKey: [UInt8] {
        let first = prefix.isEmpty ? StoreRecords.firstName : Array(prefix.utf8)
        guard let after else { return first }
        // No name has a zero, so that nothing lies between a name and itself with one.
        let next = Array(after.utf8) + [0]
        return first.lexicographicallyPrecedes(next) ? next : first
    }

    /// Of names at or behind ``firstKey``, in their order, the first that is not in the range is
    /// behind all that are.
    func contains(_ name: String) -> Bool {
        guard name.utf8.starts(with: prefix.utf8) else { return false }
        guard let after else { return true }
        return after.utf8.lexicographicallyPrecedes(name.utf8)
    }
}

extension Store {
    /// Names of datasets of which anything is known, deleted ones included, that begin so and come
    /// after a name, in their order, at most so many. O(answer), and a look at each dataset in
    /// memory.
    package func datasetNamesForSync(
        prefix: String, after: String? = nil, limit: Int = .max
    ) throws(StoreError) -> [String] {
        guard let names = DatasetNameRange(prefix: prefix, after: after) else { return [] }
        return try engine.datasetNames(where: .known, names, limit: limit)
    }
}
