import BenchmarkRows
import Tidemark

/// Tidemark as its own users open it, with all defaults but the durability of the row, the
/// compression of the make, and a cache as large as the peers'.
struct TidemarkKind: EngineKind {
    static let engine = "tidemark"
    static let all = [
        TidemarkKind(compression: .lz4, config: "lz4"),
        TidemarkKind(compression: .none, config: "none"),
    ]

    let compression: Compression
    let config: String

    var name: EngineName { EngineName(engine: Self.engine, config: config) }
    var version: String { "of this tree" }

    func settings(_ options: EngineOptions) -> String {
        let options = storeOptions(options)
        let memory = options.memoryLimit.map { "\($0)" } ?? "64 MiB beside the block cache"
        return [
            "durability=\(options.durability)", "compression=\(options.compression)",
            "blockCacheBytes=\(options.blockCacheBytes ?? 0)", "memoryLimit=\(memory)",
            "segmentBytes=\(options.segmentBytes)", "largeValueBytes=\(options.largeValueBytes)",
            "historyVersions=\(options.historyVersions)",
            "compactsAutomatically=\(options.compactsAutomatically)",
        ].joined(separator: ", ")
    }

    func open(_ options: EngineOptions) throws -> TidemarkEngine {
        try TidemarkEngine(Store.open(at: options.directory, options: storeOptions(options)))
    }

    private func storeOptions(_ options: EngineOptions) -> StoreOptions {
        StoreOptions(
            durability: options.durability == .kill ? .process : .disk,
            blockCacheBytes: EngineOptions.cacheBytes, compression: compression)
    }
}

final class TidemarkEngine: Engine {
    private let store: Store
    private let dataset: Dataset

    init(_ store: Store) throws {
        self.store = store
        dataset = try store.dataset("records")
    }

    func session() -> TidemarkSession { TidemarkSession(store, dataset) }

    /// Background work that is left is done by `compact`.
    func settle() throws {
        try store.waitForBackgroundWork()
    }

    func compact() throws {
        try store.compact()
    }

    func close() throws {
        try store.close()
    }
}

final class TidemarkSession: Session {
    private let store: Store
    private let dataset: Dataset
    private var batch = WriteBatch()
    /// The datasets of the many, opened when first used.
    private var datasets: [Dataset?] = []

    init(_ store: Store, _ dataset: Dataset) {
        self.store = store
        self.dataset = dataset
    }

    func close() {}

    func put(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, ascending: Bool
    ) throws {
        try dataset.put(value.bytes, for: key.bytes)
    }

    func remove(_ key: UnsafeRawBufferPointer) throws {
        try dataset.delete(key.bytes)
    }

    func writeBatch(
        keys: UnsafeRawBufferPointer, values: [UnsafeRawBufferPointer], ascending: Bool
    ) throws {
        try writeBatch(keys: keys, values: values, in: dataset)
    }

    private func writeBatch(
        keys: UnsafeRawBufferPointer, values: [UnsafeRawBufferPointer], in dataset: Dataset
    ) throws {
        batch.removeAll(keepingCapacity: true)
        for (index, value) in values.enumerated() {
            let key = UnsafeRawBufferPointer(
                start: keys.baseAddress! + index * Keys.bytes, count: Keys.bytes)
            batch.put(value.bytes, for: key.bytes, in: dataset)
        }
        try store.write(batch)
    }

    func removeBatch(keys: UnsafeRawBufferPointer) throws {
        batch.removeAll(keepingCapacity: true)
        for place in stride(from: 0, to: keys.count, by: Keys.bytes) {
            let key = UnsafeRawBufferPointer(
                start: keys.baseAddress! + place, count: Keys.bytes)
            batch.delete(key.bytes, in: dataset)
        }
        try store.write(batch)
    }

    func get(_ key: UnsafeRawBufferPointer, checksum: inout UInt64) throws -> Int? {
        try get(key, in: dataset, checksum: &checksum)
    }

    private func get(
        _ key: UnsafeRawBufferPointer, in dataset: Dataset, checksum: inout UInt64
    ) throws -> Int? {
        var first: UInt64 = 0
        let bytes = try dataset.withValue(for: key.bytes) { value -> Int? in
            guard let value else { return nil }
            first = value.firstEight
            return value.byteCount
        }
        checksum &+= first
        return bytes
    }

    func read(
        _ key: UnsafeRawBufferPointer, to value: UnsafeMutableRawBufferPointer
    ) throws -> Int? {
        try dataset.withValue(for: key.bytes) { found -> Int? in
            guard let found else { return nil }
            found.withUnsafeBytes { value.copyMemory(from: $0) }
            return found.byteCount
        }
    }

    func scan(
        from: UnsafeRawBufferPointer?, prefixBytes: Int, limit: Int
    ) throws -> ScanFigures {
        var range = KeyRange.all
        if let from {
            // From a key to the end of its prefix.
            let upper =
                prefixBytes > 0
                ? KeyRange.prefix(Array(from.prefix(prefixBytes))).upperBound : nil
            range = KeyRange(from: Array(from), upTo: upper)
        }
        let cursor = try dataset.records(in: range)
        var figures = ScanFigures()
        while figures.records < limit {
            let seen: Void? = try cursor.withNext { key, value in
                figures.records += 1
                guard let value else { return }
                figures.bytes += key.byteCount + value.byteCount
                figures.checksum &+= value.firstEight
            }
            guard seen != nil else { break }
        }
        return figures
    }

    func fillDataset(_ dataset: Int, records: Int, values: Values) throws {
        let opened = try openDataset(dataset)
        try withUnsafeTemporaryAllocation(
            byteCount: records * Keys.bytes, alignment: 16
        ) { keys in
            var batch: [UnsafeRawBufferPointer] = []
            batch.reserveCapacity(records)
            for record in 0..<records {
                Keys.write(record, to: keys.baseAddress! + record * Keys.bytes)
                batch.append(values[datasetKey(dataset, record)])
            }
            try writeBatch(keys: UnsafeRawBufferPointer(keys), values: batch, in: opened)
        }
    }

    func fillDatasets(_ datasets: Range<Int>, records: Int, values: Values) throws {
        for dataset in datasets {
            try fillDataset(dataset, records: records, values: values)
        }
    }

    func get(dataset: Int, record: Int, checksum: inout UInt64) throws -> Int? {
        let opened = try openDataset(dataset)
        return try withUnsafeTemporaryAllocation(byteCount: Keys.bytes, alignment: 16) { key in
            Keys.write(record, to: key.baseAddress!)
            return try get(UnsafeRawBufferPointer(key), in: opened, checksum: &checksum)
        }
    }

    private func openDataset(_ number: Int) throws -> Dataset {
        while datasets.count <= number { datasets.append(nil) }
        if let opened = datasets[number] { return opened }
        let opened = try store.dataset("dataset-\(number)")
        datasets[number] = opened
        return opened
    }
}

extension RawSpan {
    /// The first 8 bytes as a little-endian number; a shorter span counts as padded with zeros.
    @inline(__always)
    fileprivate var firstEight: UInt64 {
        if byteCount >= 8 { return unsafeLoadUnaligned(as: UInt64.self) }
        return withUnsafeBytes { bytes in
            bytes.enumerated().reduce(0) { $0 | UInt64($1.element) << ($1.offset * 8) }
        }
    }
}
