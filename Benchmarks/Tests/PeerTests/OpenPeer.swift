@preconcurrency import CPeers
import Foundation
import Testing

typealias Bytes = [UInt8]

/// One engine, one of its two makes, one durability: what the tests run over.
struct PeerCase: Sendable, CustomTestStringConvertible {
    enum Engine: String, CaseIterable {
        case rocksdb
        case leveldb
        case lmdb
        case sqlite

        var api: peer_api {
            switch self {
            case .rocksdb: rocksdb_peer
            case .leveldb: leveldb_peer
            case .lmdb: lmdb_peer
            case .sqlite: sqlite_peer
            }
        }
    }

    let engine: Engine
    let config: Int
    let survivesPowerLoss: Bool

    var configName: String {
        let names = engine.api.configs
        return [names.0, names.1][config].map { String(cString: $0) } ?? ""
    }

    var testDescription: String {
        "\(engine.rawValue) \(configName), \(survivesPowerLoss ? "power loss" : "kill")"
    }

    var options: peer_options {
        var options = peer_options()
        options.durability = survivesPowerLoss ? PEER_SURVIVES_POWER_LOSS : PEER_SURVIVES_KILL
        options.config = Int32(config)
        options.cache_bytes = 8 << 20
        options.capacity_bytes = 64 << 20
        return options
    }

    static let all: [PeerCase] = Engine.allCases.flatMap { engine in
        (0..<(engine.api.configs.1 == nil ? 1 : 2)).flatMap { config in
            [false, true].map {
                PeerCase(engine: engine, config: config, survivesPowerLoss: $0)
            }
        }
    }
}

extension peer_api {
    var lastError: String { last_error().map { String(cString: $0) } ?? "" }
}

struct PeerFailure: Error, CustomStringConvertible {
    let description: String
}

/// A database in a directory of its own, and one session of it.
final class OpenPeer {
    let api: peer_api
    private let options: peer_options
    private let directory: URL
    private(set) var store: OpaquePointer?
    private var session: OpaquePointer?

    init(_ peerCase: PeerCase) throws {
        api = peerCase.engine.api
        options = peerCase.options
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("peer-tests-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true)
        try open()
    }

    deinit {
        close()
        try? FileManager.default.removeItem(at: directory)
    }

    func reopen() throws {
        close()
        try open()
    }

    func compact() throws {
        api.close_session(session)
        session = nil
        try require(api.compact(store), "compact")
        session = api.open_session(store)
        try require(session != nil, "open_session")
    }

    func settle() throws {
        try require(api.settle(store), "settle")
    }

    func put(_ key: Bytes, _ value: Bytes, ascending: Bool = false) throws {
        let written = withRecords([(key, value)]) { api.put(session, $0, ascending) }
        try require(written, "put")
    }

    func remove(_ key: Bytes) throws {
        try require(api.remove(session, key, key.count), "remove")
    }

    func write(_ records: [(Bytes, Bytes)], ascending: Bool = false) throws {
        let written = withRecords(records) {
            api.write_batch(session, $0, records.count, ascending)
        }
        try require(written, "write_batch")
    }

    func removeAll(_ keys: [Bytes]) throws {
        let removed = withRecords(keys.map { (key: $0, value: Bytes()) }) {
            api.remove_batch(session, $0, keys.count)
        }
        try require(removed, "remove_batch")
    }

    func get(_ key: Bytes) throws -> (valueBytes: Int, checksum: UInt64)? {
        var valueBytes = 0
        var checksum: UInt64 = 0
        let result = api.get(session, key, key.count, &valueBytes, &checksum)
        try require(result != PEER_FAILED, "get")
        return result == PEER_FOUND ? (valueBytes, checksum) : nil
    }

    func read(_ key: Bytes, capacity: Int = 1 << 16) throws -> Bytes? {
        var buffer = Bytes(repeating: 0, count: capacity)
        var valueBytes = capacity
        let result = api.read(session, key, key.count, &buffer, &valueBytes)
        try require(result != PEER_FAILED, "read")
        return result == PEER_FOUND ? Bytes(buffer.prefix(valueBytes)) : nil
    }

    func scan(from: Bytes?, prefixBytes: Int = 0, limit: Int = .max) throws -> peer_scan {
        var seen = peer_scan()
        let scanned =
            if let from {
                api.scan(session, from, from.count, prefixBytes, limit, &seen)
            } else {
                api.scan(session, nil, 0, 0, limit, &seen)
            }
        try require(scanned, "scan")
        return seen
    }

    private func open() throws {
        var options = options
        store = api.open(directory.path, &options)
        try require(store != nil, "open")
        session = api.open_session(store)
        try require(session != nil, "open_session")
    }

    private func close() {
        if let session { api.close_session(session) }
        if let store { api.close(store) }
        session = nil
        store = nil
    }

    private func require(_ succeeded: Bool, _ what: String) throws {
        guard !succeeded else { return }
        throw PeerFailure(description: "\(what): \(api.lastError)")
    }
}

/// Lays keys and values out in memory for the time of a call.
func withRecords<Result>(
    _ records: [(key: Bytes, value: Bytes)], _ body: (UnsafePointer<peer_record>?) -> Result
) -> Result {
    let all: Bytes = records.reduce(into: [0]) { $0 += $1.key + $1.value }
    return all.withUnsafeBytes { memory in
        // The first byte is there so that the memory has an address even without any record.
        var offset = 1
        let laid = records.map { record in
            defer { offset += record.key.count + record.value.count }
            let key = memory.baseAddress?.advanced(by: offset)
            return peer_record(
                key: key, key_bytes: record.key.count,
                value: key?.advanced(by: record.key.count), value_bytes: record.value.count)
        }
        return laid.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
