import Testing
import Tidemark

@testable import TidemarkSync

/// Three replicas that write, exchange, are cut off, and forget how far they had come with each
/// other, so that nearly every exchange is a search: all the same they end equal, and no write is
/// lost to an older one.
struct ReconcileModelTests {
    let all: [TestReplica]

    init() throws {
        let directory = TemporaryDirectory()
        all = try ["a", "b", "c"].map { try TestReplica($0, in: directory) }
    }

    private static let keyCount = 24

    /// What was written of each key, by whomever.
    private struct Written {
        var versions: [[UInt8]: [Version]] = [:]

        mutating func note(_ key: [UInt8], in dataset: Dataset) throws {
            let record = try #require(try dataset.record(for: key, includingDeleted: true))
            versions[key, default: []].append(record.version)
        }

        /// Nothing older than the latest write may stand.
        func check(_ dataset: Dataset, _ comment: Comment) throws {
            for (key, versions) in versions {
                let record = try dataset.record(for: key, includingDeleted: true)
                let stands = try #require(record, comment).version
                #expect(
                    versions.allSatisfy { $0.dot == stands.dot || !$0.isLater(than: stands) },
                    comment)
            }
        }
    }

    private func write(
        _ replica: TestReplica, _ written: inout Written, _ number: Int, isDeletion: Bool
    ) throws {
        let dataset = try replica.dataset()
        let key = Array("key \(number % Self.keyCount)".utf8)
        if isDeletion {
            try dataset.delete(key)
        } else {
            try dataset.put(Array("\(replica.name) \(number)".utf8), for: key)
        }
        try written.note(key, in: dataset)
    }

    private func forget(_ one: TestReplica, _ other: TestReplica) throws {
        try one.dataset().remember(PeerCheckpoint(), of: other.store.replicaID)
        try other.dataset().remember(PeerCheckpoint(), of: one.store.replicaID)
    }

    /// - Parameter cutAfter: so many messages get through.
    /// - Returns: how often it was asked about ranges.
    private func exchange(
        _ asker: TestReplica, _ responder: TestReplica, pageRecordsMax: Int, cutAfter: Int
    ) async throws -> Int {
        var options = SyncOptions(pageRecordsMax: pageRecordsMax)
        options.comparesFrom = 0
        let transport = InterposedTransport(responder.responder) { point in
            guard point.number > cutAfter else { return }
            throw SyncError(.unreachable, "cut off")
        }
        do {
            try await asker.dataset().synchronize(with: transport, options: options)
        } catch let error as SyncError {
            #expect(error.code == .unreachable, "\(error)")
        }
        return transport.messageCount(of: "reconcile")
    }

    @Test func replicasThatForgetEachOtherConverge() async throws {
        var searches = 0
        for round in 0..<16 {
            searches += try await Self().searchesOfALife(round)
        }
        // A single life may have had few.
        #expect(searches > 16 * 5, "seed \(baseSeed)")
    }

    private func searchesOfALife(_ round: Int) async throws -> Int {
        let seed = baseSeed &+ UInt64(round)
        print("replicasThatForgetEachOtherConverge: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        var written = Written()
        var searches = 0
        for replica in all { _ = try replica.dataset() }
        for number in 0..<150 {
            let from = Int.random(in: 0..<3, using: &random)
            let to = (from + Int.random(in: 1..<3, using: &random)) % 3
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<6:
                try write(
                    all[from], &written, Int.random(in: 0..<1_000, using: &random),
                    isDeletion: Int.random(in: 0..<4, using: &random) == 0)
            case 6:
                try forget(all[from], all[to])
            case 7 where number % 3 == 0:
                all[from].clock.putForward(bySeconds: UInt64.random(in: 0..<30, using: &random))
            default:
                let isCut = Int.random(in: 0..<3, using: &random) == 0
                searches += try await exchange(
                    all[from], all[to],
                    pageRecordsMax: Int.random(in: 1..<6, using: &random),
                    cutAfter: isCut ? Int.random(in: 0..<14, using: &random) : .max)
            }
        }
        for _ in 0..<3 {
            for from in 0..<3 {
                for to in 0..<3 where to != from {
                    _ = try await exchange(all[from], all[to], pageRecordsMax: 8, cutAfter: .max)
                }
            }
        }
        try expectEqual(all, "seed \(seed)")
        try written.check(all[0].dataset(), "seed \(seed)")
        return searches
    }
}
