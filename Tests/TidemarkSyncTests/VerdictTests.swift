import Testing
import Tidemark

@testable import TidemarkSync

/// What becomes of what arrives where more than the two versions counts: dots that may name two
/// writes, deletions that were forgotten, and dates that are not believed. What two versions alone
/// come to, say `ComparisonTests`.
struct VerdictTests {
    typealias Cases = ComparisonTests

    private static let (a, b, c) = (Cases.a, Cases.b, Cases.c)

    private static func record(
        _ value: String?, _ replica: ReplicaID, _ counter: UInt64, at time: UInt64,
        seeing others: [ReplicaID: UInt64] = [:]
    ) -> Record {
        Cases.record(value, replica, counter, at: time, seeing: others)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var local: Record?
        var incoming: Record
        var circumstances: Circumstances
        var expected: Expectation
        var isNews = true
    }

    enum Expectation: Hashable, Sendable {
        case ignore, confirmed, dead
        case adopt(isTheirs: Bool)
        case renew(String?, isTheirs: Bool)
        case outlive(time: UInt64)
        /// Written anew with what it has seen, and its time kept.
        case rebury([ReplicaID: UInt64])
        case settle
        /// What it settles descends from these.
        case settleInDoubt([ReplicaID: UInt64])
        indirect case hold(otherwise: Expectation)

        init(_ outcome: Verdict.Outcome) {
            switch outcome {
            case .ignore: self = .ignore
            case .confirmed: self = .confirmed
            case .dead: self = .dead
            case .adopt(_, let isTheirs): self = .adopt(isTheirs: isTheirs)
            case .renew(let write, let isTheirs):
                self = .renew(
                    write.value.map { String(decoding: $0, as: UTF8.self) }, isTheirs: isTheirs)
            case .outlive(let write):
                guard case .outlive(_, let version, _) = write.content else {
                    self = .outlive(time: 0)
                    return
                }
                self = .outlive(time: version.time.rawValue)
            case .rebury(let write):
                guard case .rewrite(nil, _, let seen, true, _) = write.content else {
                    self = .rebury([:])
                    return
                }
                self = .rebury(Self.counters(seen))
            case .settle(nil): self = .settle
            case .settle(let seen?): self = .settleInDoubt(Self.counters(seen))
            case .hold(let otherwise): self = .hold(otherwise: Expectation(otherwise))
            }
        }

        private static func counters(_ vector: VersionVector) -> [ReplicaID: UInt64] {
            Dictionary(uniqueKeysWithValues: vector.dots.map { ($0.replica, $0.counter) })
        }
    }

    private static func circumstances(
        _ side: Circumstances.Side = .alone, seen: [ReplicaID: UInt64] = [:],
        wiped: [ReplicaID: UInt64] = [:], isAhead: Bool = false, unmet: UnmetDeletions? = nil
    ) -> Circumstances {
        var circumstances = Circumstances(seen: Cases.vector(seen), wiped: Cases.vector(wiped))
        (circumstances.side, circumstances.isAhead, circumstances.unmet) = (side, isAhead, unmet)
        return circumstances
    }

    /// The peer disputes an id of its own, or this store does one of its own.
    private static func doubts(
        ours: Set<ReplicaID> = [], theirs: [ReplicaID] = [], own: Set<ReplicaID> = [],
        hadByPeer: [ReplicaID: UInt64] = [:], hadByUs: SyncCount = .zero,
        believesDates: Bool = false
    ) -> Circumstances.Side {
        var doubts = Doubts()
        doubts.ours = ours
        doubts.take(theirs, former: theirs)
        doubts.ownIDs = own
        doubts.known = (Cases.vector(hadByPeer), hadByUs)
        doubts.believesDates = believesDates
        return .asking(doubts)
    }

    private static func unmet(
        _ forgotten: [ReplicaID: UInt64], seen: [ReplicaID: UInt64], isHeld: Bool = false
    ) -> UnmetDeletions {
        let deletions = ForgottenDeletions(
            vector: Cases.vector(forgotten), time: HybridTime(rawValue: 0x50))
        return UnmetDeletions(
            forgotten: deletions,
            ours: PeerKnowledge(
                vector: Cases.vector(seen), syncCount: 9,
                lifecycle: PeerLifecycle(
                    isDeleted: false, wiped: VersionVector(), time: .zero, replica: a),
                forgotten: deletions), isHeld: isHeld,
            latestBelieved: HybridTime(rawValue: .max / 2))
    }

    static let forks: [Case] = [
        Case(
            testDescription: "both sides have the doubted write",
            local: record("x", b, 1, at: 5), incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(doubts(theirs: [b])), expected: .confirmed, isNews: false),
        Case(
            testDescription: "both gave up the id: what both have proves nothing",
            local: record("x", a, 1, at: 5), incoming: record("x", a, 1, at: 5),
            circumstances: circumstances(doubts(ours: [a], theirs: [a], own: [a])),
            expected: .renew("x", isTheirs: false), isNews: false),
        Case(
            testDescription: "one dot names two writes",
            local: record("x", b, 1, at: 5), incoming: record("y", b, 1, at: 6),
            circumstances: circumstances(doubts(theirs: [b])), expected: .settleInDoubt([b: 1])),
        Case(
            testDescription: "nothing here of a key that is doubtful at the peer",
            incoming: record("y", b, 1, at: 6, seeing: [c: 2]),
            circumstances: circumstances(doubts(theirs: [b])), expected: .renew("y", isTheirs: true)
        ),
        Case(
            testDescription:
                "what is here seems to descend from what is doubtful, and nobody knows",
            local: record("x", c, 3, at: 9, seeing: [b: 1]), incoming: record("y", b, 1, at: 6),
            circumstances: circumstances(doubts(theirs: [b])),
            expected: .settleInDoubt([b: 1, c: 3]),
            isNews: false),
        Case(
            testDescription: "what is here descends from what we are known to have had",
            local: record("x", c, 3, at: 9, seeing: [b: 1]), incoming: record("y", b, 1, at: 6),
            circumstances: circumstances(doubts(theirs: [b], hadByUs: 1)), expected: .confirmed,
            isNews: false),
        Case(
            testDescription: "what came is later, and the policy goes by dates",
            local: record("x", a, 1, at: 5), incoming: record("y", b, 4, at: 6, seeing: [a: 1]),
            circumstances: circumstances(doubts(ours: [a], own: [a], believesDates: true)),
            expected: .adopt(isTheirs: true)),
        Case(
            testDescription: "what came is earlier than what it seems to descend from",
            local: record("x", a, 1, at: 7), incoming: record("y", b, 4, at: 6, seeing: [a: 1]),
            circumstances: circumstances(doubts(ours: [a], own: [a], believesDates: true)),
            expected: .settleInDoubt([a: 1, b: 4])),
        Case(
            testDescription: "what came descends from what the peer is known to have had",
            local: record("x", a, 1, at: 7), incoming: record("y", b, 4, at: 6, seeing: [a: 1]),
            circumstances: circumstances(doubts(ours: [a], own: [a], hadByPeer: [a: 1])),
            expected: .adopt(isTheirs: true)),
        Case(
            testDescription: "the same value under a certain dot and a doubtful one",
            local: record("x", a, 1, at: 7), incoming: record("x", b, 4, at: 9),
            circumstances: circumstances(doubts(ours: [a], own: [a])),
            expected: .renew("x", isTheirs: true)),
        Case(
            testDescription: "wiped with the dataset, in doubt or not",
            local: record("x", a, 4, at: 7), incoming: record("y", b, 1, at: 6),
            circumstances: circumstances(doubts(theirs: [b]), wiped: [b: 1]), expected: .ignore,
            isNews: false),
        Case(
            testDescription: "who is asked leaves it to the asker",
            local: record("x", a, 1, at: 7), incoming: record("y", b, 4, at: 6),
            circumstances: circumstances(.asked(disputed: [a])), expected: .settle),
    ]

    static let deletions: [Case] = [
        Case(
            testDescription: "seen, deleted and forgotten",
            incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(doubts(), unmet: unmet([b: 2], seen: [b: 2])),
            expected: .dead,
            isNews: false),
        Case(
            testDescription: "seen, and held",
            incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(
                doubts(), seen: [b: 2], unmet: unmet([b: 2], seen: [b: 2], isHeld: true)),
            expected: .ignore, isNews: false),
        Case(
            testDescription: "not seen: above what was forgotten",
            incoming: record("x", c, 1, at: 5),
            circumstances: circumstances(doubts(), unmet: unmet([b: 2], seen: [b: 2])),
            expected: .outlive(time: HybridTime.outliving(HybridTime(rawValue: 0x50)).rawValue)),
        Case(
            testDescription: "not seen, and has seen what was forgotten",
            incoming: record("x", c, 1, at: 5, seeing: [b: 2]),
            circumstances: circumstances(doubts(), unmet: unmet([b: 2], seen: [b: 2])),
            expected: .adopt(isTheirs: true)),
        Case(
            testDescription: "under an id that the peer disputes it may be another write",
            incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(
                doubts(theirs: [b]), unmet: unmet([b: 2, c: 1], seen: [b: 2, c: 1])),
            expected: .outlive(time: 0)),
        Case(
            testDescription: "that what was held was seen says nothing",
            incoming: record("x", c, 1, at: 5),
            circumstances: circumstances(unmet: unmet([b: 2], seen: [b: 2, c: 1], isHeld: true)),
            expected: .outlive(time: HybridTime.outliving(HybridTime(rawValue: 0x50)).rawValue)),
        Case(
            testDescription: "a part hears that its own record was deleted",
            local: record("x", b, 1, at: 5), incoming: record(nil, b, 1, at: 5),
            circumstances: circumstances(.part), expected: .adopt(isTheirs: true), isNews: false),
        Case(
            testDescription: "of one dot the earlier time, where all is kept",
            local: record("x", b, 1, at: 5), incoming: record(nil, b, 1, at: 5),
            circumstances: circumstances(doubts()), expected: .ignore, isNews: false),
        Case(
            testDescription: "who is asked has buried it, and it comes with more",
            local: record(nil, b, 1, at: 5), incoming: record("x", b, 1, at: 5, seeing: [c: 2]),
            circumstances: circumstances(.asked(disputed: [])), expected: .rebury([b: 1, c: 2])),
        Case(
            testDescription: "who asks has buried it, and it comes with more",
            local: record(nil, b, 1, at: 5), incoming: record("x", b, 1, at: 5, seeing: [c: 2]),
            circumstances: circumstances(doubts()), expected: .rebury([b: 1, c: 2])),
    ]

    static let dates: [Case] = [
        Case(
            testDescription: "a date that is not believed",
            incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(doubts(), isAhead: true),
            expected: .hold(otherwise: .adopt(isTheirs: true))),
        Case(
            testDescription: "a date that is not believed, beside what it is in conflict with",
            local: record("y", c, 1, at: 6), incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(.asked(disputed: []), isAhead: true),
            expected: .hold(otherwise: .settle)),
        Case(
            testDescription: "what is in doubt does not wait for its date",
            incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(doubts(theirs: [b]), isAhead: true),
            expected: .renew("x", isTheirs: true)),
        Case(
            testDescription: "nor what meets something in doubt",
            local: record("y", a, 1, at: 6), incoming: record("x", b, 1, at: 5),
            circumstances: circumstances(.asked(disputed: [a]), isAhead: true), expected: .settle),
    ]

    @Test(arguments: forks + deletions + dates)
    func verdict(_ one: Case) {
        let verdict = Verdict(on: one.incoming, beside: one.local, one.circumstances)
        #expect(Expectation(verdict.outcome) == one.expected)
        #expect(verdict.isNews == one.isNews)
    }

    /// A version that takes the place of one in doubt with the same value is not stored as one that
    /// descends from it.
    @Test func whoIsAskedStoresNothingAsDescendingFromWhatIsInDoubt() {
        let local = Self.record("x", Self.a, 1, at: 7, seeing: [Self.c: 2])
        let incoming = Self.record("x", Self.b, 4, at: 9)
        let verdict = Verdict(
            on: incoming, beside: local, Self.circumstances(.asked(disputed: [Self.a])))
        guard case .adopt(let write, _) = verdict.outcome,
            case .adopt(_, let version, _) = write.content
        else {
            Issue.record("it is \(verdict.outcome)")
            return
        }
        #expect(version.vector == Cases.vector([Self.b: 4, Self.c: 2]))
    }
}
