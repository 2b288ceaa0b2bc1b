import TestSupport
import Testing

@testable import Tidemark

/// Changes that are known to be superseded are passed over, and nothing else is.
///
///     random writes, sealed and compacted ──┬── pages that look at each change ────┐
///                                           └── pages that remember from the first ┴── the same
@Suite("Superseded changes")
struct SupersededChangesTests {
    private struct Page: Equatable {
        var changes: [String] = []
        var through = SyncCount.zero
        var isLast = false
    }

    private func page(
        of dataset: Dataset, since: SyncCount, room: Int, _ memory: ChangeMemory?
    ) throws -> Page {
        var page = Page()
        let run = try dataset.withChanges(
            since: since, excluding: VersionVector(), remembering: memory
        ) { (change) throws(StoreError) in
            guard page.changes.count < room else { return false }
            let size = try change.value().map { "\($0.count)" }
            let key = String(decoding: change.key, as: UTF8.self)
            page.changes.append("\(change.syncCount) \(key) \(size ?? "deleted")")
            return true
        }
        page.through = run.through
        page.isLast = run.isLast
        return page
    }

    /// Several runs and a memtable.
    private func options() -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.largeValueBytes = 1 << 20
        return options
    }

    private func write(
        _ count: Int, keys: Int, to dataset: Dataset, _ random: inout SeededGenerator
    ) throws {
        for _ in 0..<count {
            let key = bytes("key \(random.below(keys))")
            if random.oneIn(6) {
                try dataset.delete(key)
            } else {
                try dataset.put(random.bytes(random.below(6_000)), for: key)
            }
        }
    }

    /// Of a dataset with a peer no deletion is forgotten.
    private func addPeer(to dataset: Dataset) throws {
        var batch = ReplicationBatch()
        batch.checkpoint = (ReplicaID(high: 7, low: 7), PeerCheckpoint())
        #expect(try dataset.replicate(batch).isEmpty)
    }

    @Test("Just those are superseded that are not the newest of their keys")
    func model() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let fixture = try StoreFixture(options())
            try addPeer(to: fixture.dataset)
            try write(1_200, keys: 150, to: fixture.dataset, &random)
            try fixture.store.waitForBackgroundWork()
            let newest = Set(
                try fixture.dataset.changes(since: .zero).collect().map(\.syncCount.rawValue))
            for since in [UInt64(0), 1, 63, 64, 700] {
                let changes = try fixture.store.engine.changes(
                    of: fixture.dataset.state, since: SyncCount(rawValue: since),
                    isExchange: true)
                let (steps, end) = (changes.steps, changes.knowledge.syncCount.rawValue)
                let superseded = try SupersededChanges(
                    steps.moment, of: steps.dataset, since: since, through: end)
                #expect(superseded.through == end)
                for count in 0...end + 2 {
                    let isOld = count > since && count <= end && !newest.contains(count)
                    #expect(superseded.contains(count) == isOld, "\(seed) \(count)")
                }
            }
            try fixture.store.close()
        }
    }

    @Test("Pages are the same, whatever is written, sealed and compacted between them")
    func pages() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<6 {
                let fixture = try StoreFixture(options())
                try addPeer(to: fixture.dataset)
                try write(700, keys: 120, to: fixture.dataset, &random)
                let memory = ChangeMemory(passedMax: 1 + random.below(20), changesMin: 0)
                var since = SyncCount(rawValue: UInt64(random.below(100)))
                while true {
                    let room = 1 + random.below(20)
                    let expected = try page(of: fixture.dataset, since: since, room: room, nil)
                    let found = try page(of: fixture.dataset, since: since, room: room, memory)
                    #expect(found == expected, "\(seed)")
                    guard !expected.isLast else { break }
                    since = expected.through
                    if random.oneIn(3) {
                        let count = random.below(8)
                        try write(count, keys: 150, to: fixture.dataset, &random)
                    }
                    if random.oneIn(30) { try fixture.store.compact() }
                }
                #expect(memory.walkCount > 0)
                try fixture.store.close()
            }
        }
    }

    @Test("What was found out holds for later pages, and is not looked for again")
    func remembered() throws {
        let fixture = try StoreFixture(options())
        for round in 0..<5 {
            for number in 0..<100 { try fixture.dataset.put("\(round)", for: "key \(number)") }
        }
        let memory = ChangeMemory(passedMax: 10, changesMin: 1)
        var since = SyncCount.zero
        var count = 0
        while true {
            let next = try page(of: fixture.dataset, since: since, room: 7, memory)
            count += next.changes.count
            if next.isLast { break }
            since = next.through
        }
        #expect(count == 100)
        #expect(memory.walkCount == 1)
        // Of the four hundred those alone are looked at that came before the walk.
        let changes = try fixture.store.engine.changes(
            of: fixture.dataset.state, since: .zero, isExchange: true)
        var steps = changes.steps
        steps.leaveOut(memory.superseded(of: steps.dataset))
        steps.pause(afterSkips: 20)
        var found = 0
        while try steps.next({ entry, _ in entry.syncCount }) != nil { found += 1 }
        #expect(found == 100 && !steps.isPaused)
        try fixture.store.close()
    }

    /// The walk tells of each change that it left, too, but only until the dataset counts on.
    ///
    ///     walk ── page of 10 ── all keys are written anew ── the rest: none of the old changes
    @Test("What was the newest version during a walk is looked up again once more is written")
    func writtenBehindTheWalk() throws {
        let fixture = try StoreFixture(options())
        for round in 0..<4 {
            for number in 0..<100 { try fixture.dataset.put("\(round)", for: "key \(number)") }
        }
        let memory = ChangeMemory(passedMax: 10, changesMin: 1)
        let first = try page(of: fixture.dataset, since: .zero, room: 10, memory)
        #expect(first.changes.count == 10 && memory.walkCount == 1)
        // Nothing was written: the walk still says it all.
        let same = try page(of: fixture.dataset, since: first.through, room: 10, memory)
        #expect(try page(of: fixture.dataset, since: first.through, room: 10, nil) == same)
        for number in 0..<100 { try fixture.dataset.put("new", for: "key \(number)") }
        let rest = try page(of: fixture.dataset, since: same.through, room: 999, memory)
        #expect(rest.changes.count == 100 && rest.isLast)
        #expect(try page(of: fixture.dataset, since: same.through, room: 999, nil) == rest)
        try fixture.store.close()
    }

    @Test("Few changes, or a small part of all, are looked at one by one")
    func fewAreNotWorthIt() throws {
        let fixture = try StoreFixture(options())
        for round in 0..<20 {
            for number in 0..<20 { try fixture.dataset.put("\(round)", for: "key \(number)") }
        }
        let few = ChangeMemory(passedMax: 1, changesMin: 1_000)
        #expect(try page(of: fixture.dataset, since: .zero, room: 50, few).changes.count == 20)
        #expect(few.walkCount == 0)
        let late = ChangeMemory(passedMax: 1, changesMin: 1)
        let since = SyncCount(rawValue: 360)
        #expect(try page(of: fixture.dataset, since: since, room: 50, late).changes.count == 20)
        #expect(late.walkCount == 0)
        try fixture.store.close()
    }

    @Test("Damage that the changes do not come by is not in their way")
    func damaged() throws {
        var options = options()
        options.compression = .none
        let fixture = try StoreFixture(options)
        let value = bytes(String(repeating: "v", count: 400))
        for number in 0..<100 { try fixture.dataset.put(value, for: bytes("a \(number)")) }
        try fixture.store.compact()
        for round in 0..<4 {
            for number in 0..<50 { try fixture.dataset.put("\(round)", for: "b \(number)") }
        }
        try fixture.store.close()
        let names = try Files.list(fixture.path).filter { $0.hasSuffix(".seg") }
        let name = try #require(names.count == 1 ? names.first : nil)
        let file = "\(fixture.path)/\(name)"
        // Amid the values.
        let content = try Files.read(file)
        let middle = try #require(content[(content.count / 2)...].firstIndex(of: value[0]))
        try Files.overwrite([0], in: file, at: middle)
        let store = try Store.open(at: fixture.path, options: options)
        let dataset = try store.dataset("main")
        #expect(throws: StoreError.self) { try dataset.records().collect() }
        let memory = ChangeMemory(passedMax: 1, changesMin: 1)
        let since = SyncCount(rawValue: 100)
        let expected = try page(of: dataset, since: since, room: 99, nil)
        let found = try page(of: dataset, since: since, room: 99, memory)
        #expect(found == expected)
        #expect(found.changes.count == 50 && memory.walkCount == 1)
        try store.close()
    }

    @Test("A dataset that was deleted and made anew has nothing of what was known before")
    func madeAnew() throws {
        let fixture = try StoreFixture(options())
        try addPeer(to: fixture.dataset)
        for number in 0..<50 { try fixture.dataset.put("old", for: "key \(number % 10)") }
        let memory = ChangeMemory(passedMax: 1, changesMin: 0)
        #expect(try page(of: fixture.dataset, since: .zero, room: 99, memory).changes.count == 10)
        try fixture.store.deleteDataset("main")
        let dataset = try fixture.store.dataset("main")
        for number in 0..<10 { try dataset.put("new", for: "key \(number)") }
        let expected = try page(of: dataset, since: .zero, room: 99, nil)
        #expect(try page(of: dataset, since: .zero, room: 99, memory) == expected)
        #expect(expected.changes.count == 10)
        try fixture.store.close()
    }
}
