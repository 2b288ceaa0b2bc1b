import Tidemark

/// What is stored of the part of a dataset that is kept here.
///
/// Which part it is changes by compare-and-set alone, so that no two exchanges forget what the
/// other one noted as lost. How far it has come with a peer is stored with the records.
struct PartBook {
    private let dataset: Dataset
    private let book: Dataset
    private(set) var part: PartRecord
    /// By which a change is told that somebody else made meanwhile.
    private var dot: Dot

    /// nil if the dataset is kept whole. O(log n).
    ///
    /// - Throws: `corruption` if what is stored cannot be read: a part must never be taken for the
    ///   whole.
    init?(_ dataset: Dataset) throws(StoreError) {
        guard let book = try dataset.store.existingSystemDataset(.scopes),
            let line = try book.record(for: SystemDataset.prefix(of: dataset.name))
        else { return nil }
        self.dataset = dataset
        self.book = book
        part = try Self.part(line.value ?? [], of: dataset)
        dot = line.version.dot
    }

    private static func part(
        _ bytes: [UInt8], of dataset: Dataset
    ) throws(StoreError) -> PartRecord {
        do throws(SyncError) {
            return try PartRecord(decoding: bytes)
        } catch {
            throw StoreError(
                .corruption,
                "which part of \(dataset.name) is kept cannot be read (\(error.message)); "
                    + "restore the store from a backup, or open it with a newer version")
        }
    }

    /// Whether only a part is kept of a dataset.
    static func isPart(_ dataset: Dataset) throws(StoreError) -> Bool {
        try PartBook(dataset) != nil
    }

    /// Whether the scope is still the one that was read.
    func isCurrent() throws(StoreError) -> Bool {
        try PartBook(dataset)?.part.generation == part.generation
    }

    // MARK: - The part

    /// Stores what part is kept of a dataset that is kept whole.
    ///
    /// - Returns: false if somebody else did, meanwhile.
    static func begin(_ part: PartRecord, _ dataset: Dataset) throws(StoreError) -> Bool {
        let book = try dataset.store.systemDataset(.scopes)
        return try isDone { () throws(StoreError) in
            _ = try book.put(part.encoded, for: SystemDataset.prefix(of: dataset.name), ifAt: nil)
        }
    }

    /// Stores another one.
    ///
    /// - Returns: false if somebody else did, meanwhile.
    func change(to next: PartRecord) throws(StoreError) -> Bool {
        try Self.isDone { () throws(StoreError) in
            _ = try book.put(next.encoded, for: SystemDataset.prefix(of: dataset.name), ifAt: dot)
        }
    }

    private static func isDone(
        _ body: () throws(StoreError) -> Void
    ) throws(StoreError) -> Bool {
        do throws(StoreError) {
            try body()
            return true
        } catch {
            guard error.code == .versionMismatch else { throw error }
            return false
        }
    }

    /// Notes, before they go, that records are about to go from here that had seen as much. Noted
    /// in vain it does no harm.
    mutating func lose(_ seen: VersionVector, to peer: ReplicaID) throws(StoreError) {
        while true {
            var next = part
            next.lose(seen, to: peer)
            guard next != part else { return }
            if try change(to: next) {
                guard let now = try PartBook(dataset) else { return }
                self = now
                return
            }
            guard let now = try PartBook(dataset) else { return }
            self = now
        }
    }

    // MARK: - Peers

    /// How far it has come with a peer.
    func progress(with peer: ReplicaID) throws(StoreError) -> PartProgress {
        try book.get(Self.key(dataset, peer)).flatMap(PartProgress.init(decoding:))
            ?? PartProgress()
    }

    /// To be stored with the records that it vouches for.
    func note(_ progress: PartProgress, with peer: ReplicaID) -> SystemNote {
        SystemNote(in: book, key: Self.key(dataset, peer), value: progress.encoded)
    }

    /// That the dataset is whole from now on: all that is stored of the part goes. What is stored
    /// of peers goes first, and means nothing if it comes once more.
    ///
    /// - Returns: false if the part was changed meanwhile.
    func end() throws(StoreError) -> Bool {
        let own = SystemDataset.prefix(of: dataset.name)
        let cursor = try book.keys(in: .prefix(own))
        while let key = try cursor.next() {
            if key != own { try book.delete(key) }
        }
        return try Self.isDone { () throws(StoreError) in _ = try book.delete(own, ifAt: dot) }
    }

    // MARK: - Keys

    private static func key(_ dataset: Dataset, _ peer: ReplicaID) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(SystemDataset.prefix(of: dataset.name))
        writer.put(peer)
        return writer.bytes
    }
}
