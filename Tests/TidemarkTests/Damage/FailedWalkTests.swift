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

    @Test("that cannot be opened takes no more memory with each attempt")
    func attempts() throws {
        let directory = try TemporaryDirectory()
        let store = try DamagedStore()
        let name = try store.file(".seg")
        var file = try #require(store.files[name])
        // The directory, which the footer names first.
        let place = file.count - 208 + 88
        let offset = file[place..<(place + 8)].reversed().reduce(0) { $0 << 8 | Int($1) }
        file[offset + 30] ^= 1
        try Files.write(file, to: "\(store.path)/\(name)")
        var options = quickOptions()
        options.isReadOnly = true
        let opened = try Store.open(at: store.path, options: options)
        for _ in 0..<50 { expectError(.corruption) { try opened.existingDataset("main") } }
        #expect(try mappings(of: "\(store.path)/\(name)") <= 2)
        try opened.close()
        withExtendedLifetime(directory) {}
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
