/// What stands before every block, in the log and in sealed segments alike.
///
///     offset  bytes  field
///     0       8      XXH3-64, with the store's secret, of everything after it: the rest of the
///                    header and the stored bytes
///     8       4      length of the stored bytes
///     12      4      sealed: their length before compression; log: bytes known durable
///     16      4      the lower 32 bits of the segment's number
///     20      1      kind
///     21      1      reserved, 0
///     22      2      log: the epoch; sealed: 0
///
/// Stored and raw length are equal if and only if a block of a sealed segment is not compressed.
struct BlockHeader {
    static let byteCount = 24
    static let checksumByteCount = 8

    enum Kind: UInt8 {
        case operations = 1
        case endOfLog = 2
        case data = 16
        case changes = 17
        case tables = 18
        case datasets = 19
        case collected = 20
        case directory = 21
        case changeDirectory = 22
        case indexChecksums = 23
        case valueFiles = 24
        case value = 25
        case manifest = 32
        case partOrigin = 33
        case partMark = 34
        case roster = 35
    }

    var checksum: UInt64 = 0
    var storedCount: UInt32
    var mark: UInt32
    var segment: UInt32
    var kind: UInt8
    var epoch: UInt16 = 0

    /// Reads the fields; the checksum is not looked at.
    init(at base: UnsafeRawPointer) {
        unsafe checksum = UInt64(littleEndian: base.loadUnaligned(as: UInt64.self))
        unsafe storedCount = UInt32(
            littleEndian: base.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        unsafe mark = UInt32(
            littleEndian: base.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
        unsafe segment = UInt32(
            littleEndian: base.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
        unsafe kind = base.load(fromByteOffset: 20, as: UInt8.self)
        unsafe epoch = UInt16(
            littleEndian: base.loadUnaligned(fromByteOffset: 22, as: UInt16.self))
    }

    init(storedCount: Int, mark: UInt32, segment: UInt64, kind: Kind, epoch: UInt16 = 0) {
        self.storedCount = UInt32(storedCount)
        self.mark = mark
        self.segment = UInt32(truncatingIfNeeded: segment)
        self.kind = kind.rawValue
        self.epoch = epoch
    }

    /// Of the block as a whole.
    var blockByteCount: Int { Self.byteCount + Int(storedCount) }

    /// Writes the header in front of the stored bytes, which must already follow it.
    ///
    /// - Parameter identity: of the store; nil for a block that goes to another replica, which is
    ///   not to learn what the store's checksums are.
    func seal(at base: UnsafeMutableRawPointer, _ identity: StoreIdentity?) {
        let checksum = unsafe write(at: base, identity)
        unsafe base.storeBytes(of: checksum.littleEndian, as: UInt64.self)
    }

    /// The same but for the checksum, which it returns: as long as that is not there, there is no
    /// block.
    func write(at base: UnsafeMutableRawPointer, _ identity: StoreIdentity?) -> UInt64 {
        unsafe base.storeBytes(of: storedCount.littleEndian, toByteOffset: 8, as: UInt32.self)
        unsafe base.storeBytes(of: mark.littleEndian, toByteOffset: 12, as: UInt32.self)
        unsafe base.storeBytes(of: segment.littleEndian, toByteOffset: 16, as: UInt32.self)
        unsafe base.storeBytes(of: kind, toByteOffset: 20, as: UInt8.self)
        unsafe base.storeBytes(of: 0, toByteOffset: 21, as: UInt8.self)
        unsafe base.storeBytes(of: epoch.littleEndian, toByteOffset: 22, as: UInt16.self)
        return unsafe Self.checksum(at: base, storedCount: Int(storedCount), identity)
    }

    /// The checksum of a block that lies whole in memory.
    ///
    /// - Parameter identity: of the store; nil for a block on its way between replicas.
    @inline(__always)
    static func checksum(
        at base: UnsafeRawPointer, storedCount: Int, _ identity: StoreIdentity?
    ) -> UInt64 {
        let bytes = unsafe UnsafeRawBufferPointer(
            start: base + checksumByteCount, count: byteCount - checksumByteCount + storedCount)
        guard let identity else { return unsafe checksum64(bytes) }
        return unsafe identity.checksum(bytes)
    }
}
