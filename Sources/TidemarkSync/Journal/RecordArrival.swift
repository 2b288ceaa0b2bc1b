public import Tidemark

/// A batch of changes that an exchange made here at once.
public struct RecordArrival: Hashable, Sendable {
    public enum Role: String, Hashable, Sendable {
        /// This store asked, and the changes were pulled.
        case asked
        /// This store was asked, and the changes were pushed to it.
        case answered
    }

    public let dataset: String
    /// When, by this store's clock. No two of a store have the same time.
    public let time: HybridTime
    /// The other side. What it brought need not be its own writes.
    public let peer: ReplicaID
    public let role: Role
    /// A number that all batches of one exchange have in common and no other exchange has; nil if
    /// this store was asked, since then it knows of single messages only.
    public let exchange: UInt64?
    /// The dataset's count before the first change of the batch.
    public let after: SyncCount
    /// The dataset's count at its last change.
    public let through: SyncCount

    /// Whether a change of that count was one of the batch.
    public func contains(_ syncCount: SyncCount) -> Bool {
        syncCount > after && syncCount <= through
    }
}

// How a batch is stored: form (1), role (0 asked, 1 answered), replica: peer, flag and 8 bytes:
// exchange; then the stamp: counts before and after.

extension RecordArrival {
    private static let form: UInt8 = 1

    static func encoded(
        peer: ReplicaID, role: Role, exchange: UInt64?
    ) -> [UInt8] {
        var writer = VersionWriter()
        writer.plain {
            $0.put(form)
            $0.put(role == .asked ? 0 : 1)
        }
        writer.putReplica(peer)
        writer.plain {
            $0.putFlag(exchange != nil)
            if let exchange { $0.putFixed(exchange) }
        }
        return writer.bytes
    }

    /// nil if the bytes are no such entry.
    init?(dataset: String, time: HybridTime, decoding bytes: [UInt8]) {
        do throws(SyncError) {
            var reader = VersionReader(bytes)
            guard try reader.takeCode() == Self.form else { return nil }
            let role: Role = try reader.takeFlag() ? .answered : .asked
            let peer = try reader.takeReplica()
            let exchange = try reader.takeFlag() ? try reader.takeFixed() : nil
            let after = try reader.takeFixed()
            let through = try reader.takeFixed()
            try reader.finish()
            guard after <= through else { return nil }
            self.init(
                dataset: dataset, time: time, peer: peer, role: role, exchange: exchange,
                after: SyncCount(rawValue: after), through: SyncCount(rawValue: through))
        } catch {
            return nil
        }
    }
}

extension VersionReader {
    /// 8 bytes, little-endian.
    fileprivate mutating func takeFixed() throws(SyncError) -> UInt64 {
        try plain { reader throws(SyncError) in try reader.takeFixed(UInt64.self) }
    }
}

/// Notes which batches exchanges made in a dataset.
struct ArrivalLog {
    private let dataset: Dataset
    private let countMax: Int
    private let list: TimedNotes

    /// - Parameter options: within their bounds.
    init(_ dataset: Dataset, _ options: SyncJournalOptions) {
        self.dataset = dataset
        countMax = options.exchangesMax
        list = TimedNotes(which: .exchanges, dataset: dataset)
    }

    /// An entry for the batch that is about to be written, which the store stamps with its counts,
    /// and deletions of entries that are too many now.
    ///
    /// - Parameter counts: of the batch, where they are known and the store does not stamp.
    func notes(
        from peer: ReplicaID, _ role: RecordArrival.Role, exchange: UInt64?,
        counts: (after: SyncCount, through: SyncCount)? = nil
    ) throws(StoreError) -> [SystemNote] {
        guard countMax > 0, !dataset.store.options.isReadOnly else { return [] }
        var writer = ByteWriter()
        writer.append(RecordArrival.encoded(peer: peer, role: role, exchange: exchange))
        if let counts {
            writer.putFixed(counts.after.rawValue)
            writer.putFixed(counts.through.rawValue)
        }
        let entry = SystemNote(
            in: try list.home(), key: list.key(at: list.nextTime()), value: writer.bytes,
            stamp: counts == nil ? .counts : .nothing)
        return try list.trimming(adding: 1, countMax: countMax, before: .zero) + [entry]
    }
}

extension Dataset {
    /// Batches that exchanges made in this dataset and that are still remembered, the newest first.
    /// How many, ``SyncJournalOptions/exchangesMax`` says. O(batches).
    ///
    /// - Parameter limit: how many to give at most: 0...
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func arrivals(limit: Int = .max) throws(StoreError) -> [RecordArrival] {
        guard limit > 0 else { return [] }
        var found: [RecordArrival] = []
        let list = TimedNotes(which: .exchanges, dataset: self)
        try list.forEach(order: .backward) { (time, bytes) throws(StoreError) in
            if let arrival = RecordArrival(dataset: name, time: time, decoding: bytes) {
                found.append(arrival)
            }
            return found.count < limit
        }
        return found
    }
}
