/// Checks files block by block: checksums first, then that what they hold fits together.
struct Verifier {
    private(set) var report = VerificationReport()
    private let progress: ((VerificationProgress) -> Void)?

    init(progress: ((VerificationProgress) -> Void)?) {
        self.progress = progress
    }

    /// Checks the files of one moment.
    mutating func check(
        _ segments: [SealedSegment], _ logs: [VerifiedLog], _ manifest: Manifest, threads: Int
    ) {
        // Their headers were checked when they were opened, their values are with their keys.
        let valueFiles = Set(segments.flatMap { $0.values.files.map(\.number) })
        report.filesChecked += valueFiles.count
        report.bytesChecked += UInt64(FileHeader.byteCount * valueFiles.count)
        let (before, progress) = (report.bytesChecked, progress)
        let work = VerificationWork(segments, logs, manifest)
        work.run(threads: threads, into: &report) { bytes in
            progress?(
                VerificationProgress(
                    bytesChecked: before + bytes, bytesTotal: before + work.bytesTotal))
        }
    }

    static func check(
        storeAt path: String, storage: any Storage, threads: Int,
        progress: ((VerificationProgress) -> Void)?
    ) throws(StoreError) -> VerificationReport {
        let names = try storage.listDirectory(path).sorted()
        guard names.contains(Manifest.fileName) else { throw .notAStore(path) }
        var verifier = Verifier(progress: progress)
        guard let manifest = try verifier.readManifest(in: path, storage: storage) else {
            return verifier.report
        }
        let segments = verifier.openSegments(of: manifest, in: path, storage: storage)
        let logs = verifier.openLogs(names, of: manifest, in: path, storage: storage)
        verifier.check(segments, logs, manifest, threads: threads)
        return verifier.report
    }

    private mutating func openSegments(
        of manifest: Manifest, in path: String, storage: any Storage
    ) -> [SealedSegment] {
        let cache = BlockCache(bytesMax: 0)
        let valueFiles = ValueFiles(tag: manifest.tag, storage: storage)
        var segments: [SealedSegment] = []
        for entry in manifest.segments {
            Self.noteErrors(&report) { () throws(StoreError) in
                let file = "\(path)/\(FileName.sealed(entry.number))"
                let segment = try SealedSegment(
                    number: entry.number, path: file, tag: manifest.tag, storage: storage,
                    cache: cache, valueFiles: valueFiles)
                segments.append(segment)
                guard segment.fileSize == entry.fileSize else {
                    throw Malformed("the manifest says \(entry.fileSize) bytes")
                        .error(in: file, at: segment.fileSize)
                }
            }
        }
        return segments
    }

    private mutating func openLogs(
        _ names: [String], of manifest: Manifest, in path: String, storage: any Storage
    ) -> [VerifiedLog] {
        var logs: [VerifiedLog] = []
        var missing: Set<UInt64> = []
        if manifest.oldestLog > 0 { missing = [manifest.oldestLog] }
        if manifest.closedLog > 0, manifest.closedLog >= manifest.oldestLog {
            missing.insert(manifest.closedLog)
        }
        for name in names {
            guard let number = FileName.number(in: name, ending: ".log"),
                number >= manifest.oldestLog
            else { continue }
            missing.remove(number)
            Self.noteErrors(&report) { () throws(StoreError) in
                let log = try LogSegment(
                    opening: "\(path)/\(name)", number: number, isReadOnly: true,
                    storage: storage)
                guard number != manifest.oldestLog || log.reserved >= FileHeader.byteCount else {
                    throw Malformed("the log is cut short").error(
                        in: log.path, at: UInt64(log.capacity))
                }
                logs.append((log, UInt64(log.reserved)))
            }
        }
        for number in missing.sorted() {
            report.damages.append(
                Malformed("a log is missing").error(
                    in: "\(path)/\(FileName.log(number))", at: nil))
        }
        return logs
    }

    // MARK: - Manifest

    mutating func checkManifest(in directory: String, storage: any Storage) {
        do {
            _ = try readManifest(in: directory, storage: storage)
        } catch {
            report.damages.append(error)
        }
    }

    /// nil if it is damaged, which is noted.
    private mutating func readManifest(
        in directory: String, storage: any Storage
    ) throws(StoreError) -> Manifest? {
        report.filesChecked += 1
        do {
            let manifest = try Manifest.read(in: directory, storage: storage)
            report.blocksChecked += 1
            return manifest
        } catch let error where error.code == .corruption || error.code == .inputOutput {
            report.damages.append(error)
            return nil
        }
    }

    // MARK: - Logs

    static func check(
        _ log: LogSegment, _ manifest: Manifest, _ report: inout VerificationReport
    ) {
        report.filesChecked += 1
        do throws(StoreError) {
            guard try isBegun(log, manifest) else { return }
        } catch {
            report.damages.append(error)
        }
        var scanner = LogScanner(log.bytes, segment: log.number)
        let tables = VersionTables()
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
        if !scanner.isEnded { scanner.lookBehindEnd() }
        let isAsClosed = log.number == manifest.closedLog
        var durable = max(UInt64(scanner.markMax), isAsClosed ? manifest.closedAt : 0)
        if log.number < manifest.closedLog { durable = UInt64(log.reserved) }
        if !scanner.isEnded, durable > UInt64(scanner.offset) {
            report.damages.append(
                Malformed(
                    "the block here is damaged: the log was durable up to byte \(durable)"
                ).error(in: log.path, at: UInt64(scanner.offset)))
        }
    }

    /// Checks the header of a log. False if the log was prepared and never begun: where its header
    /// belongs stand zeros, or that of the log whose file it was before. It holds nothing yet, and
    /// opening and repair pass over it, too.
    private static func isBegun(
        _ log: LogSegment, _ manifest: Manifest
    ) throws(StoreError) -> Bool {
        let head = unsafe ByteView(
            base: log.bytes.base, count: min(log.reserved, FileHeader.byteCount))
        let header: FileHeader
        do {
            header = try FileHeader(
                head, expecting: .log, segment: log.number, tag: nil, path: log.path)
        } catch let error where error.code == .corruption || error.code == .notAStore {
            guard provesDurable(log, manifest) else { return false }
            guard head.array.contains(where: { $0 != 0 }) else {
                throw Malformed("the header of a log with durable blocks is missing")
                    .error(in: log.path, at: 0)
            }
            throw error
        }
        try manifest.check(log, header)
        return true
    }

    /// As opening sees it: see `Engine.recoverLogs()`.
    private static func provesDurable(_ log: LogSegment, _ manifest: Manifest) -> Bool {
        guard log.number != manifest.closedLog else { return true }
        var scanner = LogScanner(log.bytes, segment: log.number, from: 0)
        scanner.lookBehindEnd()
        return scanner.markMax > 0
            || scanner.hasBlockBehindEnd && log.number < manifest.closedLog
    }

    private static func check(
        _ payload: ByteView, of log: LogSegment, _ tables: VersionTables
    ) throws(Malformed) {
        var reader = LogItemReader(payload, of: log)
        while let item = try reader.next(originCount: tables.originCount) {
            try tables.define(item)
        }
    }

    // MARK: - Notes

    static func noteErrors(
        _ report: inout VerificationReport, _ body: () throws(StoreError) -> Void
    ) {
        do {
            try body()
        } catch {
            report.damages.append(error)
        }
    }
}
