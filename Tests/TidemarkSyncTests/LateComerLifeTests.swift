import Synchronization
import Testing
import Tidemark
import TidemarkSync

// The property: whatever replicas write, forget and miss, once they have exchanged everything
// 1. all hold the same live records, and have seen the same;
// 2. no value stands that somebody had overwritten or deleted who knew it: nothing is resurrected;
// 3. no key is empty whose last writes, of which none knew another, were all puts: nothing is lost.
//
// Which write knew which is told by the versions that the writes had when they were made. Dates say
// nothing here: what outlives a fresh start counts as written then.

/// A write as its replica acknowledged it.
private struct KnownWrite {
    let value: String?
    let version: Version
}

/// Counts the questions of fresh starts on their way.
private struct RecordCountingTransport: SyncTransport {
    let transport: FaultyTransport
    let count: Count

    final class Count: Sendable {
        private let value = Mutex(0)
        var inquiries: Int { value.withLock { $0 } }
        func add() { value.withLock { $0 += 1 } }
    }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        if MessageLabel.kind(of: request) == "inquiry" { count.add() }
        return try await transport.send(request)
    }
}

/// One random life of some replicas.
private final class LateComerLife {
    private static let keys = (0..<7).map { "key \($0)" }

    let seed: UInt64
    private var random: SeededGenerator
    private(set) var replicas: [TestReplica] = []
    private var writes: [String: [KnownWrite]] = [:]
    private var count = 0
    let inquiries = RecordCountingTransport.Count()
    private(set) var retiredCount = 0
    private(set) var failureCount = 0

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        let directory = TemporaryDirectory()
        for number in 0..<Int.random(in: 3...6, using: &random) {
            let replica = try TestReplica(
                "replica-\(number)", in: directory, tombstoneAge: .seconds(3_600),
                clockAheadMax: .seconds(10_000_000))
            _ = try replica.dataset()
            replicas.append(replica)
        }
    }

    func run(steps: Int) async throws {
        for _ in 0..<steps {
            let replica = replicas[Int.random(in: 0..<replicas.count, using: &random)]
            switch Int.random(in: 0..<100, using: &random) {
            case ..<46: try write(replica)
            case ..<78: try await exchangeSomewhere(replica)
            case ..<90: try replica.store.compact()
            case ..<94:
                let other = replicas[Int.random(in: 0..<replicas.count, using: &random)]
                retiredCount += try replica.store.retire(other.store.replicaID)
            case ..<97: replica.clock.putForward(bySeconds: 7_200)
            default: try replica.reopen()
            }
        }
        try await heal()
    }

    private func write(_ replica: TestReplica) throws {
        let dataset = try replica.dataset()
        let key = Self.keys[Int.random(in: 0..<Self.keys.count, using: &random)]
        count += 1
        let isDeletion = Int.random(in: 0..<3, using: &random) == 0
        if isDeletion { try dataset.delete(key) } else { try dataset.put("\(count)", for: key) }
        let record = try #require(try dataset.record(for: key, includingDeleted: true))
        writes[key, default: []].append(
            KnownWrite(value: isDeletion ? nil : "\(count)", version: record.version))
    }

    private func exchangeSomewhere(_ replica: TestReplica) async throws {
        let other = replicas[Int.random(in: 0..<replicas.count, using: &random)]
        guard other !== replica else { return }
        let faults: [FaultyTransport.Fault?] = [nil, nil, .losesRequest, .losesAnswer]
        let transport = FaultyTransport(
            other.responder, faults[Int.random(in: 0..<4, using: &random)],
            after: Int.random(in: 0...9, using: &random),
            repeatsEach: Int.random(in: 0...3, using: &random))
        do {
            try await replica.dataset().synchronize(
                with: RecordCountingTransport(transport: transport, count: inquiries),
                options: SyncOptions(pageRecordsMax: Int.random(in: 1...4, using: &random)))
        } catch let error as SyncError {
            #expect(error.code == .unreachable, "seed \(seed): \(error)")
            failureCount += 1
        }
    }

    private func heal() async throws {
        var quietRounds = 0
        for _ in 0..<4 * replicas.count {
            var moved = 0
            for (index, replica) in replicas.enumerated() {
                for other in replicas[..<index] {
                    let result = try await replica.dataset().synchronize(
                        with: RecordCountingTransport(
                            transport: FaultyTransport(other.responder), count: inquiries),
                        options: SyncOptions(pageRecordsMax: 3))
                    moved += result.pulled + result.pushed
                }
            }
            quietRounds = moved == 0 ? quietRounds + 1 : 0
            if quietRounds == 2 { return }
        }
        Issue.record("seed \(seed): the replicas never come to rest")
    }

    func check() throws {
        try expectEqual(replicas, "seed \(seed)")
        let vectors = try replicas.map { try $0.dataset().vector }
        #expect(Set(vectors).count == 1, "seed \(seed): \(vectors)")
        let dataset = try replicas[0].dataset()
        for (key, all) in writes {
            let last = all.filter { write in
                !all.contains { other in
                    other.version.dot != write.version.dot
                        && other.version.vector.contains(write.version.dot)
                }
            }
            if let value = try dataset.text(key) {
                #expect(
                    last.contains { $0.value == value },
                    "seed \(seed): \(key) is \(value), which somebody knew who wrote later")
            } else {
                #expect(
                    last.contains { $0.value == nil },
                    "seed \(seed): \(key) is gone, and nobody deleted the last of it")
            }
        }
    }

    func close() {
        for replica in replicas { try? replica.store.close() }
    }
}

@Suite(.serialized)
struct LateComerLifeTests {
    @Test func nothingIsResurrectedAndNothingLost() async throws {
        print("nothingIsResurrectedAndNothingLost: TIDEMARK_SEED=\(baseSeed)")
        var (inquiries, forgetful, retired, failures) = (0, 0, 0, 0)
        for seed in baseSeed..<baseSeed + 120 {
            let life = try LateComerLife(seed: seed)
            try await life.run(steps: 150)
            try life.check()
            let hasForgotten = try life.replicas.contains {
                try !$0.dataset().knowledge().forgotten.isEmpty
            }
            forgetful += hasForgotten ? 1 : 0
            inquiries += life.inquiries.inquiries
            retired += life.retiredCount
            failures += life.failureCount
            life.close()
        }
        print("\(inquiries) inquiries, \(forgetful) lives with something forgotten")
        // Lives in which nobody came late or was given up would prove nothing.
        #expect(inquiries > 100 && forgetful > 60 && retired > 100 && failures > 100)
    }
}
