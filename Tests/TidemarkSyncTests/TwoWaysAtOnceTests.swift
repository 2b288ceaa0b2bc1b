import Synchronization
import Testing
import Tidemark
import TidemarkSync

// The property: exchanges that run at the same time on the same dataset, both ways or from one
// store twice, leave both sides such that exchanges one after the other end as they always do: all
// equal, of each key the right version, nothing dirty, nothing more to send.
//
//     a asks b    hello ··· pull ····· push ··
//     b asks a    ··· hello ···· pull ·····push
//     a edits     · put ·········· put ······· put
//
// Only one of the tasks runs at a time, and at each message one is chosen to go on: along each
// possible path for a small exchange, and at random for larger ones.

@Suite(.serialized)
struct TwoWaysAtOnceTests {
    private static let union = MergePolicy.custom { conflict in
        let all = Set(conflict.local.value ?? []).union(conflict.remote.value ?? [])
        return .value(all.sorted())
    }

    /// Asks and lets others go on before each request, and before each answer if so wanted.
    private func asking(
        _ asker: TestReplica, _ answerer: TestReplica, _ lockStep: LockStep,
        _ options: SyncOptions, pausesBeforeAnswers: Bool
    ) -> @Sendable (Int) async throws -> Void {
        let (store, responder) = (asker.store, answerer.responder)
        return { party in
            let transport = InterposedTransport(responder) { point in
                guard point.moment == .beforeRequest || pausesBeforeAnswers else { return }
                await lockStep.turn(of: party)
            }
            let report = await store.synchronizeEach(
                with: transport, datasets: ["notes"], options: options)
            // Each may keep the other from ending for as long as it likes.
            if let error = report.firstError {
                let isUnknown = error.storeError?.code == .datasetNotFound
                #expect(error.code == .contended || isUnknown, "\(error)")
            }
        }
    }

    /// Exchanges one after the other until nothing moves.
    private func heal(
        _ replicas: [TestReplica], _ policy: MergePolicy, _ comment: Comment
    ) async throws {
        for _ in 0..<8 {
            var moved = 0
            for asker in replicas {
                for answerer in replicas where answerer !== asker {
                    let result = try await asker.dataset().synchronize(
                        with: answerer.transport, options: SyncOptions(policy: policy))
                    moved += result.pulled + result.pushed
                }
            }
            if moved == 0 {
                try expectEqual(replicas, comment)
                for replica in replicas {
                    let records = try replica.dataset().records(includingDeleted: true).collect()
                    #expect(records.allSatisfy { !$0.isDirty }, comment)
                    let damages = try replica.store.verify(threads: 1).damages
                    #expect(damages.isEmpty, comment)
                }
                return
            }
        }
        Issue.record("the replicas never come to rest: \(comment)")
    }

    @Test(arguments: ["last writer wins", "union"])
    func everyInterleavingOfTwoExchanges(_ name: String) async throws {
        let policy = name == "union" ? Self.union : .lastWriterWins
        var path: ChoicePath? = ChoicePath()
        var count = 0
        while let current = path {
            let (a, b) = try TestReplica.two()
            try a.dataset().put([0], for: [1])
            try await a.dataset().synchronize(with: b.transport)
            try a.dataset().put([1], for: [1])
            try b.dataset().put([2], for: [1])
            try a.dataset().put([3], for: [2])
            try b.dataset().put([4], for: [3])
            let lockStep = LockStep(parties: 2, .path(current))
            func asking(_ asker: TestReplica, _ answerer: TestReplica)
                -> @Sendable (Int) async throws -> Void
            {
                self.asking(
                    asker, answerer, lockStep, SyncOptions(policy: policy),
                    pausesBeforeAnswers: false)
            }
            try await lockStep.run([asking(a, b), asking(b, a)])
            let taken = try #require(lockStep.path)
            try await heal([a, b], policy, "\(name), path \(taken.description)")
            if name == "union" {
                // What both wrote at the beginning may be in it, too.
                #expect(Set(try a.dataset().get([1]) ?? []).isSuperset(of: [1, 2]))
            }
            #expect(try b.dataset().get([2]) == [3])
            #expect(try a.dataset().get([3]) == [4])
            path = taken.following()
            count += 1
            try a.store.close()
            try b.store.close()
        }
        print("everyInterleavingOfTwoExchanges, \(name): \(count) paths")
        #expect(count > 10)
    }

    /// Which parties there are besides those that edit: who asks whom, by number.
    struct Parties: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let exchanges: [(Int, Int)]
    }

    static let parties = [
        Parties(testDescription: "both ways", exchanges: [(0, 1), (1, 0)]),
        Parties(testDescription: "one store twice", exchanges: [(0, 1), (0, 1)]),
        Parties(testDescription: "a ring at once", exchanges: [(0, 1), (1, 2), (2, 0)]),
        Parties(
            testDescription: "everybody with everybody",
            exchanges: [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)]),
    ]

    @Test(arguments: parties)
    func randomInterleavings(_ parties: Parties) async throws {
        print("randomInterleavings, \(parties.testDescription): TIDEMARK_SEED=\(baseSeed)")
        for seed in baseSeed..<baseSeed + 30 {
            var random = SeededGenerator(seed: seed)
            let directory = TemporaryDirectory()
            let count = (parties.exchanges.flatMap { [$0.0, $0.1] }.max() ?? 0) + 1
            let replicas = try ["a", "b", "c"].prefix(count).map {
                try TestReplica($0, in: directory)
            }
            let policy = seed % 2 == 0 ? MergePolicy.lastWriterWins : Self.union
            let written = WrittenRecords()
            let lockStep = LockStep(
                parties: parties.exchanges.count + count,
                .random(SeededGenerator(seed: seed &* 31)))
            var bodies: [@Sendable (Int) async throws -> Void] = []
            for (from, to) in parties.exchanges {
                bodies.append(
                    asking(
                        replicas[from], replicas[to], lockStep,
                        SyncOptions(
                            policy: policy,
                            pageRecordsMax: Int.random(in: 1...4, using: &random)),
                        pausesBeforeAnswers: true))
            }
            for replica in replicas {
                let (dataset, ownSeed) = (try replica.dataset(), random.next())
                bodies.append { party in
                    var random = SeededGenerator(seed: ownSeed)
                    for _ in 0..<12 {
                        try written.edit(dataset, &random)
                        await lockStep.turn(of: party)
                    }
                }
            }
            try await lockStep.run(bodies)
            try await heal(replicas, policy, "seed \(seed)")
            if seed % 2 == 0 { try written.check(replicas[0].dataset(), "seed \(seed)") }
            for replica in replicas { try replica.store.close() }
        }
    }

    // MARK: - Deletions

    @Test(arguments: [DatasetDeletedAction.discardLocal, .keepAndRecreate])
    func datasetsDeletedMeanwhile(_ action: DatasetDeletedAction) async throws {
        print("datasetsDeletedMeanwhile \(action): TIDEMARK_SEED=\(baseSeed)")
        for seed in baseSeed..<baseSeed + 60 {
            var random = SeededGenerator(seed: seed)
            let directory = TemporaryDirectory()
            let replicas = try ["a", "b", "c"].map { try TestReplica($0, in: directory) }
            let written = WrittenRecords()
            let lockStep = LockStep(parties: 6, .random(SeededGenerator(seed: seed &* 37)))
            var bodies: [@Sendable (Int) async throws -> Void] = []
            for (from, to) in [(0, 1), (1, 0), (2, 1)] {
                bodies.append(
                    asking(
                        replicas[from], replicas[to], lockStep,
                        SyncOptions(
                            pageRecordsMax: Int.random(in: 1...4, using: &random),
                            onDatasetDeleted: action), pausesBeforeAnswers: true))
            }
            for replica in replicas {
                let (store, ownSeed) = (replica.store, random.next())
                bodies.append { party in
                    var random = SeededGenerator(seed: ownSeed)
                    for _ in 0..<16 {
                        if Int.random(in: 0..<8, using: &random) == 0 {
                            try store.deleteDataset("notes")
                        } else {
                            try written.edit(store.dataset("notes"), &random)
                        }
                        await lockStep.turn(of: party)
                    }
                }
            }
            try await lockStep.run(bodies)
            try await healDeletions(replicas, action, "seed \(seed)")
            for replica in replicas { try replica.store.close() }
        }
    }

    /// Exchanges along a chain until nothing moves; a deletion moves no record, and takes two
    /// rounds to reach everyone.
    private func healDeletions(
        _ replicas: [TestReplica], _ action: DatasetDeletedAction, _ comment: Comment
    ) async throws {
        for round in 0..<10 {
            var moved = 0
            for (from, to) in [(0, 1), (2, 1)] {
                let results = try await replicas[from].store.synchronize(
                    with: replicas[to].transport, datasets: ["notes"],
                    options: SyncOptions(onDatasetDeleted: action))
                moved += results[0].pulled + results[0].pushed
            }
            if moved == 0, round >= 3 {
                let lives = try replicas.map { try $0.store.existingDataset("notes") != nil }
                #expect(Set(lives).count == 1, "\(comment): \(lives)")
                return try expectEqual(replicas, comment)
            }
        }
        Issue.record("the replicas never come to rest: \(comment)")
    }

    // MARK: - On several threads

    /// The same without steps: whatever runs at the same time as what.
    @Test func exchangesOnSeveralThreads() async throws {
        print("exchangesOnSeveralThreads: TIDEMARK_SEED=\(baseSeed)")
        for seed in baseSeed..<baseSeed + 12 {
            var random = SeededGenerator(seed: seed)
            let directory = TemporaryDirectory()
            let replicas = try ["a", "b", "c"].map { try TestReplica($0, in: directory) }
            let policy = seed % 2 == 0 ? MergePolicy.lastWriterWins : Self.union
            let written = WrittenRecords()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 1)] {
                    let (dataset, transport) = (
                        try replicas[from].dataset(), replicas[to].transport
                    )
                    let options = SyncOptions(
                        policy: policy, pageRecordsMax: Int.random(in: 1...9, using: &random))
                    group.addTask {
                        for _ in 0..<10 {
                            do throws(SyncError) {
                                try await dataset.synchronize(with: transport, options: options)
                            } catch {
                                #expect(error.code == .contended, "\(error)")
                            }
                        }
                    }
                }
                for replica in replicas {
                    let (dataset, ownSeed) = (try replica.dataset(), random.next())
                    group.addTask {
                        var random = SeededGenerator(seed: ownSeed)
                        for _ in 0..<200 {
                            // Nobody else edits here, but an exchange may be quick to merge.
                            try written.edit(dataset, &random, isAlone: false)
                            await Task.yield()
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await heal(replicas, policy, "seed \(seed)")
            if seed % 2 == 0 { try written.check(replicas[0].dataset(), "seed \(seed)") }
            for replica in replicas { try replica.store.close() }
        }
    }
}

/// Of each key the write that should stand under last writer wins.
final class WrittenRecords: Sendable {
    private let latest = Mutex<[[UInt8]: Record]>([:])

    /// - Parameter isAlone: whether nothing else can take the place of the write at once.
    func edit(
        _ dataset: Dataset, _ random: inout SeededGenerator, isAlone: Bool = true
    ) throws {
        let key = [UInt8.random(in: 0..<8, using: &random)]
        let dot: Dot
        if Int.random(in: 0..<5, using: &random) == 0 {
            dot = try dataset.delete(key)
        } else {
            dot = try dataset.put([UInt8.random(in: 0...255, using: &random)], for: key)
        }
        let record = try #require(try dataset.record(for: key, includingDeleted: true))
        // What took its place is later, and somebody else's.
        #expect(record.version.dot == dot || !isAlone)
        latest.withLock { latest in
            if latest[key].map({ record.version.isLater(than: $0.version) }) ?? true {
                latest[key] = record
            }
        }
    }

    func check(
        _ dataset: Dataset, _ comment: Comment, includingDeleted: Bool = true
    ) throws {
        for (key, record) in latest.withLock({ $0 }) {
            guard record.value != nil || includingDeleted else { continue }
            let kept = try dataset.record(for: key, includingDeleted: true)
            #expect(kept?.value == record.value, comment)
            #expect(kept?.version.dot == record.version.dot, comment)
        }
    }
}
