// A log is checked up to where it ends. A hole in what was durable is damage; reading goes on at
// the next whole block, so that a second hole is told of as well.

extension Verifier {
    /// - Parameter verified: with the bytes of the log that are looked at: behind them a writer may
    ///   be at work, or have given space back.
    static func check(
        _ verified: VerifiedLog, _ manifest: Manifest, _ report: inout VerificationReport
    ) {
        let log = verified.log
        let bytes = log.bytes(through: Int(verified.byteCount))
        report.filesChecked += 1
        var isCutShort = false
        do throws(StoreError) {
            guard let header = try header(of: log, bytes, manifest) else { return }
            guard header.identity == manifest.identity else {
                // None of its blocks is meant to be here.
                return report.damages.append(
                    Malformed("the log is of another store").error(in: log.path, at: 48))
            }
            if let damage = manifest.damage(ofSizeOf: log, header) {
                report.damages.append(damage)
                isCutShort = log.reserved <= Int(header.capacity)
            }
        } catch {
            report.damages.append(error)
            isCutShort = log.reserved < FileHeader.byteCount
        }
        checkBlocks(of: log, bytes, manifest, isCutShort: isCutShort, &report)
    }

    /// - Parameter isCutShort: whether the end of the file is missing, which was told: then a hole
    ///   with nothing behind it is no other damage.
    private static func checkBlocks(
        of log: LogSegment, _ bytes: ByteView, _ manifest: Manifest, isCutShort: Bool,
        _ report: inout VerificationReport
    ) {
        var scanner = LogScanner(bytes, segment: log.number, log.identity)
        check(&scanner, of: log, VersionTables(), &report)
        guard !scanner.isEnded else { return }
        scanner.lookBehindEnd()
        let isAsClosed = log.number == manifest.closedLog
        var durable = max(UInt64(scanner.markMax), isAsClosed ? manifest.closedAt : 0)
        if log.number < manifest.closedLog { durable = UInt64(log.reserved) }
        while !scanner.isEnded, durable > UInt64(scanner.offset) {
            let hole = UInt64(scanner.offset)
            let goesOn = scanner.passHole()
            if goesOn || !isCutShort {
                report.damages.append(
                    Malformed(
                        "the block here is damaged: the log was durable up to byte \(durable)"
                    ).error(in: log.path, at: hole))
            }
            guard goesOn else { return }
            check(&scanner, of: log, nil, &report)
        }
    }

    /// Checks blocks up to the next hole, or the end.
    ///
    /// - Parameter tables: what the blocks before have defined; nil behind a hole, where nobody
    ///   knows.
    private static func check(
        _ scanner: inout LogScanner, of log: LogSegment, _ tables: VersionTables?,
        _ report: inout VerificationReport
    ) {
        while let (offset, payload) = scanner.next() {
            noteErrors(&report) { () throws(StoreError) in
                do throws(Malformed) {
                    try Self.check(payload, of: log, tables)
                } catch {
                    throw error.error(in: log.path, at: UInt64(offset))
                }
            }
            report.blocksChecked += 1
            report.bytesChecked += UInt64(BlockHeader.byteCount + payload.count)
        }
    }

    private static func check(
        _ payload: ByteView, of log: LogSegment, _ tables: VersionTables?
    ) throws(Malformed) {
        var reader = LogItemReader(payload, of: log)
        guard let tables else {
            while try reader.next(originCount: Int(UInt32.max)) != nil {}
            return
        }
        while let item = try reader.next(originCount: tables.originCount) {
            try tables.define(item)
        }
    }

    // MARK: - Header

    /// nil if the log was prepared and never begun: where its header belongs stand zeros, or that
    /// of the log whose file it was before. It holds nothing yet, and opening and repair pass over
    /// it, too.
    private static func header(
        of log: LogSegment, _ bytes: ByteView, _ manifest: Manifest
    ) throws(StoreError) -> FileHeader? {
        let head = bytes.prefix(FileHeader.byteCount)
        do {
            return try FileHeader(
                head, expecting: .log, segment: log.number, identity: nil, path: log.path)
        } catch let error where error.code == .corruption || error.code == .notAStore {
            guard provesDurable(log, bytes, manifest) else { return nil }
            guard head.array.contains(where: { $0 != 0 }) else {
                throw Malformed("the header of a log with durable blocks is missing")
                    .error(in: log.path, at: 0)
            }
            throw error
        }
    }

    /// As opening sees it: see `EngineState.recoverLogs()`.
    private static func provesDurable(
        _ log: LogSegment, _ bytes: ByteView, _ manifest: Manifest
    ) -> Bool {
        guard log.number != manifest.closedLog else { return true }
        var scanner = LogScanner(bytes, segment: log.number, log.identity, from: 0)
        scanner.lookBehindEnd()
        return scanner.markMax > 0
            || scanner.hasBlockBehindEnd && log.number < manifest.closedLog
    }
}
