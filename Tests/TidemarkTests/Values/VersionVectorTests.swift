import TestSupport
import Testing
import Tidemark

/// Few replicas and low counters, so that vectors meet in every way.
private func drawnVector(_ random: inout SeededGenerator) -> VersionVector {
    VersionVector(
        (0..<random.below(5)).map { _ in
            Dot(
                replica: ReplicaID(high: UInt64(random.below(2)), low: UInt64(random.below(3))),
                counter: UInt64(random.below(4)))
        })
}

@Suite("Version vectors")
struct VersionVectorTests {
    @Test("Joining is commutative, associative, idempotent, and an upper bound")
    func joinLaws() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<2_000 {
                let (a, b, c) = (
                    drawnVector(&random), drawnVector(&random), drawnVector(&random)
                )
                try require(a.union(b) == b.union(a), "\(a) with \(b)")
                try require(
                    a.union(b).union(c) == a.union(b.union(c)), "\(a) with \(b) with \(c)")
                try require(a.union(a) == a, "\(a) with itself")
                try require(a.union(b).covers(a) && a.union(b).covers(b), "\(a) with \(b)")
                try require(a.union(VersionVector()) == a, "\(a) with nothing")
                // The least of them: whatever covers both covers the join.
                if c.covers(a), c.covers(b) {
                    try require(c.covers(a.union(b)), "\(c) over \(a) and \(b)")
                }
            }
        }
    }

    @Test("Covering is a partial order and agrees with the dots")
    func coverLaws() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<2_000 {
                let (a, b, c) = (
                    drawnVector(&random), drawnVector(&random), drawnVector(&random)
                )
                try require(a.covers(a), "\(a) over itself")
                if a.covers(b), b.covers(a) { try require(a == b, "\(a) and \(b)") }
                if a.covers(b), b.covers(c) { try require(a.covers(c), "\(a), \(b), \(c)") }
                try require(a.covers(b) == b.dots.allSatisfy(a.contains), "\(a) over \(b)")
            }
        }
    }

    @Test("Equal vectors have equal dots, whatever the order of insertion")
    func canonicalForm() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<500 {
                let vector = drawnVector(&random)
                let again = VersionVector(vector.dots.shuffled(using: &random))
                try require(again == vector && again.dots == vector.dots, "\(vector)")
                try require(vector.dots == vector.dots.sorted(), "\(vector) is not sorted")
                try require(vector.dots.allSatisfy { $0.counter > 0 }, "\(vector) has a 0")
            }
        }
    }

    @Test("Counters of unknown replicas are 0, and a dot of 0 is no write")
    func lookUp() {
        let (one, two) = (ReplicaID(high: 0, low: 1), ReplicaID(high: 1, low: 0))
        var vector = VersionVector()
        #expect(vector.isEmpty && vector[one] == 0)
        vector.insert(Dot(replica: one, counter: 0))
        #expect(vector.isEmpty)
        vector.insert(Dot(replica: one, counter: 5))
        vector.insert(Dot(replica: one, counter: 3))
        #expect(vector[one] == 5 && vector[two] == 0 && vector.count == 1)
        #expect(vector.contains(Dot(replica: one, counter: 5)))
        #expect(!vector.contains(Dot(replica: one, counter: 6)))
        #expect(vector.removing(one).isEmpty && vector.removing(two) == vector)
    }
}
