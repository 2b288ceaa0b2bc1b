import Testing
import Tidemark

@testable import TidemarkSync

/// What the messages of a search may not say, beside what no message may.
struct ReconcileMessageTests {
    private static let address = MessageTests.address

    private static func claims(_ ranges: [KeyRange]) -> SyncMessage {
        .reconcile(
            ReconcileRequest(
                address: address, asker: MessageTests.asker,
                ranges: ranges.map { RangeClaim(range: $0, sum: RecordsSum(count: 1)) }))
    }

    private static func findings(_ findings: [RangeFinding]) -> SyncMessage {
        .reconcileAnswer(
            ReconcileAnswer(knowledge: MessageTests.knowledge, findings: findings))
    }

    private static func part(_ upperBound: [UInt8]?) -> RangePart {
        RangePart(upperBound: upperBound, sum: RecordsSum(count: 2))
    }

    private func expectRefused(
        _ message: SyncMessage, _ code: SyncError.Code = .badMessage,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let bytes = try message.encoded()
        let error = #expect(throws: SyncError.self, sourceLocation: sourceLocation) {
            try SyncMessage(MessageFrame.decoded(bytes))
        }
        #expect(error?.code == code, sourceLocation: sourceLocation)
    }

    @Test func rangesThatAreEmptyOutOfOrderOrHaveKeysInCommonAreRefused() throws {
        try expectRefused(Self.claims([KeyRange(from: [5], upTo: [5])]))
        try expectRefused(Self.claims([KeyRange(from: [6], upTo: [5])]))
        try expectRefused(
            Self.claims([KeyRange(from: [5], upTo: [7]), KeyRange(from: [6], upTo: [9])]))
        try expectRefused(
            Self.claims([KeyRange(from: [5], upTo: [7]), KeyRange(from: [1], upTo: [2])]))
        try expectRefused(Self.claims([.all, KeyRange(from: [1], upTo: [2])]))
        try expectRefused(Self.claims([KeyRange(from: [1], upTo: [2]), KeyRange(upTo: [9])]))
        try expectRefused(Self.claims([.all, .all]))
    }

    @Test func moreRangesThanAnyoneAsksForAreRefused() throws {
        let ranges = (0...SyncLimits.comparedRangesMax).map { number in
            let key = [UInt8(number >> 16), UInt8(number >> 8 & 255), UInt8(number & 255)]
            return KeyRange(from: key, upTo: key + [0])
        }
        try expectRefused(Self.claims(ranges))
        _ = try SyncMessage(MessageFrame.decoded(Self.claims(Array(ranges.dropLast())).encoded()))
    }

    @Test func partsThatCannotBeARangeAreRefused() throws {
        try expectRefused(Self.findings([.parts([])]))
        try expectRefused(Self.findings([.parts([Self.part(nil)])]))
        try expectRefused(
            Self.findings([.parts([Self.part([5]), Self.part([5]), Self.part(nil)])]))
        try expectRefused(
            Self.findings([.parts([Self.part([5]), Self.part([4]), Self.part(nil)])]))
        try expectRefused(Self.findings([.parts([Self.part([]), Self.part(nil)])]))
        let many = (1...SyncLimits.rangePartsMax).map { Self.part([UInt8($0)]) }
        try expectRefused(Self.findings([.parts(many + [Self.part(nil)])]))
    }

    @Test func recordsOutOfOrderAreRefused() throws {
        let marks = [[2], [1]].map { RecordMark(key: $0, mark: 0) }
        try expectRefused(Self.findings([.records(marks)]))
        try expectRefused(Self.findings([.records([marks[0], marks[0]])]))
        try expectRefused(Self.findings([.records([RecordMark(key: [], mark: 0)])]))
    }

    @Test func keysThatAreAskedForTwiceAreRefused() throws {
        for keys: [[UInt8]] in [[[1], [1]], [[2], [1]], [[]]] {
            try expectRefused(
                .fetch(
                    FetchRequest(
                        address: Self.address, asker: MessageTests.asker, keys: keys,
                        bytesMax: 1)))
        }
    }

    /// A few bytes for each key, which shares nearly all of a long one.
    @Test func keysThatWouldFillTheMemoryAreRefused() throws {
        let long = [UInt8](repeating: 7, count: Limits.keyBytesMax - 2)
        let marks = (0..<200).map { RecordMark(key: long + [UInt8($0)], mark: 0) }
        let message = Self.findings([.records(marks)])
        #expect(try message.encoded().count < 100_000)
        try expectRefused(message, .tooLarge)
        let few = Self.findings([.records(Array(marks.prefix(32)))])
        #expect(try SyncMessage(MessageFrame.decoded(few.encoded())) == few)
    }

    @Test func aSumThatNoDatasetHasIsRefused() throws {
        try expectRefused(
            .reconcile(
                ReconcileRequest(
                    address: Self.address, asker: MessageTests.asker,
                    ranges: [RangeClaim(range: .all, sum: RecordsSum(count: .max))])))
    }

    @Test func whatDoesNotFitTheQuestionIsSeen() {
        let range = KeyRange(from: [5], upTo: [9])
        #expect(RangeFinding.equal.fits(range))
        #expect(RangeFinding.parts([Self.part([6]), Self.part(nil)]).fits(range))
        #expect(!RangeFinding.parts([Self.part([5]), Self.part(nil)]).fits(range))
        #expect(!RangeFinding.parts([Self.part([9]), Self.part(nil)]).fits(range))
        #expect(RangeFinding.records([RecordMark(key: [5], mark: 1)]).fits(range))
        #expect(!RangeFinding.records([RecordMark(key: [9], mark: 1)]).fits(range))
        #expect(!RangeFinding.records([RecordMark(key: [4], mark: 1)]).fits(range))
    }

    @Test func keysThatFollowOnOneAnotherAreShort() throws {
        let marks = (0..<32).map { RecordMark(key: Array("customer/\(10_000 + $0)".utf8), mark: 0) }
        let longer = try Self.findings([.records(marks)]).encoded().count
        let shorter = try Self.findings([.records([marks[0]])]).encoded().count
        #expect(longer - shorter < 31 * 13)
    }
}
