import TestSupport
import Tidemark

/// Golden stores of what exchanges with peers leave beside records.
extension GoldenStore {
    /// Every kind of item that an exchange writes: vectors that were joined, checkpoints, replicas
    /// that were disowned, deletions that were forgotten, peers that were retired, and a write that
    /// bears somebody else's date. Some of it is sealed, and all of it is in the log, too.
    static func exchanged(_ maker: GoldenMaker) throws {
        maker.options.clockAheadMax = .seconds(60)
        let others = ["ada", "grace", "joan"].enumerated().map { index, author in
            GoldenMaker(seed: Seed(UInt64(400 + index)), author: author)
        }
        var sources: [Dataset] = []
        for (index, other) in others.enumerated() {
            let notes = try other.open().dataset("notes")
            for number in 0..<3 {
                try notes.put("by \(other.options.author)", for: maker.key(10 * index + number))
                other.wait(3)
            }
            sources.append(notes)
        }
        let peers = sources.map(\.store.replicaID)
        maker.wait(200)
        let store = try maker.open()
        let notes = try store.dataset("notes")
        for source in sources { try maker.pull(source, into: notes) }
        try forget(sources[0].vector, at: maker.now, in: notes)
        try require(try notes.retire(peers[1]), "a peer is not known")
        try notes.put("sealed", for: "mine")
        try store.sealAll()

        try sources[0].put("again", for: maker.key(1))
        try maker.pull(sources[0], into: notes)
        try forget(sources[0].vector, at: maker.now, in: notes)
        try require(try notes.retire(peers[2]), "a peer is not known")
        try disown(peers[2], isSettled: false, in: notes)
        try disown(peers[1], isSettled: true, in: notes)
        try writeDated(maker.now + 3_600_000, by: peers[0], for: "dated", in: notes)
        try notes.put("in the log", for: "mine")
        for other in others { try other.close() }
        try maker.close()
    }

    private static func forget(
        _ vector: VersionVector, at milliseconds: UInt64, in dataset: Dataset
    ) throws {
        var batch = ReplicationBatch()
        batch.forgotten = ForgottenDeletions(
            vector: vector, time: HybridTime(milliseconds: milliseconds, counter: 1))
        try require(try dataset.replicate(batch).isEmpty, "something has moved on")
    }

    private static func disown(
        _ replica: ReplicaID, isSettled: Bool, in dataset: Dataset
    ) throws {
        var batch = ReplicationBatch()
        batch.disowned = [replica]
        batch.isSettled = isSettled
        try require(try dataset.replicate(batch).isEmpty, "something has moved on")
    }

    /// A write of our own in the place of one that is dated further ahead than is believed.
    private static func writeDated(
        _ milliseconds: UInt64, by peer: ReplicaID, for key: String, in dataset: Dataset
    ) throws {
        let theirs = Version(
            dot: Dot(replica: peer, counter: 1), vector: VersionVector(),
            time: HybridTime(milliseconds: milliseconds, counter: 0))
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes(key),
                content: .rewrite(
                    value: bytes("ahead"), of: theirs, seen: VersionVector(), keepsTime: true,
                    expiresAt: nil),
                expected: nil)
        ]
        try require(try dataset.replicate(batch).isEmpty, "something has moved on")
    }

    /// A taking over that was broken off: what has come of a segment, and whose that is.
    static func unfinished(_ maker: GoldenMaker) throws {
        let other = GoldenMaker(seed: Seed(500), author: "ada")
        let source = try other.open().dataset("notes")
        for index in 0..<20 {
            let text = String(repeating: "by ada \(index) ", count: 100)
            try source.put(text, for: other.key(index))
            other.wait(4)
        }
        try other.open().sealAll()
        maker.wait(1_000)
        let store = try maker.open()
        // First, so that it has the number that it has there, which nothing else may have had.
        let notes = try store.dataset("notes")
        try store.dataset("own").put("1", for: "a")
        guard let offer = try source.segmentOffer(bytesMin: 0),
            let adoption = try notes.beginAdoption(of: offer, from: source.store.replicaID)
        else { throw Mismatch("nothing is offered") }
        try fetch(adoption, from: source, bytesMax: 1, ranges: 2)
        try other.close()
        try maker.close()
    }
}
