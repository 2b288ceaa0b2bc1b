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
        var offset = 64
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
        mended.put64(mended.checksum(footer..<(footer + 200)), at: footer + 200)
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

    fileprivate mutating func mendBlock(at offset: Int) {
        put64(checksum((offset + 8)..<(offset + 24 + Int(number32(at: offset + 8)))), at: offset)
    }
}
