import Tidemark

/// The API's sync count of a dataset, as of now.
enum DatasetCount {
    /// Of the hub's own datasets: what the API keeps of records beside the store.
    private static let sheetsName = StoreNames.ownPrefix + "sheets"

    /// 0 for a dataset that was never there; of a deleted one, what it was.
    ///
    /// - Parameter name: what it is called in the store.
    static func current(of name: String, in store: Store) throws(StoreError) -> UInt64 {
        // Read before the map, which then is of this moment or later, and knows it.
        let position = try self.position(of: name, in: store)
        return try map(of: name, in: store).count(at: position)
    }

    /// The store's own count.
    static func position(of name: String, in store: Store) throws(StoreError) -> UInt64 {
        try store.datasetForSync(name, creating: false)?.knowledge().syncCount.rawValue ?? 0
    }

    /// How the API's counts follow from the store's.
    static func map(of name: String, in store: Store) throws(StoreError) -> CountMap {
        let key = Array(name.utf8) + [0, 0]
        guard let bytes = try store.existingDataset(sheetsName)?.get(key) else {
            return CountMap()
        }
        guard let map = CountMap(encoded: bytes) else {
            throw StoreError(
                .corruption,
                "the sync counts of \(name) in \(sheetsName) are not of their form; put them "
                    + "back from a backup")
        }
        return map
    }
}

extension StoreNames {
    /// Whose a dataset of the store is and what its clients call it; nil for one that has not the
    /// form of an identity's. Whether there is such an identity is for the directory to say.
    static func parsed(_ storeName: String) -> (identity: IdentityID, name: APIDatasetName)? {
        let parts = storeName.split(
            separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let identity = IdentityID("\(parts[0]):\(parts[1])"),
            let name = APIDatasetName(String(parts[2]))
        else { return nil }
        return (identity, name)
    }
}
