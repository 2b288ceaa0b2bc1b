/// The hash of a key for every table it may be looked up in, in memory and on disk.
///
/// Keys come from whoever may write. With a known seed anybody could choose thousands that all
/// share one place of a table, and each write would walk over all of them, so the seed is a secret
/// of the store: see ``StoreIdentity``.
struct KeyHash {
    let seed: UInt64

    /// Odd, so that no two datasets have the same seed (2^64 divided by the golden ratio).
    private static let datasetFactor: UInt64 = 0x9E37_79B9_7F4A_7C15

    /// XXH3-64, with the store's seed plus a multiple of the dataset's number as seed. Stored: the
    /// indexes of sealed segments are built on it.
    @inline(__always)
    func of(_ key: ByteView, in dataset: DatasetID) -> UInt64 {
        hash64(key, seed: seed &+ UInt64(dataset) &* Self.datasetFactor)
    }
}
