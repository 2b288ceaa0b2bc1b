import Foundation
import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Dry runs: they say what an exchange does, and leave every file of both sides as it was.
struct ForecastTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// Every file by its bytes.
    private func files(_ path: String) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            files[name] = try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)"))
        }
        return files
    }

    private var names: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: a.directory.path).sorted()
        }
    }

    @Test(arguments: 0..<4)
    func saysWhatHappensAndChangesNothing(_ run: UInt64) async throws {
        let seed = baseSeed &+ run
        print("saysWhatHappensAndChangesNothing: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let policies: [MergePolicy] = [.lastWriterWins, .keepLocal, .keepRemote]
        for round in 0..<8 {
            for _ in 0..<Int.random(in: 0..<30, using: &random) {
                let replica = Bool.random(using: &random) ? a : b
                let dataset = try replica.dataset("d\(Int.random(in: 0..<3, using: &random))")
                let key = "key \(Int.random(in: 0..<15, using: &random))"
                if Int.random(in: 0..<4, using: &random) == 0 {
                    try dataset.delete(key)
                } else {
                    try dataset.put("\(random.next())", for: key)
                }
            }
            if round == 4 { try a.store.compact() }
            let policy = policies[Int.random(in: 0..<3, using: &random)]
            let options = SyncOptions(policy: policy, pageRecordsMax: 4)
            let synchronizer = Synchronizer(
                store: a.store, transport: b.transport,
                options: SynchronizerOptions(exchange: options))
            for replica in [a, b] { try replica.store.waitForBackgroundWork() }
            let before = (try files(a.store.path), try files(b.store.path))
            let forecast = try await synchronizer.synchronize(dryRun: true)
            #expect(try files(a.store.path) == before.0, "seed \(seed), round \(round)")
            #expect(try files(b.store.path) == before.1, "seed \(seed), round \(round)")
            #expect(try names == ["a", "b"])
            let report = try await synchronizer.synchronize(dryRun: false)
            let foretold = forecast.datasets.map(\.dataset)
            #expect(Set(foretold).isSuperset(of: report.datasets.map(\.dataset)), "seed \(seed)")
            for told in forecast.datasets {
                // One in which nothing has changed is not looked at in earnest.
                let done = report[told.dataset]?.result
                #expect(told.result?.pulled == done?.pulled ?? 0, "seed \(seed)")
                #expect(told.result?.pushed == done?.pushed ?? 0, "seed \(seed)")
                #expect(told.result?.settled == done?.settled ?? [], "seed \(seed)")
                #expect(told.error == nil)
            }
            #expect((forecast.bytesSent > 0) == (report.bytesSent > 0))
            for name in try a.store.datasetNames() { try expectEqual([a, b], dataset: name) }
        }
    }

    /// In several pages, of which the peer keeps none.
    @Test func aDatasetThatThePeerLacksIsForetoldWhole() async throws {
        for number in 0..<10 { try a.dataset().put("1", for: "key \(number)") }
        let report = try await a.store.forecast(
            with: b.transport, options: SyncOptions(pageRecordsMax: 4))
        #expect(report["notes"]?.result?.pushed == 10)
        #expect(try b.store.datasetNamesForSync().isEmpty)
    }

    @Test func aPolicyDecidesOnTheFork() async throws {
        try a.dataset().put("ours", for: "both")
        try b.dataset().put("theirs", for: "both")
        let asked = Mutex(0)
        let options = SyncOptions(
            policy: .custom { conflict in
                asked.withLock { $0 += 1 }
                return .value(Array("merged".utf8))
            })
        let report = try await a.store.forecast(with: b.transport, options: options)
        #expect(asked.withLock { $0 } == 1)
        #expect(report["notes"]?.result?.settled.map(\.decision) == [.merged])
        #expect(try a.dataset().text("both") == "ours")
        #expect(try b.dataset().text("both") == "theirs")
    }

    @Test func anUnreachablePeerLeavesNothingBehind() async throws {
        try a.dataset().put("1", for: "key")
        let before = try files(a.store.path)
        let synchronizer = Synchronizer(
            store: a.store,
            transport: CountingTransport(b.transport) { _ in SyncError(.unreachable, "no route") })
        let error = await #expect(throws: SyncError.self) {
            try await synchronizer.synchronize(dryRun: true)
        }
        #expect(error?.code == .unreachable)
        #expect(try names == ["a", "b"])
        #expect(try files(a.store.path) == before)
    }

    @Test func aDeletionIsForetold() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        try b.store.deleteDataset("notes")
        let stopped = try await a.store.forecast(with: b.transport)
        #expect(stopped["notes"]?.error?.code == .datasetDeleted)
        let discarded = try await a.store.forecast(
            with: b.transport, options: SyncOptions(onDatasetDeleted: .discardLocal))
        #expect(discarded["notes"]?.error == nil)
        #expect(try a.dataset().text("shared") == "shared")
    }
}
