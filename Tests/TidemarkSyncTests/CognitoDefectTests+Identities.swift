import Testing
import Tidemark

@testable import TidemarkSync

// 2.6 and 2.7 once more: datasets that go into others because identities were linked.

extension CognitoDefectTests {
    /// A profile on both sides, and at the hub what a guest had written.
    private func write(_ guests: String) throws {
        for number in 0..<6 {
            try a.dataset("profile").put("ours", for: "key \(number)")
            try b.dataset("profile").put("the hub's", for: "key \(number + 2)")
            try b.dataset(guests).put("a guest's", for: "key \(number + 4)")
        }
    }

    /// What the guest had written is to go into the profile.
    private func link(_ guests: String) throws {
        try b.store.noteMerged(MergedDataset(name: guests, origin: "guest"), into: "profile")
    }

    private func merging(
        _ answer: @escaping @Sendable (MergedDatasets) async -> MergedDatasetsAction
    ) -> SyncOptions {
        var options = SyncOptions(policy: Self.united)
        options.mergedDatasetsHandler = answer
        return options
    }

    private static let united = MergePolicy.custom { conflict in
        let both = [conflict.local, conflict.remote].compactMap(\.valueText)
        return .value(Array(Set(both).sorted().joined(separator: " and ").utf8))
    }

    /// To answer that the datasets were merged ended in a call of a function that did not exist,
    /// and no callback ever; and the callback that the guide named was never called.
    @Test("2.6.2: merging a merged dataset completes")
    func mergingAMergedDatasetCompletes() async throws {
        try write("guests")
        try link("guests")
        let (asked, policy) = (Box<[String]>(), Self.united)
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport,
            options: SynchronizerOptions(
                exchange: merging { datasets in
                    asked.set(datasets.merged.map(\.name))
                    return .merge(policy)
                }))
        let events = synchronizer.events()
        let report = try await synchronizer.synchronize(["profile"])
        #expect(report.isComplete)
        #expect(asked.all == [["guests"]])
        let seen = await collect(events, completions: 1)
        expectOneCompletionEach(seen)
        #expect(seen.last?.isCompletion == true)
        // It is done: nobody is asked again, and nothing is left to do.
        try await synchronizer.synchronize(["profile"])
        #expect(asked.all.count == 1)
        for replica in [a, b] { #expect(try replica.store.existingDataset("guests") == nil) }
        try expectEqual([a, b], dataset: "profile")
    }

    /// Android: what one identity had was copied to the other by SQL text, and failed where both
    /// had a dataset, or a record, of one name.
    @Test("2.7 Android: identities are linked where both have the same names")
    func identitiesAreLinkedWhereBothHaveTheSameNames() async throws {
        try write("profile.guest")
        // This device has one of that name, too, and a record of one name in it.
        try a.dataset("profile.guest").put("mine", for: "key 9")
        let policy = Self.united
        try await a.store.synchronize(
            with: b.transport, options: SyncOptions(policy: policy))
        try link("profile.guest")
        try await a.dataset("profile").synchronize(
            with: b.transport, options: merging { _ in .merge(policy) })
        for replica in [a, b] {
            #expect(try replica.store.existingDataset("profile.guest") == nil)
        }
        try expectEqual([a, b], dataset: "profile")
        let values = try b.dataset("profile").records().collect().compactMap(\.valueText)
        #expect(values.count == 10)
        #expect(try b.dataset("profile").text("key 9")?.contains("mine") == true)
        // Nothing of what any of the two had is gone.
        for number in 0..<10 {
            let text = try b.dataset("profile").text("key \(number)") ?? ""
            #expect(!(0..<6).contains(number) || text.contains("ours"), "key \(number)")
            #expect(!(2..<8).contains(number) || text.contains("the hub's"), "key \(number)")
            #expect(!(4..<10).contains(number) || text.contains("a guest's"), "key \(number)")
        }
    }
}
