/// Something whole in a single file of a store.
public enum SalvagedItem: Hashable, Sendable {
    case record(SalvagedRecord)
    /// A large value, which lies without its key: that is in a segment.
    case value(SalvagedValue)
}

/// A version of a record, as ``Store/salvage(fileAt:_:)`` finds it.
public struct SalvagedRecord: Hashable, Sendable {
    /// Under which the store keeps the records of the dataset.
    public let datasetNumber: UInt32
    /// nil if the file does not tell.
    public let dataset: String?
    public let key: [UInt8]
    /// nil for a tombstone.
    public let value: [UInt8]?
    /// nil if it is lost.
    public let version: Version?
    public let syncCount: SyncCount
    /// In milliseconds since 1970-01-01 UTC; nil if it does not expire.
    public let expiresAt: UInt64?
    /// Whether the file has a newer version of the key, which was given before.
    public let isSuperseded: Bool
}

/// A large value by itself.
public struct SalvagedValue: Hashable, Sendable {
    /// Of its block, in bytes from the start of the file.
    public let offset: UInt64
    public let value: [UInt8]
}

/// What came of a file that was read by itself.
public struct SalvageReport: Hashable, Sendable {
    public enum FileKind: String, Hashable, Sendable, CaseIterable {
        case segment
        case log
        case values
    }

    public let kind: FileKind
    /// Of the file in its store, as far as it could be told.
    public let number: UInt64
    public internal(set) var blocksRead = 0
    public internal(set) var itemsFound = 0
    /// What is damaged in the file, and which large values are not to be had.
    public internal(set) var losses: [RepairReport.Loss] = []
}

extension Store {
    /// Reads one file of a store by itself, a segment, a log or a value file, and gives everything
    /// in it that is whole, whatever became of the manifest and of all other files.
    ///
    /// Versions come dataset by dataset and key by key, the newest first; of a log also such as
    /// were never durable, and were cut off when the store was opened. Large values are read from
    /// the value files in the same directory. O(bytes of the file); of a log it takes memory for
    /// each entry.
    ///
    /// - Parameter body: called for each.
    /// - Throws: `notAStore` if there is no such file, or it is none that holds records;
    ///   `formatTooNew`, `inputOutput`, and what the body throws.
    public static func salvage(
        fileAt path: String, _ body: (SalvagedItem) throws -> Void
    ) throws -> SalvageReport {
        try salvage(fileAt: path, storage: SystemStorage(), body)
    }

    /// The same behind any make of the door to the operating system.
    package static func salvage(
        fileAt path: String, storage: any Storage, _ body: (SalvagedItem) throws -> Void
    ) throws -> SalvageReport {
        let identity = try FileIdentity(ofFileAt: path, storage: storage)
        if identity.kind == .values {
            return try SalvagedValueFile(path, identity, storage: storage).give(to: body)
        }
        let salvage = try Salvage(onlyFileAt: path, storage: storage)
        let states = SalvagedStates(salvage)
        var report = SalvageReport(
            kind: identity.kind == .log ? .log : .segment, number: identity.number)
        report.blocksRead =
            salvage.segments.reduce(0) { $0 + $1.blockCount }
            + salvage.logs.reduce(0) { $0 + $1.blockCount }
        for cursor in salvage.cursors {
            report.itemsFound += try cursor.giveRecords(of: salvage, states, to: body)
        }
        // That the file was read by itself is no loss here.
        report.losses = salvage.losses.filter { $0.kind != .manifest }.map {
            RepairReport.Loss($0, states)
        }
        return report
    }

    /// Makes a store of what is whole in one file: a segment or a log, and large values as far as
    /// their files lie beside it.
    ///
    /// As ``repair(at:to:observer:progress:)``, of which the report is: the new store does not
    /// claim to have seen what other files may have held.
    ///
    /// - Parameter destination: a directory that is missing or empty.
    /// - Throws: `notAStore` if there is no such file, or it holds no keys; `formatTooNew`,
    ///   `invalidArgument` if the destination is not empty, `diskFull`, `inputOutput`.
    @discardableResult
    public static func salvage(
        fileAt path: String, to destination: String
    ) throws(StoreError) -> RepairReport {
        let storage = SystemStorage()
        let salvage = try Salvage(onlyFileAt: path, storage: storage)
        return try SalvageWriter(salvage, to: destination, storage: storage).write()
    }
}

extension SalvageCursor {
    /// Gives what is left, and returns how much it was.
    fileprivate func giveRecords(
        of salvage: Salvage, _ states: SalvagedStates, to body: (SalvagedItem) throws -> Void
    ) throws -> Int {
        var count = 0
        var names: [DatasetID: String] = [:]
        var last: (dataset: DatasetID, key: [UInt8])?
        while let entry = entry {
            defer { advance() }
            guard entry.dataset != 0 else { continue }
            if names[entry.dataset] == nil {
                let known = states.names(entry.dataset...entry.dataset).first
                names[entry.dataset] = known.flatMap { states.madeUp.contains($0) ? nil : $0 } ?? ""
            }
            let key = entry.key.array
            let version = version(of: entry.stamp)
            let name = names[entry.dataset] ?? ""
            let isSuperseded = last?.dataset == entry.dataset && last?.key == key
            let record = try salvage.values.withValue(of: entry) {
                (value) throws(StoreError) -> SalvagedRecord? in
                guard let value else { return nil }
                return SalvagedRecord(
                    datasetNumber: entry.dataset, dataset: name.isEmpty ? nil : name, key: key,
                    value: entry.kind == .put ? value.array : nil, version: version,
                    syncCount: SyncCount(rawValue: entry.syncCount),
                    expiresAt: entry.hasExpiry ? entry.expiresAt : nil,
                    isSuperseded: isSuperseded)
            }
            guard let record else { continue }
            last = (entry.dataset, key)
            count += 1
            try body(.record(record))
        }
        return count
    }
}

/// A value file by itself: every block in it is a value.
struct SalvagedValueFile {
    private let file: SalvageFile
    private let identity: FileIdentity

    init(_ path: String, _ identity: FileIdentity, storage: any Storage) throws(StoreError) {
        self.identity = identity
        file = try SalvageFile(
            identity.name, number: identity.number, in: FileName.parent(of: path),
            identity: identity.store, storage: storage)
    }

    func give(to body: (SalvagedItem) throws -> Void) throws -> SalvageReport {
        var report = SalvageReport(kind: .values, number: identity.number)
        var offset = FileHeader.byteCount
        while let found = file.nextBlock(from: offset) {
            if found.offset > offset { report.noteGap(offset..<found.offset, in: identity.name) }
            offset = found.end
            report.blocksRead += 1
            guard found.header.kind == BlockHeader.Kind.value.rawValue,
                let value = file.payload(found)
            else {
                report.noteGap(found.offset..<found.end, in: identity.name)
                continue
            }
            report.itemsFound += 1
            try body(
                .value(SalvagedValue(offset: UInt64(found.offset), value: value.bytes.array)))
        }
        if offset < file.byteCount {
            report.noteGap(offset..<file.byteCount, in: identity.name)
        }
        return report
    }
}

extension SalvageReport {
    fileprivate mutating func noteGap(_ range: Range<Int>, in file: String) {
        losses.append(
            RepairReport.Loss(
                kind: .block, file: file, offset: UInt64(range.lowerBound),
                byteCount: UInt64(range.count), datasets: [], what: "a large value is damaged"))
    }
}
