import Testing
import Tidemark

@Suite("Versions")
struct VersionTests {
    private let left = ReplicaID(high: 1, low: 0)
    private let right = ReplicaID(high: 2, low: 0)

    private func version(
        _ replica: ReplicaID, _ counter: UInt64, seen: [Dot] = [], time: UInt64 = 1
    ) -> Version {
        Version(
            dot: Dot(replica: replica, counter: counter), vector: VersionVector(seen),
            time: HybridTime(rawValue: time))
    }

    @Test("A version's vector contains its own dot")
    func ownDot() {
        let version = version(left, 3)
        #expect(version.vector == VersionVector([version.dot]))
        #expect(version.relation(to: version) == .same)
    }

    @Test("Ancestry follows what the writer had seen, not time")
    func relations() {
        let base = version(left, 1, time: 100)
        let descendant = version(right, 1, seen: [base.dot], time: 2)
        #expect(descendant.relation(to: base) == .descendant)
        #expect(base.relation(to: descendant) == .ancestor)
        let apart = version(left, 2, seen: [base.dot], time: 300)
        #expect(apart.relation(to: descendant) == .concurrent)
        #expect(descendant.relation(to: apart) == .concurrent)
        let merged = version(right, 2, seen: [apart.dot, descendant.dot])
        #expect(merged.relation(to: apart) == .descendant)
        #expect(merged.relation(to: descendant) == .descendant)
    }

    /// Whichever side asks: or each would take the other's version, for ever.
    @Test("Of two versions that have seen each other the earlier one counts as the descendant")
    func seenByEachOther() {
        let early = version(left, 1, seen: [Dot(replica: right, counter: 2)], time: 5)
        let late = version(right, 2, seen: [Dot(replica: left, counter: 7)], time: 9)
        #expect(early.relation(to: late) == .descendant)
        #expect(late.relation(to: early) == .ancestor)
        // At one time the replica decides.
        let same = version(right, 2, seen: [Dot(replica: left, counter: 1)], time: 5)
        #expect(early.relation(to: same) == .descendant)
        #expect(same.relation(to: early) == .ancestor)
    }

    @Test("An earlier version takes a later one's place as it is only if it has seen all of it")
    func supersession() {
        let third = Dot(replica: ReplicaID(high: 3, low: 0), counter: 4)
        let future = version(left, 1, time: 100)
        let joined = version(left, 1, seen: [third], time: 100)
        let over = version(right, 1, seen: [future.dot], time: 5)
        #expect(over.supersedesAsItIs(future))
        #expect(!over.supersedesAsItIs(joined))
        #expect(version(right, 1, seen: [future.dot, third], time: 5).supersedesAsItIs(joined))
        #expect(version(right, 1, seen: [future.dot], time: 101).supersedesAsItIs(joined))
    }

    @Test("What two vectors have in common is what both have seen")
    func intersection() {
        let middle = ReplicaID(high: 1, low: 5)
        let one = VersionVector([Dot(replica: left, counter: 3), Dot(replica: middle, counter: 9)])
        let two = VersionVector([
            Dot(replica: left, counter: 5), Dot(replica: middle, counter: 2),
            Dot(replica: right, counter: 7),
        ])
        let both = VersionVector([Dot(replica: left, counter: 3), Dot(replica: middle, counter: 2)])
        #expect(one.intersection(two) == both && two.intersection(one) == both)
        let none = VersionVector()
        #expect(one.intersection(none).isEmpty && none.intersection(one).isEmpty)
        #expect(one.intersection(one) == one)
    }

    @Test("Last writer wins has one winner: by time, then replica, then counter")
    func lastWriter() {
        let versions = [
            version(left, 1, time: 5), version(left, 2, time: 5), version(right, 1, time: 5),
            version(left, 3, time: 6),
        ]
        for (index, version) in versions.enumerated() {
            #expect(!version.isLater(than: version))
            for earlier in versions[..<index] {
                #expect(version.isLater(than: earlier) && !earlier.isLater(than: version))
            }
        }
    }
}
