import TestSupport
import Testing

@testable import Tidemark

/// Everything that a client or a peer decides is made of the store's own layouts, by somebody who
/// knows the format, all files and all numbers, and not the secret: keys, values, authors, names of
/// datasets, and of what a peer sends the replicas, vectors and positions, too. Each store is
/// killed, reopened, verified, repaired with and without its manifest, and each file is read by
/// itself. At times the store goes on with copies of its files, and takes an id of its own.
///
/// Property: nothing refuses to open, nothing is read that was not put, and no store takes an id or
/// gives one up but for copies.
///
/// `TIDEMARK_RUNS=n` makes n times as many stores.
@Suite("Stores full of forgeries")
struct ForgeryTests {
    @Test("Nothing is read that was not put, and every store opens")
    func stores() throws {
        let first = Seed.drawn(for: "forgeries")
        for number in schedules(20) {
            let seed = Seed(first.rawValue &+ number)
            do {
                try ForgedStore(seed).run()
            } catch {
                Issue.record("TIDEMARK_SEED=\(seed): \(error)")
                return
            }
        }
    }
}

/// One store, its clients, and what they have put.
private final class ForgedStore {
    private var storage: SimulatedStorage
    private var options: StoreOptions
    private var random: SeededGenerator
    private var forger: Forger
    private var names = ["main", "other"]
    /// By dataset and key.
    private var present: [String: [[UInt8]: [UInt8]]] = [:]
    /// Everything that was ever put, whatever became of it.
    private var everPut: Set<[UInt8]> = []
    /// The ids that the store gave up since its files were copied, and the one that it has.
    private var ids: [ReplicaID] = []

    init(_ seed: Seed) {
        var random = SeededGenerator(seed)
        storage = SimulatedStorage(seed: Seed(random.next()))
        options = StoreOptions(
            durability: .process, author: "forger", segmentBytes: Limits.segmentBytes.lowerBound,
            compactsAutomatically: random.oneIn(2),
            compression: random.oneIn(3) ? .lz4 : .none,
            largeValueBytes: random.oneIn(2) ? 4_096 : 1 << 20)
        forger = Forger(Seed(random.next()))
        self.random = random
    }

    func run() throws {
        var store = try openSimulated(storage, options)
        ids = [store.replicaID]
        for _ in 0..<(2 + random.below(3)) {
            try write(to: store)
            let disk = storage.afterKill(using: &random)
            try check(disk)
            if random.oneIn(2) {
                try store.close()
                try checkFiles(of: storage)
                options.author = forger.author()
                let isCopied = random.oneIn(3)
                if isCopied { storage = storage.withCopiedFiles(using: &random) }
                store = try openSimulated(storage, options)
                if isCopied { ids.append(store.replicaID) }
                try checkIDs(of: store, "opened anew")
            }
        }
        try store.close()
    }

    private func write(to store: Store) throws {
        forger.learn(from: storage)
        if random.oneIn(2) { names.append(forger.name()) }
        for _ in 0..<(10 + random.below(60)) {
            let name = names[random.below(names.count)]
            let dataset = try store.dataset(name)
            if random.oneIn(8) {
                try take(forger.message(), into: dataset)
                continue
            }
            let key = random.oneIn(4) ? forger.key() : bytes("key \(random.below(30))")
            let value = random.oneIn(8) ? random.bytes(random.below(200)) : forger.value()
            try dataset.put(value, for: key)
            note(value, for: key, in: name)
        }
        if random.oneIn(3) { try store.compact() }
    }

    /// Takes what a peer has sent, as an exchange does: its records of keys that are not here, what
    /// it has seen, and how far both have come.
    private func take(_ message: ReplicationBatch, into dataset: Dataset) throws {
        var message = message
        let known = present[dataset.name] ?? [:]
        message.writes.removeAll { known[$0.key] != nil }
        let moved = try dataset.replicate(message)
        try require(moved.isEmpty, "keys that are not there have moved on: \(moved.count)")
        present[dataset.name] = known
        for write in message.writes { note(write.value ?? [], for: write.key, in: dataset.name) }
    }

    private func note(_ value: [UInt8], for key: [UInt8], in name: String) {
        present[name, default: [:]][key] = value
        everPut.insert(Self.mark(key, value))
    }

    private static func mark(_ key: [UInt8], _ value: [UInt8]) -> [UInt8] {
        let both = key + [0] + value
        let hash = unsafe both.withUnsafeBytes { unsafe checksum128($0) }
        return unsafe withUnsafeBytes(of: hash.high) { unsafe Array($0) }
            + withUnsafeBytes(of: hash.low) { unsafe Array($0) }
    }

    /// A disk as a kill has left it.
    private func check(_ disk: SimulatedStorage) throws {
        let repaired = disk.afterKill(using: &random)
        try checkRepair(repaired, keepsManifest: random.oneIn(2))
        let store = try openSimulated(disk, options)
        try checkAll(of: store, "killed")
        try checkIDs(of: store, "killed")
        try store.close()
        let again = try openSimulated(disk, options)
        try checkAll(of: again, "opened twice")
        try checkIDs(of: again, "opened twice")
        try again.close()
        try checkFiles(of: disk)
    }

    private func checkAll(of store: Store, _ moment: String) throws {
        let damages = try store.verify().damages
        try require(damages.isEmpty, "\(moment), verification finds \(damages)")
        let names = try store.datasets().map(\.name).sorted()
        try require(names == present.keys.sorted(), "\(moment), there are \(names)")
        for (name, expected) in present {
            let records = try store.dataset(name).records().collect()
            try require(records.count == expected.count, "\(moment), \(name) has others")
            for record in records {
                try require(
                    record.value.map { $0 == expected[record.key] } ?? false,
                    "\(moment), \(Bytes.summary(record.key)) of \(name) is another")
            }
        }
    }

    private func checkIDs(of store: Store, _ moment: String) throws {
        let isAsMade =
            store.replicaID == ids.last && Set(ids).count == ids.count
            && store.closedReplicaIDs == ids.dropLast()
        try require(
            isAsMade, "\(moment), the id is \(store.replicaID) after \(store.closedReplicaIDs)")
    }

    private func checkRepair(_ disk: SimulatedStorage, keepsManifest: Bool) throws {
        if !keepsManifest { try disk.remove("\(simulatedPath)/MANIFEST") }
        let target = "/repaired"
        let report = try Store.repair(at: simulatedPath, to: target, storage: disk)
        let store = try Store.open(at: target, options: options, storage: disk)
        if keepsManifest {
            try require(report.isComplete, "repaired, there are losses: \(report.losses)")
            try checkAll(of: store, "repaired")
        } else {
            // Which logs count nobody knows, and what they say of datasets; but no record is new.
            for dataset in try store.datasets() {
                for record in try dataset.records().collect() {
                    try checkWasPut(record.key, record.value, "repaired without a manifest")
                }
            }
        }
        try store.close()
    }

    private func checkFiles(of disk: SimulatedStorage) throws {
        for name in try disk.listDirectory(simulatedPath)
        where name.hasSuffix(".log") || name.hasSuffix(".seg") {
            let path = "\(simulatedPath)/\(name)"
            do {
                _ = try Store.salvage(fileAt: path, storage: disk) { item in
                    guard case .record(let record) = item, record.value != nil else { return }
                    try checkWasPut(record.key, record.value, name)
                }
            } catch let error as StoreError where error.code == .notAStore {
                // A log that was prepared and never begun.
            }
        }
    }

    private func checkWasPut(_ key: [UInt8], _ value: [UInt8]?, _ moment: String) throws {
        guard let value else { return }
        try require(
            everPut.contains(Self.mark(key, value)),
            "\(moment): \(Bytes.summary(key)) was never put with that value")
    }
}

/// Makes bytes that look like parts of the store's files, but for the secret.
private struct Forger {
    private var random: SeededGenerator
    private var tag: UInt64 = 0
    private var numbers: ClosedRange<UInt64> = 1...8
    /// Blocks and ends of files of the store, without their checksums being known.
    private var blocks: [[UInt8]] = []
    private var footers: [[UInt8]] = []
    private var manifest: [UInt8] = []
    private static let footerByteCount = 208

    init(_ seed: Seed) {
        random = SeededGenerator(seed)
    }

    /// Looks at all that is in the files, apart from the secret.
    mutating func learn(from storage: SimulatedStorage) {
        guard let names = try? storage.listDirectory(simulatedPath) else { return }
        blocks = []
        footers = []
        for name in names.sorted() {
            guard let file = storage.contents(of: "\(simulatedPath)/\(name)") else { continue }
            if name == Manifest.fileName {
                manifest = file
                tag = file.number64(at: 48)
            }
            let number = FileName.number(in: name, ending: ".log") ?? 0
            numbers = 1...max(numbers.upperBound, number + 4)
            guard name.hasSuffix(".log") || name.hasSuffix(".seg") else { continue }
            // One that is being written has none yet, as while the log of a copy is sealed.
            if name.hasSuffix(".seg"), file.count >= FileHeader.byteCount + Self.footerByteCount {
                footers.append(Array(file.suffix(Self.footerByteCount)))
            }
            var offset = FileHeader.byteCount
            while offset + 24 <= file.count, blocks.count < 60 {
                let count = Int(file.number64(at: offset + 8) & 0xFFFF_FFFF)
                guard count > 0, count < 20_000, offset + 24 + count <= file.count else { break }
                blocks.append(Array(file[offset..<(offset + 24 + count)]))
                offset = (offset + 24 + count + 7) & ~7
            }
        }
    }

    mutating func key() -> [UInt8] {
        Array(part().prefix(1 + random.below(Limits.keyBytesMax)))
    }

    mutating func value() -> [UInt8] {
        var value = [UInt8](repeating: 0, count: random.below(8))
        let count = 1 << (4 + random.below(11))
        while value.count < count {
            value += part()
            // At a multiple of eight from the part before.
            value += [UInt8](repeating: 0, count: (8 - value.count % 8) % 8)
        }
        return value
    }

    /// As much of a part as UTF-8 and the bound of authors let through.
    mutating func author() -> String {
        var author = String(decoding: part(), as: UTF8.self)
        while author.utf8.count > Limits.authorBytesMax { author.removeLast() }
        return author
    }

    /// As much of some parts as the rule for names lets through.
    mutating func name() -> String {
        var name = "n"
        for _ in 0..<8 {
            name += part().map { String(UnicodeScalar($0)) }.filter(DatasetName.isValid).joined()
        }
        return String(name.prefix(Limits.datasetNameBytesMax))
    }

    /// What a peer sends: each of its records under a version of its own.
    mutating func message() -> ReplicationBatch {
        var message = ReplicationBatch()
        var keys: Set<[UInt8]> = []
        for _ in 0..<(1 + random.below(6)) {
            let key = key()
            guard keys.insert(key).inserted else { continue }
            let version = Version(
                dot: dot(), vector: VersionVector([dot(), dot()]),
                time: HybridTime(rawValue: random.next() >> 8), author: author())
            message.writes.append(
                ReplicatedWrite(
                    key: key, content: .adopt(value: value(), version: version), expected: nil))
        }
        message.seen = VersionVector((0..<random.below(20)).map { _ in dot() })
        message.checkpoint = (
            dot().replica,
            PeerCheckpoint(
                pulledThrough: SyncCount(rawValue: count()), vector: VersionVector([dot(), dot()]))
        )
        return message
    }

    /// A write of a replica that is called as bytes of a part are.
    private mutating func dot() -> Dot {
        var id = Array(part().suffix(16))
        id += [UInt8](repeating: 0, count: 16 - id.count)
        return Dot(
            replica: ReplicaID(
                high: id.number64(at: 0).byteSwapped, low: id.number64(at: 8).byteSwapped),
            counter: count())
    }

    private mutating func count() -> UInt64 {
        1 + (random.oneIn(2) ? random.next() % Limits.countMax : UInt64(random.below(100)))
    }

    private mutating func part() -> [UInt8] {
        switch random.below(8) {
        case 0: return emptyBlock()
        case 1, 2: return blocks.isEmpty ? emptyBlock() : anotherBlock()
        case 3: return footers.isEmpty ? header(.sealed) : footer()
        case 4: return header(random.oneIn(2) ? .log : .sealed) + emptyBlock()
        case 5: return stateBlock()
        case 6: return manifest.isEmpty ? header(.manifest) : anotherManifest()
        default:
            return manifest.isEmpty ? header(.manifest) : header(.manifest) + manifest.dropFirst(80)
        }
    }

    /// A secret of the forger's own, or none.
    private mutating func identity() -> StoreIdentity? {
        random.oneIn(2)
            ? nil
            : StoreIdentity(tag: tag, secretLow: random.next(), secretHigh: random.next())
    }

    private mutating func number() -> UInt64 {
        1 + UInt64(random.below(Int(numbers.upperBound)))
    }

    private mutating func emptyBlock() -> [UInt8] {
        let header = BlockHeader(
            storedCount: 0, mark: random.oneIn(2) ? 0x7FFF_FFF8 : UInt32(random.below(1 << 20)),
            segment: number(), kind: random.oneIn(4) ? .endOfLog : .operations,
            epoch: random.oneIn(2) ? 0 : UInt16(random.below(65_536)))
        return sealed(header)
    }

    private mutating func id() -> [UInt8] {
        random.bytes(16)
    }

    /// A block, sealed as well as somebody can without the secret.
    private mutating func sealed(_ header: BlockHeader, _ content: [UInt8] = []) -> [UInt8] {
        var block = [UInt8](repeating: 0, count: 24) + content
        let identity = identity()
        unsafe block.withUnsafeMutableBytes { unsafe header.seal(at: $0.baseAddress!, identity) }
        return block
    }

    /// A block of a log that gives the store other ids, since its files were copied for instance,
    /// and another dataset.
    private mutating func stateBlock() -> [UInt8] {
        var items: [UInt8] = []
        for _ in 0..<(1 + random.below(4)) {
            switch random.below(3) {
            case 0: items += [LogItem.Code.renamed.rawValue] + id()
            case 1: items += [LogItem.Code.copied.rawValue] + id()
            default:
                let name = Array("stolen".utf8)
                items += [LogItem.Code.dataset.rawValue, UInt8(name.count)] + name
                items += [9, 1] + [UInt8](repeating: 0, count: 26)
            }
        }
        let epoch: UInt16 = random.oneIn(2) ? 0 : 1
        let header = BlockHeader(
            storedCount: items.count, mark: UInt32(random.below(1 << 20)), segment: number(),
            kind: .operations, epoch: epoch)
        return sealed(header, items)
    }

    /// The store's manifest, by which other ids than before were given up since its files were
    /// copied.
    private mutating func anotherManifest() -> [UInt8] {
        let count = 1 + random.below(3)
        let closed = (0..<count).flatMap { _ in id() }
        let content = manifest.dropFirst(FileHeader.byteCount + 24) + [UInt8(count)] + closed
        let block = BlockHeader(
            storedCount: content.count, mark: UInt32(content.count), segment: 0, kind: .manifest)
        return header(.manifest) + sealed(block, Array(content))
    }

    /// A block of the store in which a byte is another, and maybe the number of its file.
    private mutating func anotherBlock() -> [UInt8] {
        var block = blocks[random.below(blocks.count)]
        block[24 + random.below(block.count - 24)] ^= UInt8(1 + random.below(255))
        let identity = identity()
        let (number, isOther) = (number(), random.oneIn(2))
        unsafe block.withUnsafeMutableBytes {
            var header = unsafe BlockHeader(at: $0.baseAddress!)
            if isOther { header.segment = UInt32(truncatingIfNeeded: number) }
            unsafe header.seal(at: $0.baseAddress!, identity)
        }
        return block
    }

    private mutating func footer() -> [UInt8] {
        var footer = Array(footers[random.below(footers.count)].dropLast(8))
        footer[8 + random.below(footer.count - 8)] ^= 1
        let identity = identity()
        let checksum = unsafe footer.withUnsafeBytes {
            unsafe identity?.checksum($0) ?? checksum64($0)
        }
        return unsafe footer + withUnsafeBytes(of: checksum.littleEndian) { unsafe Array($0) }
    }

    private mutating func header(_ kind: FileHeader.Kind) -> [UInt8] {
        FileHeader(
            kind: kind, segment: kind == .manifest ? 0 : number(),
            identity: StoreIdentity(
                tag: tag, secretLow: random.next(), secretHigh: random.next()),
            madeAt: 1_790_000_000_000, capacity: 1 << 20,
            place: kind == .log ? UInt32(truncatingIfNeeded: random.next()) : 0
        ).bytes
    }
}

extension [UInt8] {
    fileprivate func number64(at offset: Int) -> UInt64 {
        self[offset..<(offset + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
