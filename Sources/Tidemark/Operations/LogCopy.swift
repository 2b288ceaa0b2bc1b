/// Writes a log under another number: block by block, each checked as it is read, with the number
/// and the checksum made anew.
///
/// A backup gives its logs numbers that no log there ever had. So the logs of an earlier backup
/// stay as they are until the new manifest is in place, and none of the new ones counts before:
/// it does not name the last earlier log as the one before it, and its blocks have no mark, by
/// which it would prove to have been durable. How far it is durable the manifest says.
struct LogCopy {
    private static let chunkBytes = 1 << 20

    let number: UInt64
    let previous: UInt64
    let identity: StoreIdentity
    /// Called for each piece that was written.
    let wrote: (Int) -> Void

    struct Result {
        /// Where the last block ends, and the bytes of the file.
        var contentEnd: UInt64
        var fileSize: UInt64
        var isEnded: Bool
    }

    /// Copies the first bytes of a log, which end where a block does, and adds a block of its own.
    ///
    /// - Parameters:
    ///   - source: nil for a log without any blocks of an earlier one.
    ///   - extra: the payload of the added block; nil for none. Left out if the log has ended.
    /// - Throws: `corruption` if a block of the log is damaged.
    func write(
        _ source: (log: LogSegment, byteCount: Int)?, adding extra: [UInt8]?,
        to file: any StorageFile, storage: any Storage
    ) throws(StoreError) -> Result {
        let byteCount = source?.byteCount ?? 0
        let contentMax =
            max(byteCount, FileHeader.byteCount) + 4 * BlockHeader.byteCount + (extra?.count ?? 0)
        let size = Pages.roundedUp(contentMax)
        // Room for a few more blocks at least, of which one is kept for the end of the log.
        let capacity = max(source?.log.capacity ?? 0, size + 4_096)
        let madeAt = source.map { $0.log.madeAt } ?? storage.wallClockMilliseconds()
        var buffer = FileHeader(
            kind: .log, segment: number, identity: identity, madeAt: madeAt, previousLog: previous,
            capacity: UInt32(clamping: capacity), place: storage.place(of: file.path)?.mark ?? 0
        ).bytes
        var written: UInt64 = 0
        var isEnded = false
        if let source {
            var scanner = LogScanner(
                source.log.bytes(through: byteCount), segment: source.log.number,
                source.log.identity)
            while let (_, payload) = scanner.next() {
                append(payload, epoch: scanner.epochLast, to: &buffer)
                if buffer.count >= Self.chunkBytes {
                    try flush(&buffer, &written, to: file)
                }
            }
            isEnded = scanner.isEnded
            guard scanner.offset == byteCount || byteCount < FileHeader.byteCount else {
                throw Malformed("a block of the log is damaged")
                    .error(in: source.log.path, at: UInt64(scanner.offset))
            }
            if isEnded {
                append(.empty, kind: .endOfLog, epoch: scanner.epochLast, to: &buffer)
            } else if let extra {
                try extra.withBytes { (payload) throws(StoreError) in
                    append(payload, epoch: scanner.epochLast, to: &buffer)
                }
            }
        } else if let extra {
            try extra.withBytes { (payload) throws(StoreError) in
                append(payload, epoch: 0, to: &buffer)
            }
        }
        let end = written + UInt64(buffer.count)
        let rest = size - Int(end)
        buffer.append(contentsOf: repeatElement(0, count: max(0, rest)))
        try flush(&buffer, &written, to: file)
        try file.sync()
        return Result(contentEnd: end, fileSize: written, isEnded: isEnded)
    }

    private func append(
        _ payload: ByteView, kind: BlockHeader.Kind = .operations, epoch: UInt16,
        to buffer: inout [UInt8]
    ) {
        let start = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: BlockHeader.byteCount))
        unsafe buffer.append(contentsOf: payload.buffer)
        let padded = LogSegment.rounded(payload.count)
        buffer.append(contentsOf: repeatElement(0, count: padded - payload.count))
        let header = BlockHeader(
            storedCount: padded, mark: 0, segment: number, kind: kind, epoch: epoch)
        unsafe buffer.withUnsafeMutableBytes {
            unsafe header.seal(at: $0.baseAddress! + start, identity)
        }
    }

    private func flush(
        _ buffer: inout [UInt8], _ written: inout UInt64, to file: any StorageFile
    ) throws(StoreError) {
        let offset = written
        try buffer.withBytes { (view) throws(StoreError) in
            try unsafe file.write(view.buffer, at: offset)
        }
        written += UInt64(buffer.count)
        wrote(buffer.count)
        buffer.removeAll(keepingCapacity: true)
    }
}

extension LogSegment {
    /// When the log was made, from which the times of its entries count.
    var madeAt: UInt64 {
        unsafe UInt64(littleEndian: timeBase.loadUnaligned(as: UInt64.self))
    }
}

extension ByteView {
    /// The first bytes.
    func prefix(_ byteCount: Int) -> ByteView {
        unsafe ByteView(base: base, count: min(count, byteCount))
    }
}
