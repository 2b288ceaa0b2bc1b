import TestSupport
import Testing
import Tidemark

/// A verification tells each damage, and each but once, though many things lead to one place.
@Suite("Damage told once")
struct ToldOnceTests {
    private func flip(_ name: String, at offset: Int, of store: DamagedStore) throws {
        let whole = try #require(store.files[name])
        try Files.overwrite([whole[offset] ^ 0x10], in: "\(store.path)/\(name)", at: offset)
    }

    /// Where each block begins, of a log or a value file.
    private func blocks(of bytes: [UInt8]) -> [Int] {
        var blocks: [Int] = []
        var offset = 80
        while offset + 24 <= bytes.count,
            bytes[offset..<(offset + 24)].contains(where: { $0 != 0 })
        {
            blocks.append(offset)
            let length = bytes[(offset + 8)..<(offset + 12)].reversed().reduce(0) {
                $0 << 8 | Int($1)
            }
            offset = (offset + 24 + length + 7) & ~7
        }
        return blocks
    }

    private func offsets(_ store: DamagedStore) throws -> [UInt64?] {
        try Store.verify(at: store.path).damages.map { $0.location?.offset }
    }

    @Test("A data block, to which the index and the order of change lead as well")
    func dataBlock() throws {
        let store = try DamagedStore()
        try flip(store.file(".seg"), at: 80 + 100, of: store)
        #expect(try offsets(store) == [80])
    }

    @Test("A part of the hash index, and values that are damaged besides")
    func indexAndValues() throws {
        let store = try DamagedStore(largeValueBytes: 200)
        let segment = try store.file(".seg")
        let values = try store.file(".val")
        let bytes = try #require(store.files[segment])
        let blocks = blocks(of: try #require(store.files[values]))
        try #require(blocks.count > 4)
        for number in [1, 3] { try flip(values, at: blocks[number] + 30, of: store) }
        #expect(try offsets(store) == [UInt64(blocks[1]), UInt64(blocks[3])])
        var found = 0
        for offset in stride(from: 128, to: bytes.count - 144, by: 192) {
            try Files.write(bytes, to: "\(store.path)/\(segment)")
            try flip(segment, at: offset, of: store)
            let damages = try Store.verify(at: store.path).damages
            let inSegment = damages.filter { $0.location?.path.hasSuffix(".seg") ?? false }
            #expect(inSegment.count == 1, "byte \(offset): \(inSegment)")
            if inSegment.first?.message.contains("hash index") ?? false {
                found += 1
                #expect(damages.count == 3, "byte \(offset) hides values: \(damages)")
            }
        }
        #expect(found > 0, "no part of the hash index was damaged")
    }

    @Test("Two holes in a log, and a log that is cut")
    func log() throws {
        let store = try DamagedStore(logWrites: 10)
        let name = try store.file(".log")
        let whole = try #require(store.files[name])
        let blocks = blocks(of: whole)
        try #require(blocks.count > 8)
        for number in [3, 6] { try flip(name, at: blocks[number] + 30, of: store) }
        #expect(try offsets(store) == [UInt64(blocks[3]), UInt64(blocks[6])])
        for length in [0, 40, 80, blocks[4], blocks[4] + 10, whole.count - 1] {
            try Files.write(whole, to: "\(store.path)/\(name)")
            try Files.truncate("\(store.path)/\(name)", to: length)
            #expect(try offsets(store).count == 1, "cut to \(length) bytes")
        }
    }

    @Test("A value file that is missing, whoever names it")
    func valueFile() throws {
        let fixture = try LargeValueStore(valueBytes: 1_000)
        try fixture.put(0..<10)
        try fixture.store.compact()
        try fixture.put(0..<3, round: 1)
        try fixture.store.sealAll()
        try fixture.dataset.put("small", for: "a")
        try fixture.store.compact()
        try fixture.store.close()
        let name = try #require(try fixture.valueFiles.first)
        try Files.remove("\(fixture.path)/\(name)")
        let damages = try Store.verify(at: fixture.path).damages
        #expect(damages.map { $0.location?.path } == ["\(fixture.path)/\(name)"])
    }
}
