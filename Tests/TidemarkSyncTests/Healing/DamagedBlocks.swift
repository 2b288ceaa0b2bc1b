import TestSupport
import Tidemark

/// Damages blocks of the sealed segments of a closed store, found by what the file format says.
struct DamagedBlocks {
    /// A data block of a segment's file.
    struct Block: Hashable {
        let path: String
        let offset: Int
        let byteCount: Int
        /// Whether no block of the same file comes before it, or none after it: there lies what the
        /// store keeps for itself.
        let isAtEnd: Bool
    }

    /// A sealed segment: where its data blocks end, and where its hash index begins and ends.
    private struct Layout {
        let dataEnd: Int
        let index: Range<Int>

        init(_ bytes: [UInt8]) {
            let footer = bytes.count - 208
            dataEnd = DamagedBlocks.number(bytes, at: footer + 64, bytes: 8)
            let start = DamagedBlocks.number(bytes, at: footer + 72, bytes: 8)
            let buckets = DamagedBlocks.number(bytes, at: footer + 80, bytes: 8)
            index = start..<(start + 64 * buckets)
        }
    }

    let store: String

    private static func number(_ bytes: [UInt8], at offset: Int, bytes count: Int) -> Int {
        bytes[offset..<(offset + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    private func files(_ ending: String) throws -> [String] {
        try Files.list(store).filter { $0.hasSuffix(ending) }.map { "\(store)/\($0)" }
    }

    /// All data blocks of all segments.
    func all() throws -> [Block] {
        var blocks: [Block] = []
        for path in try files(".seg") {
            let bytes = try Files.read(path)
            let end = Layout(bytes).dataEnd
            var places: [(offset: Int, byteCount: Int)] = []
            var offset = 80
            while offset < end {
                let stored = Self.number(bytes, at: offset + 8, bytes: 4)
                places.append((offset, 24 + stored))
                offset = (offset + 24 + stored + 7) & ~7
            }
            for (index, place) in places.enumerated() {
                blocks.append(
                    Block(
                        path: path, offset: place.offset, byteCount: place.byteCount,
                        isAtEnd: index == 0 || index == places.count - 1))
            }
        }
        return blocks
    }

    /// Changes a bit somewhere in a block.
    func damage(_ block: Block, _ random: inout some RandomNumberGenerator) throws {
        try flip(block.path, in: block.offset..<(block.offset + block.byteCount), &random)
    }

    /// Changes a bit of a hash index.
    func damageIndex(_ random: inout some RandomNumberGenerator) throws {
        guard let path = try files(".seg").first else { return }
        try flip(path, in: Layout(try Files.read(path)).index, &random)
    }

    /// Changes a bit of a value that lies apart: there is one value in the file.
    func damageValue(_ random: inout some RandomNumberGenerator) throws {
        guard let path = try files(".val").first else { return }
        try flip(path, in: 100..<1_000, &random)
    }

    private func flip(
        _ path: String, in range: Range<Int>, _ random: inout some RandomNumberGenerator
    ) throws {
        let offset = Int.random(in: range, using: &random)
        let bit = UInt8.random(in: 0..<8, using: &random)
        let byte = try Files.read(path)[offset]
        try Files.overwrite([byte ^ (1 << bit)], in: path, at: offset)
    }
}

extension TestReplica {
    /// Closes the store, has it damaged and opens it again.
    func damage(_ body: (DamagedBlocks) throws -> Void) throws {
        try store.close()
        try body(DamagedBlocks(store: store.path))
        try reopen()
    }
}
