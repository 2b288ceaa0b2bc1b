internal import CXXHash

/// XXH3-64 (Yann Collet, xxHash 0.8) of the bytes: the checksum of messages, of file headers and of
/// the parts of hash indexes. That of blocks is made with a secret: see ``StoreIdentity``.
package func checksum64(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    unsafe XXH3_64bits(bytes.baseAddress, bytes.count)
}

/// XXH3-64 with a seed, for filters and hash tables.
func hash64(_ bytes: ByteView, seed: UInt64) -> UInt64 {
    unsafe XXH3_64bits_withSeed(bytes.base, bytes.count, seed)
}

/// XXH3-128, for digests whose equality stands for the equality of what went in.
package func checksum128(_ bytes: UnsafeRawBufferPointer) -> (high: UInt64, low: UInt64) {
    let hash = unsafe XXH3_128bits(bytes.baseAddress, bytes.count)
    return (hash.high64, hash.low64)
}
