import Testing
import Tidemark
import TidemarkSync

/// Two stores of many datasets, written, deleted, revived, compacted, reopened and synchronised at
/// random, with the states of datasets let go whenever nobody holds them: what both hold is what
/// was written last, and nothing comes back.
struct ManyDatasetsTests {
    /// What a dataset should hold; nil if it was deleted, or never made.
    typealias Model = [String: [String: String]?]

    @Test(arguments: 0..<4)
    func statesLetGoLoseNothing(_ run: UInt64) async throws {
        let seed = baseSeed &+ run
        print("statesLetGoLoseNothing: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let directory = TemporaryDirectory()
        let replicas = [
            try TestReplica("a", in: directory), try TestReplica("b", in: directory),
        ]
        let names = (0..<40).map { "dataset-\($0)" }
        var model: Model = [:]
        var lowest = Int.max
        for round in 0..<30 {
            // One side at a time, so that the model needs no rule for conflicts.
            let replica = replicas[Int.random(in: 0...1, using: &random)]
            for _ in 0..<25 {
                try change(replica, names.randomElement(using: &random)!, &model, &random)
            }
            if Int.random(in: 0..<3, using: &random) == 0 { try replica.store.compact() }
            if Int.random(in: 0..<4, using: &random) == 0 { try replica.reopen() }
            try await replicas[0].store.synchronize(
                with: replicas[1].transport, options: SyncOptions(onDatasetDeleted: .discardLocal))
            for replica in replicas {
                lowest = min(lowest, replica.store.datasetStatesInMemory)
                try check(replica.store, model, "seed \(seed), round \(round)")
            }
        }
        #expect(lowest < names.count, "no state was ever let go")
    }

    private func change(
        _ replica: TestReplica, _ name: String, _ model: inout Model,
        _ random: inout SeededGenerator
    ) throws {
        if Int.random(in: 0..<6, using: &random) == 0 {
            let existed = try replica.store.deleteDataset(name)
            #expect(existed == (model[name] ?? nil != nil))
            if existed { model[name] = .some(nil) }
            return
        }
        let key = "key \(Int.random(in: 0..<5, using: &random))"
        var records = (model[name] ?? nil) ?? [:]
        if Int.random(in: 0..<4, using: &random) == 0 {
            try replica.dataset(name).delete(key)
            records[key] = nil
        } else {
            let value = "\(random.next())"
            try replica.dataset(name).put(value, for: key)
            records[key] = value
        }
        model[name] = records
    }

    private func check(_ store: Store, _ model: Model, _ comment: String) throws {
        let live = model.compactMapValues { $0 }
        #expect(try store.datasetNames() == live.keys.sorted(), "\(comment)")
        for (name, expected) in live {
            var found: [String: String] = [:]
            for record in try store.existingDataset(name)?.records().collect() ?? [] {
                found[String(decoding: record.key, as: UTF8.self)] = String(
                    decoding: record.value ?? [], as: UTF8.self)
            }
            #expect(found == expected, "\(comment), \(name)")
        }
    }
}
