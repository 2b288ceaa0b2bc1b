import TestSupport
import Testing
import Tidemark

/// Every byte of every file has a name, whatever the bytes are.
struct DissectionTests {
    let directory: TemporaryDirectory
    var path: String { directory["store"] }

    init() throws { directory = try TemporaryDirectory() }

    /// Logs, compressed segments, values apart, all sorts of items.
    private func fill() throws {
        let options = StoreOptions(
            durability: .memory, author: "tester", segmentBytes: 1 << 20, historyVersions: 2,
            compactsAutomatically: false, compression: .lz4, largeValueBytes: 512)
        let store = try Store.open(at: path, options: options)
        let records = try store.dataset("records")
        for number in 0..<300 {
            let value = String(repeating: "value \(number) ", count: 1 + number % 9)
            try records.put(value, for: "key \(number % 200)")
            if number % 31 == 0 { try records.delete("key \(number)") }
        }
        try records.put(String(repeating: "long ", count: 400), for: "long")
        try store.dataset("gone").put("value", for: "key")
        try store.sealAll()
        try store.deleteDataset("gone")
        try store.renewReplicaID()
        try records.put(
            bytes("soon"), for: bytes("expires"), expiresAt: 4_000_000_000_000)
        var batch = ReplicationBatch()
        let peer = ReplicaID(high: 1, low: 2)
        batch.checkpoint = (
            peer,
            PeerCheckpoint(
                pulledThrough: SyncCount(rawValue: 3), pushedThrough: SyncCount(rawValue: 4),
                vector: VersionVector([Dot(replica: peer, counter: 9)]))
        )
        batch.seen = VersionVector([Dot(replica: peer, counter: 9)])
        let moved = try records.replicate(batch)
        try #require(moved.isEmpty)
        try records.retire(peer)
        try store.close()
    }

    private var files: [String] {
        get throws { try Files.list(path).filter { $0 != "LOCK" } }
    }

    /// Expects that the fields of a file follow on each other from its first byte to its last, and
    /// gives the names of all of them.
    @discardableResult
    private func names(in file: String, _ comment: Comment? = nil) throws -> Set<String> {
        let size = try Files.read("\(path)/\(file)").count
        let dissection = try Store.dissection(ofFile: file, in: path)
        var names: Set<String> = []
        var position: UInt64 = 0
        while let part = try dissection.next() {
            for field in part.fields {
                #expect(field.offset == position, "\(file) at \(position)")
                #expect(!field.name.isEmpty && field.bytes.count <= field.count, comment)
                position = field.endOffset
                names.insert(field.name)
            }
            var inside: UInt64 = 0
            for field in part.content {
                #expect(field.offset == inside, comment)
                inside = field.endOffset
                names.insert(field.name)
            }
        }
        #expect(position == UInt64(size), comment)
        return names
    }

    @Test func everyByteOfAWholeStoreIsNamed() throws {
        try fill()
        var all: Set<String> = []
        for file in try files {
            let found = try names(in: file)
            #expect(!found.contains("damaged") && !found.contains("content"), "\(file)")
            all.formUnion(found)
        }
        for name in [
            "magic", "secret", "checksum", "key", "value", "expires at", "sync count", "counter",
            "place", "LZ4 block", "value file", "peer", "wiped: entries", "clock", "tag", "prefix",
        ] {
            #expect(all.contains(name), "\(name)")
        }
    }

    /// The mark of a log's place is no part of its size, and ids that were given up have names.
    @Test func aCopyIsNamedAsWell() throws {
        try fill()
        let copy = directory["copy"]
        try Files.copyDirectory(path, to: copy)
        let store = try Store.open(at: copy, options: quickOptions())
        try store.close()
        // No file system that does not tell files from copies has any of this.
        guard !store.closedReplicaIDs.isEmpty else { return }
        var fields: [ByteField] = []
        for file in try Files.list(copy) where file != "LOCK" {
            let dissection = try Store.dissection(ofFile: file, in: copy)
            while let part = try dissection.next() { fields += part.fields + part.content }
        }
        #expect(!fields.contains { $0.name == "damaged" || $0.name == "content" })
        #expect(fields.contains { $0.name == "closed id" })
        #expect(fields.contains { $0.name == "place" && $0.meaning != "not known" })
        let sizes = fields.filter { $0.name == "bytes it may have" }.compactMap { Int($0.meaning) }
        #expect(sizes.contains(1 << 20) && sizes.allSatisfy { $0 <= 1 << 20 })
    }

    @Test func fieldsSayWhatTheBytesMean() throws {
        try fill()
        let store = try Store.open(at: path, options: StoreOptions(isReadOnly: true))
        defer { try? store.close() }
        let segment = try #require(try files.first { $0.hasSuffix(".seg") })
        let dissection = try store.dissection(ofFile: segment)
        var meanings: Set<String> = []
        while let part = try dissection.next() {
            for field in part.fields + part.content {
                meanings.insert("\(field.name): \(field.meaning)")
            }
        }
        #expect(meanings.contains { $0.hasPrefix("dataset: ") && $0.hasSuffix(": records") })
        #expect(meanings.contains { $0.hasPrefix("origin: ") && $0.hasSuffix(" by tester") })
        #expect(meanings.contains("file kind: sealed segment"))
        #expect(meanings.contains { $0.hasPrefix("checksum: ") && $0.hasSuffix(": matches") })
    }

    /// Nothing that a damaged file says makes the walk trap, or leave a byte out.
    @Test func damagedFilesAreNamedAsWell() throws {
        try fill()
        let seed = Seed.drawn()
        var random = SeededGenerator(seed)
        for file in try files where !file.hasPrefix("MANIFEST") {
            let whole = try Files.read("\(path)/\(file)")
            for _ in 0..<12 {
                var bytes = whole
                for _ in 0...random.below(3) {
                    bytes[random.below(bytes.count)] ^= UInt8(1 << random.below(8))
                }
                if random.oneIn(3) { bytes.removeLast(random.below(bytes.count)) }
                try Files.write(bytes, to: "\(path)/\(file)")
                try names(in: file, "seed \(seed)")
            }
            try Files.write(whole, to: "\(path)/\(file)")
        }
    }

    @Test func aBlockMayBeTheFirst() throws {
        try fill()
        let store = try Store.open(at: path, options: StoreOptions(isReadOnly: true))
        defer { try? store.close() }
        let cursor = try store.operations(in: "records")
        var last: LogOperation?
        while let operation = try cursor.next() { last = operation }
        let operation = try #require(last)
        let dissection = try store.dissection(ofFile: operation.segment)
        try dissection.skip(to: operation.offset)
        #expect(try dissection.next()?.offset == operation.offset)
        for offset in [0, 79, 81, 1 << 40] as [UInt64] {
            let other = try store.dissection(ofFile: operation.segment)
            try other.skip(to: offset)
            #expect(try other.next()?.offset == 0)
        }
    }

    @Test func whatIsMissingIsSaid() throws {
        try fill()
        expectError(.notAStore) { try Store.dissection(ofFile: "000099.seg", in: path) }
    }
}
