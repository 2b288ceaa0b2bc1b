import TestSupport
import Testing
import Tidemark

/// Who is waited for before a deletion is forgotten, for how long, and what is noted of it.
@Suite("The registry of peers")
struct PeerRegistryTests {
    private let storage = SimulatedStorage(seed: Seed(7))
    private let peer = ReplicaID(high: 7, low: 1)
    private let other = ReplicaID(high: 7, low: 2)

    private func open(tombstoneAge: Duration = .seconds(86_400)) throws -> (Store, Dataset) {
        let store = try openSimulated(
            storage,
            StoreOptions(
                durability: .memory, segmentBytes: 1 << 20, tombstoneAge: tombstoneAge,
                compactsAutomatically: false))
        return (store, try store.dataset("main"))
    }

    /// The peer has said that it has everything that is here.
    private func acknowledge(_ peer: ReplicaID, _ dataset: Dataset) throws {
        let knowledge = try dataset.knowledge()
        var batch = ReplicationBatch()
        batch.checkpoint = (
            peer, PeerCheckpoint(pushedThrough: knowledge.syncCount, vector: knowledge.vector)
        )
        #expect(try dataset.replicate(batch).isEmpty)
    }

    private func hasTombstone(_ key: String, _ dataset: Dataset) throws -> Bool {
        try dataset.record(for: key, includingDeleted: true)?.isDeleted == true
    }

    /// A record that both peers have, and whose deletion only the first of them has heard of.
    private func deleteKnownToOne(_ key: String, _ dataset: Dataset) throws {
        try dataset.put("1", for: key)
        try acknowledge(peer, dataset)
        try acknowledge(other, dataset)
        try dataset.delete(key)
        try acknowledge(peer, dataset)
    }

    @Test("It tells how far each peer has come and what its lag holds back")
    func status() throws {
        let (store, dataset) = try open()
        for number in 0..<10 { try dataset.put("1", for: "key \(number)") }
        try acknowledge(peer, dataset)
        for number in 0..<4 { try dataset.delete("key \(number)") }
        try acknowledge(other, dataset)
        try dataset.delete("key 9")
        for isCompacted in [false, true] {
            if isCompacted { try store.compact() }
            let peers = try dataset.peers()
            #expect(peers.map(\.replica) == [peer, other])
            #expect(peers.map(\.acknowledged) == [10, 14])
            #expect(peers.map(\.lag) == [5, 1])
            #expect(peers.map(\.tombstonesHeld) == [5, 1])
            #expect(peers.map(\.tombstoneBytesHeld) == [25, 5])
            #expect(peers.allSatisfy { !$0.isRetired })
        }
        try store.close()
    }

    @Test("A tombstone goes once every peer has passed it, and what is noted stays")
    func passed() throws {
        var (store, dataset) = try open()
        try deleteKnownToOne("a", dataset)
        try store.compact()
        #expect(try hasTombstone("a", dataset), "one of the two lacks it")
        #expect(try dataset.knowledge().forgotten.isEmpty)
        let deleted = try #require(try dataset.record(for: "a", includingDeleted: true)).version
        try acknowledge(other, dataset)
        try store.compact()
        #expect(try !hasTombstone("a", dataset))
        for isReopened in [false, true] {
            if isReopened {
                try store.close()
                (store, dataset) = try open()
                // From the record of the dataset, too, and not from the log alone.
                try dataset.put("1", for: "b")
                try store.sealAll()
                try store.close()
                (store, dataset) = try open()
            }
            let forgotten = try dataset.knowledge().forgotten
            #expect(forgotten.covers(deleted) && forgotten.time >= deleted.time)
        }
        try store.close()
    }

    @Test("A retired peer holds nothing back, through closing and opening")
    func retirement() throws {
        var (store, dataset) = try open()
        try deleteKnownToOne("a", dataset)
        #expect(try store.retire(other) == 1)
        #expect(try store.retire(other) == 0, "it is retired already")
        #expect(try !dataset.retire(ReplicaID(high: 1, low: 1)), "nobody knows it")
        for seals in [false, true] {
            if seals { try store.sealAll() }
            try store.close()
            (store, dataset) = try open()
            let peers = try dataset.peers()
            #expect(peers.map(\.isRetired) == [false, true])
            #expect(peers.map(\.tombstonesHeld) == [0, 0])
            #expect(try dataset.checkpoint(for: other) == PeerCheckpoint(), "it begins anew")
        }
        try store.compact()
        #expect(try !hasTombstone("a", dataset))
        // Who comes again is waited for again.
        var batch = ReplicationBatch()
        batch.checkpoint = (other, PeerCheckpoint())
        _ = try dataset.replicate(batch)
        #expect(try dataset.peers().map(\.isRetired) == [false, false])
        try dataset.put("2", for: "b")
        try dataset.delete("b")
        try acknowledge(peer, dataset)
        try store.compact()
        #expect(try hasTombstone("b", dataset))
        try store.close()
    }

    @Test("If all are retired, nobody is waited for")
    func allRetired() throws {
        let (store, dataset) = try open()
        try dataset.put("1", for: "a")
        try acknowledge(peer, dataset)
        try dataset.delete("a")
        try dataset.retire(peer)
        try store.compact()
        #expect(try !hasTombstone("a", dataset))
        try store.close()
    }

    @Test("One that is as old as the option says goes, if any peer has it")
    func age() throws {
        let (store, dataset) = try open(tombstoneAge: .seconds(60))
        try dataset.put("1", for: "a")
        try dataset.put("1", for: "b")
        try acknowledge(peer, dataset)
        try acknowledge(other, dataset)
        try dataset.delete("a")
        try acknowledge(peer, dataset)
        try dataset.delete("b")
        storage.clockMilliseconds += 59_000
        try store.compact()
        #expect(try hasTombstone("a", dataset))
        storage.clockMilliseconds += 2_000
        try store.compact()
        #expect(try !hasTombstone("a", dataset), "one peer has it, and the other is late")
        #expect(try hasTombstone("b", dataset), "nobody has heard of it")
        let seen = try dataset.peers().first { $0.replica == other }?.vector
        let missed = try dataset.knowledge().forgotten.vector
        #expect(seen?.covers(missed) == false)
        try store.close()
    }

    /// Lesson 5: nothing that no peer has is forgotten, whatever the clock says, and who lacks what
    /// was is told by what it has seen.
    @Test("A clock that jumps forgets nothing that nobody has, and hides no late comer")
    func clockJump() throws {
        let (store, dataset) = try open()
        for number in 0..<20 { try dataset.put("1", for: "key \(number)") }
        try acknowledge(peer, dataset)
        for number in 0..<10 { try dataset.delete("key \(number)") }
        storage.clockMilliseconds += 100 * 365 * 86_400_000
        try store.compact()
        for number in 0..<10 { #expect(try hasTombstone("key \(number)", dataset)) }
        #expect(try dataset.knowledge().forgotten.isEmpty)
        // Back again: a deletion from the future counts as one of now.
        try dataset.delete("key 10")
        storage.clockMilliseconds -= 100 * 365 * 86_400_000
        try acknowledge(other, dataset)
        try store.compact()
        #expect(try hasTombstone("key 10", dataset))
        try store.close()
    }

    /// What the log says of the registry comes back, whatever was sealed of it when.
    @Test("Random registries come back as they were", arguments: 0..<8)
    func randomRegistry(run: UInt64) throws {
        let base = Seed.drawn()
        var random = SeededGenerator(Seed(base.rawValue &+ run))
        let replicas = (1...6).map { ReplicaID(high: 9, low: $0) }
        var (store, dataset) = try open()
        var expected: [ReplicaID: Bool] = [:]
        for step in 0..<60 {
            let replica = random.element(of: replicas)
            switch random.below(8) {
            case 0...1:
                try acknowledge(replica, dataset)
                expected[replica] = false
            case 2:
                let isKnown = expected[replica] == false
                #expect(try dataset.retire(replica) == isKnown)
                if isKnown { expected[replica] = true }
            case 3: try store.compact()
            case 4: try store.sealAll()
            case 5:
                let before = try (dataset.peers(), dataset.knowledge().forgotten)
                try store.close()
                (store, dataset) = try open()
                #expect(try dataset.peers() == before.0, "seed \(base), run \(run)")
                #expect(try dataset.knowledge().forgotten == before.1, "seed \(base), run \(run)")
            default:
                let key = "key \(random.below(5))"
                if random.oneIn(2) {
                    try dataset.delete(key)
                } else {
                    try dataset.put("\(step)", for: key)
                }
            }
            let peers = try dataset.peers()
            #expect(peers.map(\.replica) == expected.keys.sorted(), "seed \(base), run \(run)")
            #expect(peers.allSatisfy { expected[$0.replica] == $0.isRetired })
        }
        try store.close()
    }
}
