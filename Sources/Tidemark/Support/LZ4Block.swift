internal import CLZ4

/// The raw block format of LZ4, without frames: lengths and checksums are ours.
package enum LZ4Block {
    /// The bytes compressed, or nil if that would not save at least an eighth: less is not worth
    /// the time to decompress.
    package static func compress(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard bytes.count > 0 else { return nil }
        let compressed = unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) {
            target, count in
            count = unsafe compress(bytes, into: UnsafeMutableRawBufferPointer(target)) ?? 0
        }
        return compressed.isEmpty ? nil : compressed
    }

    /// The same into the beginning of memory that is there: the count of the compressed bytes, or
    /// nil, when nothing there may be relied upon. The target must be as large as the bytes are.
    static func compress(
        _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) -> Int? {
        precondition(target.count >= bytes.count, "less room than the bytes take uncompressed")
        let rawCount = bytes.count
        guard rawCount >= 32, rawCount <= LZ4_MAX_INPUT_SIZE else { return nil }
        // LZ4 stops with 0 as soon as the output does not fit.
        let count = unsafe LZ4_compress_default(
            bytes.assumingMemoryBound(to: CChar.self).baseAddress,
            target.assumingMemoryBound(to: CChar.self).baseAddress,
            Int32(rawCount), Int32(rawCount - rawCount / 8))
        return count > 0 ? Int(count) : nil
    }

    /// Whether LZ4, which counts in 32 bits, can be asked to decompress that.
    private static func isCountable(
        _ bytes: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer
    ) -> Bool {
        bytes.count <= LZ4_MAX_INPUT_SIZE && target.count <= LZ4_MAX_INPUT_SIZE
    }

    /// Decompresses the beginning of a block, as many bytes as the target has. False if that is
    /// not to be had. Never writes outside the target, whatever the bytes.
    static func decompressBeginning(
        _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard unsafe isCountable(bytes, target) else { return false }
        let count = unsafe LZ4_decompress_safe_partial(
            bytes.assumingMemoryBound(to: CChar.self).baseAddress,
            target.assumingMemoryBound(to: CChar.self).baseAddress,
            Int32(bytes.count), Int32(target.count), Int32(target.count))
        return Int(count) == target.count
    }

    /// Decompresses into the whole of the target. False if the bytes are no LZ4 block of exactly
    /// that size. Never writes outside the target, whatever the bytes.
    package static func decompress(
        _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard unsafe isCountable(bytes, target) else { return false }
        let count = unsafe LZ4_decompress_safe(
            bytes.assumingMemoryBound(to: CChar.self).baseAddress,
            target.assumingMemoryBound(to: CChar.self).baseAddress,
            Int32(bytes.count), Int32(target.count))
        return Int(count) == target.count
    }
}
