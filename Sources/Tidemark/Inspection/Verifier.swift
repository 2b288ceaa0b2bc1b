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
                if number == manifest.oldestLog, log.capacity < Limits.segmentBytes.lowerBound {
                    verifier.note(
                        Malformed("the log is cut short").error(
                            in: log.path, at: UInt64(log.capacity)))
                } else {
                    verifier.check(log, tag: manifest.tag)
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
            let parts = try segment.loadedParts()
            let places = try segment.contentPlaces(parts)
            var offset = UInt64(FileHeader.byteCount)
            for place in places {
                guard place.handle.offset == offset else {
                    throw Malformed("blocks do not follow on one another")
                        .error(in: segment.path, at: offset)
                }
                offset = place.handle.endOffset
                noteErrors { () throws(StoreError) in
                    try segment.check(place, parts)
                }
                advance(by: place.handle.endOffset - place.handle.offset)
            }
            guard offset + UInt64(SegmentFooter.byteCount) == segment.fileSize else {
                throw Malformed("the segment has bytes between its parts")
                    .error(in: segment.path, at: offset)
            }
            advance(by: UInt64(FileHeader.byteCount + SegmentFooter.byteCount), blocks: 0)
        } catch {
            note(error)
        }
    }

    // MARK: - Logs

    mutating func check(_ log: LogSegment, tag: UInt64) {
        report.filesChecked += 1
        let head = unsafe ByteView(
            base: log.bytes.base, count: min(log.capacity, FileHeader.byteCount))
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
                head, expecting: .log, segment: log.number, tag: tag, path: log.path)
            guard header.capacity == UInt64(log.capacity) else {
                throw Malformed("the log has \(log.capacity) bytes, and had \(header.capacity)")
                    .error(in: log.path, at: UInt64(log.capacity))
            }
        }
        var scanner = LogScanner(log.bytes, segment: log.number)
        let tables = VersionTables()
        while let (offset, payload) = scanner.next() {
            noteErrors { () throws(StoreError) in
                do throws(Malformed) {
                    try Self.check(payload, tables)
                } catch {
                    throw error.error(in: log.path, at: UInt64(offset))
                }
            }
            advance(by: UInt64(BlockHeader.byteCount + payload.count))
        }
        if !scanner.isEnded { scanner.lookBehindEnd() }
        if scanner.isDamaged {
            note(
                Malformed(
                    "the block here is damaged: the log was durable up to byte "
                        + "\(scanner.markMax)"
                ).error(in: log.path, at: UInt64(scanner.offset)))
        }
    }

    private static func check(
        _ payload: ByteView, _ tables: VersionTables
    ) throws(Malformed) {
        var reader = LogItemReader(payload)
        while let item = try reader.next() {
            switch item {
            case .replica, .vector, .author:
                try tables.define(item)
            case .entry(let entry):
                guard
                    tables.covers(
                        replica: entry.replica, vector: entry.vector, author: entry.author)
                else { throw Malformed("an operation names what was not defined") }
            case .dataset, .checkpoint, .seen, .renamed:
                break
            }
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
