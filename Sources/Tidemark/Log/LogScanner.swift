/// Finds the blocks of a log that count after a crash.
///
/// Blocks stand one after the other. The first place without a whole block is where the log ends:
/// either it was never written further, or the machine lost pages that were not durable (a torn
/// tail, cut without a word), or durable bytes are damaged. The last two are told apart by the
/// marks: each block says how far the log was durable when it was written, so a hole below the
/// greatest mark found anywhere in the log is damage, and is reported, never cut.
struct LogScanner {
    private let bytes: ByteView
    private let segment: UInt32
    private let identity: StoreIdentity
    private(set) var offset: Int
    private(set) var isEnded = false
    private(set) var epochLast: UInt16 = 0
    private(set) var markMax: UInt32 = 0
    /// Whether a look behind the end found any whole block of the log.
    private(set) var hasBlockBehindEnd = false

    /// - Parameter offset: of the first block, which follows the file's header.
    init(
        _ bytes: ByteView, segment: UInt64, _ identity: StoreIdentity,
        from offset: Int = FileHeader.byteCount
    ) {
        self.identity = identity
        self.offset = offset
        self.bytes = bytes
        self.segment = UInt32(truncatingIfNeeded: segment)
    }

    /// The next block of operations; nil where the log ends.
    mutating func next() -> (offset: Int, payload: ByteView)? {
        guard !isEnded, let header = block(at: offset), header.epoch >= epochLast else {
            return nil
        }
        let start = offset
        epochLast = header.epoch
        markMax = max(markMax, header.mark)
        offset += BlockHeader.byteCount + Int(header.storedCount)
        if header.kind == BlockHeader.Kind.endOfLog.rawValue {
            isEnded = true
            return nil
        }
        let payload = unsafe ByteView(
            base: bytes.base + (start + BlockHeader.byteCount), count: Int(header.storedCount))
        return (start, payload)
    }

    /// Looks behind the place where the log ended for blocks that prove more of it to have been
    /// durable. O(bytes left) with a cheap test at each possible place.
    mutating func lookBehindEnd() {
        var position = offset
        while position + BlockHeader.byteCount <= bytes.count, wastedBytes <= 4 * bytes.count {
            if isZeroPage(at: position) {
                // No block begins here: the first bytes of one are its checksum.
                position += Self.pageByteCount
            } else if let header = block(at: position) {
                markMax = max(markMax, header.mark)
                hasBlockBehindEnd = true
                position += BlockHeader.byteCount + Int(header.storedCount)
            } else {
                position += LogSegment.alignment
            }
        }
    }

    /// Goes on behind the place where the log seemed to end, at the next whole block that is not
    /// older than what stands before it. False if there is none; then the scanner stays there.
    mutating func passHole() -> Bool {
        var position = offset + LogSegment.alignment
        while position + BlockHeader.byteCount <= bytes.count, wastedBytes <= 4 * bytes.count {
            if isZeroPage(at: position) {
                position += Self.pageByteCount
            } else if let header = block(at: position), header.epoch >= epochLast {
                offset = position
                return true
            } else {
                position += LogSegment.alignment
            }
        }
        return false
    }

    /// Bytes whose checksum was computed for something that only looked like a block. A value full
    /// of forged headers could make that the square of the log's length, so there is a bound, far
    /// above what remains of earlier use can cause.
    private var wastedBytes = 0

    private static let pageByteCount = 4_096
    private static let zeros = [UInt8](repeating: 0, count: pageByteCount)

    /// Most of what lies behind the end was never written; one comparison passes over a page.
    private func isZeroPage(at position: Int) -> Bool {
        guard position % Self.pageByteCount == 0, position + Self.pageByteCount <= bytes.count
        else { return false }
        let page = unsafe ByteView(base: bytes.base + position, count: Self.pageByteCount)
        return unsafe Self.zeros.withUnsafeBytes { unsafe ByteView($0).equals(page) }
    }

    /// The header of a whole block of this log at the offset; nil if there is none.
    private mutating func block(at position: Int) -> BlockHeader? {
        guard position + BlockHeader.byteCount <= bytes.count else { return nil }
        let header = unsafe BlockHeader(at: bytes.base + position)
        guard header.segment == segment,
            header.kind == BlockHeader.Kind.operations.rawValue
                || header.kind == BlockHeader.Kind.endOfLog.rawValue,
            Int(header.storedCount) <= bytes.count - position - BlockHeader.byteCount,
            Int(header.storedCount) % LogSegment.alignment == 0
        else { return nil }
        let checksum = unsafe BlockHeader.checksum(
            at: bytes.base + position, storedCount: Int(header.storedCount), identity)
        guard checksum == header.checksum else {
            wastedBytes += Int(header.storedCount)
            return nil
        }
        return header
    }
}
