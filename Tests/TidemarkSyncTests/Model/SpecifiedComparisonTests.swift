import Specification
import Testing
import Tidemark

@testable import TidemarkSync

/// The property: whatever two versions meet in a schedule, the product's comparison comes to what
/// the specification comes to.
@Suite(.serialized)
struct SpecifiedComparisonTests {
    /// A version that arrives where another one, or none, is. Without the places in the order of
    /// change, which a comparison does not look at.
    private struct Meeting: Hashable {
        let local: SpecRecord?
        let incoming: SpecRecord
        let seen: SpecVector

        init(_ local: SpecRecord?, _ incoming: SpecRecord, _ seen: SpecVector) {
            self.local = local.map(Self.plain)
            self.incoming = Self.plain(incoming)
            self.seen = seen
        }

        private static func plain(_ record: SpecRecord) -> SpecRecord {
            var plain = record
            plain.count = 0
            plain.replaced = SpecWrites()
            return plain
        }
    }

    /// All that the replicas of a state have for each other.
    private static func meetings(in world: SpecWorld, _ body: (Meeting, SpecWorld) -> Void) {
        for one in world.replicas {
            for other in world.replicas where other.index != one.index {
                for key in 0..<2 {
                    guard let incoming = other.records[key] else { continue }
                    body(Meeting(one.records[key], incoming, one.vector), world)
                }
            }
        }
    }

    @Test(arguments: [
        ExploredWorld.whole, ExploredWorld.cut, ExploredWorld.crossed, ExploredWorld.back,
    ])
    func theProductComparesAsSpecified(_ explored: ExploredWorld) {
        var meetings: Set<Meeting> = []
        var exploration = explored.exploration
        exploration.checksTheEnd = false
        _ = exploration.run(depth: min(explored.depth, 5)) { world, _ in
            Self.meetings(in: world) { meeting, _ in meetings.insert(meeting) }
        }
        let wrong = meetings.filter { !Self.isAsSpecified($0) }
        print("\(explored.name): \(meetings.count) meetings of versions")
        #expect(wrong.isEmpty, "\(wrong.count), such as \(String(describing: wrong.first))")
        #expect(meetings.count > 1_000)
    }

    private static func isAsSpecified(_ meeting: Meeting) -> Bool {
        let values = SpecifiedValues.any
        let specified = SpecComparison(
            local: meeting.local, incoming: meeting.incoming, seen: meeting.seen)
        let local = meeting.local.map { values.record($0) }
        let incoming = values.record(meeting.incoming)
        let comparison = Comparison(
            local: local, incoming: incoming, seen: values.vector(meeting.seen),
            wiped: VersionVector())
        guard comparison == values.comparison(specified) else { return false }
        guard let ours = meeting.local, let local else { return true }
        return isAsSpecified(ours, meeting.incoming, local, incoming, values)
    }

    private static func isAsSpecified(
        _ ours: SpecRecord, _ theirs: SpecRecord, _ local: Record, _ incoming: Record,
        _ values: SpecifiedValues
    ) -> Bool {
        let (one, other) = (theirs.version, ours.version)
        let winner = SpecComparison.lastWriter(ours, theirs, [])
        let joined = one.vector.union(other.vector)
        let common = one.vector.intersection(other.vector)
        var forgotten = SpecForgotten()
        forgotten.insert(one)
        var productForgotten = ForgottenDeletions()
        productForgotten.insert(incoming.version)
        return Comparison.lastWriter(local: local, incoming: incoming)
            == values.comparison(winner)
            && incoming.version.relation(to: local.version)
                == values.relation(one.relation(to: other))
            && incoming.version.isLater(than: local.version) == one.isLater(than: other)
            && incoming.version.supersedesAsItIs(local.version) == one.supersedesAsItIs(other)
            && incoming.version.isInDispute(with: local.version) == one.isInDispute(with: other)
            && incoming.version.vector.union(local.version.vector) == values.vector(joined)
            && incoming.version.vector.intersection(local.version.vector)
                == values.vector(common)
            && incoming.version.vector.covers(local.version.vector)
                == one.vector.covers(other.vector)
            && HybridTime.outliving(incoming.version.time) == values.time(one.time.outlived)
            && productForgotten == values.forgotten(forgotten)
            && productForgotten.covers(local.version) == forgotten.covers(other)
    }

    /// The check can fail.
    @Test(arguments: [SpecMistakes.winnerForgetsTheLoser, .firstWriterWins])
    func aMistakenComparisonDiffers(_ mistake: SpecMistakes) {
        var found = 0
        _ = ExploredWorld.whole.exploration.run(depth: 2) { world, _ in
            Self.meetings(in: world) { meeting, _ in
                guard let local = meeting.local else { return }
                let values = SpecifiedValues.any
                let mistaken = SpecComparison.lastWriter(local, meeting.incoming, mistake)
                let right = Comparison.lastWriter(
                    local: values.record(local), incoming: values.record(meeting.incoming))
                found += right == values.comparison(mistaken) ? 0 : 1
            }
        }
        #expect(found > 0)
    }
}
