import TestSupport
import Testing
import Tidemark

/// Each byte of each file of a store is damaged in turn. Whatever is then read is right, or it is a
/// typed error; and `verify` finds the damage.
@Suite("Damage")
struct DamageTests {
    /// What a file's damage may do besides being reported.
    private struct Sweep {
        var damaged = 0
        var unreported: [Int] = []
    }

    /// Flips one random bit of each of the bytes at the given offsets, one at a time.
    private func flip(
        _ name: String, of store: DamagedStore, at offsets: some Sequence<Int>,
        _ random: inout SeededGenerator
    ) throws -> Sweep {
        var sweep = Sweep()
        let whole = try #require(store.files[name])
        let path = "\(store.path)/\(name)"
        for offset in offsets {
            let bit = random.below(8)
            try Files.overwrite([whole[offset] ^ 1 << bit], in: path, at: offset)
            do {
                let outcome = try store.outcome()
                sweep.damaged += 1
                if !outcome.isReported { sweep.unreported.append(offset) }
            } catch {
                throw Mismatch("\(name), bit \(bit) of byte \(offset) flipped: \(error)")
            }
            try Files.overwrite([whole[offset]], in: path, at: offset)
        }
        return sweep
    }

    @Test("The store of these tests is whole before it is damaged")
    func whole() throws {
        let store = try DamagedStore()
        #expect(try !store.outcome().isReported)
        #expect(try !store.outcome(isReadOnly: false).isReported)
        let segment = try #require(store.files[store.file(".seg")])
        #expect((1_000...60_000).contains(segment.count), "\(segment.count) bytes")
    }

    @Test("Each byte of a sealed segment")
    func sealedSegment() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let store = try DamagedStore()
            let name = try store.file(".seg")
            let count = store.files[name]?.count ?? 0
            let sweep = try flip(name, of: store, at: 0..<count, &random)
            try require(sweep.damaged == count && count > 0, "\(sweep.damaged) of \(count)")
            try require(sweep.unreported.isEmpty, "unnoticed at \(sweep.unreported)")
        }
    }

    @Test("Each byte of the manifest")
    func manifest() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let store = try DamagedStore()
            let count = store.files["MANIFEST"]?.count ?? 0
            let sweep = try flip("MANIFEST", of: store, at: 0..<count, &random)
            try require(sweep.damaged == count && count > 0, "\(sweep.damaged) of \(count)")
            try require(sweep.unreported.isEmpty, "unnoticed at \(sweep.unreported)")
        }
    }

    /// Closing leaves an empty block that says how far the log was durable. Of this block alone
    /// nothing later says so: its damage looks like a torn tail, and costs nothing.
    @Test("Each used byte of the active log of a closed store")
    func activeLog() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let store = try DamagedStore()
            let name = try store.file(".log")
            let log = try #require(store.files[name])
            let mark = lastBlock(of: log)
            try require(mark > 80, "the last block is at \(mark)")
            let sweep = try flip(name, of: store, at: 0..<(mark + 24), &random)
            let unnoticed = sweep.unreported.filter { $0 < mark }
            try require(unnoticed.isEmpty, "unnoticed at \(unnoticed)")
            // Beyond the end nothing was ever written: whatever lies there, the data is whole.
            let beyond = (0..<60).map { _ in mark + 24 + random.below(log.count - mark - 24) }
            _ = try flip(name, of: store, at: beyond, &random)
        }
    }

    /// Where the last block of a log begins. A block has 24 bytes of header, of which the four at
    /// 8 are the length of what follows.
    private func lastBlock(of log: [UInt8]) -> Int {
        var last = 80
        var offset = 80
        while offset + 24 <= log.count, log[offset..<(offset + 24)].contains(where: { $0 != 0 }) {
            last = offset
            let length = log[(offset + 8)..<(offset + 12)].reversed().reduce(0) {
                $0 << 8 | Int($1)
            }
            offset += 24 + length
        }
        return last
    }

    @Test(
        "A writer that opens a damaged store is told as well, and changes nothing it cannot read",
        arguments: [".seg", "MANIFEST", ".log"])
    func writer(ending: String) {
        withSeed(for: "writer(\(ending))") { seed in
            var random = SeededGenerator(seed)
            let store = try DamagedStore()
            let name = try store.file(ending)
            let whole = try #require(store.files[name])
            let used = ending == ".log" ? lastBlock(of: whole) : whole.count
            for _ in 0..<60 {
                let offset = random.below(used)
                try Files.overwrite(
                    [whole[offset] ^ 1 << random.below(8)], in: "\(store.path)/\(name)",
                    at: offset)
                do {
                    try require(try store.outcome(isReadOnly: false).isReported, "unnoticed")
                } catch {
                    throw Mismatch("\(name), byte \(offset) flipped: \(error)")
                }
                try store.restore()
            }
        }
    }

    /// Of long files one length in thirteen at each run, and all of them in the long run.
    @Test("A file cut at any length", arguments: [".seg", "MANIFEST", ".log"])
    func truncation(ending: String) {
        withSeed(for: "truncation(\(ending))") { seed in
            var random = SeededGenerator(seed)
            let store = try DamagedStore()
            let name = try store.file(ending)
            let whole = try #require(store.files[name])
            // The manifest is short enough for every length; a log is mostly not used yet.
            let used = ending == ".log" ? lastBlock(of: whole) + 24 : whole.count
            let step = ending == "MANIFEST" ? 1 : 13
            let lengths =
                Array(stride(from: random.below(step), to: used, by: step)) + [0, used - 1]
                + Array(stride(from: used, to: whole.count, by: 100_000))
            for length in lengths {
                try Files.truncate("\(store.path)/\(name)", to: length)
                do {
                    try require(try store.outcome().isReported, "unnoticed")
                } catch {
                    throw Mismatch("\(name) cut to \(length) bytes: \(error)")
                }
                try Files.write(whole, to: "\(store.path)/\(name)")
            }
        }
    }

    @Test(
        "A file that is missing is reported, and never begun anew",
        arguments: [".seg", "MANIFEST", ".log"], [false, true])
    func missing(ending: String, createsIfMissing: Bool) throws {
        let store = try DamagedStore()
        let name = try store.file(ending)
        try Files.remove("\(store.path)/\(name)")
        var options = quickOptions()
        options.createsIfMissing = createsIfMissing
        let others = store.files.filter { $0.key != name && $0.key != "LOCK" }
        do {
            let opened = try Store.open(at: store.path, options: options)
            try opened.close()
            Issue.record("a store without its \(ending) opened as if it were whole")
        } catch {
            #expect([.corruption, .notAStore].contains(error.code), "\(error)")
        }
        for (name, bytes) in others {
            #expect(try Files.read("\(store.path)/\(name)") == bytes, "\(name) was changed")
        }
    }

    @Test(
        "A whole file of another store does not pass for this store's",
        arguments: [".seg", ".log"])
    func foreignFile(ending: String) throws {
        let store = try DamagedStore()
        let foreign = try DamagedStore(logWrites: 5)
        let name = try store.file(ending)
        let bytes = try #require(foreign.files[foreign.file(ending)])
        try Files.write(bytes, to: "\(store.path)/\(name)")
        #expect(try store.outcome().isReported)
    }

    @Test("Two segments that have changed places are noticed")
    func swappedSegments() throws {
        let directory = try TemporaryDirectory()
        var options = quickOptions()
        options.compactsAutomatically = false
        let store = try Store.open(at: directory["store"], options: options)
        let dataset = try store.dataset("main")
        var random = SeededGenerator(Seed(5))
        // Three sealed segments and one active one.
        while try Files.list(store.path).count(where: { $0.hasSuffix(".seg") }) < 3 {
            try dataset.put(random.bytes(50_000), for: bytes("\(random.below(30))"))
        }
        try store.close()
        let sealed = try Files.list(store.path).filter { $0.hasSuffix(".seg") }
        let (first, second) = ("\(store.path)/\(sealed[0])", "\(store.path)/\(sealed[1])")
        let (one, two) = (try Files.read(first), try Files.read(second))
        try Files.write(two, to: first)
        try Files.write(one, to: second)
        do {
            #expect(try !Store.verify(at: store.path).damages.isEmpty)
            let again = try Store.open(at: store.path, options: options)
            for record in try again.dataset("main").records().collect() {
                _ = try again.dataset("main").get(record.key)
            }
            Issue.record("swapped segments were read")
        } catch {
            #expect(error.code == .corruption, "\(error)")
        }
    }

    @Test("A damage names its file and its place")
    func location() throws {
        let store = try DamagedStore()
        let name = try store.file(".seg")
        let path = "\(store.path)/\(name)"
        let whole = try #require(store.files[name])
        try Files.overwrite([whole[whole.count / 3] ^ 0xFF], in: path, at: whole.count / 3)
        let damages = try Store.verify(at: store.path).damages
        #expect(!damages.isEmpty)
        for damage in damages {
            #expect(damage.code == .corruption && damage.location?.path == path, "\(damage)")
            let offset = try #require(damage.location?.offset)
            #expect(offset <= UInt64(whole.count))
        }
    }
}
