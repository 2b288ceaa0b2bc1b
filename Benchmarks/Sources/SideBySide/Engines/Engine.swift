import BenchmarkRows

/// A failure of an engine, with its own words.
struct EngineFailure: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// What a scan has seen, so that no engine can leave the reading out.
struct ScanFigures {
    var records = 0
    var bytes = 0
    var checksum: UInt64 = 0
}

/// How an engine is opened.
struct EngineOptions {
    var directory: String
    var durability: DurabilityClass
    /// An upper bound of the bytes of all keys and values together.
    var capacityBytes: Int
    /// The cache of blocks, for engines that have one.
    static let cacheBytes = 64 << 20
}

/// One thread's way to an open store. Generic code over it is specialised for each engine, so
/// that none pays for the abstraction.
protocol Session: AnyObject {
    /// One acknowledged write. `ascending` promises a key greater than all in the store.
    func put(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, ascending: Bool
    ) throws
    func remove(_ key: UnsafeRawBufferPointer) throws
    /// One atomic batch of records with keys of 16 bytes that lie one behind the other.
    func writeBatch(
        keys: UnsafeRawBufferPointer, values: [UnsafeRawBufferPointer], ascending: Bool) throws
    /// Removes the records of such keys as one atomic batch.
    func removeBatch(keys: UnsafeRawBufferPointer) throws
    /// Reads a value where it lies: the number of its bytes, or nil if it is missing. The first
    /// eight are added to `checksum`.
    func get(_ key: UnsafeRawBufferPointer, checksum: inout UInt64) throws -> Int?
    /// Copies a value.
    func read(
        _ key: UnsafeRawBufferPointer, to value: UnsafeMutableRawBufferPointer
    ) throws -> Int?
    /// Reads forward from a key, or from the first, while keys begin with its first bytes.
    func scan(
        from: UnsafeRawBufferPointer?, prefixBytes: Int, limit: Int
    ) throws -> ScanFigures
    /// Writes a new dataset with so many records as one atomic batch.
    func fillDataset(_ dataset: Int, records: Int, values: Values) throws
    /// Writes new datasets as quickly as it can be done, in as large batches as there are.
    func fillDatasets(_ datasets: Range<Int>, records: Int, values: Values) throws
    func get(dataset: Int, record: Int, checksum: inout UInt64) throws -> Int?
    /// Gives back what it holds. Called once, before the engine is compacted or closed.
    func close()
}

/// An open store of one engine.
protocol Engine: AnyObject, Sendable {
    associatedtype EngineSession: Session
    func session() throws -> EngineSession
    /// Waits until nothing goes on in the background.
    func settle() throws
    /// Brings all data to its smallest state. No session is in use meanwhile.
    func compact() throws
    func close() throws
}

extension Engine {
    func withSession<Result>(_ body: (EngineSession) throws -> Result) throws -> Result {
        let session = try session()
        defer { session.close() }
        return try body(session)
    }
}

/// What can be opened.
protocol EngineKind: Sendable {
    associatedtype Opened: Engine
    var name: EngineName { get }
    var version: String { get }
    func settings(_ options: EngineOptions) -> String
    func open(_ options: EngineOptions) throws -> Opened
}

/// An engine and the make of it.
struct EngineName: Codable, Hashable, Sendable, CustomStringConvertible {
    var engine: String
    var config: String

    var description: String { "\(engine) \(config)" }
}
