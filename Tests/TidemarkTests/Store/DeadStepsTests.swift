import TestSupport
import Testing
import Tidemark

/// How many dead records walks pass over, which is what a seek of the first key costs after a
/// million deletions at the front. Counted, so that no machine's speed is in it.
///
/// Property: the first walk after the deletions may pass over all of them; from then on a walk
/// passes over none of them, and of what is deleted later only a few, however many there were.
@Suite("Steps over dead records")
struct DeadStepsTests {
    /// Where the records and their deletions lie.
    enum Place: CaseIterable {
        /// Both in the log.
        case log
        /// The records in a segment, the deletions in the log.
        case segmentAndLog
        /// Each in a run of its own.
        case twoRuns
        /// Both in one run, where history keeps them.
        case oneRun
    }

    /// After so many dead records in a row a walk looks for a gap, and notes one.
    private static let passedMin: UInt64 = 64
    private static let deletedCount = 8_000
    private static let liveCount = 500

    private func key(_ number: Int) -> [UInt8] { bytes("key \(100_000 + number)") }

    private func options(_ place: Place) -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        // A walk waits for nobody to leave its note, so nobody else may hold the store's lock.
        options.runsInline = true
        options.segmentBytes = 16 << 20
        options.historyVersions = place == .oneRun ? 1 : 0
        return options
    }

    /// Records of which those that a walk in that order comes to first are deleted.
    private func deleted(_ place: Place, _ order: ScanOrder) throws -> StoreFixture {
        let fixture = try StoreFixture(options(place))
        for number in 0..<(Self.deletedCount + Self.liveCount) {
            try fixture.dataset.put([1], for: key(number))
        }
        if [.segmentAndLog, .twoRuns].contains(place) { try fixture.store.compact() }
        let start = order == .forward ? 0 : Self.liveCount
        for number in start..<(start + Self.deletedCount) {
            try fixture.dataset.delete(key(number))
        }
        if place == .twoRuns { try fixture.store.sealAll() }
        if place == .oneRun { try fixture.store.compact() }
        return fixture
    }

    private func first(_ dataset: Dataset, _ order: ScanOrder) throws -> [UInt8]? {
        try dataset.keys(order: order, limit: 1).next()
    }

    /// The first key of a walk, and how many dead records it has passed over.
    private func counted(
        _ dataset: Dataset, _ order: ScanOrder
    ) throws -> (key: [UInt8]?, passed: UInt64) {
        let before = dataset.store.deadRecordsPassed
        let key = try first(dataset, order)
        return (key, dataset.store.deadRecordsPassed - before)
    }

    /// The first walk pays, and the ones after it pass over nothing.
    ///
    /// - Parameter areGone: whether nothing of the deleted may be left, so that nobody pays.
    private func requireBounded(
        _ dataset: Dataset, _ order: ScanOrder, areGone: Bool = false
    ) throws {
        let live = key(order == .forward ? Self.deletedCount : Self.liveCount - 1)
        let found = try counted(dataset, order)
        try require(found.key == live, "the first key is \(Bytes.summary(found.key))")
        let count = UInt64(Self.deletedCount)
        // One run has a tombstone and a superseded version of each; the rest of a block at each end
        // is not counted.
        try require(
            (count / 2...3 * count).contains(found.passed) || areGone && found.passed == 0,
            "the first passed \(found.passed)")
        for round in 0..<20 {
            let again = try counted(dataset, order)
            try require(
                again.key == live && again.passed == 0, "walk \(round) passed \(again.passed)")
        }
    }

    @Test("After the first walk they are passed over no more", arguments: Place.allCases)
    func afterTheFirst(place: Place) throws {
        for order in [ScanOrder.forward, .backward] {
            let fixture = try deleted(place, order)
            try requireBounded(fixture.dataset, order)
            // What was found is not on disk. A log is sealed when its store is closed, and what was
            // both written and deleted in it is left out then.
            let (store, dataset) = try fixture.reopened(options(place))
            try requireBounded(dataset, order, areGone: place == .log)
            try store.close()
        }
    }

    @Test("Of those that are taken from the front each costs few", arguments: Place.allCases)
    func queue(place: Place) throws {
        for order in [ScanOrder.forward, .backward] {
            let fixture = try deleted(place, order)
            let dataset = fixture.dataset
            _ = try first(dataset, order)
            for round in 0..<300 {
                let found = try counted(dataset, order)
                let number =
                    order == .forward ? Self.deletedCount + round : Self.liveCount - 1 - round
                try require(found.key == key(number), "not the first: \(Bytes.summary(found.key))")
                try require(
                    found.passed <= Self.passedMin, "take \(round) passed \(found.passed)")
                try dataset.delete(key(number))
            }
            try fixture.store.close()
        }
    }

    @Test("What comes and goes among them costs a bounded number", arguments: Place.allCases)
    func between(place: Place) {
        withSeed(for: "between(\(place))") { seed in
            var random = SeededGenerator(seed)
            let fixture = try deleted(place, .forward)
            let dataset = fixture.dataset
            _ = try first(dataset, .forward)
            for round in 0..<40 {
                let own = key(random.below(Self.deletedCount))
                try dataset.put([2], for: own)
                let found = try counted(dataset, .forward)
                try require(found.key == own, "\(Bytes.summary(own)) was missed")
                try require(
                    found.passed <= 4 * Self.passedMin, "put \(round) passed \(found.passed)")
                try dataset.delete(own)
                let after = try counted(dataset, .forward)
                try require(after.key == key(Self.deletedCount), "a dead record came back")
                try require(
                    after.passed <= 4 * Self.passedMin, "deletion \(round) passed \(after.passed)")
            }
            try fixture.store.close()
        }
    }
}
