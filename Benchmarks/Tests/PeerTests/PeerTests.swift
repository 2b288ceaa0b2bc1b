import CPeers
import Dispatch
import Foundation
import Synchronization
import Testing

/// A shim that reads nothing would be fast: so each engine, in each make and durability, must agree
/// with a model. `PEER_TEST_SEED` repeats a run.
struct PeerTests {
    private static let seed: UInt64 =
        ProcessInfo.processInfo.environment["PEER_TEST_SEED"].flatMap { UInt64($0) }
        ?? UInt64.random(in: 0..<1_000_000)

    @Test(arguments: PeerCase.all)
    func agreesWithTheModel(_ peerCase: PeerCase) throws {
        print("PEER_TEST_SEED=\(Self.seed) for \(peerCase.testDescription)")
        var generator = SeededGenerator(state: Self.seed)
        let peer = try OpenPeer(peerCase)
        var model = PeerModel()
        try fillAscending(peer, &model)
        for round in 0..<4 {
            for _ in 0..<60 {
                try writeSomething(peer, &model, &generator)
            }
            try compare(peer, model, &generator)
            switch round {
            case 0: try peer.settle()
            case 1: try peer.compact()
            default: try peer.reopen()
            }
            try compare(peer, model, &generator)
        }
    }

    @Test(arguments: PeerCase.all)
    func twoWritersAtOnceLoseNothing(_ peerCase: PeerCase) throws {
        let peer = try OpenPeer(peerCase)
        let keysPerWriter = 100
        let failures = Mutex<[String]>([])
        nonisolated(unsafe) let store = peer.store
        DispatchQueue.concurrentPerform(iterations: 2) { writer in
            let api = peerCase.engine.api
            guard let session = api.open_session(store) else {
                return failures.withLock { $0.append(api.lastError) }
            }
            defer { api.close_session(session) }
            for index in 0..<keysPerWriter {
                let record = Self.record(writer: writer, index: index)
                var valueBytes = 0
                var checksum: UInt64 = 0
                let written = withRecords([record]) { api.put(session, $0, false) }
                let found = api.get(
                    session, record.key, record.key.count, &valueBytes, &checksum)
                if !written || found != PEER_FOUND || valueBytes != record.value.count {
                    failures.withLock { $0.append(api.lastError) }
                }
            }
        }
        #expect(failures.withLock { $0 } == [])
        var model = PeerModel()
        for writer in 0..<2 {
            for index in 0..<keysPerWriter {
                let record = Self.record(writer: writer, index: index)
                model.records[record.key] = record.value
            }
        }
        try expectSame(peer, model, from: nil)
    }

    @Test(arguments: PeerCase.all)
    func holdsValuesOfOneMebibyte(_ peerCase: PeerCase) throws {
        let peer = try OpenPeer(peerCase)
        let value = Bytes(repeating: 7, count: 1 << 20)
        for index in 0..<3 {
            try peer.put([UInt8(index)], value)
        }
        try peer.reopen()
        #expect(try peer.read([1], capacity: 1 << 20) == value)
        #expect(throws: PeerFailure.self) { try peer.read([1], capacity: 1 << 19) }
        #expect(try peer.scan(from: [1]).bytes == 2 * (value.count + 1))
    }

    @Test(arguments: PeerCase.all)
    func tellsVersionAndSettings(_ peerCase: PeerCase) {
        let api = peerCase.engine.api
        var options = peerCase.options
        var text = [CChar](repeating: 1, count: 2048)
        api.describe(&options, &text, text.count)
        #expect(text.contains(0) && text[0] != 0)
        api.describe(&options, &text, 8)
        #expect(text[7] == 0)
        #expect(api.version().map { String(cString: $0) }?.contains(".") == true)
        #expect(api.engine.map { String(cString: $0) } == peerCase.engine.rawValue)
    }

    private static func record(writer: Int, index: Int) -> (key: Bytes, value: Bytes) {
        ([UInt8(writer), UInt8(index)], Bytes(repeating: UInt8(index), count: 10 + index))
    }

    /// Keys in order, as `ascending` promises: half of them alone, half in one batch.
    private func fillAscending(_ peer: OpenPeer, _ model: inout PeerModel) throws {
        let records = (0..<100).map { (Bytes([0x61, UInt8($0)]), Bytes(repeating: 5, count: $0)) }
        for (key, value) in records.prefix(50) {
            try peer.put(key, value, ascending: true)
        }
        try peer.write(Array(records.dropFirst(50)), ascending: true)
        for (key, value) in records {
            model.records[key] = value
        }
    }

    private func writeSomething(
        _ peer: OpenPeer, _ model: inout PeerModel, _ generator: inout SeededGenerator
    ) throws {
        switch Int.random(in: 0..<5, using: &generator) {
        case 0:
            let key = generator.key()
            try peer.remove(key)
            model.records[key] = nil
        case 1:
            // A key may come twice in a batch; the later value counts.
            let records = (0..<Int.random(in: 1...10, using: &generator)).map { _ in
                (generator.key(), generator.value())
            }
            try peer.write(records)
            for (key, value) in records {
                model.records[key] = value
            }
        case 2:
            // None at all, ones that are missing, and ones that come twice are among them.
            let keys = (0..<Int.random(in: 0...10, using: &generator)).map { _ in
                generator.key()
            }
            try peer.removeAll(keys)
            for key in keys {
                model.records[key] = nil
            }
        default:
            let (key, value) = (generator.key(), generator.value())
            try peer.put(key, value)
            model.records[key] = value
        }
    }

    private func compare(
        _ peer: OpenPeer, _ model: PeerModel, _ generator: inout SeededGenerator
    ) throws {
        for key in model.records.keys.sorted(by: { $0.lexicographicallyPrecedes($1) })
            + (0..<20).map({ _ in generator.key() })
        {
            let expected = model.records[key]
            #expect(try peer.read(key) == expected)
            let got = try peer.get(key)
            #expect(got?.valueBytes == expected?.count)
            #expect(got?.checksum == expected.map(PeerModel.leadingNumber))
        }
        try expectSame(peer, model, from: nil)
        for _ in 0..<20 {
            let from = generator.key()
            let prefixBytes = Int.random(in: 0...from.count, using: &generator)
            let limit = Int.random(in: 0..<30, using: &generator)
            try expectSame(peer, model, from: from)
            try expectSame(peer, model, from: from, limit: limit)
            try expectSame(peer, model, from: from, prefixBytes: prefixBytes)
            try expectSame(peer, model, from: from, prefixBytes: prefixBytes, limit: limit)
        }
        try expectSame(peer, model, from: [0xFF, 0xFF, 0x61], prefixBytes: 2)
    }

    private func expectSame(
        _ peer: OpenPeer, _ model: PeerModel, from: Bytes?, prefixBytes: Int = 0,
        limit: Int = .max
    ) throws {
        let seen = try peer.scan(from: from, prefixBytes: prefixBytes, limit: limit)
        let expected = model.scan(from: from, prefixBytes: prefixBytes, limit: limit)
        #expect(seen.records == expected.records)
        #expect(seen.bytes == expected.bytes)
        #expect(seen.checksum == expected.checksum)
    }
}
