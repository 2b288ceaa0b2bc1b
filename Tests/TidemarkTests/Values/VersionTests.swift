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
