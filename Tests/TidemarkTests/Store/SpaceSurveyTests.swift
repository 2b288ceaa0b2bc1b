import TestSupport
import Testing
import Tidemark

/// What is told of a store without counting all of it.
struct SpaceSurveyTests {
    let fixture: StoreFixture

    init() throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.historyVersions = 3
        fixture = try StoreFixture(options)
    }

    private func fill(_ range: Range<Int>, _ text: String) throws {
        for number in range {
            try fixture.dataset.put("\(text) \(number)", for: "key \(10_000 + number)")
        }
    }

    private func row(_ survey: SpaceSurvey, _ name: String?) throws -> SpaceSurvey.Dataset {
        try #require(survey.datasets.first { $0.name == name })
    }

    @Test func aSmallStoreIsLookedAtAsAWhole() throws {
        try fill(0..<60, "old")
        try fixture.store.sealAll()
        try fill(30..<60, "new")
        for number in 0..<10 { try fixture.dataset.delete("key \(10_000 + number)") }
        let survey = try fixture.store.spaceSurvey()
        #expect(survey.isExact)
        let dataset = try row(survey, fixture.dataset.name)
        #expect(dataset.entryCount == 100 && dataset.tombstoneCount == 10)
        #expect(dataset.found.live == 50 && dataset.found.deletions == 10)
        #expect(dataset.found.superseded == 40)
        #expect(dataset.liveEstimate == 50)
        let statistics = try fixture.store.statistics()
        #expect(statistics.datasets.first?.recordCount == dataset.liveEstimate)
        #expect(survey.fileBytes == statistics.fileBytes)
        let sealed = try #require(survey.segments.last)
        #expect(sealed.isSealed && sealed.found.superseded == 40)
    }

    /// Of a segment of hundreds of blocks some are looked at, from its beginning to its end.
    @Test func aLargeSegmentIsSampled() throws {
        try fill(0..<30_000, "a value of some length, so that there are many blocks")
        try fixture.store.compact()
        // What is dead lies at the beginning.
        try fill(0..<10_000, "newer")
        let survey = try fixture.store.spaceSurvey(cellsMax: 30)
        let sealed = try #require(survey.segments.last)
        #expect(!sealed.isExact && sealed.cells.count == 30 && sealed.contentBytes > 1 << 20)
        #expect(sealed.cells.prefix(9).allSatisfy { $0.liveShare == 0 })
        #expect(sealed.cells.suffix(19).allSatisfy { $0.liveShare == 1 })
        let live = try #require(try row(survey, fixture.dataset.name).liveEstimate)
        #expect((27_000...33_000).contains(live), "\(live)")
    }

    /// What each segment holds of the heaviest datasets, and what of all else.
    @Test func portionsOfTheHeaviest() throws {
        let names = ["light", "heavy", "middle"]
        for (name, count) in zip(names, [1, 100, 10]) {
            let dataset = try fixture.store.dataset(name)
            for number in 0..<count { try dataset.put("a value", for: "key \(100 + number)") }
        }
        try fixture.store.sealAll()
        for number in 0..<4 {
            try fixture.store.dataset("middle").delete("key \(100 + number)")
        }
        var toldCount = 0
        let survey = try fixture.store.spaceSurvey(heaviestMax: 2) { toldCount += 1 }
        #expect(survey.heaviest == ["heavy", "middle"])
        #expect(toldCount == survey.segments.count)
        for segment in survey.segments {
            #expect(segment.portions.count == 3)
            let sum = segment.portions.reduce(0) { $0 + $1.contentBytes }
            #expect(sum == segment.contentBytes)
        }
        let sealed = try #require(survey.segments.last)
        let recordBytes = UInt64("key 100".utf8.count + "a value".utf8.count)
        #expect(sealed.portions[0].contentBytes == 100 * recordBytes)
        #expect(sealed.portions[0].liveBytesEstimate == 100 * recordBytes)
        #expect(sealed.portions[1].contentBytes == 10 * recordBytes)
        #expect(sealed.portions[1].liveBytesEstimate == 6 * recordBytes)
        #expect(sealed.portions[1].found.superseded == 4)
        let log = try #require(survey.segments.first)
        #expect(!log.isSealed && log.portions[1].found.deletions == 4)
        #expect(log.portions[0].contentBytes == 0 && log.portions[0].liveBytesEstimate == 0)
        #expect(try fixture.store.spaceSurvey().segments.allSatisfy(\.portions.isEmpty))
    }

    /// What is left of a deleted dataset has no name that it could be shown by.
    @Test func deletedDatasetsAreAmongTheOthers() throws {
        for (name, count) in [("gone", 50), ("kept", 5)] {
            let dataset = try fixture.store.dataset(name)
            for number in 0..<count { try dataset.put("a value", for: "key \(number)") }
        }
        try fixture.store.sealAll()
        try fixture.store.deleteDataset("gone")
        let survey = try fixture.store.spaceSurvey(heaviestMax: 1)
        #expect(survey.heaviest == ["kept"])
        let sealed = try #require(survey.segments.last)
        #expect(sealed.portions.last?.found.ownerless == 50)
    }

    @Test func deletedDatasetsLeaveSomethingBehind() throws {
        let gone = try fixture.store.dataset("gone")
        for number in 0..<5 { try gone.put("value", for: "key \(number)") }
        try fixture.store.sealAll()
        try fixture.store.deleteDataset("gone")
        let rest = try row(try fixture.store.spaceSurvey(), nil)
        #expect(rest.entryCount == 5 && rest.found.ownerless == 5 && rest.liveEstimate == 0)
    }

    @Test func lagsOfAllDatasetsAreAddedUp() throws {
        let peer = ReplicaID(high: 7, low: 7)
        for name in ["a", "b"] {
            let dataset = try fixture.store.dataset(name)
            try dataset.put("1", for: "k")
            var batch = ReplicationBatch()
            batch.checkpoint = (
                peer,
                PeerCheckpoint(
                    pulledThrough: .zero, pushedThrough: try dataset.knowledge().syncCount,
                    vector: try dataset.knowledge().vector)
            )
            let moved = try dataset.replicate(batch)
            #expect(moved.isEmpty)
        }
        try fixture.store.dataset("a").put("2", for: "k")
        try fixture.store.dataset("b").delete("k")
        let all = try fixture.store.peerLags(datasetsMax: 10, changesMax: 10)
        let lag = try #require(all.peers.first)
        #expect(all.isWhole && all.peers.count == 1 && lag.replica == peer)
        #expect(lag.datasetCount == 2 && lag.behindCount == 2 && lag.lag == 2)
        #expect(lag.tombstonesHeld == 1 && lag.tombstoneBytesHeld == 1)
        let some = try fixture.store.peerLags(datasetsMax: 1, changesMax: 10)
        #expect(!some.isWhole && some.peers.first?.lag == 1)
        let few = try fixture.store.peerLags(datasetsMax: 10, changesMax: 1)
        #expect(!few.isWhole && few.peers.first?.tombstonesHeld == 0)
    }
}
