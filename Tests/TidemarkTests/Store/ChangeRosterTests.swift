import TestSupport
import Testing

@testable import Tidemark

/// Which datasets changed since a mark, held against a list that keeps everything.
@Suite("Change roster")
struct ChangeRosterTests {
    @Test("Names since any mark are those of a model, or unknown after too many")
    func model() {
        var random = SeededGenerator(Seed.drawn())
        for namesMax in [4, 1_000] {
            var roster = ChangeRoster(namesMax: namesMax)
            roster.note("before the first mark")
            var all: [String] = []
            var marks = [(roster.mark { 7 }, 0)]
            var unknown = 0
            for _ in 0..<4_000 {
                if random.oneIn(4) { marks.append((roster.mark { 8 }, all.count)) }
                let name = "\(random.below(random.oneIn(10) ? 12 : 3))"
                roster.note(name)
                all.append(name)
                let (mark, count) = random.element(of: marks)
                guard let names = roster.names(since: mark) else {
                    unknown += 1
                    continue
                }
                #expect(names.count == Set(names).count, "a name is there twice")
                #expect(Set(names) == Set(all[count...]))
            }
            #expect(namesMax == 4 ? unknown > 100 : unknown == 0)
        }
    }

    @Test("Nothing new, no new mark; marks of others mean nothing")
    func marks() {
        var roster = ChangeRoster()
        let first = roster.mark { 7 }
        #expect(roster.mark { 8 } == first)
        roster.note("a")
        let second = roster.mark { 9 }
        #expect(second != first && second.incarnation == 7)
        #expect(roster.names(since: first) == ["a"] && roster.names(since: second) == [])
        for other in [
            StoreMark(incarnation: 8, position: first.position),
            StoreMark(incarnation: 7, position: 0),
            StoreMark(incarnation: 7, position: second.position + 1),
            StoreMark(incarnation: 7, position: .max),
        ] {
            #expect(roster.names(since: other) == nil)
        }
    }

    @Test("Checkpoints are no change; records, deletions and what is seen are")
    func changes() throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        func changes(_ body: () throws -> Void) throws -> [String]? {
            let mark = try store.changeMark()
            try body()
            return try store.datasetsChanged(since: mark)
        }
        let name = dataset.name
        let peer = ReplicaID(high: 1, low: 1)
        #expect(try changes { try dataset.put("1", for: "a") } == [name])
        #expect(try changes { try dataset.put("2", for: "a") } == [name])
        #expect(
            try changes {
                var batch = ReplicationBatch()
                batch.checkpoint = (peer, PeerCheckpoint(pulledThrough: 5))
                _ = try dataset.replicate(batch)
            } == [])
        #expect(
            try changes {
                var batch = ReplicationBatch()
                batch.seen = VersionVector([Dot(replica: peer, counter: 3)])
                _ = try dataset.replicate(batch)
            } == [name])
        #expect(try changes { try store.compact() } == [])
        #expect(try changes { try dataset.delete("a") } == [name])
        #expect(try changes { _ = try store.dataset("new") } == ["new"])
        #expect(try changes { _ = try store.deleteDataset("new") } == ["new"])
    }

    // MARK: - After a closing

    private func decoded(_ bytes: [UInt8]) -> KeptRoster? {
        unsafe bytes.withUnsafeBytes { unsafe try? KeptRoster(decoding: ByteView($0)) }
    }

    /// As it goes on after a closing.
    private func reopened(
        _ roster: ChangeRoster, incarnation: UInt64, namesMax: Int = 1_000
    ) throws -> ChangeRoster {
        let state = KeptRoster.State(log: 1, logBytes: 2, high: 3, low: 4)
        let bytes = KeptRoster(roster, [], of: state, namesMax: namesMax).encoded
        return try #require(decoded(bytes)).roster(incarnation: incarnation)
    }

    @Test(
        "Names since any mark are those of a model, across openings, or unknown",
        arguments: [3, 1_000])
    func modelOfOpenings(namesMax: Int) throws {
        var random = SeededGenerator(Seed.drawn())
        var roster = ChangeRoster()
        var all: [String] = []
        var marks = [(mark: roster.mark { 100 }, count: 0, opening: 0)]
        var (opening, unknown, known) = (0, 0, 0)
        for _ in 0..<6_000 {
            if random.oneIn(40) {
                let last = roster.mark { 0 }
                opening += 1
                roster = try reopened(
                    roster, incarnation: 100 + UInt64(opening), namesMax: namesMax)
                #expect(roster.mark { 0 } == last, "nothing has changed since the closing")
            }
            if random.oneIn(3) { marks.append((roster.mark { 0 }, all.count, opening)) }
            if random.oneIn(2) {
                all.append("\(random.below(random.oneIn(10) ? 12 : 3))")
                roster.note(all[all.count - 1])
            }
            let (mark, count, since) = random.element(of: marks.suffix(200))
            guard let names = roster.names(since: mark) else {
                unknown += 1
                if namesMax > 12 { #expect(opening - since >= Limits.rosterStretchesMax - 3) }
                continue
            }
            known += 1
            #expect(names.count == Set(names).count, "a name is there twice")
            #expect(Set(names) == Set(all[count...]))
        }
        #expect(known > 200 && opening > 50)
        if namesMax == 3 { #expect(unknown > 100) }
    }

    @Test("Of two that go on from one closing neither knows the marks of the other")
    func copies() throws {
        var roster = ChangeRoster()
        let first = roster.mark { 7 }
        roster.note("a")
        let last = roster.mark { 7 }
        var one = try reopened(roster, incarnation: 8)
        var other = try reopened(roster, incarnation: 9)
        #expect(one.mark { 0 } == last && other.mark { 0 } == last)
        one.note("b")
        other.note("c")
        let (ofOne, ofOther) = (one.mark { 0 }, other.mark { 0 })
        #expect(one.names(since: last) == ["b"] && other.names(since: last) == ["c"])
        #expect(one.names(since: first).map { Set($0) } == ["a", "b"])
        #expect(one.names(since: ofOther) == nil && other.names(since: ofOne) == nil)
        #expect(one.names(since: ofOne) == [] && other.names(since: ofOther) == [])
    }

    @Test("A store that was closed knows its marks when it is opened, and what changed since")
    func storeClosed() throws {
        let fixture = try StoreFixture()
        let name = fixture.dataset.name
        let first = try fixture.store.changeMark()
        try fixture.dataset.put("1", for: "a")
        let last = try fixture.store.changeMark()
        let (store, dataset) = try fixture.reopened()
        #expect(try store.changeMark() == last)
        #expect(try store.datasetsChanged(since: first) == [name])
        #expect(try store.datasetsChanged(since: last) == [])
        // What is in the log was read at opening, and is noted all the same.
        try dataset.put("2", for: "a")
        #expect(try store.datasetsChanged(since: last) == [name])
        let next = try store.changeMark()
        #expect(next.incarnation != last.incarnation)
        try store.close()
        let third = try Store.open(at: fixture.path, options: quickOptions())
        #expect(try third.datasetsChanged(since: first) == [name])
        #expect(try third.datasetsChanged(since: next) == [])
        try third.close()
    }

    @Test("After a crash, and beside other files than those it speaks of, no former mark is known")
    func storeNotClosed() throws {
        let fixture = try StoreFixture()
        let (path, rosterPath) = (fixture.path, "\(fixture.path)/ROSTER")
        let first = try fixture.store.changeMark()
        try fixture.dataset.put("1", for: "a")
        let last = try fixture.store.changeMark()
        try fixture.store.close()
        let former = try Files.read(rosterPath)
        var store = try Store.open(at: path, options: quickOptions())
        try store.dataset("main").put("2", for: "a")
        let crashed = fixture.directory["crashed"]
        try Files.copyDirectory(path, to: crashed)
        try store.close()
        // By who knows nothing of it.
        try Files.write(former, to: rosterPath)
        for path in [path, crashed] {
            store = try Store.open(at: path, options: quickOptions())
            #expect(try store.datasetsChanged(since: first) == nil)
            #expect(try store.datasetsChanged(since: last) == nil)
            try store.close()
        }
    }

    @Test("A roster with any byte another way round counts for nothing, and is no damage")
    func damaged() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("1", for: "a")
        let mark = try fixture.store.changeMark()
        try fixture.store.close()
        let rosterPath = "\(fixture.path)/ROSTER"
        let whole = try Files.read(rosterPath)
        let files = try Files.contents(fixture.path)
        for offset in whole.indices {
            var bytes = whole
            bytes[offset] ^= 0x10
            for (name, content) in files {
                try Files.write(content, to: "\(fixture.path)/\(name)")
            }
            try Files.write(offset % 2 == 0 ? bytes : Array(whole[..<offset]), to: rosterPath)
            let store = try Store.open(at: fixture.path, options: quickOptions())
            #expect(try store.datasetsChanged(since: mark) == nil, "\(offset)")
            #expect(try store.dataset("main").count() == 1)
            try store.close()
        }
    }

    @Test("A kept roster of any bytes is refused or goes on, and nothing traps")
    func hostile() throws {
        var random = SeededGenerator(Seed.drawn())
        var roster = ChangeRoster()
        let mark = roster.mark { 7 }
        for name in ["a", "b", "c"] {
            roster.note(name)
            _ = roster.mark { 7 }
        }
        let id = ReplicaID(high: 1, low: 2)
        let exchange = SettledExchange(
            peer: id, own: id, peerMark: mark, ownMark: mark, unsettled: ["a"])
        let whole = KeptRoster(
            roster, [exchange], of: KeptRoster.State(log: 1, logBytes: 2, high: 3, low: 4)
        ).encoded
        var taken = 0
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0...random.below(3) {
                let place = random.below(bytes.count)
                switch random.below(3) {
                case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes.removeSubrange(place...)
                default: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
                }
                if bytes.isEmpty { bytes = [0] }
            }
            guard let kept = decoded(bytes) else { continue }
            taken += 1
            // Drawn, as a store does: bytes that happened to name a fixed one would tell nothing.
            var next = kept.roster(incarnation: random.next())
            _ = next.names(since: mark)
            next.note("new")
            let last = next.mark { 0 }
            #expect(next.names(since: last) == [])
            #expect(KeptRoster(next, kept.exchanges, of: kept.state).encoded.count > 0)
        }
        #expect(taken > 100)
    }
}
