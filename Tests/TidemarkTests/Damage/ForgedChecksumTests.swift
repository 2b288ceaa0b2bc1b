import TestSupport
import Testing
import Tidemark

/// Files whose checksums are right and whose contents are not: what the fuzzer found, each as
/// small as it goes (see Tests/Fuzz).
@Suite("Forged checksums")
struct ForgedChecksumTests {
    private let store: DamagedStore

    init() throws {
        store = try DamagedStore()
    }

    private func verifyFindings() throws -> [StoreError] {
        try Store.verify(at: store.path).damages
    }

    @Test("Verification compares the counts in the footer with the entries")
    func footerCounts() throws {
        #expect(try verifyFindings().isEmpty)
        for field in [16, 24, 32, 40] {
            var file = try SealedBytes(store)
            let place = file.footer + field
            file.bytes.put64(file.bytes.number64(at: place) + 1, at: place)
            try file.write(store)
            #expect(try verifyFindings().map(\.code) == [.corruption], "field \(field)")
        }
    }

    @Test("Verification compares the counts of each dataset with the entries")
    func datasetCounts() throws {
        var file = try SealedBytes(store)
        let table = file.table(4)
        // The last row's bytes of values: one more or one less.
        file.bytes[table.upperBound - 1] ^= 1
        try file.write(store)
        #expect(try verifyFindings().map(\.code) == [.corruption])
    }

    @Test("A block of changes beyond the end of the file is damage to verification and readers")
    func changesBeyondEnd() throws {
        for offset: UInt32 in [.max, 0, UInt32(store.files[try store.file(".seg")]!.count / 8)] {
            var file = try SealedBytes(store)
            file.bytes.put32(offset, at: file.table(1).lowerBound + 4)
            try file.write(store)
            #expect(try !verifyFindings().isEmpty)
            _ = try store.outcome()
        }
    }

    @Test("Verification finds a directory that leads a search astray")
    func wrongPrefix() throws {
        var file = try SealedBytes(store)
        file.bytes[file.table(0).lowerBound + 8 + 7] ^= 0xFF
        try file.write(store)
        #expect(try !verifyFindings().isEmpty)
    }

    @Test("A directory that lies about where a block begins hides no key that lies in it")
    func wrongPosition() throws {
        let whole = try SealedBytes(store)
        let table = whole.table(0)
        let blockCount = Int(whole.bytes.number32(at: table.lowerBound))
        let commonCount = Int(whole.bytes.number32(at: table.lowerBound + 4))
        // Behind first bytes, offsets and starts: see the article on the format.
        let rows = 8 * blockCount + 4 * (blockCount + 1) + 4 * (blockCount + 2)
        let positions = table.lowerBound + 8 + rows + commonCount
        var errors = 0
        for offset in positions..<table.upperBound {
            var file = whole
            file.bytes[offset] ^= 1
            try file.write(store)
            #expect(try !verifyFindings().isEmpty, "byte \(offset)")
            errors += try errorsOfGets()
        }
        #expect(errors > 0)
    }

    /// Reads every record by its key: each is right, or an error. Tells how many are errors.
    private func errorsOfGets() throws -> Int {
        var options = quickOptions()
        options.isReadOnly = true
        let opened: Store
        do throws(StoreError) {
            opened = try Store.open(at: store.path, options: options)
        } catch {
            return 1
        }
        var errors = 0
        for (name, expected) in store.contents {
            for record in expected.records {
                do {
                    guard let dataset = try opened.existingDataset(name) else {
                        throw Mismatch("the dataset \(name) is gone")
                    }
                    let value = try dataset.get(record.key)
                    try require(value == record.value, "\(Bytes.summary(record.key)) of \(name)")
                } catch is StoreError {
                    errors += 1
                }
            }
        }
        try opened.close()
        return errors
    }

    @Test("Verification finds a key that the hash index names beside those of the blocks")
    func strayKeyInIndex() throws {
        var file = try SealedBytes(store)
        let index = Int(file.bytes.number64(at: file.footer + 72))
        let count = Int(file.bytes.number64(at: file.footer + 80))
        let bucket = try #require((0..<count).first { file.bytes[index + 64 * $0 + 20] < 10 })
        file.bytes[index + 64 * bucket + 20] += 1
        file.mendIndex()
        try file.write(store)
        #expect(try !verifyFindings().isEmpty)
    }

    @Test("A log that ended in its last epoch opens")
    func lastEpoch() throws {
        let name = try store.file(".log")
        var bytes = try #require(store.files[name])
        var offset = 80
        while bytes.number32(at: offset + 8) > 0 {
            let end = offset + 24 + Int(bytes.number32(at: offset + 8))
            bytes[offset + 22] = 0xFF
            bytes[offset + 23] = 0xFF
            bytes.mendBlock(at: offset)
            offset = end
        }
        bytes[offset + 20] = 2
        bytes[offset + 22] = 0xFF
        bytes[offset + 23] = 0xFF
        bytes.mendBlock(at: offset)
        try Files.write(bytes, to: "\(store.path)/\(name)")
        let again = try Store.open(at: store.path, options: quickOptions())
        #expect(try again.dataset("main").text("log 1") == "in the log 1")
        try again.dataset("main").put("1", for: "a")
        try again.close()
    }

    private func uncompressed() -> StoreOptions {
        var options = quickOptions()
        options.compression = .none
        options.compactsAutomatically = false
        return options
    }

    @Test("An entry whose counter is beyond all counts is damage to verification and readers")
    func impossibleCounter() throws {
        let fixture = try StoreFixture(uncompressed())
        defer { withExtendedLifetime(fixture) {} }
        try fixture.dataset.put("a value", for: "a key")
        try fixture.store.compact()
        try fixture.store.close()
        let name = try #require(try Files.list(fixture.path).first { $0.hasSuffix(".seg") })
        var file = try Files.read("\(fixture.path)/\(name)")
        let needle = bytes("a keya value")
        let place = try #require(file.indices.first { file[$0...].starts(with: needle) })
        // Behind the value: the sync count, the origin, and the counter less the sync count.
        let stamp = place + needle.count
        try #require(file[stamp] < 60 && file[stamp + 2] == 0)
        // That makes it one less than none.
        file[stamp + 2] = 2 * file[stamp] + 1
        file.mendBlock(at: 80)
        try Files.write(file, to: "\(fixture.path)/\(name)")
        #expect(try !Store.verify(at: fixture.path).damages.isEmpty)
        expectError(.corruption) {
            let store = try Store.open(at: fixture.path, options: uncompressed())
            defer { try? store.close() }
            _ = try store.dataset("main").get("a key")
        }
    }

    @Test("A position in a peer's order beyond all counts is damage", arguments: [true, false])
    func impossiblePosition(isSealed: Bool) throws {
        let fixture = try StoreFixture(uncompressed())
        defer { withExtendedLifetime(fixture) {} }
        let peer = ReplicaID(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)
        var batch = ReplicationBatch()
        batch.checkpoint = (peer, PeerCheckpoint(pulledThrough: SyncCount(rawValue: 1 << 56)))
        #expect(try fixture.dataset.replicate(batch).isEmpty)
        try fixture.dataset.put("1", for: "a")
        if isSealed { try fixture.store.compact() }
        try fixture.store.close()
        let ending = isSealed ? ".seg" : ".log"
        var changed = 0
        for name in try Files.list(fixture.path) where name.hasSuffix(ending) {
            var file = try Files.read("\(fixture.path)/\(name)")
            let needle = [UInt8](1...16) + [UInt8](repeating: 0x80, count: 8) + [1]
            guard let place = file.indices.first(where: { file[$0...].starts(with: needle) })
            else { continue }
            file[place + needle.count - 1] = 2
            var block = 80
            while block + 24 + Int(file.number32(at: block + 8)) <= place {
                block += 24 + Int(file.number32(at: block + 8))
            }
            file.mendBlock(at: block)
            try Files.write(file, to: "\(fixture.path)/\(name)")
            changed += 1
        }
        try #require(changed == 1)
        expectError(.corruption) {
            let store = try Store.open(at: fixture.path, options: uncompressed())
            defer { try? store.close() }
            _ = try store.dataset("main").get("a")
        }
        #expect(try !Store.verify(at: fixture.path).damages.isEmpty)
    }

    @Test("A file of the greatest number there is does not stand in the way")
    func greatestNumber() throws {
        for ending in [".log", ".seg"] {
            try Files.write([1], to: "\(store.path)/\(UInt64.max)\(ending)")
        }
        let again = try Store.open(at: store.path, options: quickOptions())
        #expect(try again.dataset("main").text("log 1") == "in the log 1")
        try again.compact()
        try again.close()
    }
}

/// The one sealed segment of a store, to be changed and given right checksums again.
private struct SealedBytes {
    let name: String
    var bytes: [UInt8]
    let footer: Int

    init(_ store: DamagedStore) throws {
        name = try store.file(".seg")
        bytes = try #require(store.files[name])
        footer = bytes.count - 208
    }

    /// The content of a table by the number of its handle.
    func table(_ number: Int) -> Range<Int> {
        let start = Int(bytes.number64(at: footer + 88 + 16 * number)) + 24
        return start..<(start + Int(bytes.number32(at: footer + 96 + 16 * number)))
    }

    mutating func mendIndex() {
        let start = Int(bytes.number64(at: footer + 72))
        let end = start + 64 * Int(bytes.number64(at: footer + 80))
        bytes.put64(bytes.checksum(start..<end), at: table(2).lowerBound)
    }

    func write(_ store: DamagedStore) throws {
        var mended = bytes
        for number in 0..<7 { mended.mendBlock(at: table(number).lowerBound - 24) }
        mended.put64(mended.keyedChecksum(footer..<(footer + 200)), at: footer + 200)
        try Files.write(mended, to: "\(store.path)/\(name)")
    }
}

extension [UInt8] {
    fileprivate func number32(at offset: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(self[offset + $1]) << UInt32(8 * $1) }
    }

    fileprivate func number64(at offset: Int) -> UInt64 {
        UInt64(number32(at: offset)) | UInt64(number32(at: offset + 4)) << 32
    }

    fileprivate mutating func put32(_ number: UInt32, at offset: Int) {
        for index in 0..<4 {
            self[offset + index] = UInt8(truncatingIfNeeded: number >> UInt32(8 * index))
        }
    }

    fileprivate mutating func put64(_ number: UInt64, at offset: Int) {
        put32(UInt32(truncatingIfNeeded: number), at: offset)
        put32(UInt32(truncatingIfNeeded: number >> 32), at: offset + 4)
    }

    fileprivate func checksum(_ range: Range<Int>) -> UInt64 {
        unsafe withUnsafeBytes { unsafe checksum64(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// As a block or the footer has it in this file.
    fileprivate func keyedChecksum(_ range: Range<Int>) -> UInt64 {
        unsafe withUnsafeBytes {
            unsafe storeChecksum64(UnsafeRawBufferPointer(rebasing: $0[range]), inFile: self)
        }
    }

    fileprivate mutating func mendBlock(at offset: Int) {
        let end = offset + 24 + Int(number32(at: offset + 8))
        put64(keyedChecksum((offset + 8)..<end), at: offset)
    }
}
