import TestSupport
import Testing
import Tidemark

/// A small store with every kind of file, two of most, and what is known of each version in it:
/// which bytes of which files it takes to read it.
struct RandomDamageStore {
    /// A block.
    struct Place {
        let file: String
        let range: Range<Int>
    }

    struct Saved {
        let dataset: String
        let record: Record
        /// The block that holds the entry, and that of its value where that lies apart.
        let places: [Place]
    }

    let directory: TemporaryDirectory
    let path: String
    let replica: ReplicaID
    /// Of all datasets that there are.
    private(set) var contents: [String: DamagedStore.Contents] = [:]
    private(set) var versions: [Saved] = []
    private(set) var files: [String: [UInt8]] = [:]
    /// Up to the last byte that was ever written: behind it a log is empty.
    private(set) var usedBytes: [String: Int] = [:]

    static let names = ["main", "other"]

    static var options: StoreOptions {
        StoreOptions(
            durability: .process, author: "tester", segmentBytes: 1 << 20, historyVersions: 2,
            compactsAutomatically: false, largeValueBytes: 200)
    }

    static var readOnly: StoreOptions {
        var options = options
        options.isReadOnly = true
        options.createsIfMissing = false
        return options
    }

    init(_ seed: Seed) throws {
        directory = try TemporaryDirectory()
        path = directory["store"]
        let store = try Store.open(at: path, options: Self.options)
        replica = store.replicaID
        var random = SeededGenerator(seed)
        try Self.fill(store, &random)
        try store.close()
        files = try Files.contents(path).filter { $0.key != "LOCK" }
        usedBytes = files.mapValues { bytes in (bytes.lastIndex { $0 != 0 } ?? 0) + 1 }
        let reader = try Store.open(at: path, options: Self.readOnly)
        for name in Self.names { contents[name] = try DamagedStore.read(reader.dataset(name)) }
        versions = try Self.versions(of: reader, files)
        try reader.close()
    }

    /// A sealed run that was merged, one above it, and a log; each with some values that lie apart.
    private static func fill(_ store: Store, _ random: inout SeededGenerator) throws {
        for name in names {
            let dataset = try store.dataset(name)
            for index in 0..<12 {
                try dataset.put(value(index, &random), for: bytes("key \(index)"))
            }
            try dataset.put("second version", for: "key 2")
            try dataset.delete("key 5")
            try dataset.put("expires one day", for: "key 7", expiresAt: 1 << 47)
        }
        try store.dataset("gone").put("1", for: "a")
        try store.deleteDataset("gone")
        try store.compact()
        let main = try store.dataset("main")
        for index in 6..<18 { try main.put(value(index, &random), for: bytes("key \(index)")) }
        try main.delete("key 1")
        try store.sealAll()
        for index in 16..<24 {
            let dataset = try store.dataset(names[index % 2])
            try dataset.put(value(index, &random), for: bytes("key \(index)"))
        }
        try main.delete("key 0")
        try main.put("third version", for: "key 2")
    }

    /// Some apart from their keys, some that shrink, some that do not, some empty.
    private static func value(_ index: Int, _ random: inout SeededGenerator) -> [UInt8] {
        switch index % 4 {
        case 0: random.bytes(300 + random.below(600))
        case 1: random.compressibleBytes(150)
        case 2: random.bytes(60)
        default: []
        }
    }

    private static func versions(
        of store: Store, _ files: [String: [UInt8]]
    ) throws -> [Saved] {
        var histories: [String: [Record]] = [:]
        var versions: [Saved] = []
        let cursor = try store.operations()
        while let operation = try cursor.next() {
            guard let key = operation.key, names.contains(operation.dataset) else { continue }
            let place = "\(operation.dataset)/\(key)"
            if histories[place] == nil {
                histories[place] = try store.dataset(operation.dataset).history(of: key)
            }
            let record = try #require(
                histories[place]?.first { $0.version == operation.version })
            let bytes = try #require(files[operation.segment])
            var places = [
                Place(
                    file: operation.segment, range: block(in: bytes, at: Int(operation.offset)))
            ]
            if operation.segment.hasSuffix(".seg"), let value = record.value, value.count >= 200 {
                places.append(try #require(placeOfValue(value, files)))
            }
            versions.append(
                Saved(dataset: operation.dataset, record: record, places: places))
        }
        return versions
    }

    /// A block has 24 bytes of header, of which the four at 8 are the length of what follows.
    private static func block(in bytes: [UInt8], at offset: Int) -> Range<Int> {
        let length = bytes[(offset + 8)..<(offset + 12)].reversed().reduce(0) { $0 << 8 | Int($1) }
        return offset..<(offset + 24 + length)
    }

    /// Large values are random, so they are stored as they are, and each is found by its bytes.
    private static func placeOfValue(_ value: [UInt8], _ files: [String: [UInt8]]) -> Place? {
        for (name, bytes) in files where name.hasSuffix(".val") {
            var offset = 80
            while offset + 24 <= bytes.count {
                let range = block(in: bytes, at: offset)
                if range.count == value.count + 24,
                    bytes[(offset + 24)..<range.upperBound].elementsEqual(value)
                {
                    return Place(file: name, range: range)
                }
                offset = (range.upperBound + 7) & ~7
            }
        }
        return nil
    }

    /// Puts files back as they were.
    func restore(_ names: Set<String>) throws {
        for name in names { try Files.write(files[name] ?? [], to: "\(path)/\(name)") }
    }
}
