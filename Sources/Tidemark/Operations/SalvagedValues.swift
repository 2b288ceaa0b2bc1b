/// The values of a damaged store that lie apart from their keys, read one by one: an entry whose
/// value is whole is saved, and no other.
final class SalvagedValues {
    private enum Found {
        case file(SalvageFile)
        case nothing
    }

    private let directory: String
    /// nil if nobody knows: then any file of that name will do.
    private let identity: StoreIdentity?
    private let storage: any Storage
    private var files: [UInt64: Found] = [:]
    private var lost: Set<ValueHandle> = []
    private(set) var losses: [SalvageLoss] = []

    init(_ directory: String, identity: StoreIdentity?, storage: any Storage) {
        self.directory = directory
        self.identity = identity
        self.storage = storage
    }

    /// Files that were found.
    var fileCount: Int {
        files.values.count { if case .file = $0 { true } else { false } }
    }

    /// Whether the value of an entry is lost, as far as has been found out.
    func isLost(_ entry: Entry) -> Bool {
        guard !lost.isEmpty, let handle = entry.valueHandle else { return false }
        return lost.contains(handle)
    }

    /// Finds out whether the value of an entry is whole, and notes the loss if it is not.
    func check(_ entry: Entry) throws(StoreError) {
        guard let handle = entry.valueHandle, !lost.contains(handle),
            try value(handle) == nil
        else { return }
        lost.insert(handle)
        guard case .file(let file)? = files[handle.file] else { return }
        losses.append(
            SalvageLoss(
                kind: .block, file: file.name, offset: handle.block.offset,
                byteCount: handle.footprint, datasets: entry.dataset...entry.dataset,
                what: "a large value is damaged"))
    }

    /// Hands out the value of an entry, wherever it lies; nil if it is lost.
    func withValue<Result>(
        of entry: Entry, _ body: (ByteView?) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        guard entry.isApart else { return try body(entry.valueField) }
        guard let handle = entry.valueHandle, let block = try value(handle) else {
            return try body(nil)
        }
        defer { withExtendedLifetime(block) {} }
        return try body(block.bytes)
    }

    private func value(_ handle: ValueHandle) throws(StoreError) -> Block? {
        guard case .file(let file) = try found(handle.file),
            let block = file.block(at: Int(handle.block.offset)),
            block.header.kind == BlockHeader.Kind.value.rawValue,
            block.header.storedCount == handle.block.storedCount,
            block.header.mark == handle.block.rawCount
        else { return nil }
        return file.payload(block)
    }

    private func found(_ number: UInt64) throws(StoreError) -> Found {
        if let known = files[number] { return known }
        let found = try open(number)
        files[number] = found
        return found
    }

    private func open(_ number: UInt64) throws(StoreError) -> Found {
        let name = FileName.values(number)
        do throws(StoreError) {
            let file = try SalvageFile(
                name, number: number, in: directory, identity: identity, storage: storage)
            if let identity, let header = try file.header(.values), header.identity != identity {
                note(.foreignFile, name, UInt64(file.byteCount), "the file is of another store")
                return .nothing
            }
            return .file(file)
        } catch {
            guard !error.isOfEnvironment else { throw error }
            note(
                .missingFile, name, 0,
                "a file of large values is missing or cannot be read; records with values in it "
                    + "are lost")
            return .nothing
        }
    }

    private func note(
        _ kind: RepairReport.Loss.Kind, _ name: String, _ byteCount: UInt64, _ what: String
    ) {
        losses.append(
            SalvageLoss(
                kind: kind, file: name, offset: nil, byteCount: byteCount, datasets: nil,
                what: what))
    }
}
