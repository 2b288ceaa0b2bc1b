import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What is moved out of a merged dataset is with the hub before the hub hears that it is gone from
/// there. B is the hub; at each moment it has every record in one of the two datasets:
///
///     B  "old": a b c    A  merges "old" into "profile"
///     B  "old": a b c    A  push "profile": a b c
///     B  both            A  push "old": deleted
///     B  "profile": a b c
struct MergedHandOverTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// Before and behind the other one, in the order of names.
    static let names = ["old", "zone"]

    private static let keys = ["a", "b", "c", "d", "e"]

    /// The hub has something in both datasets, and tells that one goes into the other.
    private func link(_ name: String = "old") throws {
        for key in Self.keys { try b.dataset(name).put("of \(key)", for: key) }
        try b.dataset("profile").put("Ada", for: "name")
        try b.store.noteMerged(MergedDataset(name: name, origin: "guest"), into: "profile")
    }

    /// The hub, at which each record must be all the time.
    ///
    /// - Parameter act: what else happens at each point.
    private func watched(
        _ name: String = "old", validate: (@Sendable (Record) throws -> Void)? = nil,
        act: @escaping @Sendable (InterposedTransport.Point) throws -> Void = { _ in }
    ) -> InterposedTransport {
        let hub = b.store
        let keys = Self.keys
        return InterposedTransport(SyncResponder(store: hub, validate: validate)) { point in
            for key in keys {
                // In this order, and gone between the two steps is gone.
                let former = try? hub.existingDataset(name)?.text(key)
                let present = try? hub.existingDataset("profile")?.text(key)
                #expect(former == "of \(key)" || present == "of \(key)")
            }
            try act(point)
        }
    }

    /// - Returns: how often the handler was asked.
    @discardableResult
    private func exchange(
        _ transport: any SyncTransport, recordsPerRunMax: Int? = nil,
        change: (inout SyncOptions) -> Void = { _ in }
    ) async throws -> Int {
        let asked = Box<Int>()
        var options = SyncOptions(recordsPerRunMax: recordsPerRunMax)
        change(&options)
        options.mergedDatasetsHandler = { datasets in
            asked.set(datasets.merged.count)
            return .merge(.keepLocal)
        }
        try await a.dataset("profile").synchronize(with: transport, options: options)
        return asked.all.count
    }

    private func expectMerged(_ name: String = "old") throws {
        for replica in [a, b] {
            #expect(try replica.store.existingDataset(name) == nil)
            #expect(try replica.dataset("profile").count() == Self.keys.count + 1)
        }
        try expectEqual([a, b], dataset: "profile")
    }

    @Test func cutOffBeforeThePushTheDeletionDoesNotGoFirst() async throws {
        try link()
        let ours = a.store
        let error = await #expect(throws: SyncError.self) {
            try await exchange(
                watched(act: { point in
                    guard point.kind == "push", point.moment == .beforeRequest,
                        try ours.existingDataset("old") == nil,
                        try ours.existingDataset("profile")?.text("a") != nil
                    else { return }
                    throw SyncError(.unreachable, "the test lost the push; repeat the exchange")
                }))
        }
        #expect(error?.code == .unreachable)
        #expect(try a.store.existingDataset("old") == nil)
        #expect(try a.dataset("profile").text("a") == "of a")
        #expect(try b.dataset("old").count() == Self.keys.count)
        #expect(try b.dataset("profile").text("a") == nil)
        // Also if the store is closed in between. Nobody is asked again.
        try a.reopen()
        #expect(try await exchange(watched()) == 0)
        try expectMerged()
    }

    @Test func whatTravelsInSeveralExchangesIsRetiredAfterTheLast() async throws {
        try link()
        var asked = 0
        for _ in 0..<20 {
            let count = try await exchange(watched(), recordsPerRunMax: 2)
            asked += count
        }
        #expect(asked == 1)
        try expectMerged()
    }

    @Test func whatTheHubRefusesStaysThere() async throws {
        try link()
        let gate = RecordGate(refusing: { $0.keyText == "c" })
        for round in 0..<3 {
            let transport = watched(validate: { record in try gate.check(record) })
            if round == 0 {
                let error = await #expect(throws: SyncError.self) {
                    try await exchange(transport)
                }
                #expect(error?.code == .recordRefused)
            } else {
                #expect(try await exchange(transport) == 0)
            }
            #expect(try a.dataset("profile").text("c") == "of c")
            #expect(try b.dataset("profile").text("c") == nil)
            #expect(try b.dataset("old").text("c") == "of c")
        }
        gate.open()
        try a.dataset("profile").retryFailedRecords()
        try await exchange(watched(validate: { record in try gate.check(record) }))
        try expectMerged()
    }

    /// All datasets are exchanged, several at a time or one after the other, whichever is first.
    @Test(arguments: names, [1, 4])
    func mergedByHandTheRecordsGoFirst(_ name: String, _ parallel: Int) async throws {
        try link(name)
        try await a.store.synchronize(with: b.transport)
        let result = try await a.store.mergeDataset(name, into: "profile", by: .keepLocal)
        #expect(result.moved == Self.keys.count && result.isRetired)
        let options = SyncOptions(parallelDatasetsMax: parallel)
        for _ in 0..<2 {
            try await a.store.synchronize(with: watched(name), options: options)
        }
        try expectMerged(name)
    }

    /// Moves all of "old" into "profile" but for one record, about which the policy leaves it.
    private func mergeAllButOne() async throws {
        try link()
        try await a.store.synchronize(with: b.transport)
        try a.dataset("profile").put("ours", for: "a")
        let result = try await a.store.mergeDataset("old", into: "profile", by: .leavePending)
        #expect(result.left == 1 && !result.isRetired)
    }

    /// "old" waits for "profile". What is left of it is exchanged when the rest is there.
    @discardableResult
    private func expectExchangedWhenThere() async throws -> SyncResult {
        let waiting = try await a.dataset("old").synchronize(with: b.transport)
        #expect(!waiting.isComplete && waiting.pushed == 0)
        #expect(try b.dataset("old").count() == Self.keys.count)
        try await a.dataset("profile").synchronize(with: b.transport)
        let done = try await a.dataset("old").synchronize(with: b.transport)
        #expect(done.isComplete)
        #expect(try b.dataset("old").count() == 1)
        return done
    }

    private func expectAllExchangedWhenThere() async throws {
        let done = try await expectExchangedWhenThere()
        #expect(done.pushed == Self.keys.count - 1)
        for name in ["old", "profile"] { try expectEqual([a, b], dataset: name) }
    }

    /// What the policy left goes on to be exchanged, when the rest is there.
    @Test func whatIsLeftIsExchangedWhenTheMovedIsThere() async throws {
        try await mergeAllButOne()
        try await expectAllExchangedWhenThere()
    }

    /// The deletions of what was moved are forgotten, and what is dead at the hub is in no other
    /// place there yet.
    @Test func aHubThatIsLateKeepsWhatItHasUntilTheMovedIsThere() async throws {
        try await mergeAllButOne()
        try a.dataset("old").retire(b.store.replicaID)
        try a.store.compact()
        let left = try a.dataset("old").records(includingDeleted: true).collect()
        #expect(left.map(\.keyText) == ["a"])
        try await expectAllExchangedWhenThere()
    }

    @Test func aPartWaitsForTheMovedAsWell() async throws {
        try await mergeAllButOne()
        try a.dataset("old").setSyncScope(.prefix("a"))
        try await expectExchangedWhenThere()
    }

    /// Over random cuts and caps, with the store closed in between, in exchanges of one dataset and
    /// of all: nothing is ever missing at the hub, and in the end everything is merged.
    @Test(arguments: 0..<8)
    func cutOffAnywhereNothingIsMissing(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let name = Self.names[Int(run % 2)]
        try link(name)
        for _ in 0..<12 {
            let last = Int.random(in: 1..<16, using: &random)
            let moment: InterposedTransport.Moment =
                Bool.random(using: &random) ? .beforeRequest : .beforeAnswer
            let transport = watched(
                name,
                act: { point in
                    guard point.number >= last, point.moment == moment else { return }
                    throw SyncError(.unreachable, "the test lost a message; repeat the exchange")
                })
            let isCapped = Bool.random(using: &random)
            let cap = isCapped ? Int.random(in: 1...3, using: &random) : nil
            do {
                if Int.random(in: 0..<4, using: &random) == 0 {
                    try await a.store.synchronize(with: transport)
                } else {
                    try await exchange(transport, recordsPerRunMax: cap)
                }
            } catch let error as SyncError {
                #expect(error.code == .unreachable, "seed \(seed)")
            }
            if Int.random(in: 0..<3, using: &random) == 0 { try a.reopen() }
        }
        for _ in 0..<5 { try await exchange(watched(name)) }
        for replica in [a, b] {
            #expect(try replica.store.existingDataset(name) == nil, "seed \(seed)")
            let count = try replica.dataset("profile").count()
            #expect(count == Self.keys.count + 1, "seed \(seed)")
        }
        try expectEqual([a, b], dataset: "profile", "seed \(seed)")
    }

    // MARK: - What is the matter with the one that is merged

    @Test func aConflictInAMergedDatasetHoldsUpNothingElse() async throws {
        try link()
        try await a.store.synchronize(with: b.transport)
        try a.dataset("old").put("mine", for: "a")
        try b.dataset("old").put("theirs", for: "a")
        try a.dataset("profile").put("Paris", for: "city")
        for _ in 0..<2 {
            let asked = try await exchange(b.transport) { $0.policies["old"] = .leavePending }
            #expect(asked == 0)
            #expect(try b.dataset("profile").text("city") == "Paris")
            #expect(try a.dataset("old").pendingConflicts().count == 1)
        }
        try a.dataset("old").settle(Array("a".utf8), with: .keepLocal)
        let asked = try await exchange(b.transport) { $0.policies["old"] = .leavePending }
        #expect(asked == 1)
        #expect(try b.store.existingDataset("old") == nil)
        #expect(try b.dataset("profile").text("a") == "mine")
        try expectEqual([a, b], dataset: "profile")
    }

    @Test func aRefusedRecordOfAMergedDatasetHoldsUpNothingElse() async throws {
        try link()
        try a.dataset("profile").put("Paris", for: "city")
        let gate = RecordGate(refusing: { $0.keyText == "c" })
        for _ in 0..<2 {
            let asked = try await exchange(b.transport) { options in
                options.validate = { record in try gate.check(record) }
            }
            #expect(asked == 0)
            #expect(try b.dataset("profile").text("city") == "Paris")
        }
        #expect(try a.dataset("old").failedRecords().map(\.keyText) == ["c"])
        gate.open()
        try a.dataset("old").retryFailedRecords()
        #expect(try await exchange(b.transport) == 1)
        #expect(try b.store.existingDataset("old") == nil)
        #expect(try b.dataset("profile").text("c") == "of c")
        try expectEqual([a, b], dataset: "profile")
    }

    /// Of a dataset nothing has come but that there is one.
    @Test func cutOffAtItsBeginningItIsMergedByTheNextExchange() async throws {
        try link()
        let ours = a.store
        let error = await #expect(throws: SyncError.self) {
            try await exchange(
                watched(act: { point in
                    guard point.moment == .beforeRequest,
                        try ours.existingDataset("old") != nil
                    else { return }
                    throw SyncError(.unreachable, "the test lost it; repeat the exchange")
                }))
        }
        #expect(error?.code == .unreachable)
        #expect(try a.dataset("old").count() == 0)
        #expect(try await exchange(watched()) == 1)
        try expectMerged()
    }

    /// What has come in part only is not merged: its retirement would not reach the rest.
    @Test func whatHasNotComeWholeIsNotMergedYet() async throws {
        try link()
        #expect(try await exchange(watched(), recordsPerRunMax: 2) == 0)
        #expect(try a.dataset("old").count() == 2)
        #expect(try b.dataset("old").count() == Self.keys.count)
        #expect(try await exchange(watched()) == 1)
        try expectMerged()
    }
}
