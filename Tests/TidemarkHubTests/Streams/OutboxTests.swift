import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// Where changes wait, as it is stored.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct OutboxTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static func pool(_ number: Int) throws -> PoolID {
        try #require(PoolID("us-east-1:\(number)"))
    }

    @Test("keys are read again, and are in the order of pool, dataset, position and kind")
    func keys() throws {
        var random = SeededGenerator(Seed.drawn())
        var keys: [Outbox.Key] = []
        for _ in 0..<500 {
            let position = random.oneIn(2) ? random.next() : UInt64(random.below(3))
            let name = random.element(of: ["a", "ab", "b"])
            keys.append(
                Outbox.Key(
                    try Self.pool(random.below(3)), "us-east-1:a:\(name)", position: position,
                    random.oneIn(2) ? .span : .update))
        }
        for key in keys { #expect(Outbox.Key(bytes: key.bytes) == key) }
        let byBytes = keys.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        let byParts = keys.sorted { one, other in
            (one.pool.text, one.dataset, one.position, one.kind.rawValue)
                < (other.pool.text, other.dataset, other.position, other.kind.rawValue)
        }
        #expect(byBytes == byParts)
    }

    @Test("what has changed since an update comes behind it, and before what comes next")
    func succession() throws {
        let (pool, dataset) = (try Self.pool(1), "us-east-1:a:x")
        let keys = [
            Outbox.Key(pool, dataset, position: 0, .span),
            Outbox.Key(pool, dataset, position: 7, .update),
            Outbox.Key(pool, dataset, position: 7, .span),
            Outbox.Key(pool, dataset, position: 8, .update),
            Outbox.Key(pool, dataset, position: 256, .update),
        ].map(\.bytes)
        #expect(keys == keys.sorted { $0.lexicographicallyPrecedes($1) })
    }

    @Test("what is no key is none, whatever it is")
    func hostile() throws {
        let seed = Seed.drawn()
        var random = SeededGenerator(seed)
        let key = Outbox.Key(try Self.pool(1), "us-east-1:a:b", position: 7, .update).bytes
        for count in 0..<key.count {
            #expect(Outbox.Key(bytes: Array(key[..<count])) == nil)
        }
        #expect(Outbox.Key(bytes: key + [0]) == nil)
        #expect(Outbox.Key(bytes: Array(key.dropLast()) + [9]) == nil)
        for _ in 0..<2_000 {
            let bytes = random.bytes(random.below(40))
            if let found = Outbox.Key(bytes: bytes) { #expect(found.bytes == bytes) }
        }
    }

    @Test("each dataset is listed once, however much waits for it, and none of another pool")
    func datasets() throws {
        let store = try directory.store("hub")
        let (pool, other) = (try Self.pool(1), try Self.pool(12))
        #expect(try Outbox.datasets(of: pool, limit: 10, in: store).isEmpty)
        let outbox = try store.dataset(Outbox.datasetName)
        let names = ["us-east-1:a:x", "us-east-1:a:x.y", "us-east-1:a:x:y", "us-east-1:b:x"]
        for position in 0..<20 as Range<UInt64> {
            for name in names {
                try outbox.put(
                    [], for: Outbox.Key(pool, name, position: position << 40, .update).bytes)
            }
            try outbox.put(
                [], for: Outbox.Key(other, "us-east-1:c:x", position: position, .span).bytes)
        }
        #expect(try Set(Outbox.datasets(of: pool, limit: 10, in: store)) == Set(names))
        #expect(try Outbox.datasets(of: pool, limit: 10, in: store).count == names.count)
        #expect(try Outbox.datasets(of: pool, limit: 2, in: store).count == 2)
        #expect(try Outbox.datasets(of: other, limit: 10, in: store) == ["us-east-1:c:x"])
        let first = try #require(try Outbox.first(of: pool, names[1], in: store))
        #expect(first.key.position == 0)
        #expect(first.key.dataset == names[1])
        try Outbox.remove(first, in: store)
        let second = try #require(try Outbox.first(of: pool, names[1], in: store))
        #expect(second.key.position == 1 << 40)
        try store.close()
    }

    @Test("lanes of two parts are told apart by both, each once")
    func parts() throws {
        let store = try directory.store("hub")
        let dataset = try store.dataset("hub:notices")
        for name in ["a", "b", "b.c"] {
            for part in ["1", "2"] {
                for rest in ["x", "y", ""] {
                    try dataset.put("", for: "p\0\(name)\0\(part)\0\(rest)")
                }
            }
        }
        let prefix = Array("p\0".utf8)
        let lanes = try Lanes.first(10, in: dataset, prefix: prefix, parts: 2)
        #expect(lanes == ["a\01", "a\02", "b\01", "b\02", "b.c\01", "b.c\02"])
        #expect(try Lanes.first(3, in: dataset, prefix: prefix, parts: 2) == Array(lanes[..<3]))
        #expect(try Lanes.first(10, in: dataset, prefix: prefix) == ["a", "b", "b.c"])
        try store.close()
    }

    @Test("an entry that was written again meanwhile stays")
    func rewritten() throws {
        let store = try directory.store("hub")
        let key = Outbox.Key(try Self.pool(1), "us-east-1:a:x", position: 0, .span)
        let outbox = try store.dataset(Outbox.datasetName)
        try outbox.put([], for: key.bytes)
        let entry = try #require(try Outbox.first(of: key.pool, key.dataset, in: store))
        try outbox.put([], for: key.bytes)
        try Outbox.remove(entry, in: store)
        let again = try #require(try Outbox.first(of: key.pool, key.dataset, in: store))
        try Outbox.remove(again, in: store)
        #expect(try Outbox.first(of: key.pool, key.dataset, in: store) == nil)
        try store.close()
    }

    @Test("names of the store are taken apart, and others are not an identity's")
    func names() throws {
        let parsed = try #require(StoreNames.parsed("us-east-1:a0-1:my:notes.x"))
        #expect(parsed.identity.text == "us-east-1:a0-1")
        #expect(parsed.name.text == "my:notes.x")
        let others = [
            "notes", "us-east-1:a0", "hub:outbox", "hub:a:b", "us-east-1:XYZ:b", "::", "",
        ]
        for name in others {
            let isParsed = StoreNames.parsed(name) != nil
            #expect(!isParsed, "\(name)")
        }
    }
}
