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
}
