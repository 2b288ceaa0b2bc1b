/// Walks over the operations of a store, segment by segment. Not for two threads at once.
public final class OperationCursor {
    private enum Source {
        case sealed(SealedSegment, SegmentParts)
        /// With the bytes of its log that count.
        case log(Memtable, byteCount: Int)
    }

    private var sources: ArraySlice<Source>
    private let engine: Engine
    /// The name that was asked for last: mostly the next operation is of the same dataset.
    private var known: (id: DatasetID, name: String) = (0, "")
    private let dataset: String?
    /// Of the current source, read ahead block by block.
    private var ready: ArraySlice<LogOperation> = []
    private var changeRows = 0..<0
    private var sealed: (segment: SealedSegment, parts: SegmentParts)?
    private var scanner: LogScanner?
    private var log: Memtable?
    /// Bytes of the files that the walk leads through, and of those that it has begun with.
    package let bytesTotal: UInt64
    package private(set) var bytesBegun: UInt64 = 0

    init(
        _ view: ReadView, of engine: Engine, dataset: String?,
        fileIs isWanted: (String) -> Bool
    ) throws(StoreError) {
        var sealed: [Source] = []
        for segment in view.segments.reversed()
        where isWanted(FileName.sealed(segment.number)) {
            sealed.append(.sealed(segment, try segment.parts()))
        }
        let logs = engine.withLock { held in
            view.memtables.reversed().filter { isWanted(FileName.log($0.log.number)) }
                .map { Source.log($0, byteCount: $0.log.appended) }
        }
        let all = sealed + logs
        bytesTotal = all.reduce(0) { $0 + OperationCursor.byteCount(of: $1) }
        sources = all[...]
        self.engine = engine
        self.dataset = dataset
    }

    /// The next operation, or nil at the end.
    ///
    /// - Throws: `corruption` with file and offset, `inputOutput`.
    public func next() throws(StoreError) -> LogOperation? {
        while true {
            if let operation = ready.popFirst() {
                if let dataset, operation.dataset != dataset { continue }
                return operation
            }
            if let sealed, let row = changeRows.popFirst() {
                ready = try operations(of: row, in: sealed.segment, sealed.parts)[...]
            } else if let memtable = log, let block = scanner?.next() {
                ready = try operations(of: block.payload, at: block.offset, in: memtable)[...]
            } else {
                guard let source = sources.popFirst() else { return nil }
                open(source)
            }
        }
    }

    private static func byteCount(of source: Source) -> UInt64 {
        switch source {
        case .sealed(let segment, _): segment.fileSize
        case .log(_, let byteCount): UInt64(byteCount)
        }
    }

    private func open(_ source: Source) {
        bytesBegun += Self.byteCount(of: source)
        sealed = nil
        log = nil
        switch source {
        case .sealed(let segment, let parts):
            sealed = (segment, parts)
            changeRows = 0..<parts.changeBlockCount
        case .log(let memtable, let byteCount):
            log = memtable
            scanner = LogScanner(
                memtable.log.bytes(through: byteCount), segment: memtable.log.number,
                memtable.log.identity)
        }
    }

    private func operations(
        of row: Int, in segment: SealedSegment, _ parts: SegmentParts
    ) throws(StoreError) -> [LogOperation] {
        var operations: [LogOperation] = []
        for change in try parts.changes(parts.changeRow(row)) {
            try parts.withEntry(of: change) { (entry) throws(StoreError) in
                operations.append(
                    try operation(
                        entry, parts.tables, file: FileName.sealed(segment.number),
                        offset: parts.directory.offset(of: change.place.block)))
            }
        }
        return operations
    }

    private func operation(
        _ entry: Entry, _ tables: VersionTables, file: String, offset: UInt64
    ) throws(StoreError) -> LogOperation {
        if known.id != entry.dataset {
            let name = try engine.withState(numbered: entry.dataset) { $1?.name }
            known = (entry.dataset, name ?? "(deleted dataset \(entry.dataset))")
        }
        return LogOperation(
            kind: entry.kind == .put ? .put : .delete, segment: file, offset: offset,
            dataset: known.name, key: entry.key.array,
            syncCount: SyncCount(rawValue: entry.syncCount),
            version: tables.version(of: entry), valueBytes: entry.valueCount,
            expiresAt: entry.hasExpiry ? entry.expiresAt : nil)
    }

    private func operations(
        of payload: ByteView, at offset: Int, in memtable: Memtable
    ) throws(StoreError) -> [LogOperation] {
        var operations: [LogOperation] = []
        var reader = LogItemReader(payload, of: memtable.log)
        while let item = try reader.next(
            originCount: memtable.tables.originCount, at: offset, of: memtable.log)
        {
            if let operation = try operation(item, at: UInt64(offset), in: memtable) {
                operations.append(operation)
            }
        }
        return operations
    }

    private func operation(
        _ item: LogItem, at offset: UInt64, in memtable: Memtable
    ) throws(StoreError) -> LogOperation? {
        let file = FileName.log(memtable.log.number)
        switch item {
        case .replica, .vector, .author, .origin, .dated:
            return nil
        case .entry(let entry, _):
            return try operation(entry, memtable.tables, file: file, offset: offset)
        case .dataset(_, let isVisible, let name, let lifecycle):
            return LogOperation(
                kind: isVisible ? .datasetCreated : .datasetDeleted, segment: file,
                offset: offset, dataset: name,
                detail: "at \(lifecycle.time), wiped \(lifecycle.wiped)")
        case .checkpoint(let name, let peer, let checkpoint):
            return LogOperation(
                kind: .peerCheckpoint, segment: file, offset: offset, dataset: name,
                detail: "\(peer.shortDescription) pulled through \(checkpoint.pulledThrough), "
                    + "pushed through \(checkpoint.pushedThrough)")
        case .seen(let name, let vector):
            return LogOperation(
                kind: .vectorJoined, segment: file, offset: offset, dataset: name,
                detail: "seen \(vector)")
        case .renamed(let id):
            return LogOperation(
                kind: .replicaRenamed, segment: file, offset: offset, dataset: "",
                detail: "now \(id)")
        case .copied(let id):
            return LogOperation(
                kind: .replicaRenamed, segment: file, offset: offset, dataset: "",
                detail: "now \(id), in copied files")
        case .adopted(let name, let adopted):
            return LogOperation(
                kind: .datasetAdopted, segment: file, offset: offset, dataset: name,
                syncCount: SyncCount(rawValue: adopted.syncCount),
                detail: "seen \(adopted.vector)")
        case .disowned(let name, let id, let isSettled):
            return LogOperation(
                kind: .replicaDisowned, segment: file, offset: offset, dataset: name,
                detail: "\(id)\(isSettled ? ", and settled" : "")")
        case .forgotten(let name, let deletions):
            return LogOperation(
                kind: .deletionsForgotten, segment: file, offset: offset, dataset: name,
                detail: "up to \(deletions.time), seen \(deletions.vector)")
        case .retired(let name, let peer):
            return LogOperation(
                kind: .peerRetired, segment: file, offset: offset, dataset: name,
                detail: peer.description)
        }
    }
}
