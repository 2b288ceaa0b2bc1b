/// The number of a dataset inside its store; a dataset that was deleted and made again has a new
/// one. 0 holds the store's own records.
typealias DatasetID = UInt32

extension ByteReader {
    /// The number of a dataset, after which there is room for more.
    mutating func datasetID() throws(Malformed) -> DatasetID {
        let number = try varint32()
        // The number that comes next after the last one may stand in a manifest.
        guard number <= Limits.datasetNumberMax + 1 else {
            throw Malformed("a dataset has an impossible number")
        }
        return number
    }
}
