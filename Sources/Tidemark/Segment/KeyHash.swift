/// The hash of a key for every table it may be looked up in, in memory and on disk.
enum KeyHash {
    /// XXH3-64 with the dataset's number as seed. Stored: the indexes of sealed segments are built
    /// on it.
    @inline(__always)
    static func of(_ key: ByteView, in dataset: DatasetID) -> UInt64 {
        hash64(key, seed: UInt64(dataset))
    }
}
