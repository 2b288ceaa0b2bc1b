import Tidemark

/// Changes that wait for a pool's stream, in the dataset `hub:outbox` of the same store: so that
/// an entry is as durable as what it tells of, and needs no position of any reader.
///
/// | key | value |
/// | --- | --- |
/// | pool, 0, dataset, 0, sync count of the store (8 bytes, big-endian), kind | by kind |
///
/// Of kind 0 is one call of UpdateRecords: its value is the document that is posted. Of kind 1 is
/// everything that has changed since that count, and the value is empty: native pushes and whole
/// datasets are told so, by what they have become. It comes behind an update that ends there, which
/// is not a part of it. Both stay until they were taken.
enum Outbox {
    /// Of the hub's own datasets.
    static let datasetName = StoreNames.ownPrefix + "outbox"

    /// Stored.
    enum Kind: UInt8, Sendable {
        case update = 0
        case span = 1
    }

    struct Key: Hashable, Sendable {
        let pool: PoolID
        /// What the dataset is called in the store.
        let dataset: String
        /// Of an update, the count of its first record; of a span, that before its first.
        let position: UInt64
        let kind: Kind

        var bytes: [UInt8] {
            var bytes = Outbox.lane(pool, dataset)
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: position >> UInt64(shift)))
            }
            bytes.append(kind.rawValue)
            return bytes
        }

        init(_ pool: PoolID, _ dataset: String, position: UInt64, _ kind: Kind) {
            self.pool = pool
            self.dataset = dataset
            self.position = position
            self.kind = kind
        }

        /// nil for bytes that are no key of an entry.
        init?(bytes: [UInt8]) {
            guard let poolEnd = bytes.firstIndex(of: 0),
                let datasetEnd = bytes[(poolEnd + 1)...].firstIndex(of: 0),
                bytes.count == datasetEnd + 10,
                let poolText = String(validating: bytes[..<poolEnd], as: UTF8.self),
                let pool = PoolID(poolText),
                let dataset = String(
                    validating: bytes[(poolEnd + 1)..<datasetEnd], as: UTF8.self),
                let kind = bytes.last.flatMap({ Kind(rawValue: $0) })
            else { return nil }
            let number = bytes[(datasetEnd + 1)..<(datasetEnd + 9)]
            self.init(
                pool, dataset, position: number.reduce(0) { $0 << 8 | UInt64($1) }, kind)
        }
    }

    struct Entry: Hashable, Sendable {
        let key: Key
        /// As it is stored: a later write to it is another entry.
        let dot: Dot
        /// Of an update.
        let document: [UInt8]
    }

    /// What the keys of a pool's entries begin with.
    static func prefix(_ pool: PoolID) -> [UInt8] {
        Array(pool.text.utf8) + [0]
    }

    /// What the keys of a dataset's entries begin with.
    static func lane(_ pool: PoolID, _ dataset: String) -> [UInt8] {
        prefix(pool) + Array(dataset.utf8) + [0]
    }

    /// Datasets of a pool for which anything waits, in their order. O(answer) look-ups, whatever
    /// waits for each.
    static func datasets(
        of pool: PoolID, limit: Int, in store: Store
    ) throws(StoreError) -> [String] {
        guard let outbox = try store.existingDataset(datasetName) else { return [] }
        return try Lanes.first(limit, in: outbox, prefix: prefix(pool))
    }

    /// The first entry of a dataset; nil if nothing waits for it.
    static func first(
        of pool: PoolID, _ dataset: String, in store: Store
    ) throws(StoreError) -> Entry? {
        guard let outbox = try store.existingDataset(datasetName) else { return nil }
        let range = KeyRange.prefix(lane(pool, dataset))
        guard let record = try outbox.records(in: range, limit: 1).next() else { return nil }
        guard let key = Key(bytes: record.key) else {
            throw StoreError(
                .corruption,
                "\(datasetName) has an entry of \(dataset) that is not of its form; remove it")
        }
        return Entry(key: key, dot: record.version.dot, document: record.value ?? [])
    }

    /// Bytes of keys and values that wait for a pool's stream. O(n).
    static func size(of pool: PoolID, in store: Store) throws(StoreError) -> Int {
        guard let outbox = try store.existingDataset(datasetName) else { return 0 }
        let cursor = try outbox.records(in: .prefix(prefix(pool)))
        var size = 0
        while let bytes = try cursor.withNext({ $0.byteCount + ($1?.byteCount ?? 0) }) {
            size += bytes
        }
        return size
    }

    /// Forgets an entry that was taken, unless it was written again meanwhile; puts another one in
    /// its place.
    ///
    /// Not before the end of the process is it sure to be gone; it may come a second time.
    static func remove(
        _ entry: Entry, replacedBy next: Key? = nil, in store: Store
    ) throws(StoreError) {
        let outbox = try store.dataset(datasetName)
        var batch = WriteBatch()
        batch.delete(entry.key.bytes, in: outbox, ifAt: entry.dot)
        if let next { batch.put([], for: next.bytes, in: outbox) }
        do throws(StoreError) {
            try store.write(batch, durability: .process)
        } catch {
            guard error.code == .versionMismatch else { throw error }
        }
    }
}

/// Keys that begin with a lane's name and a zero byte.
enum Lanes {
    /// The first names, in their order. One look-up for each.
    ///
    /// - Parameters:
    ///   - prefix: of the keys that are looked at, before the lane's name.
    ///   - parts: of a name, between which there are zero bytes; 1...
    static func first(
        _ limit: Int, in dataset: Dataset, prefix: [UInt8], parts: Int = 1
    ) throws(StoreError) -> [String] {
        let end = KeyRange.prefix(prefix).upperBound
        var lanes: [String] = []
        var start = prefix
        while lanes.count < limit,
            let key = try dataset.keys(in: KeyRange(from: start, upTo: end), limit: 1).next()
        {
            var zerosLeft = parts
            let name = key[prefix.count...].prefix { byte in
                if byte == 0 { zerosLeft -= 1 }
                return zerosLeft > 0
            }
            // Behind all keys of this lane, and before those of any other.
            start = prefix + name + [1]
            if let lane = String(validating: name, as: UTF8.self) { lanes.append(lane) }
        }
        return lanes
    }
}
