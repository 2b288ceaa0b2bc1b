import BenchmarkRows
import CPeers

/// A peer, opened through the table of functions of its shim.
final class PeerEngine: Engine, @unchecked Sendable {
    // The shims say that a store may be used from any thread.
    private let api: UnsafePointer<peer_api>
    private let store: OpaquePointer

    init(_ api: UnsafePointer<peer_api>, _ store: OpaquePointer) {
        self.api = api
        self.store = store
    }

    func session() throws -> PeerSession {
        guard let session = api.pointee.open_session(store) else { throw api.failure }
        return PeerSession(api, session)
    }

    func settle() throws {
        guard api.pointee.settle(store) else { throw api.failure }
    }

    func compact() throws {
        guard api.pointee.compact(store) else { throw api.failure }
    }

    func close() {
        api.pointee.close(store)
    }
}

extension UnsafePointer<peer_api> {
    var failure: EngineFailure {
        EngineFailure(
            "\(String(cString: pointee.engine!)): \(String(cString: pointee.last_error()!))")
    }
}

// The table of functions is constant.
struct PeerKind: EngineKind, @unchecked Sendable {
    let api: UnsafePointer<peer_api>
    let config: Int

    var name: EngineName {
        let config = config == 0 ? api.pointee.configs.0 : api.pointee.configs.1
        return EngineName(
            engine: String(cString: api.pointee.engine!), config: String(cString: config!))
    }

    var version: String { String(cString: api.pointee.version()!) }

    func settings(_ options: EngineOptions) -> String {
        var options = cOptions(options)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { text in
            api.pointee.describe(&options, text.baseAddress!, text.count)
            return String(cString: text.baseAddress!)
        }
    }

    func open(_ options: EngineOptions) throws -> PeerEngine {
        var cOptions = cOptions(options)
        guard let store = api.pointee.open(options.directory, &cOptions) else {
            throw api.failure
        }
        return PeerEngine(api, store)
    }

    private func cOptions(_ options: EngineOptions) -> peer_options {
        peer_options(
            durability: options.durability == .kill
                ? PEER_SURVIVES_KILL : PEER_SURVIVES_POWER_LOSS,
            config: Int32(config), cache_bytes: EngineOptions.cacheBytes,
            capacity_bytes: options.capacityBytes)
    }
}

/// All peers in all their makes.
enum Peers {
    static let all: [PeerKind] = {
        var kinds: [PeerKind] = []
        var place: Int32 = 0
        while let api = peer_at(place) {
            kinds.append(PeerKind(api: api, config: 0))
            if api.pointee.configs.1 != nil { kinds.append(PeerKind(api: api, config: 1)) }
            place += 1
        }
        return kinds
    }()
}

/// One thread's handle of a peer. Functions are taken out of the table once.
final class PeerSession: Session {
    private let api: UnsafePointer<peer_api>
    private let handle: OpaquePointer
    private let putFunction:
        @convention(c) (OpaquePointer?, UnsafePointer<peer_record>?, Bool) -> Bool
    private let getFunction:
        @convention(c) (
            OpaquePointer?, UnsafeRawPointer?, Int, UnsafeMutablePointer<Int>?,
            UnsafeMutablePointer<UInt64>?
        ) -> peer_result
    private var batch: [peer_record] = []

    init(_ api: UnsafePointer<peer_api>, _ handle: OpaquePointer) {
        self.api = api
        self.handle = handle
        putFunction = api.pointee.put
        getFunction = api.pointee.get
    }

    func close() { api.pointee.close_session(handle) }

    func put(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, ascending: Bool
    ) throws {
        var record = peer_record(
            key: key.baseAddress, key_bytes: key.count, value: value.baseAddress,
            value_bytes: value.count)
        guard putFunction(handle, &record, ascending) else { throw api.failure }
    }

    func remove(_ key: UnsafeRawBufferPointer) throws {
        guard api.pointee.remove(handle, key.baseAddress, key.count) else { throw api.failure }
    }

    func writeBatch(
        keys: UnsafeRawBufferPointer, values: [UnsafeRawBufferPointer], ascending: Bool
    ) throws {
        batch.removeAll(keepingCapacity: true)
        for (index, value) in values.enumerated() {
            batch.append(
                peer_record(
                    key: keys.baseAddress! + index * Keys.bytes, key_bytes: Keys.bytes,
                    value: value.baseAddress, value_bytes: value.count))
        }
        guard api.pointee.write_batch(handle, &batch, batch.count, ascending) else {
            throw api.failure
        }
    }

    func removeBatch(keys: UnsafeRawBufferPointer) throws {
        batch.removeAll(keepingCapacity: true)
        for place in stride(from: 0, to: keys.count, by: Keys.bytes) {
            batch.append(
                peer_record(
                    key: keys.baseAddress! + place, key_bytes: Keys.bytes, value: nil,
                    value_bytes: 0))
        }
        guard api.pointee.remove_batch(handle, &batch, batch.count) else { throw api.failure }
    }

    func get(_ key: UnsafeRawBufferPointer, checksum: inout UInt64) throws -> Int? {
        var bytes = 0
        var first: UInt64 = 0
        switch getFunction(handle, key.baseAddress, key.count, &bytes, &first) {
        case PEER_FOUND:
            checksum &+= first
            return bytes
        case PEER_MISSING: return nil
        default: throw api.failure
        }
    }

    func read(
        _ key: UnsafeRawBufferPointer, to value: UnsafeMutableRawBufferPointer
    ) throws -> Int? {
        var bytes = value.count
        switch api.pointee.read(handle, key.baseAddress, key.count, value.baseAddress, &bytes) {
        case PEER_FOUND: return bytes
        case PEER_MISSING: return nil
        default: throw api.failure
        }
    }

    func scan(
        from: UnsafeRawBufferPointer?, prefixBytes: Int, limit: Int
    ) throws -> ScanFigures {
        var scan = peer_scan()
        guard
            api.pointee.scan(
                handle, from?.baseAddress, from?.count ?? 0, prefixBytes, limit, &scan)
        else { throw api.failure }
        return ScanFigures(records: scan.records, bytes: scan.bytes, checksum: scan.checksum)
    }
}
