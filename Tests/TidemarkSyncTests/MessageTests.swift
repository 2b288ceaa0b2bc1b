import Testing
import Tidemark

@testable import TidemarkSync

extension SyncMessage: CustomTestStringConvertible {
    public var testDescription: String { "\(kind)" }
}

/// The wire format: what is written is read again, and nothing else is.
struct MessageTests {
    static let a = ReplicaID(high: 1, low: 2)
    static let b = ReplicaID(high: 3, low: 4)

    static let knowledge = PeerKnowledge(
        vector: VersionVector([Dot(replica: a, counter: 300), Dot(replica: b, counter: 1)]),
        syncCount: 77,
        lifecycle: PeerLifecycle(
            isDeleted: true, wiped: VersionVector([Dot(replica: a, counter: 200)]),
            time: HybridTime(milliseconds: 1_700_000_000_000, counter: 3), replica: b),
        batons: [
            Baton(replica: a, number: 1, random: .max), Baton(replica: b, number: 300, random: 0),
        ],
        forgotten: ForgottenDeletions(
            vector: VersionVector([Dot(replica: a, counter: 150)]),
            time: HybridTime(rawValue: 1 << 62)))

    static func record(_ key: [UInt8], _ value: [UInt8]?, counter: UInt64) -> Record {
        Record(
            key: key, value: value,
            version: Version(
                dot: Dot(replica: a, counter: counter),
                vector: VersionVector([Dot(replica: b, counter: 9)]),
                time: HybridTime(rawValue: .max), author: "An author, ünïcode"),
            syncCount: SyncCount(rawValue: counter), isDirty: false)
    }

    static let page = RecordPage(
        records: [
            record([0], [], counter: 1),
            record([0, 255], nil, counter: 2),
            record(Array("key".utf8), Array("value".utf8), counter: .max),
            Record(
                key: [7], value: [8],
                version: Version(
                    dot: Dot(replica: a, counter: 5),
                    vector: VersionVector([Dot(replica: a, counter: 8)]),
                    time: HybridTime(rawValue: 0)),
                syncCount: 0, isDirty: false),
        ], through: 12, isLast: true, knowledge: knowledge)

    static let address = Address(from: a, to: b, dataset: "notes")

    static let messages: [SyncMessage] = [
        .hello(
            HelloRequest(
                versions: 1...3, from: a, names: ["a", "b"], after: nil, incarnation: 7)),
        .hello(HelloRequest(versions: 1...1, from: a, names: nil, after: "zebra")),
        .hello(HelloRequest(versions: 0...UInt16.max, from: a, names: [], after: "")),
        .hello(
            HelloRequest(
                versions: 1...1, from: a, names: nil, after: nil,
                marks: [
                    StoreMark(incarnation: .max, position: 0),
                    StoreMark(incarnation: 0, position: .max),
                ])),
        .helloAnswer(
            HelloAnswer(
                version: 1, replica: b, datasets: [], isComplete: true,
                mark: StoreMark(incarnation: 5, position: 300),
                changedSince: StoreMark(incarnation: 5, position: 7))),
        .helloAnswer(
            HelloAnswer(
                version: 1, replica: b,
                datasets: [
                    DatasetGreeting(
                        name: "notes", knowledge: knowledge, pulledThrough: 4, pushedThrough: 5),
                    DatasetGreeting(
                        name: "none", knowledge: nil, pulledThrough: 0, pushedThrough: 0,
                        disputed: [a, b],
                        merged: [
                            MergedDataset(name: "old-1", origin: "phone"),
                            MergedDataset(name: "old-2", origin: ""),
                        ]),
                ], isComplete: true)),
        .helloAnswer(
            HelloAnswer(
                version: 1, replica: b,
                datasets: [
                    DatasetGreeting(
                        name: "notes", knowledge: nil, pulledThrough: 4, pushedThrough: 5),
                    DatasetGreeting(
                        name: "old", knowledge: knowledge, pulledThrough: 0, pushedThrough: 0,
                        moved: ["attic", "notes"]),
                    DatasetGreeting(
                        name: "part", knowledge: knowledge, pulledThrough: 0, pushedThrough: 0,
                        isPart: true),
                ], isComplete: false)),
        .segments(
            SegmentsRequest(
                address: Address(from: a, to: b, dataset: "notes", moved: ["attic", "old"]))),
        .pull(
            PullRequest(
                address: address, since: SyncCount(rawValue: .max), recordsMax: 100,
                bytesMax: 1 << 20, vector: knowledge.vector, batons: knowledge.batons,
                disputed: [b])),
        .pullAnswer(PullAnswer(page: page)),
        .push(PushRequest(address: address, since: 3, acknowledged: 4, page: page)),
        .pushAnswer(
            PushAnswer(outcome: .accepted(changed: 5), appliedAfter: 7, knowledge: knowledge)),
        .pushAnswer(
            PushAnswer(outcome: .conflicts(keys: [[1], [2, 3]], changed: 0), knowledge: knowledge)),
        .push(
            PushRequest(
                address: address, since: 3, acknowledged: 4, page: page,
                settled: knowledge.forgotten.vector)),
        .pull(
            PullRequest(
                address: address, since: 0, recordsMax: 1, bytesMax: 1,
                vector: VersionVector(), isAfresh: true)),
        .pushAnswer(PushAnswer(outcome: .gap(17), knowledge: knowledge)),
        .pushAnswer(PushAnswer(outcome: .late, knowledge: knowledge)),
        .inquiry(InquiryRequest(address: address, page: page)),
        .burial(BurialRequest(address: address, page: page)),
        .burialAnswer(BurialAnswer(buried: 7)),
        .inquiryAnswer(InquiryAnswer(absent: [], knowledge: knowledge)),
        .inquiryAnswer(InquiryAnswer(absent: [0, 3, 300], knowledge: knowledge)),
        .watch(
            WatchRequest(
                from: a, to: b, waitMilliseconds: 25_000,
                items: [
                    WatchRequest.Item(dataset: "notes", since: 300),
                    WatchRequest.Item(dataset: "orders", since: SyncCount(rawValue: .max)),
                ])),
        .watchAnswer(
            WatchAnswer(
                hasWaited: true, news: [WatchRequest.Item(dataset: "notes", since: 301)])),
        .watchAnswer(WatchAnswer(hasWaited: false, news: [])),
        .scopedPull(
            ScopedPullRequest(
                address: address, since: 300, recordsMax: 100, bytesMax: 1 << 20, scope: scope,
                former: ScopedPullRequest.Former(scope: .everything, through: 299),
                batons: knowledge.batons, disputed: [b])),
        .scopedPull(
            ScopedPullRequest(
                address: address, since: 0, recordsMax: 1, bytesMax: 1, scope: .nothing,
                takesOnly: true)),
        .scopedPullAnswer(ScopedPullAnswer(page: page, outside: [notice([7, 7]), notice([8])])),
        .scopedPullAnswer(ScopedPullAnswer(page: page, outside: [])),
        .lookup(
            LookupRequest(
                address: address, scope: scope, bytesMax: 1 << 20,
                items: [
                    LookupRequest.Item(key: [1], dot: Dot(replica: b, counter: 300)),
                    LookupRequest.Item(key: [2]),
                ])),
        .lookup(
            LookupRequest(
                address: address, scope: nil, bytesMax: 5,
                items: [LookupRequest.Item(key: [1, 2, 3])])),
        .lookupAnswer(
            LookupAnswer(
                answered: 300, page: page, outside: [notice([7, 7])], missing: [[5], [6, 6]])),
        .partPush(
            PushRequest(address: address, since: 3, acknowledged: 4, page: page, disputed: [a])),
        .records(
            RecordsRequest(
                address: address, keys: [[1], Array("key".utf8)], bytesMax: 1 << 20,
                disputed: [a])),
        .recordsAnswer(RecordsAnswer(answered: 2, page: page)),
        .sweep(
            SweepRequest(
                address: address, asker: asker, since: 300, start: Array("key".utf8),
                recordsMax: 100, bytesMax: 1 << 20)),
        .sweepAnswer(SweepAnswer(page: page, next: [7, 7])),
        .sweepAnswer(SweepAnswer(page: page, next: nil)),
        .failure(Failure(code: "tooLarge", message: "too large; make it smaller")),
        .segments(SegmentsRequest(address: address)),
        .segmentsAnswer(SegmentsAnswer(offer: nil)),
        .segmentsAnswer(SegmentsAnswer(offer: offer)),
        .segmentsAnswer(
            SegmentsAnswer(offer: offer, batons: [Baton(replica: b, number: 3, random: 4)])),
        .segmentRange(
            SegmentRangeRequest(
                address: address, segment: .max, identity: 5, first: 0, count: 7,
                bytesMax: 4 << 20)),
        .segmentRangeAnswer(SegmentRangeAnswer(blocks: nil)),
        .segmentsPush(
            SegmentsPushRequest(
                address: address, offer: offer, batons: [Baton(replica: b, number: 3, random: 4)])),
        .segmentsPushAnswer(SegmentsPushAnswer(wanted: nil)),
        .segmentsPushAnswer(
            SegmentsPushAnswer(wanted: [.init(segment: 1, identity: .max, first: 300)])),
        .segmentRangePush(
            SegmentRangePushRequest(
                address: address, batons: [Baton(replica: b, number: 3, random: 4)],
                range: .init(
                    segment: .max, identity: 5,
                    blocks: StoredBlocks(bytes: [UInt8](repeating: 9, count: 300), next: 7)))),
        .segmentRangePush(SegmentRangePushRequest(address: address, batons: [], range: nil)),
        .segmentRangePushAnswer(.taken(records: 300)),
        .segmentRangePushAnswer(.refused),
        .segmentRangePushAnswer(.installed(records: 300, page.knowledge)),
        .segmentRangeAnswer(
            SegmentRangeAnswer(
                blocks: StoredBlocks(bytes: [UInt8](repeating: 9, count: 300), next: 7))),
        .reconcile(
            ReconcileRequest(
                address: address, asker: asker, ranges: [RangeClaim(range: .all, sum: sum(7))])),
        .reconcile(
            ReconcileRequest(
                address: address, asker: AskerClaims(vector: VersionVector()),
                ranges: [
                    RangeClaim(range: KeyRange(upTo: Array("ab".utf8)), sum: sum(0)),
                    RangeClaim(
                        range: KeyRange(from: Array("ab".utf8), upTo: Array("abc".utf8)),
                        sum: sum(1 << 40)),
                    RangeClaim(range: KeyRange(from: Array("b".utf8)), sum: sum(1)),
                ])),
        .reconcileAnswer(ReconcileAnswer(knowledge: knowledge, findings: [])),
        .reconcileAnswer(
            ReconcileAnswer(
                knowledge: knowledge,
                findings: [
                    .equal,
                    .parts([
                        RangePart(upperBound: Array("key 1".utf8), sum: sum(300)),
                        RangePart(upperBound: Array("key 12".utf8), sum: sum(0)),
                        RangePart(upperBound: nil, sum: sum(2)),
                    ]),
                    .records([]),
                    .records([
                        RecordMark(key: Array("key 2".utf8), mark: .max),
                        RecordMark(key: Array("key 21".utf8), mark: 0),
                        RecordMark(key: [255], mark: 7),
                    ]),
                ])),
        .fetch(
            FetchRequest(
                address: address, asker: asker, keys: [[0], [0, 0], Array("key".utf8)],
                bytesMax: 1 << 20)),
        .fetchAnswer(FetchAnswer(lookedAt: 3, page: page)),
    ]

    static let asker = AskerClaims(
        vector: knowledge.vector, batons: knowledge.batons, disputed: [a])

    private static func sum(_ count: Int) -> RecordsSum {
        RecordsSum(
            count: count, digest: ConvergenceDigest(high: .max, low: UInt64(count)))
    }

    static let scope: SyncScope = {
        let keys = SyncScope.prefix("a/") || SyncScope.keys(in: KeyRange(from: [5]))
        let state = SyncScope.field(["state", "é"], .isAtLeast(12))
        let tags = SyncScope.field(["tags"], .contains("red"))
        return keys && !state && tags
    }()

    private static func notice(_ key: [UInt8]) -> OutsideNotice {
        OutsideNotice(
            key: key, dot: Dot(replica: a, counter: 7),
            vector: VersionVector([Dot(replica: a, counter: 9), Dot(replica: b, counter: 2)]))
    }

    static let offer = SegmentOffer(
        dataset: 12,
        knowledge: DatasetKnowledge(
            vector: knowledge.vector, syncCount: 77,
            lifecycle: DatasetLifecycle(
                isDeleted: false, wiped: VersionVector([Dot(replica: b, counter: 2)]),
                time: HybridTime(rawValue: 9), replica: a)),
        outstanding: VersionVector([Dot(replica: b, counter: 8)]), expiredThrough: 1,
        wipedTime: 2, collectedThrough: 3, wholeFrom: 4, wholeFromTime: 5,
        runs: [
            [segment(3), segment(4)], [segment(.max)],
        ])

    private static func segment(_ number: UInt64) -> SegmentOffer.Segment {
        SegmentOffer.Segment(
            number: number, identity: .max, entryCount: 8, blockCount: 9, byteCount: 1 << 40,
            tables: [1, 2, 3])
    }

    @Test(arguments: messages)
    func roundTrip(_ message: SyncMessage) throws {
        let bytes = try message.encoded()
        #expect(try SyncMessage(MessageFrame.decoded(bytes)) == message)
        #expect(MessageLabel.kind(of: bytes) == "\(message.kind)")
    }

    @Test(arguments: messages)
    func everyTruncationIsRefused(_ message: SyncMessage) throws {
        let bytes = try message.encoded()
        for count in 0..<bytes.count {
            #expect(throws: SyncError.self) {
                try SyncMessage(MessageFrame.decoded(Array(bytes[..<count])))
            }
        }
        #expect(throws: SyncError.self) { try SyncMessage(MessageFrame.decoded(bytes + [0])) }
    }

    @Test(arguments: messages)
    func everyBitFlipIsRefused(_ message: SyncMessage) throws {
        let bytes = try message.encoded()
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << bit
                #expect(throws: SyncError.self) { try SyncMessage(MessageFrame.decoded(damaged)) }
            }
        }
    }

    /// Beyond the checksum: bodies that a hostile peer has damaged on purpose.
    @Test(arguments: messages)
    func everyForgedBodyIsReadOrRefused(_ message: SyncMessage) throws {
        let frame = try MessageFrame.decoded(message.encoded())
        for count in 0..<frame.body.count {
            #expect(throws: SyncError.self) {
                try Self.reframed(frame, Array(frame.body[..<count]))
            }
        }
        for index in frame.body.indices {
            for value in [0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, frame.body[index] ^ 1] {
                var body = frame.body
                body[index] = value
                Self.expectReadOrRefused(frame, body)
            }
        }
    }

    @Test func randomBodiesAreReadOrRefused() {
        var random = SeededGenerator(seed: baseSeed)
        print("randomBodiesAreReadOrRefused: seed \(baseSeed)")
        for kind in MessageKind.allCases {
            for _ in 0..<3_000 {
                let count = Int.random(in: 0..<80, using: &random)
                let body = (0..<count).map { _ in
                    // Small numbers lead further into the decoders.
                    UInt8.random(in: 0...(Bool.random(using: &random) ? 3 : 255), using: &random)
                }
                let frame = MessageFrame(version: 1, kind: kind.rawValue, body: body)
                Self.expectReadOrRefused(frame, body)
            }
        }
    }

    private static func reframed(_ frame: MessageFrame, _ body: [UInt8]) throws -> SyncMessage {
        let bytes = try MessageFrame(version: 1, kind: frame.kind, body: body).encoded()
        return try SyncMessage(MessageFrame.decoded(bytes))
    }

    /// What is read must be worth writing again.
    private static func expectReadOrRefused(_ frame: MessageFrame, _ body: [UInt8]) {
        do {
            let read = try reframed(frame, body)
            #expect(try SyncMessage(MessageFrame.decoded(read.encoded())) == read)
        } catch {
            #expect(error is SyncError)
        }
    }

    @Test func sharedVectorsCostNothing() throws {
        let vector = VersionVector(
            (0..<100).map { Dot(replica: ReplicaID(high: 5, low: $0), counter: 7) })
        let records = (0..<500).map { index in
            Record(
                key: Array("key \(index)".utf8), value: [1],
                version: Version(
                    dot: Dot(replica: Self.a, counter: UInt64(index) + 1), vector: vector,
                    time: HybridTime(rawValue: UInt64(index)), author: "me"),
                syncCount: 0, isDirty: false)
        }
        var page = Self.page
        page.records = records
        var writer = VersionWriter()
        writer.putPage(page)
        #expect(writer.bytes.count < 500 * 40 + 100 * 20)
    }

    @Test func repetitiveBodiesTravelCompressed() throws {
        var page = Self.page
        page.records = [Self.record([1], Array(repeating: 65, count: 1 << 20), counter: 1)]
        let message = SyncMessage.pullAnswer(PullAnswer(page: page))
        let bytes = try message.encoded()
        #expect(bytes.count < 1 << 14)
        #expect(try SyncMessage(MessageFrame.decoded(bytes)) == message)
    }

    /// Of every length that a varint has, as many as a piece is to hold.
    @Test func numbersOfAPieceAreThoseThatArePutOneByOne() {
        for bits in 0...64 {
            let number = bits == 64 ? UInt64.max : UInt64(1) << UInt64(bits)
            var (together, apart) = (ByteWriter(), ByteWriter())
            together.putPiece { piece in
                for _ in 0..<5 { piece.putVarint(number) }
                piece.putFixed(number)
                piece.putCount(bits)
            }
            for _ in 0..<5 { apart.putVarint(number) }
            apart.putFixed(number)
            apart.putCount(bits)
            #expect(together.bytes == apart.bytes, "\(bits) bits")
        }
    }

    @Test func aBodyThatClaimsTooMuchIsRefusedBeforeItIsUnpacked() throws {
        for claimed in [UInt64.max, 1 << 40, 1 << 28] {
            var content = ByteWriter()
            content.putVarint(claimed)
            content.append([0, 0, 0])
            var message = ByteWriter()
            message.append(MessageFrame.magic)
            message.putFixed(UInt16(1))
            message.put(MessageKind.hello.rawValue)
            message.putFlag(true)
            message.putFixed(UInt32(content.bytes.count))
            message.append(content.bytes)
            message.putFixed(MessageFrame.checksum(message.bytes[...]))
            #expect(throws: SyncError.self) { try MessageFrame.decoded(message.bytes) }
        }
    }

    @Test func aPageThatNamesAKeyTwiceIsRefused() throws {
        var page = Self.page
        page.records = [
            Self.record([1], [1], counter: 1), Self.record([1], [2], counter: 2),
        ]
        let bytes = try SyncMessage.pullAnswer(PullAnswer(page: page)).encoded()
        let error = #expect(throws: SyncError.self) {
            try SyncMessage(MessageFrame.decoded(bytes))
        }
        #expect(error?.code == .badMessage)
    }

    /// A few bytes for each record that all refer to one long vector.
    @Test func vectorsThatWouldFillTheMemoryAreRefused() throws {
        let vector = VersionVector(
            (0..<4_096).map { Dot(replica: ReplicaID(high: 9, low: $0), counter: 1) })
        var page = Self.page
        page.records = (0..<4_200).map { index in
            Record(
                key: [UInt8(index & 255), UInt8(index >> 8)], value: nil,
                version: Version(
                    dot: Dot(replica: Self.a, counter: UInt64(index) + 1), vector: vector,
                    time: .init(rawValue: 1)),
                syncCount: 0, isDirty: false)
        }
        let bytes = try SyncMessage.pullAnswer(PullAnswer(page: page)).encoded()
        #expect(bytes.count < 1 << 20)
        let error = #expect(throws: SyncError.self) {
            try SyncMessage(MessageFrame.decoded(bytes))
        }
        #expect(error?.code == .tooLarge)
    }
}
