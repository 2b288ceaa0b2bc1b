import TestSupport
import Tidemark

/// Options of stores that are about adoption: what is sealed is what a test has sealed.
func adoptionOptions(
    compression: Compression = .lz4, author: String = "tester",
    historyVersions: Int = 0
) -> StoreOptions {
    StoreOptions(
        durability: .process, author: author, segmentBytes: 1 << 20,
        historyVersions: historyVersions, compactsAutomatically: false, compression: compression)
}

/// Two stores: one that has records and one that is to have them.
struct AdoptionFixture {
    let directory: TemporaryDirectory
    let source: Store
    let target: Store

    init(_ options: StoreOptions = adoptionOptions()) throws {
        directory = try TemporaryDirectory()
        source = try Store.open(at: directory["source"], options: options)
        target = try Store.open(at: directory["target"], options: adoptionOptions())
    }

    /// Several versions of some keys, tombstones and records that expire, sealed in a few runs.
    static func fill(
        _ dataset: Dataset, _ random: inout SeededGenerator, writes: Int, seals: Int = 3,
        between: (() throws -> Void)? = nil
    ) throws {
        for number in 0..<writes {
            let key = Array("key \(random.below(max(1, writes / 2)))".utf8)
            switch random.below(10) {
            case 0: try dataset.delete(key)
            case 1:
                try dataset.put(
                    random.bytes(10), for: key, expiresAt: 4_000_000_000_000 + UInt64(number))
            case 2...5: try dataset.put(random.bytes(random.below(200)), for: key)
            default: try dataset.put(random.compressibleBytes(random.below(300)), for: key)
            }
            if (number + 1) % max(1, writes / seals) == 0 { try between?() }
        }
    }
}

/// Takes over everything that a dataset's store offers of it. nil if it cannot be.
@discardableResult
func adoptWhole(
    _ source: Dataset, into target: Dataset, bytesMax: Int = 20_000
) throws -> Int? {
    guard let offer = try source.segmentOffer(bytesMin: 0),
        let adoption = try target.beginAdoption(of: offer, from: source.store.replicaID)
    else { return nil }
    try fetch(adoption, from: source, bytesMax: bytesMax)
    return try adoption.install(from: source.store.replicaID)
}

/// Brings the blocks that are missing, as many ranges as are asked for.
func fetch(
    _ adoption: SegmentAdoption, from source: Dataset, bytesMax: Int = 20_000,
    ranges: Int = .max
) throws {
    var left = ranges
    for (part, first) in adoption.missing {
        var next = first
        while next < part.blockCount {
            guard left > 0 else { return }
            left -= 1
            let blocks = try source.storedBlocks(
                of: part.number, identity: part.identity, from: next, countMax: .max,
                bytesMax: bytesMax)
            guard let blocks else { throw Mismatch("the segment \(part.number) is gone") }
            _ = try adoption.add(blocks, of: part)
            next = blocks.next
        }
    }
}

/// All blocks of an offer, one after the other, without their headers.
func storedPayload(_ dataset: Dataset, _ offer: SegmentOffer) throws -> [UInt8] {
    var payload: [UInt8] = []
    for part in offer.runs.joined() {
        var next = 0
        while next < part.blockCount {
            guard
                let blocks = try dataset.storedBlocks(
                    of: part.number, identity: part.identity, from: next, countMax: 7,
                    bytesMax: 1 << 20)
            else { throw Mismatch("the segment \(part.number) is gone") }
            for range in blockRanges(blocks.bytes) {
                payload += blocks.bytes[range.dropFirst(24)]
            }
            next = blocks.next
        }
    }
    return payload
}

/// Where each block lies, header included.
func blockRanges(_ bytes: [UInt8]) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var offset = 0
    while offset + 24 <= bytes.count {
        let count = (0..<4).reduce(0) { $0 | Int(bytes[offset + 8 + $1]) << (8 * $1) }
        ranges.append(offset..<offset + 24 + count)
        offset += 24 + count
    }
    return ranges
}

/// Every version that is retained of every key. Whether a peer has it is another thing here and
/// there.
func allVersions(_ dataset: Dataset) throws -> [[Record]] {
    try dataset.records(includingDeleted: true).collect().map { record in
        withoutDirtiness(try dataset.history(of: record.key))
    }
}

func withoutDirtiness(_ records: [Record]) -> [Record] {
    records.map { record in
        Record(
            key: record.key, value: record.value, version: record.version,
            syncCount: record.syncCount, isDirty: false, expiresAt: record.expiresAt)
    }
}

func requireSound(_ store: Store) throws {
    let damages = try store.verify().damages
    try require(damages.isEmpty, "damages: \(damages)")
}
