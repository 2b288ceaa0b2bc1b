/// Checks files block by block: checksums first, then that what they hold fits together.
struct Verifier {
    private(set) var report = VerificationReport()
    private let bytesTotal: UInt64
    private let progress: ((VerificationProgress) -> Void)?

    init(bytesTotal: UInt64, progress: ((VerificationProgress) -> Void)?) {
        self.bytesTotal = bytesTotal
        self.progress = progress
    }

    static func check(
        storeAt path: String, storage: any Storage,
        progress: ((VerificationProgress) -> Void)?
    ) throws(StoreError) -> VerificationReport {
        let names = try storage.listDirectory(path).sorted()
        guard names.contains(Manifest.fileName) else { throw .notAStore(path) }
        var total: UInt64 = 0
        for name in names where name.hasSuffix(".seg") || name.hasSuffix(".log") {
            total += try storage.openFile("\(path)/\(name)", .read).size()
        }
        var verifier = Verifier(bytesTotal: total, progress: progress)
        guard let manifest = try verifier.readManifest(in: path, storage: storage) else {
            return verifier.report
        }
        let cache = BlockCache(bytesMax: 0)
        for entry in manifest.segments {
            do {
                let file = "\(path)/\(FileName.sealed(entry.number))"
                let segment = try SealedSegment(
                    number: entry.number, path: file, tag: manifest.tag, storage: storage,
                    cache: cache)
                if segment.fileSize != entry.fileSize {
                    verifier.note(
                        Malformed("the manifest says \(entry.fileSize) bytes")
                            .error(in: file, at: segment.fileSize))
                }
                verifier.check(segment)
            } catch {
                verifier.note(error)
            }
        }
        for name in names {
            guard let number = FileName.number(in: name, ending: ".log"),
                number >= manifest.oldestLog
            else { continue }
            do {
                let log = try LogSegment(
                    opening: "\(path)/\(name)", number: number, isReadOnly: true,
                    storage: storage)
                if number == manifest.oldestLog, log.reserved < FileHeader.byteCount {
                    verifier.note(
                        Malformed("the log is cut short").error(
                            in: log.path, at: UInt64(log.capacity)))
                } else {
                    verifier.check(log, manifest)
                }
            } catch {
                verifier.note(error)
            }
        }
        return verifier.report
    }

    // MARK: - Manifest

    mutating func checkManifest(in directory: String, storage: any Storage) {
        do {
            _ = try readManifest(in: directory, storage: storage)
        } catch {
            note(error)
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
            note(error)
            return nil
        }
    }

    // MARK: - Sealed segments

    mutating func check(_ segment: SealedSegment) {
        report.filesChecked += 1
        do throws(StoreError) {
            let parts = try segment.parts()
            var offset = UInt64(FileHeader.byteCount)
            for place in parts.contentPlaces() {
                guard place.offset >= offset else {
                    throw Malformed("blocks do not follow on one another")
                        .error(in: segment.path, at: offset)
                }
                noteErrors { () throws(StoreError) in
                    if place.offset > offset { try parts.checkPadding(offset..<place.offset) }
                    try parts.check(place)
                }
                offset = place.offset + place.byteCount
                advance(by: place.byteCount)
            }
            let end = segment.fileSize - UInt64(SegmentFooter.byteCount)
            if offset != end { try parts.checkPadding(offset..<max(offset, end)) }
            advance(by: UInt64(FileHeader.byteCount + SegmentFooter.byteCount), blocks: 0)
        } catch {
            note(error)
        }
    }

    // MARK: - Logs

    mutating func check(_ log: LogSegment, _ manifest: Manifest) {
        let isAsClosed = manifest.closedLog == log.number
        report.filesChecked += 1
        let head = unsafe ByteView(
            base: log.bytes.base, count: min(log.reserved, FileHeader.byteCount))
        // A log that was prepared and never begun holds nothing yet.
        if head.array.allSatisfy({ $0 == 0 }) {
            var behind = LogScanner(log.bytes, segment: log.number, from: 0)
            behind.lookBehindEnd()
            if behind.markMax > 0 {
                note(
                    Malformed("the header of a log with durable blocks is missing")
                        .error(in: log.path, at: 0))
            }
            return
        }
        noteErrors { () throws(StoreError) in
            let header = try FileHeader(
                head, expecting: .log, segment: log.number, tag: manifest.tag,
                path: log.path)
            let sizeMin = isAsClosed ? manifest.closedSize : 0
            guard UInt64(log.reserved) >= sizeMin, UInt64(log.reserved) <= header.capacity else {
                throw Malformed(
                    "the log has \(log.reserved) bytes where \(sizeMin) to "
                        + "\(header.capacity) belong"
                ).error(in: log.path, at: UInt64(log.reserved))
            }
        }
        var scanner = LogScanner(log.bytes, segment: log.number)
        let tables = VersionTables()
        while let (offset, payload) = scanner.next() {
            noteErrors { () throws(StoreError) in
                do throws(Malformed) {
                    try Self.check(payload, of: log, tables)
                } catch {
                    throw error.error(in: log.path, at: UInt64(offset))
                }
            }
            advance(by: UInt64(BlockHeader.byteCount + payload.count))
        }
        if !scanner.isEnded { scanner.lookBehindEnd() }
        let durable = max(UInt64(scanner.markMax), isAsClosed ? manifest.closedAt : 0)
        if !scanner.isEnded, durable > UInt64(scanner.offset) {
            note(
                Malformed(
                    "the block here is damaged: the log was durable up to byte \(durable)"
                ).error(in: log.path, at: UInt64(scanner.offset)))
        }
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

    private mutating func noteErrors(_ body: () throws(StoreError) -> Void) {
        do {
            try body()
        } catch {
            note(error)
        }
    }

    private mutating func note(_ error: StoreError) {
        report.damages.append(error)
    }

    private mutating func advance(by bytes: UInt64, blocks: Int = 1) {
        report.blocksChecked += blocks
        report.bytesChecked += bytes
        progress?(
            VerificationProgress(
                bytesChecked: report.bytesChecked, bytesTotal: max(bytesTotal, report.bytesChecked)
            ))
    }
}
