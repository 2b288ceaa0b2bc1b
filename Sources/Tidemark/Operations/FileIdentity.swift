/// Which file of a store a file is, by what is in it: its name may have been lost with its
/// directory, and its header may be damaged.
struct FileIdentity {
    /// The last part of the path.
    let name: String
    let kind: FileHeader.Kind
    let number: UInt64
    /// nil if it is damaged.
    let header: FileHeader?
    /// Of the store that it is of: as its header says, or else another file beside it. nil if
    /// there is none that does.
    let store: StoreIdentity?

    /// Asks the header, then the name, then the blocks. O(1) where the header is whole.
    ///
    /// - Throws: `notAStore` if there is no such file, or nothing in it is of a store;
    ///   `formatTooNew`, `inputOutput`.
    init(ofFileAt path: String, storage: any Storage) throws(StoreError) {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        let directory = FileName.parent(of: path)
        let own = try SalvageFile(name, number: 0, in: directory, identity: nil, storage: storage)
        if let header = try Self.header(of: own) {
            self.init(name, header.kind, header.segment, header, header.identity)
            return
        }
        let store = try StoreIdentity.found(inDirectory: directory, storage: storage)
        let endings: [(String, FileHeader.Kind)] = [
            (".seg", .sealed), (".log", .log), (".val", .values),
        ]
        for (ending, kind) in endings {
            if let number = FileName.number(in: name, ending: ending) {
                self.init(name, kind, number, nil, store)
                return
            }
        }
        let file = try SalvageFile(
            name, number: 0, in: directory, identity: store, storage: storage)
        guard let block = file.firstBlockOfAnyFile(), let kind = block.fileKind else {
            throw .holdsNoRecords(path)
        }
        self.init(name, kind, UInt64(block.segment), nil, store)
    }

    private init(
        _ name: String, _ kind: FileHeader.Kind, _ number: UInt64, _ header: FileHeader?,
        _ store: StoreIdentity?
    ) {
        self.name = name
        self.kind = kind
        self.number = number
        self.header = header
        self.store = store
    }

    /// Of whatever kind and number it says that it is; nil if it is damaged.
    private static func header(of file: SalvageFile) throws(StoreError) -> FileHeader? {
        guard let bytes = file.view(0, FileHeader.byteCount) else { return nil }
        var reader = ByteReader(bytes)
        do {
            _ = try reader.view(12)
            guard let kind = FileHeader.Kind(rawValue: try reader.fixed32()) else { return nil }
            return try FileHeader(
                bytes, expecting: kind, segment: try reader.fixed64(), identity: nil,
                path: file.path)
        } catch let error as StoreError where error.isOfFormat {
            throw error
        } catch {
            return nil
        }
    }
}

extension BlockHeader {
    /// In which files such a block lies; nil if it holds nothing of any record.
    fileprivate var fileKind: FileHeader.Kind? {
        switch Kind(rawValue: kind) {
        case .operations, .endOfLog: .log
        case .data, .changes, .tables, .datasets, .collected, .directory, .changeDirectory,
            .indexChecksums, .valueFiles:
            .sealed
        case .value: .values
        case .manifest, .partOrigin, .partMark, .roster, nil: nil
        }
    }
}

extension StoreError {
    static func holdsNoRecords(_ path: String) -> StoreError {
        StoreError(
            .notAStore,
            "the file holds no records; name a segment (.seg), a log (.log) or a value file (.val)",
            location: Location(path: path))
    }
}
