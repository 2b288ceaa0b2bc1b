import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

// The property: after an exchange a partial replica holds what its peer has of the scope, and
// nothing that anybody wrote is lost or held for deleted because it is not everywhere.
//
//     hub   a/1 a/2 b/1 b/2 c/1     everything
//      │
//     part  a/1 a/2                 prefix a/

@Suite(.serialized)
struct PartialReplicaTests {
    let hub: TestReplica
    let part: TestReplica
    /// Keeps everything, too.
    let other: TestReplica

    init() throws {
        let directory = TemporaryDirectory()
        hub = try TestReplica("hub", in: directory)
        part = try TestReplica("part", in: directory)
        other = try TestReplica("other", in: directory)
    }

    static let open: SyncScope = .field(["state"], .equals("open"))

    private func fill(_ replica: TestReplica, _ keys: [String], _ text: String = "1") throws {
        for key in keys { try replica.dataset().put("\(text) \(key)", for: key) }
    }

    private func put(_ state: String, _ key: String, _ replica: TestReplica) throws {
        try replica.dataset().put("{\"state\":\"\(state)\",\"key\":\"\(key)\"}", for: key)
    }

    private func keys(_ replica: TestReplica) throws -> [String] {
        try replica.dataset().records().collect().compactMap(\.keyText)
    }

    @discardableResult
    private func exchange(
        _ from: TestReplica, with to: TestReplica, options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        try await from.dataset().synchronize(with: to.transport, options: options)
    }

    // MARK: - By key

    @Test func aPrefixIsAllThatComes() async throws {
        try fill(hub, ["a/1", "a/2", "b/1", "b/2", "c/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        let result = try await exchange(part, with: hub)
        #expect(result.pulled == 2 && result.isComplete)
        #expect(try keys(part) == ["a/1", "a/2"])
        // Nothing at all is told of the others, not even when they change.
        try fill(hub, ["a/3", "b/1", "b/3"], "2")
        try hub.dataset().delete("a/1")
        try hub.dataset().delete("b/2")
        #expect(try await exchange(part, with: hub).pulled == 2)
        #expect(try keys(part) == ["a/2", "a/3"])
        let all = try part.dataset().records(includingDeleted: true).collect()
        #expect(all.compactMap(\.keyText) == ["a/1", "a/2", "a/3"])
        // An exchange that brings nothing leaves no trace.
        let counts = (try part.dataset().syncCount, try hub.dataset().syncCount)
        try await exchange(part, with: hub)
        #expect(try (part.dataset().syncCount, hub.dataset().syncCount) == counts)
    }

    @Test func itsWritesAreThoseOfAnyReplica() async throws {
        try fill(hub, ["a/1", "b/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        try await exchange(part, with: hub)
        try fill(part, ["a/1", "a/2"], "part")
        try part.dataset().delete("a/1")
        #expect(try await exchange(part, with: hub).pushed == 2)
        #expect(try keys(hub) == ["a/2", "b/1"])
        #expect(try part.dataset().dirtyCount() == 0)
        // The hub has seen them, and can delete them with the dataset.
        let id = part.store.replicaID
        #expect(try hub.dataset().vector[id] == part.dataset().vector[id])
    }

    /// An own write outside of the scope stays until a peer has it, and then goes.
    @Test func ownWritesOutsideOfTheScopeAreHandedOverFirst() async throws {
        try part.dataset().setSyncScope(.prefix("a/"))
        try fill(part, ["a/1", "b/1"])
        #expect(try keys(part) == ["a/1", "b/1"])
        // Also if the scope is changed before.
        #expect(try part.dataset().setSyncScope(.prefix("c/")) == 0)
        #expect(try keys(part) == ["a/1", "b/1"])
        try await exchange(part, with: hub)
        #expect(try keys(hub) == ["a/1", "b/1"])
        #expect(try keys(part).isEmpty)
        try await exchange(other, with: hub)
        try expectEqual([hub, other])
    }

    // MARK: - By value

    @Test(arguments: [OutOfScopeAction.drop, .keep])
    func aRecordLeavesTheScopeAndComesBack(_ action: OutOfScopeAction) async throws {
        for key in ["1", "2", "3"] { try put("open", key, hub) }
        try put("closed", "4", hub)
        try hub.dataset().put("no document", for: "5")
        try part.dataset().setSyncScope(Self.open, leaving: action)
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["1", "2", "3"])
        try put("closed", "2", hub)
        try hub.dataset().delete("3")
        try await exchange(part, with: hub)
        let held = action == .drop ? ["1"] : ["1", "2"]
        #expect(try keys(part) == held)
        // What is kept is as it was.
        if action == .keep { #expect(try part.dataset().text("2")?.contains("open") ?? false) }
        for key in ["2", "3", "4"] { try put("open", key, hub) }
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["1", "2", "3", "4"])
        for key in try keys(part) {
            #expect(try part.dataset().get(key) == hub.dataset().get(key))
        }
    }

    @Test func aWriteHereThatLeavesTheScopeGoesOnceItIsThere() async throws {
        try put("open", "1", hub)
        try part.dataset().setSyncScope(Self.open)
        try await exchange(part, with: hub)
        try put("closed", "1", part)
        #expect(try keys(part) == ["1"])
        try await exchange(part, with: hub)
        #expect(try keys(part).isEmpty)
        #expect(try hub.dataset().text("1")?.contains("closed") ?? false)
        // It can come back, also as the very write that it is.
        try part.dataset().setSyncScope(.everything)
        try await exchange(part, with: hub)
        let (here, there) = (
            try part.dataset().record(for: "1"), try hub.dataset().record(for: "1")
        )
        #expect(here?.version == there?.version && here?.value == there?.value)
    }

    // MARK: - Changed scopes

    @Test func aChangedScopeBringsWhatIsMissingAndNothingTwice() async throws {
        let (a, b) = ((0..<100).map { "a/\($0)" }, (0..<100).map { "b/\($0)" })
        try fill(hub, a + b)
        try part.dataset().setSyncScope(.prefix("a/"))
        try await exchange(part, with: hub)
        #expect(try part.dataset().setSyncScope(.prefix("a/") || .prefix("b/")) == 0)
        try fill(hub, ["a/7", "c/1"], "new")
        let received = Mutex(0)
        let options = SyncOptions(progress: { progress in
            received.withLock { $0 = progress.recordsReceived }
        })
        let result = try await exchange(part, with: hub, options: options)
        #expect(result.pulled == 101)
        #expect(received.withLock { $0 } == 101)
        #expect(try keys(part).count == 200)
        // Narrower: it goes at once, without an exchange and for nobody else.
        #expect(try part.dataset().setSyncScope(.prefix("b/")) == 100)
        #expect(try keys(part) == b.sorted())
        #expect(try await exchange(part, with: hub).pushed == 0)
        #expect(try keys(hub).count == 201)
        // And wider again: what went comes, though it was here once.
        try part.dataset().setSyncScope(.prefix("a/"))
        #expect(try await exchange(part, with: hub).pulled == 100)
        #expect(try keys(part) == a.sorted())
        #expect(try part.dataset().text("a/7") == "new a/7")
    }

    @Test func whatIsKeptIsBroughtUpToDateWhenItBelongsAgain() async throws {
        try fill(hub, ["a/1", "a/2", "a/3"])
        try part.dataset().setSyncScope(.prefix("a/"))
        try await exchange(part, with: hub)
        try part.dataset().setSyncScope(.prefix("b/"), leaving: .keep)
        try fill(hub, ["a/1"], "2")
        try hub.dataset().delete("a/2")
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["a/1", "a/2", "a/3"])
        #expect(try part.dataset().text("a/1") == "1 a/1")
        try part.dataset().setSyncScope(.prefix("a/"), leaving: .keep)
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["a/1", "a/3"])
        #expect(try part.dataset().text("a/1") == "2 a/1")
    }

    @Test func aWholeReplicaBecomesAPartAndWholeAgain() async throws {
        try fill(hub, ["a/1", "a/2", "b/1"])
        try fill(part, ["a/3", "b/2"])
        try await exchange(part, with: hub)
        try expectEqual([hub, part])
        #expect(try part.dataset().setSyncScope(.prefix("a/")) == 0)
        #expect(try part.dataset().syncScope()?.encoded == SyncScope.prefix("a/").encoded)
        let result = try await exchange(part, with: hub)
        #expect(result.pulled == 0 && result.pushed == 0)
        #expect(try keys(part) == ["a/1", "a/2", "a/3"])
        try fill(hub, ["b/1"], "2")
        try hub.dataset().delete("a/2")
        try fill(part, ["b/2"], "blind")
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["a/1", "a/3"])
        try part.reopen()
        try part.dataset().setSyncScope(nil)
        #expect(try part.dataset().syncScope()?.encoded == SyncScope.everything.encoded)
        try await exchange(part, with: hub)
        #expect(try part.dataset().syncScope() == nil)
        try expectEqual([hub, part])
        #expect(try part.dataset().vector == hub.dataset().vector)
        // Now it answers, and is believed.
        try await exchange(other, with: part)
        try expectEqual([hub, part, other])
    }

    @Test func aScopeWithoutBoundsIsRefused() throws {
        var scope = SyncScope.nothing
        for index in 0..<3_000 { scope = scope || .prefix("customer/\(index)/") }
        let dataset = try part.dataset()
        let error = #expect(throws: StoreError.self) { try dataset.setSyncScope(scope) }
        #expect(error?.code == .invalidArgument)
        #expect(try dataset.syncScope() == nil)
        #expect(try dataset.setSyncScope(nil) == 0)
    }

    // MARK: - Others

    /// Found by a random schedule: the hub had told that a record left the scope, another store
    /// brought the older version again, and the hub had nothing more to tell.
    @Test func whatAnotherStoreBringsAgainIsAskedForByKey() async throws {
        for key in ["1", "2", "3"] { try put("open", key, hub) }
        try await exchange(other, with: hub)
        try part.dataset().setSyncScope(Self.open)
        try await exchange(part, with: hub)
        try put("closed", "1", hub)
        try hub.dataset().delete("2")
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["3"])
        // The other store has not heard of it.
        try await exchange(part, with: other)
        #expect(try keys(part) == ["1", "3"])
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["3"])
        try await exchange(other, with: hub)
        try await exchange(part, with: other)
        #expect(try keys(part) == ["3"])
        try expectEqual([hub, other])
    }

    /// Found by a random schedule, too: the same of a record that the part had written itself.
    @Test func anOwnWriteThatComesBackIsAskedForByKey() async throws {
        try part.dataset().setSyncScope(Self.open)
        try put("open", "1", part)
        for replica in [part, other] { try await exchange(replica, with: hub) }
        try put("closed", "1", hub)
        try await exchange(part, with: hub)
        #expect(try keys(part) == [])
        // The other store has not heard of it.
        try await exchange(part, with: other)
        #expect(try keys(part) == ["1"])
        try await exchange(part, with: hub)
        #expect(try keys(part) == [])
    }

    /// Found by a random schedule: a part had handed its write to a store that kept everything and
    /// let go of it. That store became a part before anybody else had the write, and did the same.
    @Test func whatAPartHandedOverIsNotLetGoWhereItIsTheOnlyCopy() async throws {
        try part.dataset().setSyncScope(.prefix("a/"))
        try fill(part, ["b/1"])
        try await exchange(part, with: other)
        #expect(try keys(part) == [] && keys(other) == ["b/1"])
        #expect(try other.dataset().setSyncScope(.prefix("a/")) == 0)
        #expect(try keys(other) == ["b/1"])
        let result = try await exchange(other, with: hub)
        #expect(result.pushed == 1)
        #expect(try keys(other) == [] && keys(hub) == ["b/1"])
    }

    /// Nor may two stores rely on one another.
    @Test func twoThatBecomePartsAtOnceKeepWhatBothHave() async throws {
        try fill(part, ["b/1"])
        try await exchange(part, with: other)
        for replica in [part, other] { try replica.dataset().setSyncScope(.prefix("a/")) }
        for replica in [part, other] {
            #expect(try keys(replica) == ["b/1"])
            try await exchange(replica, with: hub)
            #expect(try keys(replica) == [] && keys(hub) == ["b/1"])
        }
    }

    @Test func aPartAnswersNobody() async throws {
        try fill(hub, ["a/1", "b/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        try await exchange(part, with: hub)
        try fill(other, ["c/1"])
        let from = other
        let to = part.transport
        let error = await #expect(throws: SyncError.self) {
            try await from.dataset().synchronize(with: to)
        }
        #expect(error?.code == .partialReplica && error?.dataset == "notes")
        #expect(try keys(other) == ["c/1"])
        #expect(try keys(part) == ["a/1"])
        let forecast = try await other.store.forecast(with: to, datasets: ["notes"])
        #expect(forecast.firstError?.code == .partialReplica)
        // Other datasets are exchanged all the same.
        try part.dataset("whole").put("1", for: "key")
        let report = await other.store.synchronizeEach(with: to)
        #expect(report["whole"]?.isComplete ?? false)
        #expect(report["notes"]?.error?.code == .partialReplica)
    }

    /// What went from here after one peer took it must not be claimed before another.
    @Test func nothingIsClaimedThatIsNotHandedOver() async throws {
        try part.dataset().setSyncScope(.prefix("a/"))
        try fill(part, ["a/1", "b/1"])
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["a/1"])
        try fill(part, ["a/2"])
        try await exchange(part, with: other)
        let id = part.store.replicaID
        #expect(try keys(other) == ["a/1", "a/2"])
        #expect(try other.dataset().vector[id] == 0)
        try await exchange(other, with: hub)
        try await exchange(part, with: hub)
        try await exchange(other, with: hub)
        #expect(try keys(other) == ["a/1", "a/2", "b/1"])
        try expectEqual([hub, other])
        // Once it has all of it, it may be told so.
        try fill(part, ["a/3"])
        try await exchange(part, with: other)
        #expect(try other.dataset().vector[id] == part.dataset().vector[id])
    }

    // MARK: - Conflicts

    @Test(arguments: [false, true])
    func aConflictOutsideOfTheScopeIsSettledHere(isPartLater: Bool) async throws {
        try fill(hub, ["a/1", "b/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        try await exchange(part, with: hub)
        for replica in [part, hub] { replica.clock.stop() }
        (isPartLater ? part : hub).clock.putForward(bySeconds: 240)
        // Blind: of what is there the part knows nothing.
        try fill(part, ["b/1"], "part")
        try fill(hub, ["b/1"], "hub")
        let result = try await exchange(part, with: hub)
        #expect(result.conflicts == 1 && result.isComplete)
        #expect(try hub.dataset().text("b/1") == (isPartLater ? "part b/1" : "hub b/1"))
        #expect(try keys(part) == ["a/1"])
        #expect(try await exchange(part, with: hub).conflicts == 0)
        try await exchange(other, with: hub)
        try expectEqual([hub, other])
    }

    @Test func aPolicyIsAskedAboutWhatTheScopeLeavesOut() async throws {
        try put("open", "1", hub)
        try part.dataset().setSyncScope(Self.open)
        try await exchange(part, with: hub)
        try put("closed", "1", hub)
        try put("open again", "1", part)
        let merge = MergePolicy.custom { conflict in
            let sides = [conflict.local.valueText ?? "", conflict.remote.valueText ?? ""]
            return .value(Array(sides.sorted().joined(separator: "+").utf8))
        }
        let result = try await exchange(part, with: hub, options: SyncOptions(policy: merge))
        #expect(result.conflicts == 1)
        let merged = try #require(try hub.dataset().text("1"))
        #expect(merged.contains("closed") && merged.contains("open again"))
        #expect(try keys(part).isEmpty)
    }

    @Test func aConflictThatWaitsHoldsBackThePush() async throws {
        try fill(hub, ["b/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        try fill(part, ["a/1", "b/1"], "part")
        let pending = Mutex<[Conflict]>([])
        let options = SyncOptions(
            policy: .leavePending, onPending: { conflict in pending.withLock { $0 += [conflict] } })
        let (from, to) = (part, hub.transport)
        let error = await #expect(throws: SyncError.self) {
            try await from.dataset().synchronize(with: to, options: options)
        }
        #expect(error?.code == .conflictPending)
        let conflict = try #require(pending.withLock { $0.first })
        #expect(conflict.key == Array("b/1".utf8))
        try part.dataset().settle(conflict, as: .keepLocal)
        try await exchange(part, with: hub, options: options)
        #expect(try hub.dataset().text("b/1") == "part b/1")
        #expect(try keys(part) == ["a/1"])
    }

    // MARK: - Interruptions

    @Test func aBoundedExchangeGoesOnWhereItEnded() async throws {
        try fill(hub, (0..<40).map { "a/\($0)" } + (0..<40).map { "b/\($0)" })
        try part.dataset().setSyncScope(.prefix("a/"))
        try fill(part, (40..<60).map { "a/\($0)" } + ["b/99"])
        var rounds = 0
        let options = SyncOptions(pageRecordsMax: 2, recordsPerRunMax: 7)
        while try await !exchange(part, with: hub, options: options).isComplete {
            rounds += 1
            try #require(rounds < 30)
        }
        #expect(rounds >= 6)
        #expect(try keys(part).count == 60)
        #expect(try keys(hub).count == 101)
    }

    @Test(arguments: [FaultyTransport.Fault.losesRequest, .losesAnswer])
    func aBreakAtAnyMessageLosesNothing(_ fault: FaultyTransport.Fault) async throws {
        for good in 0..<14 {
            for key in 0..<6 { try put(key % 2 == 0 ? "open" : "closed", "\(good)/\(key)", hub) }
            try put("open", "\(good)/0", part)
            try put("closed", "\(good)/part", part)
            try part.dataset().setSyncScope(good % 3 == 0 ? .prefix("\(good)") : Self.open)
            let transport = FaultyTransport(hub.responder, fault, after: good, repeatsEach: 3)
            let options = SyncOptions(pageRecordsMax: 2)
            let dataset = try part.dataset()
            do throws(SyncError) {
                try await dataset.synchronize(with: transport, options: options)
            } catch {
                #expect(error.code == .unreachable)
            }
            try part.reopen()
            try await exchange(part, with: hub, options: options)
            let scope = try #require(try part.dataset().syncScope())
            let expected = try hub.dataset().records().collect().filter { scope.keeps($0) }
            #expect(try keys(part) == expected.compactMap(\.keyText), "after \(good)")
        }
        try await exchange(other, with: hub)
        try expectEqual([hub, other])
    }

    @Test func aPartThatWentBackInTimeLosesNothing() async throws {
        try fill(hub, ["a/1", "b/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        // It goes once it is there, and that is no write that could be made anew.
        try fill(part, ["b/9"])
        try await exchange(part, with: hub)
        #expect(try keys(part) == ["a/1"])
        try part.backUp()
        try fill(part, ["a/2", "a/3"], "lost")
        try await exchange(part, with: hub)
        try part.restore()
        try fill(part, ["a/4", "b/4"], "again")
        for _ in 0..<3 { try await exchange(part, with: hub) }
        #expect(try keys(hub) == ["a/1", "a/2", "a/3", "a/4", "b/1", "b/4", "b/9"])
        #expect(try keys(part) == ["a/1", "a/2", "a/3", "a/4"])
        try await exchange(other, with: hub)
        try expectEqual([hub, other])
    }

    @Test func aDeletedDatasetIsToldToAPart() async throws {
        try fill(hub, ["a/1", "b/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        try await exchange(part, with: hub)
        _ = try hub.store.deleteDataset("notes")
        let options = SyncOptions(onDatasetDeleted: .discardLocal)
        _ = try await part.store.synchronize(
            with: hub.transport, datasets: ["notes"], options: options)
        #expect(try part.store.existingDataset("notes") == nil)
        try fill(hub, ["a/2", "b/2"])
        _ = try await part.store.synchronize(
            with: hub.transport, datasets: ["notes"], options: options)
        // It is a part as before.
        #expect(try keys(part) == ["a/2"])
    }

    @Test func aDryRunOfAPartChangesNothing() async throws {
        for key in ["1", "2"] { try put("open", key, hub) }
        try part.dataset().setSyncScope(Self.open)
        try await exchange(part, with: hub)
        try put("closed", "1", hub)
        try put("open", "3", part)
        let counts = (try part.dataset().syncCount, try hub.dataset().syncCount)
        let forecast = try await part.store.forecast(with: hub.transport, datasets: ["notes"])
        let result = try #require(forecast["notes"]?.result)
        #expect(result.pulled == 1 && result.pushed == 1)
        #expect(try (part.dataset().syncCount, hub.dataset().syncCount) == counts)
        #expect(try keys(part) == ["1", "2", "3"])
        let done = try await exchange(part, with: hub)
        #expect(done.pulled == result.pulled && done.pushed == result.pushed)
    }

    @Test func anIdlePartIsNotLookedAt() async throws {
        try fill(hub, ["a/1", "b/1"])
        try part.dataset().setSyncScope(.prefix("a/"))
        try fill(part, ["a/2", "b/2"])
        for _ in 0..<3 { _ = try await part.store.synchronize(with: hub.transport) }
        #expect(try await part.store.synchronize(with: hub.transport).isEmpty)
        // A change of any side, or of the scope, is seen.
        try fill(hub, ["a/3"])
        #expect(try await part.store.synchronize(with: hub.transport).first?.pulled == 1)
        for _ in 0..<2 { _ = try await part.store.synchronize(with: hub.transport) }
        try part.dataset().setSyncScope(.prefix("b/"))
        #expect(try await part.store.synchronize(with: hub.transport).first?.pulled == 2)
        #expect(try keys(part) == ["b/1", "b/2"])
    }
}
