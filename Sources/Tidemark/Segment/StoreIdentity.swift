internal import CXXHash

/// What all files of one store have in common, and nothing else has: a tag, by which a file of
/// another store is known, and a secret, without which nobody can make bytes that pass for a block
/// of the store.
///
/// What a store holds is decided by others: by its users, and through a hub by whoever may write to
/// it. A value may have any bytes, also those of a block. Where blocks are looked for, in logs and
/// in damaged files, only the checksum tells one from the other. So the checksum is made with bytes
/// that are drawn when the store is made, stand in the headers of its files, and leave the
/// directory only with whole files: in no value, message, bundle or offer.
///
/// XXH3 is no cipher. That is enough here, because a forger never sees a checksum that was made
/// with the secret: he would have to guess 64 bits, once for each block that he forges.
@safe
final class StoreIdentity: @unchecked Sendable {
    // Unchecked: `expanded` is filled by `init` and only read from then on.

    static let secretByteCount = 16
    private static let expandedByteCount = 192

    let tag: UInt64
    let secretLow: UInt64
    let secretHigh: UInt64
    let keyHash: KeyHash
    /// The secret as XXH3 takes it.
    private let expanded: UnsafeMutableRawPointer

    /// The secret of XXH3 is, for i from 0 to 11, XXH3-128 of the 16 bytes and a byte i, the lower
    /// half first; the seed for keys is the lower half of the same with i = 12.
    init(tag: UInt64, secretLow: UInt64, secretHigh: UInt64) {
        self.tag = tag
        self.secretLow = secretLow
        self.secretHigh = secretHigh
        unsafe expanded = .allocate(byteCount: Self.expandedByteCount, alignment: 64)
        func derived(_ index: UInt8) -> (high: UInt64, low: UInt64) {
            var input = ByteWriter()
            input.append(fixed64: secretLow)
            input.append(fixed64: secretHigh)
            input.append(byte: index)
            return unsafe input.bytes.withUnsafeBytes { unsafe checksum128($0) }
        }
        keyHash = KeyHash(seed: derived(12).low)
        var secret = ByteWriter()
        for index in UInt8(0)...11 {
            let hash = derived(index)
            secret.append(fixed64: hash.low)
            secret.append(fixed64: hash.high)
        }
        unsafe secret.bytes.withUnsafeBytes {
            unsafe expanded.copyMemory(from: $0.baseAddress!, byteCount: Self.expandedByteCount)
        }
    }

    /// Of a store that is about to be made.
    convenience init(drawnFrom storage: any Storage) {
        self.init(
            tag: storage.randomUInt64(), secretLow: storage.randomUInt64(),
            secretHigh: storage.randomUInt64())
    }

    deinit {
        unsafe expanded.deallocate()
    }

    /// XXH3-64 of the bytes, with the secret.
    @inline(__always)
    func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        unsafe XXH3_64bits_withSecret(
            bytes.baseAddress, bytes.count, expanded, Self.expandedByteCount)
    }
}

/// The checksum that a block, or a footer, has in a file of a store: for who changes files on
/// purpose.
///
/// - Parameter file: the whole file, or its first bytes; with a damaged header nothing is known,
///   and the checksum is one without a secret.
package func storeChecksum64(_ bytes: UnsafeRawBufferPointer, inFile file: [UInt8]) -> UInt64 {
    let identity = unsafe file.withUnsafeBytes { FileHeader.identity(in: unsafe ByteView($0)) }
    guard let identity else { return unsafe checksum64(bytes) }
    return unsafe identity.checksum(bytes)
}

extension StoreIdentity: Hashable {
    static func == (left: StoreIdentity, right: StoreIdentity) -> Bool {
        left.tag == right.tag && left.secretLow == right.secretLow
            && left.secretHigh == right.secretHigh
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(tag)
        hasher.combine(secretLow)
        hasher.combine(secretHigh)
    }
}
