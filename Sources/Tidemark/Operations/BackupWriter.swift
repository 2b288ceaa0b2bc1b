/// Puts the files of one moment of a store into another directory: as a backup, or as a store.
///
/// Order of what is done, and what a crash leaves behind: the mark; segments, value files and logs,
/// each under a temporary name until it is whole and durable; the directory; the manifest, which
/// makes a backup of it all in one step; then what the manifest does not name is removed. At every
/// moment the manifest that is there names files that are whole, and files that none names count
/// for nothing and are used or removed by the next backup.
final class BackupWriter {
    private static let chunkBytes = 1 << 20
    private static let temporaryEnding = ".new"

    private let image: StoreImage
    private let destination: String
    private let linksFiles: Bool
    private let storage: any Storage
    private let progress: ((BackupProgress) -> Void)?
    private var report = BackupReport()
    private var bytesDone: UInt64 = 0
    private let bytesTotal: UInt64
    /// Names in the destination before anything was done.
    private var names: Set<String> = []
    /// Of the backup that is there.
    private var earlier: Manifest?

    init(
        _ image: StoreImage, to destination: String, linksFiles: Bool, storage: any Storage,
        progress: ((BackupProgress) -> Void)?
    ) {
        self.image = image
        self.destination = destination
        self.linksFiles = linksFiles
        self.storage = storage
        self.progress = progress
        bytesTotal = image.byteCount
    }

    private func path(_ name: String) -> String { "\(destination)/\(name)" }

    /// - Parameter makeDurable: called when all is copied, before any of it counts.
    func writeBackup(
        makeDurable: () throws(StoreError) -> Void
    ) throws(StoreError) -> BackupReport {
        try createDestination()
        let strangers = names.subtracting(["LOCK", BackupMark.temporaryName])
        guard strangers.isEmpty || names.contains(BackupMark.fileName) else {
            throw StoreError(
                .invalidArgument,
                "the destination is not empty and holds no backup; name another directory",
                location: StoreError.Location(path: destination))
        }
        let lock = try storage.lock(destination)
        defer { withExtendedLifetime(lock) {} }
        names = Set(try storage.listDirectory(destination))
        let identity = image.manifest.identity
        if names.contains(BackupMark.fileName) {
            try BackupMark.check(in: destination, identity: identity, storage: storage)
        } else {
            try BackupMark.write(in: destination, identity: identity, storage: storage)
        }
        if names.contains(Manifest.fileName) {
            let manifest = try Manifest.read(in: destination, storage: storage)
            guard manifest.identity == identity else { throw .otherBackup(destination) }
            earlier = manifest
        }
        let manifest = try writeFiles(adding: nil)
        try makeDurable()
        try install(manifest)
        try removeWhatIsLeft(manifest)
        return report
    }

    /// - Parameter id: the new one of the store.
    func writeRestored(
        as id: ReplicaID, makeDurable: () throws(StoreError) -> Void
    ) throws(StoreError) -> BackupReport {
        try createDestination()
        guard names.subtracting(["LOCK"]).isEmpty else { throw .notEmpty(destination) }
        let lock = try storage.lock(destination)
        defer { withExtendedLifetime(lock) {} }
        names = Set(try storage.listDirectory(destination))
        guard names.subtracting(["LOCK"]).isEmpty else { throw .notEmpty(destination) }
        var item = ByteWriter()
        StateItem.copied(id).write(to: &item)
        let manifest = try writeFiles(adding: item.bytes)
        try makeDurable()
        try install(manifest)
        return report
    }

    private func createDestination() throws(StoreError) {
        guard !destination.isEmpty else {
            throw StoreError(.invalidArgument, "the destination has no name; name a directory")
        }
        names = Set(try storage.provideDirectory(destination))
    }

    private func install(_ manifest: Manifest) throws(StoreError) {
        // All names are durable before the one that gives them their meaning.
        try storage.syncDirectory(destination)
        try manifest.write(in: destination, storage: storage)
    }

    private func advance(by bytes: UInt64) {
        bytesDone = min(bytesDone + bytes, bytesTotal)
        progress?(BackupProgress(bytesDone: bytesDone, bytesTotal: bytesTotal))
    }

    // MARK: - Files

    /// Segments, value files and logs. Returns the manifest that names them.
    private func writeFiles(adding extra: [UInt8]?) throws(StoreError) -> Manifest {
        // Links first: compaction may remove the names of segments at any time, after which they
        // can only be copied.
        var copies: [SealedFile] = []
        let files =
            image.view.segments.map { SealedFile($0) }
            + image.view.valueFiles.map { SealedFile($0) }
        for file in files {
            report.bytesTotal += file.fileSize
            guard try !linkOrKeep(file) else { continue }
            copies.append(file)
        }
        for file in copies {
            try copy(file)
        }
        return try writeLogs(adding: extra)
    }

    /// False if the file must be copied.
    private func linkOrKeep(_ sealed: SealedFile) throws(StoreError) -> Bool {
        let name = sealed.name
        if names.contains(name) {
            if try isSame(sealed, as: path(name)) {
                report.filesKept += 1
                advance(by: sealed.fileSize)
                return true
            }
            guard try !isOfEarlier(sealed) else {
                throw StoreError(
                    .invalidArgument,
                    "the destination holds a backup of another line of this store, whose "
                        + "\(name) is another; name another directory",
                    location: StoreError.Location(path: path(name)))
            }
            try storage.remove(path(name))
        }
        guard linksFiles, try storage.link(sealed.path, to: path(name)) else { return false }
        report.filesLinked += 1
        advance(by: sealed.fileSize)
        return true
    }

    /// Whether the earlier backup needs what it has under the name of a file.
    private func isOfEarlier(_ sealed: SealedFile) throws(StoreError) -> Bool {
        guard let earlier else { return false }
        guard sealed.isValueFile else {
            return earlier.segments.contains { $0.number == sealed.number }
        }
        // Which value files it has its segments say.
        let open = ValueFiles(identity: earlier.identity, storage: storage)
        let cache = BlockCache(bytesMax: 0)
        for entry in earlier.segments {
            let segment = try SealedSegment(
                number: entry.number, path: path(FileName.sealed(entry.number)),
                identity: earlier.identity, storage: storage, cache: cache, valueFiles: open)
            if segment.values.table[sealed.number] != nil { return true }
        }
        return false
    }

    /// Whether a file is the one that is to be there: see ``SealedFile/identity``.
    private func isSame(_ sealed: SealedFile, as path: String) throws(StoreError) -> Bool {
        let file = try storage.openFile(path, .read)
        guard try file.size() == sealed.fileSize else { return false }
        for (offset, count) in sealed.identity {
            let ours = unsafe try Block(count: count) { (memory) throws(StoreError) in
                try unsafe sealed.file.read(into: memory, at: offset)
            }
            let theirs = unsafe try Block(count: count) { (memory) throws(StoreError) in
                try unsafe file.read(into: memory, at: offset)
            }
            guard ours.bytes.equals(theirs.bytes) else { return false }
        }
        return true
    }

    /// Copies by the open file, which is there even if its name is gone.
    private func copy(_ sealed: SealedFile) throws(StoreError) {
        try writeWhole(sealed.name) { (file) throws(StoreError) in
            var offset: UInt64 = 0
            while offset < sealed.fileSize {
                let count = Int(min(UInt64(Self.chunkBytes), sealed.fileSize - offset))
                let chunk = unsafe try Block(count: count) { (memory) throws(StoreError) in
                    try unsafe sealed.file.read(into: memory, at: offset)
                }
                try unsafe file.write(chunk.bytes.buffer, at: offset)
                offset += UInt64(count)
                report.bytesCopied += UInt64(count)
                advance(by: UInt64(count))
            }
            try file.sync()
        }
    }

    /// Writes a file under a temporary name, which it loses when it is whole and durable.
    private func writeWhole(
        _ name: String, _ body: (any StorageFile) throws(StoreError) -> Void
    ) throws(StoreError) {
        let temporary = path(name + Self.temporaryEnding)
        do throws(StoreError) {
            try body(try storage.openFile(temporary, .create))
        } catch {
            // The space may be what is missing; if this fails, too, the first failure says more.
            try? storage.remove(temporary)
            throw error
        }
        try storage.rename(temporary, to: path(name))
        report.filesCopied += 1
    }

    // MARK: - Logs

    private func writeLogs(adding extra: [UInt8]?) throws(StoreError) -> Manifest {
        var manifest = image.manifest
        var number = firstLogNumber
        var previous: UInt64 = 0
        var sources: [(log: LogSegment, byteCount: Int)?] = image.logs.map { $0 }
        if sources.isEmpty { sources.append(nil) }
        manifest.oldestLog = number
        while !sources.isEmpty {
            let source = sources.removeFirst()
            let isLast = sources.isEmpty
            let copy = LogCopy(
                number: number, previous: previous, identity: manifest.identity,
                wrote: { [self] count in
                    report.bytesCopied += UInt64(count)
                    advance(by: UInt64(count))
                })
            var result = LogCopy.Result(contentEnd: 0, fileSize: 0, isEnded: false)
            try writeWhole(FileName.log(number)) { (file) throws(StoreError) in
                result = try copy.write(
                    source, adding: isLast ? extra : nil, to: file, storage: storage)
            }
            report.bytesTotal += result.fileSize
            manifest.closedLog = number
            manifest.closedAt = result.contentEnd
            manifest.closedSize = result.fileSize
            // Nothing can be added to a log that has ended: another one follows it.
            if isLast, result.isEnded, extra != nil { sources.append(nil) }
            previous = number
            number += 1
        }
        manifest.nextNumber = max(manifest.nextNumber, number)
        return manifest
    }

    /// Greater than that of any log that is or was in the destination; and not less than it was
    /// in the store, since the states of datasets are told apart by the log that they are from.
    private var firstLogNumber: UInt64 {
        var number = max(1, image.manifest.oldestLog, image.logs.last?.log.number ?? 0)
        if let earlier { number = max(number, earlier.closedLog + 1, earlier.oldestLog + 1) }
        for name in names {
            if let other = FileName.number(in: name, ending: ".log") {
                number = max(number, other + 1)
            }
        }
        return number
    }

    /// Files of earlier backups, finished or not.
    private func removeWhatIsLeft(_ manifest: Manifest) throws(StoreError) {
        let live = Set(manifest.segments.map(\.number))
        let values = Set(image.view.valueFiles.map(\.number))
        var isChanged = false
        for name in names {
            let isOldSegment =
                FileName.number(in: name, ending: ".seg").map { !live.contains($0) } ?? false
            let isOldValueFile =
                FileName.number(in: name, ending: ".val").map { !values.contains($0) } ?? false
            let isOldLog =
                FileName.number(in: name, ending: ".log").map { $0 < manifest.oldestLog } ?? false
            let isTemporary = name.hasSuffix(Self.temporaryEnding)
            let isOld = isOldSegment || isOldValueFile || isOldLog
            guard isOld || isTemporary else { continue }
            try storage.remove(path(name))
            isChanged = true
            if isOld { report.filesRemoved += 1 }
        }
        if isChanged { try storage.syncDirectory(destination) }
    }
}
