import Testing
import Tidemark

@testable import TidemarkSync

/// Every case of comparing what arrives with what is here.
struct ComparisonTests {
    static let a = ReplicaID(high: 0, low: 1)
    static let b = ReplicaID(high: 0, low: 2)
    static let c = ReplicaID(high: 0, low: 3)
    static let d = ReplicaID(high: 0, low: 4)

    static func vector(_ counters: [ReplicaID: UInt64]) -> VersionVector {
        VersionVector(counters.map { Dot(replica: $0.key, counter: $0.value) })
    }

    static func record(
        _ value: String?, _ replica: ReplicaID, _ counter: UInt64, at time: UInt64,
        seeing others: [ReplicaID: UInt64] = [:]
    ) -> Record {
        Record(
            key: [1], value: value.map { Array($0.utf8) },
            version: Version(
                dot: Dot(replica: replica, counter: counter), vector: vector(others),
                time: HybridTime(rawValue: time)),
            syncCount: 1, isDirty: false)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var local: Record?
        var incoming: Record
        var seen: [ReplicaID: UInt64] = [:]
        var wiped: [ReplicaID: UInt64] = [:]
        /// nil: ignore. Else the dot that stays and the whole vector.
        var expected: Expectation
    }

    enum Expectation: Sendable {
        case ignore
        case conflict
        case incoming([ReplicaID: UInt64])
        case local([ReplicaID: UInt64])
        /// Is to be written anew.
        case renewIncoming
        case renewLocal
        case delete(Record)
    }

    static let cases: [Case] = [
        Case(
            testDescription: "nothing here, never seen",
            incoming: record("x", b, 1, at: 5), expected: .incoming([b: 1])),
        Case(
            testDescription: "a tombstone of something never seen",
            incoming: record(nil, b, 1, at: 5), expected: .incoming([b: 1])),
        Case(
            testDescription: "nothing here, but seen: its tombstone is no longer kept",
            incoming: record("x", b, 1, at: 5), seen: [b: 1], expected: .ignore),
        Case(
            testDescription: "wiped out with the dataset",
            incoming: record("x", b, 1, at: 5), wiped: [b: 3], expected: .ignore),
        Case(
            testDescription: "wiped out, but for having won over a write that the wipe missed",
            incoming: record("x", b, 1, at: 5, seeing: [c: 2]), seen: [b: 3, c: 1],
            wiped: [b: 3, c: 1], expected: .incoming([b: 1, c: 2])),
        Case(
            testDescription: "written after the dataset was deleted",
            incoming: record("x", b, 4, at: 5), seen: [b: 3], wiped: [b: 3],
            expected: .incoming([b: 4])),
        Case(
            testDescription: "the same write",
            local: record("x", b, 1, at: 5), incoming: record("x", b, 1, at: 5), seen: [b: 1],
            expected: .ignore),
        Case(
            testDescription: "the same write, which has superseded more elsewhere",
            local: record("x", b, 1, at: 5),
            incoming: record("x", b, 1, at: 5, seeing: [c: 2]), seen: [b: 1],
            expected: .local([b: 1, c: 2])),
        Case(
            testDescription: "the same write, which has superseded less elsewhere",
            local: record("x", b, 1, at: 5, seeing: [c: 2]),
            incoming: record("x", b, 1, at: 5), seen: [b: 1, c: 2], expected: .ignore),
        Case(
            testDescription: "a write that was buried here, which has superseded more elsewhere",
            local: record(nil, b, 1, at: 5), incoming: record("x", b, 1, at: 5, seeing: [c: 3]),
            seen: [b: 1, c: 3], expected: .renewLocal),
        Case(
            testDescription: "a write that was buried here, with no more than it had",
            local: record(nil, b, 1, at: 5, seeing: [c: 3]), incoming: record("x", b, 1, at: 5),
            expected: .ignore),
        Case(
            testDescription: "a deletion joined with more than what it buried had seen",
            local: record(nil, b, 1, at: 5), incoming: record(nil, b, 1, at: 5, seeing: [c: 3]),
            expected: .incoming([b: 1, c: 3])),
        Case(
            testDescription: "one dot used twice: the later write",
            local: record("x", b, 1, at: 5), incoming: record("y", b, 1, at: 6), seen: [b: 1],
            expected: .incoming([b: 1])),
        Case(
            testDescription: "one dot used twice: the earlier write",
            local: record("y", b, 1, at: 6), incoming: record("x", b, 1, at: 5), seen: [b: 1],
            expected: .ignore),
        Case(
            testDescription: "a descendant",
            local: record("x", a, 1, at: 5), incoming: record("y", b, 1, at: 6, seeing: [a: 1]),
            seen: [a: 1], expected: .incoming([a: 1, b: 1])),
        Case(
            testDescription: "a descendant, of a write that had superseded another one here",
            local: record("x", a, 1, at: 5, seeing: [c: 9]),
            incoming: record("y", b, 1, at: 6, seeing: [a: 1]), seen: [a: 1, c: 9],
            expected: .incoming([a: 1, b: 1, c: 9])),
        Case(
            testDescription: "a deleted descendant",
            local: record("x", a, 1, at: 5), incoming: record(nil, b, 1, at: 6, seeing: [a: 1]),
            seen: [a: 1], expected: .incoming([a: 1, b: 1])),
        Case(
            testDescription: "an ancestor",
            local: record("y", b, 1, at: 6, seeing: [a: 1]), incoming: record("x", a, 1, at: 5),
            seen: [a: 1, b: 1], expected: .ignore),
        Case(
            testDescription: "an ancestor that has superseded another one elsewhere",
            local: record("y", b, 1, at: 6, seeing: [a: 1]),
            incoming: record("x", a, 1, at: 5, seeing: [c: 2]), seen: [a: 1, b: 1],
            expected: .local([a: 1, b: 1, c: 2])),
        Case(
            testDescription: "an ancestor, although nothing of it was seen as a whole",
            local: record("y", b, 1, at: 6, seeing: [a: 1]), incoming: record("x", a, 1, at: 5),
            expected: .ignore),
        Case(
            testDescription: "concurrent",
            local: record("x", a, 1, at: 5), incoming: record("y", b, 1, at: 6), seen: [a: 1],
            expected: .conflict),
        Case(
            testDescription: "concurrent with a deletion",
            local: record(nil, a, 1, at: 5), incoming: record("y", b, 1, at: 6), seen: [a: 1],
            expected: .conflict),
        Case(
            testDescription: "concurrent, an empty value beside a deletion",
            local: record("", a, 1, at: 5), incoming: record(nil, b, 1, at: 6), seen: [a: 1],
            expected: .conflict),
        Case(
            testDescription: "concurrent with what replaced it after the dataset was deleted",
            local: record("x", a, 1, at: 5), incoming: record("y", b, 1, at: 6),
            seen: [a: 1, b: 1], expected: .ignore),
        Case(
            testDescription: "concurrent and equal, the incoming one later",
            local: record("x", a, 1, at: 5), incoming: record("x", b, 1, at: 6), seen: [a: 1],
            expected: .incoming([a: 1, b: 1])),
        Case(
            testDescription: "concurrent and equal, the local one later",
            local: record("x", a, 1, at: 7), incoming: record("x", b, 1, at: 6), seen: [a: 1],
            expected: .local([a: 1, b: 1])),
        Case(
            testDescription: "concurrent and equal at one time: the greater replica",
            local: record("x", a, 1, at: 6), incoming: record("x", b, 1, at: 6), seen: [a: 1],
            expected: .incoming([a: 1, b: 1])),
        Case(
            testDescription: "both deleted",
            local: record(nil, a, 1, at: 5), incoming: record(nil, b, 1, at: 6), seen: [a: 1],
            expected: .incoming([a: 1, b: 1])),
        Case(
            testDescription: "over a write from the future",
            local: record("x", a, 1, at: 90), incoming: record("y", b, 1, at: 6, seeing: [a: 1]),
            seen: [a: 1], expected: .incoming([a: 1, b: 1])),
        Case(
            testDescription: "over a write from the future that was joined with more",
            local: record("x", a, 1, at: 90, seeing: [c: 2]),
            incoming: record("y", b, 1, at: 6, seeing: [a: 1]), seen: [a: 1, c: 2],
            expected: .renewIncoming),
        Case(
            testDescription: "a write from the future that was joined with more, overwritten here",
            local: record("y", b, 1, at: 6, seeing: [a: 1]),
            incoming: record("x", a, 1, at: 90, seeing: [c: 2]), seen: [a: 1, b: 1],
            expected: .renewLocal),
        Case(
            testDescription: "each has seen the other, the incoming one earlier",
            local: record("x", a, 1, at: 9, seeing: [b: 1]),
            incoming: record("y", b, 1, at: 6, seeing: [a: 1]), seen: [a: 1, b: 1],
            expected: .incoming([a: 1, b: 1])),
        Case(
            testDescription: "each has seen the other, the local one earlier",
            local: record("y", b, 1, at: 6, seeing: [a: 1]),
            incoming: record("x", a, 1, at: 9, seeing: [b: 1]), seen: [a: 1, b: 1],
            expected: .ignore),
        Case(
            testDescription: "each has seen the other, the earlier one not all of the later",
            local: record("x", a, 1, at: 9, seeing: [b: 1, c: 3]),
            incoming: record("y", b, 1, at: 6, seeing: [a: 1]), seen: [a: 1, b: 1, c: 3],
            expected: .renewIncoming),
        Case(
            testDescription: "over what has outlived something, by one who went on from it",
            local: record("x", a, 1, at: 0x9FFFF, seeing: [c: 2]),
            incoming: record("y", b, 1, at: 6, seeing: [a: 1]), seen: [a: 1, c: 2],
            expected: .renewIncoming),
        Case(
            testDescription: "in dispute, the one that has outlived has seen all",
            local: record("x", a, 1, at: 9, seeing: [b: 1]),
            incoming: record("y", b, 1, at: 0x9FFFF, seeing: [a: 1, c: 3]),
            seen: [a: 1, b: 1], expected: .incoming([a: 1, b: 1, c: 3])),
        Case(
            testDescription: "in dispute, and the local one has seen all",
            local: record("y", b, 1, at: 0x9FFFF, seeing: [a: 1, c: 3]),
            incoming: record("x", a, 1, at: 9, seeing: [b: 1]),
            seen: [a: 1, b: 1, c: 3], expected: .ignore),
        Case(
            testDescription: "in dispute, and neither has seen all: deleted, as the earlier one",
            local: record("x", a, 1, at: 9, seeing: [b: 1, c: 2]),
            incoming: record("y", b, 1, at: 0x9FFFF, seeing: [a: 1, c: 1, d: 1]),
            seen: [a: 1, b: 1, c: 2],
            expected: .delete(record(nil, a, 1, at: 9, seeing: [b: 1, c: 2]))),
        Case(
            testDescription: "in dispute, and neither has seen all: the local one is later",
            local: record("y", b, 1, at: 0x9FFFF, seeing: [a: 1, c: 1, d: 1]),
            incoming: record("x", a, 1, at: 9, seeing: [b: 1, c: 2]),
            seen: [a: 1, b: 1, c: 1, d: 1],
            expected: .delete(record(nil, a, 1, at: 9, seeing: [b: 1, c: 2]))),
    ]

    /// Over what has outlived something a version wins under its own dot, after both.
    @Test func whatWinsOverWhatOutlivedOutlives() throws {
        let local = Self.record("x", Self.a, 1, at: 0x9FFFF, seeing: [Self.c: 2])
        let incoming = Self.record("y", Self.b, 1, at: 6, seeing: [Self.a: 1])
        let write = Comparison.renewal(of: incoming, incoming: incoming, local: local)
        guard case .outlive(let value, let version, _) = write.content else {
            Issue.record("\(write)")
            return
        }
        #expect(value == incoming.value && version.dot == incoming.version.dot)
        #expect(version.vector == Self.vector([Self.a: 1, Self.b: 1, Self.c: 2]))
        #expect(version.time == HybridTime(rawValue: 0xAFFFF))
        #expect(write.expected == local.version)
    }

    @Test(arguments: cases)
    func outcome(_ item: Case) {
        let comparison = Comparison(
            local: item.local, incoming: item.incoming, seen: Self.vector(item.seen),
            wiped: Self.vector(item.wiped))
        let expected: Comparison
        switch item.expected {
        case .ignore: expected = .ignore
        case .conflict: expected = .conflict
        case .incoming(let vector): expected = Self.adopted(item.incoming, vector)
        case .local(let vector): expected = Self.adopted(item.local ?? item.incoming, vector)
        case .renewIncoming: expected = .renew(item.incoming)
        case .renewLocal: expected = .renew(item.local ?? item.incoming)
        case .delete(let record): expected = .renew(record)
        }
        #expect(comparison == expected)
    }

    static func adopted(_ record: Record, _ vector: [ReplicaID: UInt64]) -> Comparison {
        .adopt(
            value: record.value,
            version: Version(
                dot: record.version.dot, vector: Self.vector(vector), time: record.version.time,
                author: record.version.author))
    }

    /// Under last writer wins the order and repetition of arrivals make no difference.
    @Test func lastWriterWinsIsAJoin() {
        var random = SeededGenerator(seed: baseSeed)
        print("lastWriterWinsIsAJoin: seed \(baseSeed)")
        for _ in 0..<2_000 {
            let versions = Self.history(&random)
            let outcomes = (0..<4).map { _ in
                let arrivals = (versions + versions).shuffled(using: &random)
                return arrivals.reduce(nil) { Self.joined($0, $1) }
            }
            let latest = versions.max { $1.version.isLater(than: $0.version) }
            #expect(Set(outcomes).count == 1)
            #expect(outcomes.first??.version.dot == latest?.version.dot)
        }
    }

    /// Writes of three replicas to one key, each of which has seen some of the earlier ones.
    private static func history(_ random: inout SeededGenerator) -> [Record] {
        var records: [Record] = []
        var counters: [ReplicaID: UInt64] = [:]
        for time in 1...UInt64.random(in: 2...6, using: &random) {
            let replica = [a, b, c].randomElement(using: &random) ?? a
            counters[replica, default: 0] += 1
            var seen = VersionVector()
            for earlier in records
            where earlier.version.dot.replica == replica || Bool.random(using: &random) {
                seen.formUnion(earlier.version.vector)
            }
            records.append(
                Record(
                    key: [1], value: [UInt8(time % 3)],
                    version: Version(
                        dot: Dot(replica: replica, counter: counters[replica] ?? 1),
                        vector: seen, time: HybridTime(rawValue: time)),
                    syncCount: 0, isDirty: false, expiresAt: time % 2 == 0 ? nil : time))
        }
        return records
    }

    private static func joined(_ local: Record?, _ incoming: Record) -> Record? {
        var comparison = Comparison(
            local: local, incoming: incoming, seen: VersionVector(), wiped: VersionVector())
        if comparison == .conflict, let local {
            comparison = .lastWriter(local: local, incoming: incoming)
        }
        guard case .adopt(let value, let version, let expiresAt) = comparison else { return local }
        return Record(
            key: incoming.key, value: value, version: version, syncCount: 0, isDirty: false,
            expiresAt: expiresAt)
    }
}
