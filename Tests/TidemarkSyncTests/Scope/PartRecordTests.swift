import Testing
import Tidemark

@testable import TidemarkSync

/// What a partial replica stores of itself.
struct PartRecordTests {
    static let a = ReplicaID(high: 1, low: 2)
    static let b = ReplicaID(high: 3, low: 4)

    static func vector(_ first: UInt64, _ second: UInt64) -> VersionVector {
        VersionVector([Dot(replica: a, counter: first), Dot(replica: b, counter: second)])
    }

    static let records = [
        PartRecord(generation: 1, scope: .nothing, action: .drop),
        PartRecord(
            generation: .max, scope: .prefix("a/") && .field(["n"], .isAtLeast(3)),
            action: .keep, isFirst: true, isEnding: true, isHandingOver: true,
            former: .everything, lost: [a: vector(3, 0), .nobody: vector(300, 7)]),
    ]

    @Test(arguments: records)
    func whatIsWrittenIsReadAgainAndNothingElseIs(_ record: PartRecord) throws {
        let encoded = record.encoded
        #expect(try PartRecord(decoding: encoded) == record)
        for count in encoded.indices {
            #expect(throws: SyncError.self) {
                try PartRecord(decoding: Array(encoded[..<count]))
            }
        }
        #expect(throws: SyncError.self) { try PartRecord(decoding: encoded + [0]) }
        #expect(throws: SyncError.self) { try PartRecord(decoding: [3] + encoded.dropFirst()) }
    }

    @Test func theFormerFormIsRead() throws {
        var record = PartRecord(generation: 1, scope: .nothing, action: .keep, isEnding: true)
        var former = record.encoded
        former[0] = 1
        // After form, generation and three flags.
        former.remove(at: 5)
        #expect(try PartRecord(decoding: former) == record)
        record.isHandingOver = true
        #expect(try PartRecord(decoding: record.encoded) == record)
    }

    @Test func progressThatCannotBeReadCountsAsNone() {
        let progress = PartProgress(generation: 5, checkedThrough: 300, formerThrough: 7)
        let encoded = progress.encoded
        #expect(PartProgress(decoding: encoded) == progress)
        for count in encoded.indices {
            #expect(PartProgress(decoding: Array(encoded[..<count])) == nil)
        }
        #expect(PartProgress(decoding: encoded + [0]) == nil)
    }

    /// A part whose scope is lost must not be taken for the whole.
    @Test func aPartThatCannotBeReadIsNotTakenForTheWhole() async throws {
        let directory = TemporaryDirectory()
        let hub = try TestReplica("hub", in: directory)
        let part = try TestReplica("part", in: directory)
        try hub.dataset().put("1", for: "a/1")
        try part.dataset().setSyncScope(.prefix("a/"))
        try await part.dataset().synchronize(with: hub.transport)
        let book = try part.store.systemDataset(.scopes)
        try book.put([9, 9, 9], for: Array("notes".utf8) + [0])
        let dataset = try part.dataset()
        let refused = #expect(throws: StoreError.self) { try dataset.syncScope() }
        #expect(refused?.code == .corruption)
        let transport = hub.transport
        let error = await #expect(throws: SyncError.self) {
            try await dataset.synchronize(with: transport)
        }
        #expect(error?.storeError?.code == .corruption)
        let (asker, answering) = (try hub.dataset(), part.transport)
        _ = await #expect(throws: SyncError.self) {
            try await asker.synchronize(with: answering)
        }
    }

    @Test func onlyWhatThePeerHasMayBeClaimed() {
        var record = PartRecord(generation: 1, scope: .everything, action: .drop)
        let ours = Self.vector(5, 9)
        #expect(record.mayClaim(ours, to: Self.a, VersionVector()))
        record.lose(Self.vector(3, 0), to: Self.a)
        // Whoever it was dropped for has it.
        #expect(record.mayClaim(ours, to: Self.a, VersionVector()))
        #expect(!record.mayClaim(ours, to: Self.b, Self.vector(2, 9)))
        #expect(record.mayClaim(ours, to: Self.b, Self.vector(3, 0)))
        // What is not claimed anyway is in nobody's way.
        record.lose(Self.vector(0, 100), to: .nobody)
        #expect(record.mayClaim(ours, to: Self.a, Self.vector(0, 9)))
        #expect(!record.mayClaim(ours, to: Self.a, Self.vector(0, 8)))
    }

    @Test func manySourcesOfLossCountAsNobody() {
        var record = PartRecord(generation: 1, scope: .everything, action: .drop)
        for index in 0..<200 {
            record.lose(Self.vector(1, 1), to: ReplicaID(high: 9, low: UInt64(index)))
        }
        #expect(record.lost.count <= PartRecord.lostSourcesMax + 1)
        #expect(record.lost[.nobody] == Self.vector(1, 1))
    }
}
