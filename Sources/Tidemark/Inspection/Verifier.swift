/// Checks files block by block: checksums first, then that what they hold fits together.
struct Verifier {
    private(set) var report = VerificationReport()
    private let progress: ((VerificationProgress) -> Void)?

    init(progress: ((VerificationProgress) -> Void)?) {
        self.progress = progress
    }

    /// Checks the files of one moment.
    ///
    /// - Throws: `inputOutput` if something could not be read now and is not known to be damaged.
    mutating func check(
        _ segments: [SealedSegment], _ logs: [VerifiedLog], _ manifest: Manifest, threads: Int
    ) throws(StoreError) {
        try requireAttempt()
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
        try requireAttempt()
        report.damages = Self.eachPlaceOnce(report.damages)
    }

    /// What only this attempt could not read is no damage: then there is nothing to report.
    private func requireAttempt() throws(StoreError) {
        if let failure = report.damages.first(where: \.isOfEnvironment) { throw failure }
    }

    /// In the order of files and offsets, whoever was faster. One and the same damage is met by
    /// whoever follows an entry, an index or a handle to it, and told of once.
    private static func eachPlaceOnce(_ damages: [StoreError]) -> [StoreError] {
        var places: Set<StoreError.Location> = []
        return damages.sorted(by: comesBefore).filter { damage in
            damage.location.map { places.insert($0).inserted } ?? true
        }
    }

    private static func comesBefore(_ left: StoreError, _ right: StoreError) -> Bool {
        let (path, otherPath) = (left.location?.path ?? "", right.location?.path ?? "")
        guard path == otherPath else { return path < otherPath }
        // The whole file comes before any part of it.
        let (offset, otherOffset) = (left.location?.offset, right.location?.offset)
        guard offset == otherOffset else {
            guard let offset else { return true }
            return otherOffset.map { offset < $0 } ?? false
        }
        return left.message < right.message
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
        try verifier.check(segments, logs, manifest, threads: threads)
        return verifier.report
    }

    private mutating func openSegments(
        of manifest: Manifest, in path: String, storage: any Storage
    ) -> [SealedSegment] {
        let cache = BlockCache(bytesMax: 0)
        let valueFiles = ValueFiles(identity: manifest.identity, storage: storage)
        var segments: [SealedSegment] = []
        for entry in manifest.segments {
            Self.noteErrors(&report) { () throws(StoreError) in
                let file = "\(path)/\(FileName.sealed(entry.number))"
                let segment: SealedSegment
                do throws(StoreError) {
                    segment = try SealedSegment(
                        number: entry.number, path: file, identity: manifest.identity,
                        storage: storage,
                        cache: cache, valueFiles: valueFiles)
                } catch let error where error.code == .notAStore {
                    throw Malformed("a segment that the manifest names is missing or no segment")
                        .error(in: file, at: nil)
                }
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
                    opening: "\(path)/\(name)", number: number,
                    identity: manifest.identity, isReadOnly: true, storage: storage)
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
        do throws(StoreError) {
            let manifest = try Manifest.read(in: directory, storage: storage)
            report.blocksChecked += 1
            return manifest
        } catch {
            guard error.code == .corruption || error.code == .inputOutput, !error.isOfEnvironment
            else { throw error }
            report.damages.append(error)
            return nil
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
