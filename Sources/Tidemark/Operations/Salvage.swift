/// Everything whole that is left of a damaged store, and a list of what is not.
///
/// Which files count the manifest says. Without one all of them do, apart from logs that sealed
/// segments say were sealed.
///
/// A file that this process may not read, or lacks a descriptor or memory for, is no loss: it may
/// be whole, so the attempt fails as a whole, before anything is written.
final class Salvage {
    let path: String
    private let storage: any Storage
    private let progress: SalvageProgress
    /// nil if it is missing or damaged.
    private(set) var manifest: Manifest?
    /// nil if no file says it: then nothing can be known for a block of the store.
    private(set) var identity: StoreIdentity?
    private(set) var segments: [SalvagedSegment] = []
    /// Oldest first.
    private(set) var logs: [SalvagedLog] = []
    private(set) var losses: [SalvageLoss] = []
    private var names: [String] = []
    private(set) var values: SalvagedValues

    init(
        _ path: String, storage: any Storage, progress: SalvageProgress = SalvageProgress(nil)
    ) throws(StoreError) {
        self.path = path
        self.storage = storage
        self.progress = progress
        values = SalvagedValues(path, identity: nil, storage: storage)
        names = try storage.listDirectory(path).sorted()
        let files = names.filter {
            FileName.number(in: $0, ending: ".seg") != nil
                || FileName.number(in: $0, ending: ".log") != nil
        }
        guard names.contains(Manifest.fileName) || !files.isEmpty else { throw .notAStore(path) }
        try readManifest()
        progress.begin(files, in: path, storage)
        try findIdentity(files)
        values = SalvagedValues(path, identity: identity, storage: storage)
        try readSegments()
        try readLogs()
        losses += segments.flatMap(\.losses) + logs.flatMap(\.losses) + values.losses
    }

    /// One file by itself, whatever became of the rest of its store.
    ///
    /// - Throws: `notAStore` if there is no such file, or it is none that holds records;
    ///   `formatTooNew`, `inputOutput`.
    init(onlyFileAt path: String, storage: any Storage) throws(StoreError) {
        self.path = FileName.parent(of: path)
        self.storage = storage
        progress = SalvageProgress(nil)
        let found = try FileIdentity(ofFileAt: path, storage: storage)
        identity = found.store
        let file = try SalvageFile(
            found.name, number: found.number, in: self.path, identity: found.store,
            storage: storage)
        values = SalvagedValues(self.path, identity: found.store, storage: storage)
        names = [found.name]
        note(
            .manifest, found.name,
            "the file was read by itself; what other files of its store hold is not here")
        switch found.kind {
        case .sealed: segments = [try SalvagedSegment(file, values)]
        case .log:
            logs = [
                SalvagedLog(
                    file, header: found.header, durable: 0, isEndKnown: false,
                    readsOn: true)
            ]
        default: throw .holdsNoRecords(path)
        }
        losses += segments.flatMap(\.losses) + logs.flatMap(\.losses) + values.losses
    }

    var cursors: [any SalvageCursor] {
        segments.map { SalvagedSegmentCursor($0) } + logs.map { SalvagedLogCursor($0) }
    }

    private func note(
        _ kind: RepairReport.Loss.Kind, _ file: String, byteCount: UInt64 = 0, _ what: String
    ) {
        losses.append(
            SalvageLoss(
                kind: kind, file: file, offset: nil, byteCount: byteCount, datasets: nil,
                what: what))
    }

    private func readManifest() throws(StoreError) {
        do throws(StoreError) {
            manifest = try Manifest.read(in: path, storage: storage)
        } catch {
            guard !error.isOfFormat, !error.isOfEnvironment else { throw error }
            note(
                .manifest, Manifest.fileName,
                "the manifest is missing or damaged; all files that were found are used, and "
                    + "whether any is missing nobody knows")
        }
    }

    /// Of the manifest; without one, of most of the sealed segments, and then of most logs.
    private func findIdentity(_ files: [String]) throws(StoreError) {
        if let manifest {
            identity = manifest.identity
            return
        }
        var counts: [StoreIdentity: (segments: Int, logs: Int)] = [:]
        for name in files {
            guard let file = try open(name), let header = try header(of: file) else { continue }
            let isSealed = header.kind == .sealed
            counts[header.identity, default: (0, 0)].segments += isSealed ? 1 : 0
            counts[header.identity, default: (0, 0)].logs += isSealed ? 0 : 1
        }
        let likeliest = counts.max { left, right in
            (left.value.segments, left.value.logs, left.key.tag)
                < (right.value.segments, right.value.logs, right.key.tag)
        }
        identity = likeliest?.key
        if identity == nil {
            identity = try StoreIdentity.found(inDirectory: path, storage: storage)
        }
    }

    /// nil if it is missing, or the disk cannot read any of it.
    private func open(_ name: String) throws(StoreError) -> SalvageFile? {
        let ending = name.hasSuffix(".seg") ? ".seg" : ".log"
        guard let number = FileName.number(in: name, ending: ending) else { return nil }
        do throws(StoreError) {
            return try SalvageFile(
                name, number: number, in: path, identity: identity, storage: storage)
        } catch {
            guard error.code == .notAStore || error.code == .inputOutput && !error.isOfEnvironment
            else { throw error }
            return nil
        }
    }

    private func header(of file: SalvageFile) throws(StoreError) -> FileHeader? {
        try file.header(file.name.hasSuffix(".seg") ? .sealed : .log)
    }

    /// Whether a file is of another store.
    private func isForeign(_ file: SalvageFile, _ header: FileHeader?) -> Bool {
        guard let header, header.identity != identity else { return false }
        note(
            .foreignFile, file.name, byteCount: UInt64(file.byteCount),
            "the file is of another store")
        return true
    }

    private func readSegments() throws(StoreError) {
        let expected =
            manifest.map { $0.segments.map { (FileName.sealed($0.number), $0.fileSize) } }
            ?? names.filter { FileName.number(in: $0, ending: ".seg") != nil }.map { ($0, 0) }
        for (name, byteCount) in expected {
            guard let file = try open(name) else {
                note(
                    .missingFile, name, byteCount: byteCount,
                    "a sealed segment is missing or cannot be read")
                continue
            }
            guard !isForeign(file, try header(of: file)) else { continue }
            segments.append(try SalvagedSegment(file, values))
            noteCut(file, expected: byteCount)
            progress.noteRead(file.byteCount)
        }
    }

    /// What is behind the end of a segment that was cut only the manifest knows.
    private func noteCut(_ file: SalvageFile, expected byteCount: UInt64) {
        let found = UInt64(file.byteCount)
        guard found < byteCount else { return }
        losses.append(
            SalvageLoss(
                kind: .block, file: file.name, offset: found, byteCount: byteCount - found,
                datasets: nil, what: "the end of the segment is missing"))
    }

    // MARK: - Logs

    private func readLogs() throws(StoreError) {
        let oldest = manifest?.oldestLog ?? lastSealedLog + 1
        var files: [(file: SalvageFile, header: FileHeader?)] = []
        for name in names {
            guard let number = FileName.number(in: name, ending: ".log"), number >= oldest
            else { continue }
            guard let file = try open(name) else {
                note(.missingFile, name, "a log cannot be read")
                continue
            }
            let header = try header(of: file)
            if !isForeign(file, header) { files.append((file, header)) }
        }
        noteMissing(among: files)
        let closed = manifest?.closedLog ?? 0
        var isCut = false
        for (index, (file, header)) in files.enumerated() {
            let isProven =
                file.number < closed
                || files[(index + 1)...].contains { SalvagedLog.markMax(of: $0.file) > 0 }
            let durable: UInt64 =
                isProven ? .max : (file.number == closed ? manifest?.closedAt ?? 0 : 0)
            // Behind a log that was cut nothing was durable, or the cut would be damage.
            guard !isCut else { break }
            let log = SalvagedLog(
                file, header: header, durable: durable, isEndKnown: manifest != nil)
            if file.identity == nil, !file.isAllZeros {
                note(
                    .block, file.name, byteCount: UInt64(file.byteCount),
                    "no file of the store tells its secret, without which nothing in the log can "
                        + "be known for its own")
            }
            // A log that was prepared and never begun has no block of its own.
            if log.isEmpty, header == nil, file.number != closed { continue }
            isCut = log.isCut
            logs.append(log)
            progress.noteRead(file.byteCount)
        }
    }

    /// The last log of which a sealed segment is known.
    private var lastSealedLog: UInt64 {
        var last: UInt64 = 0
        for segment in segments {
            let cursor = SalvagedSegmentCursor(segment)
            while let entry = cursor.entry, entry.dataset == 0 {
                last = max(last, entry.syncCount)
                cursor.advance()
            }
        }
        return last
    }

    private func noteMissing(among files: [(file: SalvageFile, header: FileHeader?)]) {
        var missing: Set<UInt64> = []
        let found = Set(files.map(\.file.number))
        if let manifest {
            if manifest.oldestLog > 0 { missing.insert(manifest.oldestLog) }
            if manifest.closedLog >= manifest.oldestLog, manifest.closedLog > 0 {
                missing.insert(manifest.closedLog)
            }
        }
        for (file, header) in files {
            guard let previous = header?.previousLog, previous >= manifest?.oldestLog ?? 0,
                previous > 0, previous > lastSealedLog, file.number != manifest?.oldestLog
            else { continue }
            missing.insert(previous)
        }
        for number in missing.subtracting(found).sorted() {
            note(.missingFile, FileName.log(number), "a log is missing")
        }
    }
}
