import Testing
import Tidemark

@testable import TidemarkSync

/// The search for differences, held against a comparison of all records.
struct DifferenceSearchTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// What a search took.
    private struct Outcome {
        var search: DifferenceSearch
        var requests = 0
        var claims = 0
        var bytes = 0
    }

    /// Both sides of a search without messages, but for their bytes.
    ///
    /// - Parameter answersMax: how many of the claims of a request are answered at most.
    private func search(
        _ asker: Dataset, _ responder: Dataset, answersMax: Int = .max
    ) throws -> Outcome {
        var outcome = Outcome(search: DifferenceSearch(try asker.recordSums()))
        let theirs = try responder.recordSums()
        while let claims = outcome.search.claims() {
            let findings = try claims.prefix(answersMax).map { claim in
                let finding = try RangeFinding(claim, by: theirs)
                #expect(finding.fits(claim.range))
                return finding
            }
            let request = ReconcileRequest(
                address: MessageTests.address, asker: MessageTests.asker, ranges: claims)
            let answer = ReconcileAnswer(knowledge: MessageTests.knowledge, findings: findings)
            let messages: [SyncMessage] = [.reconcile(request), .reconcileAnswer(answer)]
            for message in messages {
                let bytes = try message.encoded()
                #expect(try SyncMessage(MessageFrame.decoded(bytes)) == message)
                outcome.bytes += bytes.count
            }
            outcome.requests += 1
            outcome.claims += claims.count
            try outcome.search.take(findings, for: claims)
            try #require(outcome.requests < 2_000)
        }
        return outcome
    }

    private static let writer = ReplicaID(high: 7, low: 7)
    private static let other = ReplicaID(high: 8, low: 8)

    /// Stores records as they came from somebody else.
    private func adopt(
        _ records: some Sequence<(key: [UInt8], counter: UInt64, value: [UInt8]?)>,
        in dataset: Dataset
    ) throws {
        var batch = ReplicationBatch()
        for record in records {
            let version = Version(
                dot: Dot(replica: Self.writer, counter: record.counter),
                vector: VersionVector([Dot(replica: Self.other, counter: record.counter % 3)]),
                time: HybridTime(rawValue: record.counter))
            batch.writes.append(
                ReplicatedWrite(
                    key: record.key, content: .adopt(value: record.value, version: version),
                    expected: try dataset.storedRecord(for: record.key)?.version))
        }
        #expect(try dataset.replicate(batch).isEmpty)
    }

    /// For each key what says which version it is.
    private func versions(_ dataset: Dataset) throws -> [[UInt8]: [Int]] {
        var versions: [[UInt8]: [Int]] = [:]
        for record in try dataset.records(includingDeleted: true).collect() {
            versions[record.key] = [record.version.hashValue, record.isDeleted ? 1 : 0]
        }
        return versions
    }

    private func expectFound(
        _ outcome: Outcome, in asker: Dataset, _ responder: Dataset, _ comment: Comment
    ) throws {
        let (ours, theirs) = (try versions(asker), try versions(responder))
        func sorted(_ keys: some Sequence<[UInt8]>) -> [[UInt8]] {
            keys.sorted { $0.lexicographicallyPrecedes($1) }
        }
        let wanted = sorted(theirs.filter { ours[$0.key] != $0.value }.keys)
        let extra = sorted(ours.filter { theirs[$0.key] != $0.value }.keys)
        #expect(!outcome.search.isTooMuch, comment)
        #expect(outcome.search.theirs == wanted, comment)
        #expect(outcome.search.ours == extra, comment)
    }

    @Test func whatIsFoundIsWhatDiffers() throws {
        var random = SeededGenerator(seed: baseSeed)
        print("whatIsFoundIsWhatDiffers: seed \(baseSeed)")
        for round in 0..<60 {
            let comment: Comment = "seed \(baseSeed), round \(round)"
            let name = "d\(round)"
            let (ours, theirs) = (try a.dataset(name), try b.dataset(name))
            // Few letters, so that keys are beginnings of one another.
            let letters = UInt8([2, 10, 255].randomElement(using: &random) ?? 2)
            var keys: Set<[UInt8]> = []
            for _ in 0..<[0, 3, 40, 400, 3_000][Int.random(in: 0..<5, using: &random)] {
                let count = Int.random(in: 1...12, using: &random)
                keys.insert((0..<count).map { _ in UInt8.random(in: 0...letters, using: &random) })
            }
            let common = keys.enumerated().map {
                (key: $1, counter: UInt64($0 + 1), value: [UInt8]?([1]))
            }
            try adopt(common, in: ours)
            try adopt(common.reversed(), in: theirs)
            let share = [0, 1, 50, 700][Int.random(in: 0..<4, using: &random)]
            for (dataset, base) in [(ours, UInt64(10_000)), (theirs, 20_000)] {
                let count = Int.random(in: 0...share, using: &random)
                let changed = (0..<count).map { number in
                    let isNew = Bool.random(using: &random)
                    let key =
                        isNew
                        ? Array("new \(base) \(number)".utf8) : keys.randomElement(using: &random)
                    return (
                        key: key ?? [0], counter: base + UInt64(number),
                        value: Bool.random(using: &random) ? [UInt8]?([2]) : nil
                    )
                }
                // The last one of each key counts.
                let unique = Dictionary(changed.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
                try adopt(unique.values, in: dataset)
            }
            let answersMax = [1, 7, .max].randomElement(using: &random) ?? .max
            try expectFound(
                try search(ours, theirs, answersMax: answersMax), in: ours, theirs, comment)
        }
    }

    private func numbers(_ range: Range<Int>, counter: UInt64 = 0) -> [(
        key: [UInt8], counter: UInt64, value: [UInt8]?
    )] {
        range.map { number in
            (Array("\(1_000_000 + number)".utf8), counter + UInt64(number) + 1, [1])
        }
    }

    @Test func equalSidesTakeOneRequestOfAFewBytes() throws {
        try adopt(numbers(0..<5_000), in: a.dataset())
        try adopt(numbers(0..<5_000).reversed(), in: b.dataset())
        let outcome = try search(a.dataset(), b.dataset())
        #expect(outcome.requests == 1 && outcome.claims == 1)
        #expect(outcome.bytes < 600)
        try expectFound(outcome, in: a.dataset(), b.dataset(), "equal")
    }

    @Test func oneSideThatHasNothingIsToldAllKeys() throws {
        try adopt(numbers(0..<5_000), in: b.dataset())
        _ = try a.dataset()
        try expectFound(
            try search(a.dataset(), b.dataset()), in: a.dataset(), b.dataset(), "nothing here")
        let outcome = try search(b.dataset(), a.dataset())
        try expectFound(outcome, in: b.dataset(), a.dataset(), "nothing there")
        #expect(outcome.requests == 1)
    }

    /// What it takes grows with the differences, and only with the logarithm of the records.
    @Test func costGoesWithTheDifferences() throws {
        try adopt(numbers(0..<40_000), in: a.dataset())
        try adopt(numbers(0..<40_000), in: b.dataset())
        var bytes: [Int] = []
        for count in [1, 10, 100] {
            let changed = (0..<count).map { $0 * 40_000 / count }
            try adopt(
                changed.flatMap { numbers($0..<$0 + 1, counter: 100_000 * UInt64(count)) },
                in: b.dataset())
            let outcome = try search(a.dataset(), b.dataset())
            try expectFound(outcome, in: a.dataset(), b.dataset(), "\(count) differences")
            #expect(outcome.requests <= 5)
            bytes.append(outcome.bytes)
        }
        #expect(bytes[0] < 4_000)
        #expect(bytes[1] < 12 * bytes[0])
        #expect(bytes[2] < 100 * bytes[0] && bytes[2] < 100_000)
    }

    @Test func aSearchGoesOnWhileBothSidesWrite() throws {
        try adopt(numbers(0..<3_000), in: a.dataset())
        try adopt(numbers(0..<3_000), in: b.dataset())
        try a.dataset().put("ours", for: "1000007")
        try b.dataset().put("theirs", for: "1001234")
        var search = DifferenceSearch(try a.dataset().recordSums())
        var number = 0
        while let claims = search.claims() {
            let theirs = try b.dataset().recordSums()
            try search.take(
                try claims.map { try RangeFinding($0, by: theirs) }, for: claims)
            number += 1
            // What comes on this side is not for this search.
            try a.dataset().put("later", for: "100\(number)000")
            try b.dataset().put("later", for: "later \(number)")
            try b.dataset().delete("1002999")
        }
        #expect(number > 1)
        #expect(search.theirs.contains(Array("1001234".utf8)))
        #expect(search.ours.contains(Array("1000007".utf8)))
        #expect(!search.ours.contains { $0.starts(with: Array("100\(number)000".utf8)) })
    }

    /// Whoever answers with parts of parts for ever gets nowhere.
    @Test func aSearchWithoutEndIsGivenUp() throws {
        try adopt(numbers(0..<1), in: a.dataset())
        var search = DifferenceSearch(try a.dataset().recordSums())
        var requests = 0
        var digest: UInt64 = 0
        while !search.isTooMuch, let claims = search.claims() {
            let findings = claims.map { claim in
                // Deeper each time, so that they lie within the parts of the time before.
                let start =
                    (claim.range.lowerBound ?? []) + [UInt8](repeating: 0, count: requests + 1)
                var parts: [RangePart] = []
                for number in 1...15 {
                    digest += 1
                    parts.append(
                        RangePart(
                            upperBound: start + [UInt8(number)],
                            sum: RecordsSum(count: 100, digest: ConvergenceDigest(low: digest))))
                }
                parts.append(RangePart(upperBound: nil, sum: RecordsSum(count: 100)))
                #expect(RangeFinding.parts(parts).fits(claim.range))
                return RangeFinding.parts(parts)
            }
            try search.take(findings, for: claims)
            requests += 1
            try #require(requests < 200)
        }
        #expect(search.isTooMuch)
    }

    @Test func aSideThatHasFarLessIsNotSearched() throws {
        try adopt(numbers(0..<3), in: a.dataset())
        var search = DifferenceSearch(try a.dataset().recordSums())
        let first = search.claims()
        let claims = try #require(first)
        let half = RecordsSum(count: SyncLimits.differingKeysMax / 2 + 10)
        try search.take(
            [
                .parts([
                    RangePart(upperBound: [9], sum: half), RangePart(upperBound: nil, sum: half),
                ])
            ], for: claims)
        #expect(search.isTooMuch)
    }
}
