import Glibc
import TestSupport
import Testing
import Tidemark

/// A walk that comes upon a damaged block has no next record, and must not pass for one that is at
/// its end.
@Suite("A cursor that has met damage")
struct FailedWalkTests {
    /// A store of two runs, the older of which has a damaged block in its middle.
    private func damaged(_ directory: TemporaryDirectory) throws -> Store {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.compression = .none
        let path = directory["store"]
        let store = try Store.open(at: path, options: options)
        let dataset = try store.dataset("main")
        for number in 1_000..<1_200 {
            try dataset.put(String(repeating: "a", count: 300), for: "key \(number)")
        }
        try store.compact()
        for number in 1_000..<1_200 where number.isMultiple(of: 7) {
            try dataset.put("b", for: "key \(number)")
        }
        try store.close()
        let name = try #require(try Files.list(path).first { $0.hasSuffix(".seg") })
        var file = try Files.read("\(path)/\(name)")
        file[20_000] ^= 1
        try Files.write(file, to: "\(path)/\(name)")
        return try Store.open(at: path, options: options)
    }

    @Test(
        "throws the same again, and gives nothing twice", arguments: [ScanOrder.forward, .backward])
    func again(order: ScanOrder) throws {
        let directory = try TemporaryDirectory()
        let store = try damaged(directory)
        let dataset = try store.dataset("main")
        var seen: Set<[UInt8]> = []
        let records = try dataset.records(order: order)
        let error = expectError(.corruption) {
            while let record = try records.next() {
                try require(seen.insert(record.key).inserted, "a record came twice")
            }
        }
        for _ in 0..<3 {
            #expect(expectError(.corruption) { try records.next() } == error)
            expectError(.corruption) { try records.withNext { _, _ in } }
        }
        let keys = try dataset.keys(order: order)
        expectError(.corruption) { while try keys.next() != nil {} }
        expectError(.corruption) { try keys.next() }
        try store.close()
    }

    /// They are read ahead, some dozens at a time.
    @Test("follows changes up to the damage, and again from there")
    func changes() async throws {
        let directory = try TemporaryDirectory()
        let store = try damaged(directory)
        let dataset = try store.dataset("main")
        let cursor = try dataset.changes(since: 0)
        var expected: [SyncCount] = []
        expectError(.corruption) {
            while let record = try cursor.next() { expected.append(record.syncCount) }
        }
        try #require(expected.count > 1 && !expected.count.isMultiple(of: 64))
        var iterator = dataset.liveChanges(since: 0).makeAsyncIterator()
        var given: [SyncCount] = []
        for _ in 0..<3 {
            do {
                while let record = try await iterator.next() { given.append(record.syncCount) }
                Issue.record("the damage was passed over")
            } catch {
                #expect(error.code == .corruption)
            }
            #expect(given == expected && iterator.position == expected.last)
        }
        try store.close()
    }

    /// A segment that could not be opened is opened again by each read.
    @Test("maps the file once, however often it tries")
    func attempts() throws {
        let directory = try TemporaryDirectory()
        let path = directory["file"]
        try Files.write([UInt8](repeating: 1, count: 10_000), to: path)
        let file = try SystemStorage().openFile(path, .read)
        for _ in 0..<50 { _ = unsafe try file.mapForReading() }
        #expect(try mappings(of: path) == 1)
        withExtendedLifetime(file) {}
    }

    /// How often this process has a file mapped. The list has no size before it is read.
    private func mappings(of path: String) throws -> Int {
        guard let list = unsafe fopen("/proc/self/maps", "r") else {
            throw Mismatch("/proc/self/maps cannot be read")
        }
        defer { unsafe fclose(list) }
        var line = [CChar](repeating: 0, count: 8_192)
        var count = 0
        while unsafe fgets(&line, Int32(line.count), list) != nil {
            let bytes = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            if String(decoding: bytes, as: UTF8.self).contains(path) { count += 1 }
        }
        return count
    }
}
