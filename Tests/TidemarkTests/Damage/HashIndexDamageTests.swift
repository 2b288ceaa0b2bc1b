import TestSupport
import Testing
import Tidemark

/// What is read of a segment whose hash index is damaged, or leads to a damaged block.
@Suite("Damage and the hash index")
struct HashIndexDamageTests {
    private static let keyCount = 600
    private static let versionCount = 40

    private func options(_ compression: Compression, entriesMax: Int? = nil) -> StoreOptions {
        var options = quickOptions()
        if let entriesMax { options.segmentEntriesMax = entriesMax }
        options.compactsAutomatically = false
        options.compression = compression
        options.historyVersions = Self.versionCount
        return options
    }

    /// As many of them fill several blocks.
    private static func version(_ number: Int) -> String {
        "\(number) " + String(repeating: "v", count: 400)
    }

    /// Makes a closed store of one sealed run, and of a log that names a dataset beside those in
    /// the run.
    private func make(at path: String, _ options: StoreOptions) throws {
        let store = try Store.open(at: path, options: options)
        let main = try store.dataset("main")
        let other = try store.dataset("other")
        for number in 0..<Self.keyCount {
            try main.put("value \(number)", for: "key \(number)")
            try other.put("other \(number)", for: "key \(number)")
        }
        for number in 0..<Self.versionCount {
            try main.put(Self.version(number), for: "key 300")
        }
        try main.delete("key 200")
        try store.compact()
        try store.dataset("new").put("1", for: "a")
        try store.close()
    }

    private func number(_ bytes: [UInt8], at offset: Int) -> Int {
        bytes[offset..<(offset + 8)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    private func segments(of path: String) throws -> [String] {
        try Files.list(path).filter { $0.hasSuffix(".seg") }.map { "\(path)/\($0)" }
    }

    /// Changes a bit of the hash index of a segment.
    private func damageIndex(of file: String, _ random: inout SeededGenerator) throws {
        let bytes = try Files.read(file)
        let footer = bytes.count - 208
        let start = number(bytes, at: footer + 72)
        let offset = start + random.below(64 * number(bytes, at: footer + 80))
        let bit = random.below(8)
        try Files.overwrite([bytes[offset] ^ 1 << bit], in: file, at: offset)
    }

    private func check(_ store: Store) throws {
        let main = try store.dataset("main")
        let other = try store.dataset("other")
        for number in 0..<Self.keyCount {
            let key = "key \(number)"
            let wanted: String? =
                switch number {
                case 200: nil
                case 300: Self.version(Self.versionCount - 1)
                default: "value \(number)"
                }
            let found = try main.text(key)
            try require(found == wanted, "\(key) is \(found ?? "nothing")")
            let beside = try other.text(key)
            try require(beside == "other \(number)", "\(key) of the other")
        }
        let deleted = try main.record(for: bytes("key 200"), includingDeleted: true)
        try require(deleted?.isDeleted ?? false, "the tombstone is gone")
        // Before all keys, between two, and behind all.
        for key in ["a", "key", "key 10x", "key 999x", "z"] {
            for dataset in [main, other] {
                try require(try dataset.text(key) == nil, "\(key) was found")
            }
        }
        try require(try store.dataset("new").text("a") == "1", "the new dataset is another")
        try require(try store.existingDataset("none") == nil, "a dataset was found")
    }

    @Test(
        "A damaged hash index keeps nobody from opening and reading, and is reported",
        arguments: Compression.allCases, [false, true])
    func damagedIndex(compression: Compression, hasManySegments: Bool) {
        withSeed(for: "damagedIndex(\(compression), \(hasManySegments))") { seed in
            var random = SeededGenerator(seed)
            let directory = try TemporaryDirectory()
            defer { withExtendedLifetime(directory) {} }
            let path = directory["store"]
            var settings = options(compression, entriesMax: hasManySegments ? 30 : nil)
            try make(at: path, settings)
            let files = try segments(of: path)
            // Of many segments some begin amid the versions of a key.
            try require(hasManySegments ? files.count > 20 : files.count == 1, "\(files)")
            for file in files { try damageIndex(of: file, &random) }
            for isReadOnly in [true, false] {
                settings.isReadOnly = isReadOnly
                let store = try Store.open(at: path, options: settings)
                try check(store)
                let known = try store.damage()
                try require(!known.isEmpty, "nothing is known")
                try require(known.allSatisfy { $0.kind == .index }, "\(known)")
                let found = try store.verify().damages
                try require(!found.isEmpty, "verification finds nothing")
                try require(found.allSatisfy { $0.code == .corruption }, "\(found)")
                if !isReadOnly {
                    // A merge makes the index anew.
                    try store.compact()
                    try check(store)
                    try require(try store.damage().isEmpty, "the damage is still there")
                    try require(try store.verify().damages.isEmpty, "the segment is damaged")
                }
                try store.close()
            }
        }
    }

    /// The index names sixteen bits of a hash, so one in some ten thousand keys that are not there
    /// leads to a block nevertheless.
    @Test(
        "A key that strays into a damaged block of others is not there",
        arguments: Compression.allCases)
    func strayedKey(compression: Compression) throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let path = directory["store"]
        let settings = options(compression)
        let made = try Store.open(at: path, options: settings)
        let records = try made.dataset("main")
        for number in 100..<700 { try records.put("value \(number)", for: "\(number)") }
        try made.compact()
        try made.close()
        let file = try #require(try segments(of: path).first)
        let whole = try Files.read(file)
        // Behind the file's header and the first block, which holds what the store notes itself: in
        // the stored bytes of the second block.
        let stored = whole[88..<92].reversed().reduce(0) { $0 << 8 | Int($1) }
        let offset = (80 + 24 + stored + 7) & ~7 + 24 + 10
        try Files.overwrite([whole[offset] ^ 1], in: file, at: offset)

        let store = try Store.open(at: path, options: settings)
        let main = try store.dataset("main")
        var damages: [StoreDamage] = []
        var number = 0
        while damages.isEmpty, number < 2_000_000 {
            // Before all keys that are there.
            try require(try main.get("0 \(number)") == nil, "0 \(number) was found")
            number += 1
            if number % 100 == 0 { damages = try main.damage() }
        }
        // Damage is known once a search came upon it, and is still told.
        let damage = try #require(damages.first)
        #expect(damage.kind == .records && damages.count == 1)
        let keys = try #require(damage.keys)
        // What may lie in the block stays an error.
        var errors = 0
        for number in 100..<700 {
            let key = "\(number)"
            do {
                try require(try main.text(key) == "value \(number)", "\(key) is another")
            } catch let error as StoreError {
                #expect(error.code == .corruption && keys.contains(bytes(key)), "\(error)")
                errors += 1
            }
        }
        #expect(errors > 10 && errors < 590)
        #expect(try !store.verify().damages.isEmpty)
        try store.close()
    }
}
