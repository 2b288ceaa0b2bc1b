import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

// The property: whatever is written where, and whichever bundles are made, lost, carried late,
// twice or in another order, with exchanges in between or without, every import that is not
// refused takes in what it claims; and once each store has had whole bundles of the others they
// hold the same.

/// One random run over three replicas that meet by bundles.
private final class BundleSchedule {
    let seed: UInt64
    let policy: MergePolicy
    let replicas: [TestReplica]
    private let directory: TemporaryDirectory
    private var random: SeededGenerator
    private var bundles: [(path: String, receiver: Int)] = []
    private(set) var refusedCount = 0
    private(set) var conflictCount = 0
    private(set) var pulledCount = 0

    init(seed: UInt64, policy: MergePolicy) throws {
        self.seed = seed
        self.policy = policy
        random = SeededGenerator(seed: seed)
        let directory = TemporaryDirectory()
        self.directory = directory
        replicas = try ["a", "b", "c"].map { try TestReplica($0, in: directory) }
        for replica in replicas { _ = try replica.dataset() }
    }

    private var anyone: Int { Int.random(in: 0..<replicas.count, using: &random) }

    func run(steps: Int) async throws {
        for _ in 0..<steps {
            switch Int.random(in: 0..<100, using: &random) {
            case ..<45: try edit()
            case ..<65: try make()
            case ..<92: try await carry()
            case ..<95: try await exchange()
            case ..<98: try replicas[anyone].reopen()
            default: try replicas[anyone].store.compact()
            }
        }
        try await heal()
    }

    private func edit() throws {
        let dataset = try replicas[anyone].dataset()
        let key = Array("key \(Int.random(in: 0..<12, using: &random))".utf8)
        if Int.random(in: 0..<5, using: &random) == 0 {
            try dataset.delete(key)
        } else {
            try dataset.put([UInt8.random(in: 0..<6, using: &random)], for: key)
        }
    }

    private var limits: SyncResponder.Limits {
        SyncResponder.Limits(pageRecordsMax: Int.random(in: 1...5, using: &random))
    }

    private func make() throws {
        let (from, to) = (anyone, anyone)
        guard from != to else { return }
        let path = "\(directory.path)/bundle \(bundles.count)"
        let (sender, receiver) = (replicas[from].store, replicas[to].store)
        let made: BundleSummary
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            made = try sender.exportBundle(of: "notes", to: path, limits: limits)
        case 1:
            let count = try replicas[from].dataset().syncCount.rawValue
            let since = SyncCount(rawValue: UInt64.random(in: 0...count, using: &random))
            made = try sender.exportBundle(of: "notes", to: path, since: since, limits: limits)
        case 2:
            // As an operator does who asks the receiver first.
            let here = try replicas[to].dataset().syncFacts(with: sender.replicaID).lastSyncCount
            made = try sender.exportBundle(of: "notes", to: path, since: here, limits: limits)
        default:
            made = try sender.exportBundle(
                of: "notes", to: path, for: receiver.replicaID, limits: limits)
        }
        #expect(try BundleSummary(ofFileAt: path) == made, "seed \(seed)")
        bundles.append((path, to))
    }

    /// Any bundle so far, however old and whoever had it before, to whomever.
    private func carry() async throws {
        guard let (path, receiver) = bundles.randomElement(using: &random) else { return }
        let isMisdirected = Int.random(in: 0..<6, using: &random) == 0
        let store = replicas[isMisdirected ? anyone : receiver].store
        do throws(SyncError) {
            let result = try await store.importBundle(
                from: path, options: SyncOptions(policy: policy))
            #expect(result.isComplete, "seed \(seed)")
            try expectClaimsHold(path, store)
            conflictCount += result.conflicts
            pulledCount += result.pulled
        } catch {
            let isExpected = [.wrongBundle, .sameReplica].contains(error.code)
            #expect(isExpected, "seed \(seed): \(error)")
            refusedCount += 1
        }
    }

    /// What a store has taken in it has seen.
    private func expectClaimsHold(_ path: String, _ store: Store) throws(SyncError) {
        let bundle = try BundleSummary(ofFileAt: path)
        do {
            let dataset = try store.dataset("notes")
            #expect(try dataset.vector.covers(bundle.vector), "seed \(seed)")
            let position = try dataset.syncFacts(with: bundle.sender).lastSyncCount
            #expect(position >= bundle.through, "seed \(seed)")
        } catch {
            Issue.record(error, "seed \(seed)")
        }
    }

    private func exchange() async throws {
        let (from, to) = (anyone, anyone)
        guard from != to else { return }
        try await replicas[from].dataset().synchronize(
            with: replicas[to].transport, options: SyncOptions(policy: policy))
    }

    /// Whole bundles there and back until all are equal.
    private func heal() async throws {
        let path = "\(directory.path)/whole"
        for _ in 0..<4 {
            for (one, other) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)] {
                try replicas[one].store.exportBundle(of: "notes", to: path, limits: limits)
                let options = SyncOptions(policy: policy)
                do throws(SyncError) {
                    _ = try await replicas[other].store.importBundle(
                        from: path, options: options)
                } catch {
                    // The maker has forgotten deletions of which the other has never heard.
                    guard error.code == .wrongBundle else { throw error }
                    try await replicas[other].dataset().synchronize(
                        with: replicas[one].transport, options: options)
                }
            }
            let digests = try replicas.map { try $0.dataset().digest() }
            if Set(digests).count == 1 { return }
        }
        Issue.record("seed \(seed): the replicas never come to rest")
    }

    func close() {
        for replica in replicas { try? replica.store.close() }
    }
}

@Suite(.serialized)
struct BundlePropertyTests {
    private static let policies: [(name: String, policy: MergePolicy)] = [
        ("last writer wins", .lastWriterWins), ("keep local", .keepLocal),
        ("keep remote", .keepRemote),
        (
            "union",
            .custom { conflict in
                let all = Set(conflict.local.value ?? []).union(conflict.remote.value ?? [])
                return .value(all.sorted())
            }
        ),
    ]

    @Test(arguments: policies.indices)
    func replicasThatMeetByBundlesConverge(_ number: Int) async throws {
        let (name, policy) = Self.policies[number]
        let seed = Seed.drawn(for: "replicasThatMeetByBundlesConverge, \(name)").rawValue
        var counts = (refused: 0, conflicts: 0, pulled: 0)
        for run in schedules(60) {
            let schedule = try BundleSchedule(seed: seed &+ run, policy: policy)
            try await schedule.run(steps: 60)
            try expectEqual(schedule.replicas, "seed \(seed &+ run)")
            counts.refused += schedule.refusedCount
            counts.conflicts += schedule.conflictCount
            counts.pulled += schedule.pulledCount
            schedule.close()
        }
        // A run in which nothing met or was out of order would prove nothing.
        #expect(counts.refused > 60 && counts.conflicts > 20 && counts.pulled > 200, "\(counts)")
    }
}
