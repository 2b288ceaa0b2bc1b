import Foundation
import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

// 5.4: Amplify DataStore.

extension CognitoDefectTests {
    /// What came for a record with a pending edit was not applied, and its version taken over: the
    /// edit then went out as if it had seen the other, which was gone without a word.
    @Test("5.4: a pending edit meets a remote change as a conflict")
    func aPendingEditMeetsARemoteChangeAsAConflict() async throws {
        try fill(a, 0..<3, "base")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("pending", for: "key 0")
        try b.dataset().put("remote", for: "key 0")
        let asked = Mutex<[Conflict]>([])
        let policy = MergePolicy.custom { conflict in
            asked.withLock { $0.append(conflict) }
            return .value(Array("both".utf8))
        }
        try await a.dataset().synchronize(with: b.transport, options: SyncOptions(policy: policy))
        let conflicts = asked.withLock { $0 }
        #expect(conflicts.map(\.local.valueText) == ["pending"])
        #expect(conflicts.map(\.remote.valueText) == ["remote"])
        #expect(conflicts.map(\.ancestor?.valueText) == ["base 0"])
        #expect(try b.dataset().text("key 0") == "both")
        try expectEqual([a, b])
    }

    /// JavaScript: whatever arrived was applied, older versions too.
    @Test("5.4: an older version is ignored")
    func anOlderVersionIsIgnored() async throws {
        try fill(b, 0..<3, "old")
        try await c.dataset().synchronize(with: b.transport)
        let pages = Mutex<[[UInt8]]>([])
        let responder = b.responder
        let recording = ScriptedTransport { request throws(SyncError) in
            let answer = responder.respond(to: request)
            pages.withLock { $0.append(answer) }
            return answer
        }
        try await a.dataset().synchronize(with: recording)
        try fill(b, 0..<3, "new")
        try await a.dataset().synchronize(with: b.transport)
        // The answers of the first exchange once more, and one who has only the old versions.
        let old = pages.withLock { $0 }
        let position = Mutex(0)
        let replaying = ScriptedTransport { request throws(SyncError) in
            let index = position.withLock { position in
                position += 1
                return position - 1
            }
            return index < old.count ? old[index] : responder.respond(to: request)
        }
        try await a.dataset().synchronize(with: replaying, options: Self.allowsNoConflict)
        try await a.dataset().synchronize(with: c.transport, options: Self.allowsNoConflict)
        for number in 0..<3 {
            #expect(try a.dataset().text("key \(number)") == "new \(number)")
        }
        try expectEqual([a, b, c])
    }

    /// Swift: when the other side had deleted the record, the handler was not asked.
    @Test("5.4: the handler is asked when the other side deleted", arguments: [true, false])
    func theHandlerIsAskedWhenTheRemoteIsDeleted(_ keepsOurs: Bool) async throws {
        try fill(a, 0..<3, "base")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("pending", for: "key 0")
        try b.dataset().delete("key 0")
        try b.store.compact()
        let asked = Mutex<[Conflict]>([])
        let policy = MergePolicy.custom { conflict in
            asked.withLock { $0.append(conflict) }
            return keepsOurs ? .keepLocal : .keepRemote
        }
        try await a.dataset().synchronize(with: b.transport, options: SyncOptions(policy: policy))
        #expect(asked.withLock { $0.map(\.remote.isDeleted) } == [true])
        #expect(try b.dataset().text("key 0") == (keepsOurs ? "pending" : nil))
        try expectEqual([a, b])
    }

    /// A cap on the records of a run was reached, the time of the run stored all the same, and the
    /// rest never fetched.
    @Test("5.4: a cap never loses the rest", arguments: [1, 7, 100, 101], [3, 7, 8_192])
    func aCapNeverLosesTheRest(_ recordsMax: Int, _ pageRecordsMax: Int) async throws {
        try fill(b, 0..<100, "theirs")
        try fill(a, 200..<260, "ours")
        let seen = Mutex(0)
        let options = SyncOptions(
            pageRecordsMax: pageRecordsMax, recordsPerRunMax: recordsMax,
            progress: { progress in
                seen.withLock { $0 = progress.recordsReceived + progress.recordsSent }
            })
        var runs = 0
        var isComplete = false
        var (pulled, pushed) = (0, 0)
        while !isComplete, runs < 400 {
            seen.withLock { $0 = 0 }
            let result = try await a.dataset().synchronize(with: b.transport, options: options)
            isComplete = result.isComplete
            pulled += result.pulled
            pushed += result.pushed
            // Nothing is pushed while there is anything to pull.
            #expect(result.pushed == 0 || pulled == 100)
            #expect(seen.withLock { $0 } <= recordsMax)
            runs += 1
            if runs == 2 { try a.reopen() }
        }
        #expect(isComplete)
        #expect((pulled, pushed) == (100, 60))
        // A run more where the one before could not know that it was the last.
        #expect((160 / recordsMax...160 / recordsMax + 3).contains(runs))
        try expectEqual([a, b])
    }

    /// Of all that was no matter of the network a handler was told, and the change dropped: the two
    /// sides then differed until everything was fetched again.
    @Test("5.4: a change that is refused is not dropped")
    func aChangeThatIsRefusedIsNotDropped() async throws {
        try fill(a, 0..<9, "fine")
        try a.dataset().put([UInt8](repeating: 7, count: 9_000), for: Array("key 4".utf8))
        let strict = SyncResponder(
            store: b.store,
            validate: { record in if record.value?.count == 9_000 { throw Refused() } })
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: InMemoryTransport(strict))
        }
        #expect(error?.code == .recordRefused)
        #expect(try b.dataset().count() == 8)
        // It is there, listed with its reason, and goes once it is let.
        let failed = try a.dataset().failedRecords()
        #expect(failed.map(\.keyText) == ["key 4"])
        #expect(failed.first?.message.contains("not today") == true)
        #expect(try a.dataset().get("key 4")?.count == 9_000)
        try a.dataset().retryFailedRecords()
        #expect(try await a.dataset().synchronize(with: b.transport).isComplete)
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    private struct Refused: Error, CustomStringConvertible {
        let description = "not today"
    }

    /// Swift: the interval of full exchanges was counted from the last exchange of any kind, so
    /// that who exchanged every day never made one again.
    @Test("5.4: frequent exchanges do not put off the full one")
    func frequentExchangesDoNotPutOffTheFullOne() async throws {
        let time = VirtualEnvironment(passesBySleeping: true)
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport,
            schedule: SyncSchedule(fullSyncAfter: .seconds(24 * 3_600)), environment: time)
        try await synchronizer.synchronize()
        let first = try #require(synchronizer.lastFullSync)
        for hour in 1...24 {
            try await time.sleep(for: .seconds(3_600))
            try fill(b, hour..<(hour + 1), "hour")
            try await synchronizer.synchronize()
            let isStillTheFirst = synchronizer.lastFullSync == first
            #expect(isStillTheFirst == (hour < 24), "hour \(hour)")
        }
        try expectEqual([a, b])
    }

    /// `clear` deleted what was local, together with what had never been sent, and nothing else.
    @Test("5.4: clear is a change that is pushed")
    func clearIsAChangeThatIsPushed() async throws {
        try fill(a, 0..<5, "base")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("pending", for: "key 9")
        try a.dataset().clear()
        try b.dataset().put("unseen", for: "key 20")
        let result = try await a.dataset().synchronize(
            with: b.transport, options: Self.allowsNoConflict)
        #expect(result.pushed == 6)
        #expect(try b.dataset().records().collect().map(\.keyText) == ["key 20"])
        try expectEqual([a, b])
    }

    /// A new version of the schema (on Android: of the database) deleted what was not yet sent.
    /// Stores of the first version of the format lie beside the tests of the store.
    @Test(
        "5.4 and 2.7 Android: an upgrade keeps unsent changes",
        arguments: ["logs-killed", "sealed", "apart", "replicas"])
    func anUpgradeKeepsUnsentChanges(_ golden: String) async throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
        let source = tests.appending(path: "TidemarkTests/Golden/\(golden)").path
        let target = "\(a.directory.path)/golden"
        try FileManager.default.copyItem(atPath: source, toPath: target)
        try? FileManager.default.removeItem(atPath: "\(target)/contents.txt")
        let store = try Store.open(at: target)
        let names = try store.datasetNames()
        var unsent = 0
        for name in names {
            unsent += try store.dataset(name).records().collect().filter(\.isDirty).count
        }
        #expect(unsent > 0)
        try store.dataset(names[0]).put("new", for: "written by this version")
        try await store.synchronize(with: b.transport)
        for name in names {
            #expect(try Contents(b.dataset(name)) == Contents(store.dataset(name)))
            let records = try store.dataset(name).records().collect()
            #expect(records.allSatisfy { !$0.isDirty })
        }
        try store.close()
    }

    /// The outbox sent one change after the other, and a deletion followed by an edit was an error.
    @Test("5.4: any sequence of edits is one change", arguments: 0..<20)
    func anySequenceOfEditsIsOneChange(_ run: UInt64) async throws {
        var random = SeededGenerator(seed: baseSeed &+ run)
        print("anySequenceOfEditsIsOneChange: TIDEMARK_SEED=\(baseSeed &+ run)")
        try fill(a, 0..<5, "base")
        try await a.dataset().synchronize(with: b.transport)
        var changed: Set<Int> = []
        for step in 0..<60 {
            let number = Int.random(in: 0..<10, using: &random)
            changed.insert(number)
            if Bool.random(using: &random) {
                try a.dataset().put("edit \(step)", for: "key \(number)")
            } else {
                try a.dataset().delete("key \(number)")
            }
        }
        let transport = InterposedTransport(b.responder) { _ in }
        let result = try await a.dataset().synchronize(
            with: transport, options: Self.allowsNoConflict)
        #expect(result.pushed == changed.count)
        #expect(transport.messageCount == 2)
        try expectEqual([a, b])
    }

    /// Whoever was away for longer than tombstones were kept never learned of deletions, or brought
    /// the deleted records back.
    @Test("5.4: a late comer never revives")
    func aLateComerNeverRevives() async throws {
        try fill(a, 0..<10, "base")
        try await a.dataset().synchronize(with: b.transport)
        try await c.dataset().synchronize(with: b.transport)
        for number in 0..<5 {
            try a.dataset().delete("key \(number)")
        }
        for _ in 0..<3 {
            try await a.dataset().synchronize(with: b.transport)
            for replica in [a, b] {
                try replica.store.compact()
                try replica.reopen()
            }
        }
        try c.dataset().put("late", for: "key 7")
        try await c.dataset().synchronize(with: b.transport)
        try await c.dataset().synchronize(with: a.transport)
        for replica in [a, b, c] {
            let live = try replica.dataset().records().collect().map(\.keyText)
            #expect(live == (5..<10).map { "key \($0)" })
        }
        try expectEqual([a, b, c])
    }

    /// The tombstone of a record that was not there was thrown away, and whoever brought the record
    /// later brought it back.
    @Test("5.4: a tombstone for an unknown key is kept")
    func aTombstoneForAnUnknownKeyIsKept() async throws {
        try fill(c, 0..<3, "old")
        try await c.dataset().synchronize(with: a.transport)
        try a.dataset().delete("key 0")
        try await a.dataset().synchronize(with: b.transport)
        #expect(try b.dataset().record(for: "key 0", includingDeleted: true)?.isDeleted == true)
        try b.store.compact()
        try await c.dataset().synchronize(with: b.transport)
        #expect(try c.dataset().get("key 0") == nil)
        #expect(try b.dataset().get("key 0") == nil)
        try expectEqual([a, b, c])
    }
}
