/// A sealed segment taken apart, so that one part can be replaced by other bytes and the whole put
/// together again with every offset, length and checksum right.
struct SegmentLayout {
    enum Part: UInt8, CaseIterable {
        case data, compressedData, changes, index, directory, changeDirectory, tables, datasets
        case collected, valueFiles
    }

    private struct Block {
        var kind: BlockHeader.Kind
        var stored: [UInt8]
        var rawCount: Int
    }

    private let number: UInt64
    private var header: [UInt8]
    private var footer: [UInt8]
    private var data: [Block] = []
    private var changes: [Block] = []
    private var buckets: [UInt8]
    /// In the order of their handles, the third being the checksums of the hash index.
    private var tables: [Block] = []

    private static let kinds: [BlockHeader.Kind] = [
        .directory, .changeDirectory, .indexChecksums, .tables, .datasets, .collected,
        .valueFiles,
    ]

    init(_ file: [UInt8]) {
        let start = file.count - 208
        header = file.slice(0, 80)
        footer = file.slice(start, 208)
        number = footer.number64(at: 8)
        let index = footer.place(at: 72)
        buckets = file.slice(index, 64 * footer.place(at: 80))
        func block(_ offset: Int, _ kind: BlockHeader.Kind) -> Block {
            let stored = file.slice(offset + 24, Int(file.number32(at: offset + 8)))
            return Block(
                kind: kind, stored: stored, rawCount: Int(file.number32(at: offset + 12)))
        }
        for (number, kind) in Self.kinds.enumerated() {
            tables.append(block(footer.place(at: 88 + 16 * number), kind))
        }
        let directory = tables[0].stored
        let count = Int(directory.number32(at: 0))
        for number in 0..<count {
            let mark = directory.number32(at: 8 + 8 * count + 4 * number)
            data.append(block(Int(mark & 0x7FFF_FFFF) << 3, .data))
        }
        for row in 0..<footer.place(at: 56) {
            let offset = Int(tables[1].stored.number32(at: 16 * row + 4)) << 3
            changes.append(block(offset, .changes))
        }
    }

    /// The bytes of a part as they are, for a first corpus.
    func bytes(of part: Part, number: Int) -> [UInt8] {
        switch part {
        case .data, .compressedData: data.isEmpty ? [] : data[number % data.count].stored
        case .changes: changes.isEmpty ? [] : changes[number % changes.count].stored
        case .index: buckets
        default: raw(tables[Self.table(of: part)])
        }
    }

    private func raw(_ block: Block) -> [UInt8] {
        guard block.stored.count < block.rawCount else { return block.stored }
        var target = [UInt8](repeating: 0, count: block.rawCount)
        let isWhole = unsafe target.withUnsafeMutableBytes { target in
            unsafe block.stored.withUnsafeBytes { unsafe LZ4Block.decompress($0, into: target) }
        }
        precondition(isWhole, "a block of a base store does not decompress")
        return target
    }

    private static func table(of part: Part) -> Int {
        switch part {
        case .directory: 0
        case .changeDirectory: 1
        case .tables: 3
        case .datasets: 4
        case .collected: 5
        default: 6
        }
    }

    /// - Parameter rawCount: for a compressed block, what it claims to be uncompressed.
    mutating func replace(_ part: Part, number: Int, with bytes: [UInt8], rawCount: Int) {
        switch part {
        case .data where !data.isEmpty:
            data[number % data.count].stored = bytes
            data[number % data.count].rawCount = bytes.count
        case .compressedData where !data.isEmpty:
            data[number % data.count].stored = bytes
            data[number % data.count].rawCount = max(rawCount, bytes.count + 1)
        case .changes where !changes.isEmpty:
            changes[number % changes.count].stored = bytes
            changes[number % changes.count].rawCount = bytes.count
        case .index:
            buckets = bytes + [UInt8](repeating: 0, count: (64 - bytes.count % 64) % 64)
            if buckets.isEmpty { buckets = [UInt8](repeating: 0, count: 64) }
        case .data, .compressedData, .changes: break
        default:
            tables[Self.table(of: part)].stored = bytes
            tables[Self.table(of: part)].rawCount = bytes.count
        }
    }

    /// - Parameter replaced: this part keeps its bytes, whatever the others say.
    func assembled(replaced: Part) -> [UInt8] {
        var file = header
        let identity = Checksums.identity(of: header)
        var tables = tables
        var footer = footer
        var directory = tables[0].stored
        let count = data.count
        for (number, block) in data.enumerated() {
            let isCompressed: UInt32 = block.stored.count < block.rawCount ? 1 << 31 : 0
            directory.put32(
                UInt32(file.count >> 3) | isCompressed, at: 8 + 8 * count + 4 * number)
            append(block, to: &file, identity)
        }
        directory.put32(UInt32(file.count >> 3), at: 8 + 8 * count + 4 * count)
        footer.put64(UInt64(file.count), at: 64)
        if replaced != .directory { tables[0].stored = directory }
        var rows = tables[1].stored
        for (row, block) in changes.enumerated() {
            rows.put32(UInt32(file.count >> 3), at: 16 * row + 4)
            append(block, to: &file, identity)
        }
        rows.put32(UInt32(file.count >> 3), at: 16 * changes.count + 4)
        if replaced != .changeDirectory { tables[1].stored = rows }
        file += [UInt8](repeating: 0, count: (64 - file.count % 64) % 64)
        footer.put64(UInt64(file.count), at: 72)
        footer.put64(UInt64(buckets.count / 64), at: 80)
        file += buckets
        let chunkCount = (buckets.count / 64 + 1_023) / 1_024
        tables[2].stored = [UInt8](repeating: 0, count: 8 * chunkCount)
        tables[2].rawCount = 8 * chunkCount
        for (number, block) in tables.enumerated() {
            footer.put64(UInt64(file.count), at: 88 + 16 * number)
            footer.put32(UInt32(block.stored.count), at: 96 + 16 * number)
            footer.put32(UInt32(block.rawCount), at: 100 + 16 * number)
            append(block, to: &file, identity)
        }
        file += footer
        Checksums.mendSegment(&file)
        return file
    }

    private func append(
        _ block: Block, to file: inout [UInt8], _ identity: StoreIdentity?
    ) {
        var head = [UInt8](repeating: 0, count: 24)
        head.put32(UInt32(block.stored.count), at: 8)
        head.put32(UInt32(block.rawCount), at: 12)
        head.put32(UInt32(truncatingIfNeeded: number), at: 16)
        head[20] = block.kind.rawValue
        let start = file.count
        file += head + block.stored
        file += [UInt8](repeating: 0, count: (8 - file.count % 8) % 8)
        Checksums.mendBlock(&file, at: start, identity)
    }
}
