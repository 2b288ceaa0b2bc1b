import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Datasets that go into another one after identities were linked. B is the hub.
struct MergedDatasetTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    let old = MergedDataset(name: "profile-7f3a", origin: "guest")

    init() throws { (a, b, c) = try TestReplica.three() }

    private func put(
        _ value: String, _ replica: TestReplica, _ name: String, _ key: String
    ) throws {
        try replica.dataset(name).put(value, for: key)
    }

    /// B has both datasets, and A has its own part of the profile.
    private func link() throws {
        try put("Ada", b, "profile", "name")
        try put("Guest", b, old.name, "name")
        try put("dark", b, old.name, "theme")
        try put("Paris", a, "profile", "city")
        try b.store.noteMerged(old, into: "profile")
    }

    private func exchange(
        _ from: TestReplica, _ handler: (@Sendable (MergedDatasets) async -> MergedDatasetsAction)?
    ) async throws {
        var options = SyncOptions()
        options.mergedDatasetsHandler = handler
        try await from.dataset("profile").synchronize(with: b.transport, options: options)
    }

    private func texts(_ replica: TestReplica, _ name: String) throws -> [String: String] {
        let records = try replica.dataset(name).records().collect()
        return Dictionary(
            uniqueKeysWithValues: records.map { ($0.keyText ?? "", $0.valueText ?? "") })
    }

    @Test func theHandlerGetsNamesAndContentsAndTheyAreMergedAndRetired() async throws {
        try link()
        let told = Box<[String]>()
        try await exchange(a) { datasets in
            var lines = ["\(datasets.dataset) of \(datasets.peer)"]
            for merged in datasets.merged {
                let records = (try? datasets.records(of: merged).collect()) ?? []
                lines.append("\(merged.name) \(merged.origin)")
                lines += records.map { "\($0.keyText ?? "") \($0.valueText ?? "")" }
            }
            told.set(lines)
            return .merge(.keepLocal)
        }
        #expect(
            told.all == [
                [
                    "profile of \(b.store.replicaID)", "profile-7f3a guest", "name Guest",
                    "theme dark",
                ]
            ])
        for replica in [a, b] {
            let expected = ["name": "Ada", "theme": "dark", "city": "Paris"]
            #expect(try texts(replica, "profile") == expected)
            #expect(try replica.store.existingDataset(old.name) == nil)
            #expect(try replica.store.mergedDatasets(into: "profile").isEmpty)
        }
        try expectEqual([a, b], dataset: "profile")
        // Nobody is asked again.
        try await exchange(a) { _ in
            told.set(["again"])
            return .leave
        }
        #expect(told.all.count == 1)
    }

    @Test func thePolicyDecidesAboutKeysThatBothHave() async throws {
        try link()
        let policy = MergePolicy.custom { conflict in
            #expect(conflict.ancestry == .nonexistent && conflict.dataset == "profile")
            return .value(Array("\(conflict.local.valueText ?? "") / Guest".utf8))
        }
        try await exchange(a) { _ in .merge(policy) }
        #expect(try b.dataset("profile").text("name") == "Ada / Guest")
        try expectEqual([a, b], dataset: "profile")
    }

    @Test func withoutAHandlerNothingIsMerged() async throws {
        try link()
        try await exchange(a, nil)
        #expect(try a.dataset("profile").count() == 2)
        #expect(try a.store.existingDataset(old.name) == nil)
        #expect(try b.store.mergedDatasets(into: "profile") == [old])
        // With all datasets it comes as any other, and can be merged later all the same.
        try await a.store.synchronize(with: b.transport)
        #expect(try a.dataset(old.name).count() == 2)
        try await exchange(a) { _ in .merge(.keepRemote) }
        #expect(try b.dataset("profile").text("name") == "Guest")
        #expect(try b.store.existingDataset(old.name) == nil)
        try expectEqual([a, b], dataset: "profile")
    }

    @Test func theyAreLeftOrDiscarded() async throws {
        try link()
        let count = Box<Int>()
        for _ in 0..<2 {
            try await exchange(a) { datasets in
                count.set(datasets.merged.count)
                return .leave
            }
        }
        #expect(count.all == [1, 1])
        #expect(try a.dataset(old.name).count() == 2)
        #expect(try a.store.mergedDatasets(into: "profile") == [old])
        try await exchange(a) { _ in .discard }
        #expect(try a.store.existingDataset(old.name) == nil)
        #expect(try b.store.existingDataset(old.name) == nil)
        #expect(try texts(b, "profile") == ["name": "Ada", "city": "Paris"])
    }

    /// A peer that names a dataset of ours, which it was never given, does not get it.
    @Test func aPeerDrawsNothingOutOfUs() async throws {
        try put("mine", a, "secret", "key")
        try put("theirs", b, "secret", "other")
        try b.store.noteMerged(MergedDataset(name: "secret", origin: "x"), into: "profile")
        let isAsked = Box<Bool>()
        try await exchange(a) { _ in
            isAsked.set(true)
            return .merge(.keepRemote)
        }
        #expect(isAsked.all.isEmpty)
        #expect(try texts(b, "secret") == ["other": "theirs"])
        #expect(try texts(a, "secret") == ["key": "mine"])
    }

    @Test func twoReplicasMergeAtOnce() async throws {
        try link()
        try put("large", c, "profile", "size")
        for replica in [a, c] {
            try await exchange(replica) { _ in .leave }
        }
        // Both merge before either hears of the other.
        for replica in [a, c] {
            let result = try await replica.store.mergeDataset(
                old.name, into: "profile", by: .keepLocal)
            #expect(result.moved == 2 && result.conflicts == 1 && result.isRetired)
        }
        for _ in 0..<2 {
            for replica in [a, c] { try await replica.store.synchronize(with: b.transport) }
        }
        for replica in [a, b, c] {
            let expected = ["name": "Ada", "theme": "dark", "city": "Paris", "size": "large"]
            #expect(try texts(replica, "profile") == expected)
            #expect(try replica.store.existingDataset(old.name) == nil)
        }
        try expectEqual([a, b, c], dataset: "profile")
    }

    @Test func whatThePolicyLeavesStays() async throws {
        try link()
        let result = try await b.store.mergeDataset(old.name, into: "profile", by: .leavePending)
        #expect(result.moved == 1 && result.left == 1 && !result.isRetired)
        #expect(try texts(b, old.name) == ["name": "Guest"])
        #expect(try texts(b, "profile") == ["name": "Ada", "theme": "dark"])
        let rest = try await b.store.mergeDataset(old.name, into: "profile", by: .keepRemote)
        #expect(rest.moved == 1 && rest.conflicts == 1 && rest.isRetired)
        #expect(try texts(b, "profile") == ["name": "Guest", "theme": "dark"])
    }

    @Test func aDatasetMadeLaterIsAnother() throws {
        try link()
        #expect(try b.store.mergedDatasets(into: "profile") == [old])
        try b.reopen()
        #expect(try b.store.mergedDatasets(into: "profile") == [old])
        try b.store.deleteDataset(old.name)
        #expect(try b.store.mergedDatasets(into: "profile").isEmpty)
        try put("new", b, old.name, "key")
        #expect(try b.store.mergedDatasets(into: "profile").isEmpty)
    }

    /// Somebody had made one of the same name, later, which gives it another stamp.
    @Test func oneOfTheSameNameThatJoinsItIsNoOther() async throws {
        try link()
        a.clock.putForward(bySeconds: 10)
        try put("blue", a, old.name, "color")
        try await a.store.synchronize(with: b.transport)
        #expect(try b.store.mergedDatasets(into: "profile") == [old])
        try await exchange(a) { _ in .merge(.keepRemote) }
        for replica in [a, b] {
            #expect(try replica.store.existingDataset(old.name) == nil)
            #expect(try texts(replica, "profile")["color"] == "blue")
        }
        try expectEqual([a, b], dataset: "profile")
        // It is deleted now, and one that is made after that is another one.
        try put("new", b, old.name, "key")
        #expect(try b.store.mergedDatasets(into: "profile").isEmpty)
    }

    @Test func notesOfWhatIsGoneAreRemoved() throws {
        for number in 0..<5 {
            let name = "old-\(number)"
            try put("1", b, name, "key")
            try b.store.noteMerged(MergedDataset(name: name, origin: ""), into: "profile")
        }
        try put("1", b, "other", "key")
        try b.store.noteMerged(MergedDataset(name: "other", origin: ""), into: "elsewhere")
        // Three are gone, and of these one is another dataset now.
        for number in 0..<3 { try b.store.deleteDataset("old-\(number)") }
        try put("2", b, "old-1", "key")
        try b.store.deleteDataset("other")
        let notes = try #require(try b.store.existingSystemDataset(.merged))
        #expect(try notes.count() == 6)
        try put("2", b, "new", "key")
        try b.store.noteMerged(MergedDataset(name: "new", origin: ""), into: "profile")
        let told = try b.store.mergedDatasets(into: "profile").map(\.name)
        #expect(told == ["new", "old-3", "old-4"])
        // That of another one stays, until something is noted for that.
        #expect(try notes.count() == 4)
        // One that takes the place of its own stale note is there.
        try b.store.deleteDataset("new")
        try put("3", b, "new", "key")
        try b.store.noteMerged(MergedDataset(name: "new", origin: ""), into: "profile")
        let again = try b.store.mergedDatasets(into: "profile").map(\.name)
        #expect(again == ["new", "old-3", "old-4"])
        #expect(try notes.count() == 4)
    }

    @Test func whatCannotBeMergedIsRefused() async throws {
        try put("1", b, "profile", "key")
        let long = String(repeating: "x", count: SyncLimits.originBytesMax + 1)
        let refused: [(MergedDataset, StoreError.Code)] = [
            (MergedDataset(name: "profile", origin: ""), .invalidArgument),
            (MergedDataset(name: "nowhere", origin: ""), .datasetNotFound),
            (MergedDataset(name: "no name", origin: ""), .invalidArgument),
            (MergedDataset(name: "other", origin: long), .invalidArgument),
        ]
        for (merged, code) in refused {
            let error = #expect(throws: StoreError.self) {
                try b.store.noteMerged(merged, into: "profile")
            }
            #expect(error?.code == code)
        }
        for name in ["profile", "nowhere"] {
            let error = await #expect(throws: SyncError.self) {
                try await b.store.mergeDataset(name, into: "profile", by: .keepLocal)
            }
            #expect(error?.storeError?.code == .datasetNotFound)
        }
        #expect(try b.store.mergedDatasets(into: "profile").isEmpty)
    }

    @Test func aPartIsNotMergedIntoAnother() async throws {
        let b = b
        try put("1", b, "part", "a/1")
        try put("2", b, "part", "b/1")
        try b.store.dataset("part").setSyncScope(.prefix("a/"), leaving: .keep)
        let error = await #expect(throws: SyncError.self) {
            try await b.store.mergeDataset("part", into: "profile", by: .keepLocal)
        }
        #expect(error?.code == .partialReplica)
        #expect(try b.store.dataset("part").count() == 2)
    }

    @Test func whatWasDecidedIsToldByAnEvent() async throws {
        try link()
        var exchange = SyncOptions()
        exchange.mergedDatasetsHandler = { _ in .merge(.keepLocal) }
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport,
            options: SynchronizerOptions(exchange: exchange),
            environment: VirtualEnvironment(passesBySleeping: true))
        let events = synchronizer.events()
        try await synchronizer.synchronize(["profile"])
        let labels = await collect(events, completions: 1).map(\.label)
        #expect(labels.contains("merged profile-7f3a into profile"))
        #expect(labels.last == "ended profile")
        await synchronizer.shutdown()
    }

    /// Over random contents: what is moved is what the two together hold, and records that expire
    /// go on to expire.
    @Test(arguments: 0..<4)
    func nothingIsLostByMerging(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let far: UInt64 = 1 << 47
        var expected: [String: Set<String>] = [:]
        for name in ["source", "target"] {
            let dataset = try a.dataset(name)
            for _ in 0..<30 {
                let key = "key \(Int.random(in: 0..<20, using: &random))"
                let value = "\(name) \(random.next() % 100)"
                if Int.random(in: 0..<3, using: &random) == 0 {
                    try dataset.put(value, for: key, expiresAt: far)
                } else {
                    try dataset.put(value, for: key)
                }
            }
            for record in try dataset.records().collect() {
                expected[record.keyText ?? "", default: []].insert(record.valueText ?? "")
            }
        }
        let alone = try a.dataset("source").records().collect()
        let others = Set(try a.dataset("target").records().collect().map(\.key))
        let both = MergePolicy.custom { conflict in
            let texts = [conflict.local.valueText ?? "", conflict.remote.valueText ?? ""]
            return .value(Array(texts.joined(separator: "+").utf8))
        }
        let result = try await a.store.mergeDataset("source", into: "target", by: both)
        #expect(result.moved == alone.count && result.isRetired, "seed \(seed)")
        let merged = try a.dataset("target").records().collect()
        #expect(Set(merged.compactMap(\.keyText)) == Set(expected.keys), "seed \(seed)")
        for record in merged {
            let values = (record.valueText ?? "").split(separator: "+").map(String.init)
            #expect(Set(values) == expected[record.keyText ?? ""], "seed \(seed)")
        }
        for record in alone where !others.contains(record.key) {
            let now = try a.dataset("target").record(for: record.key)
            #expect(now?.expiresAt == record.expiresAt, "seed \(seed)")
        }
    }
}
