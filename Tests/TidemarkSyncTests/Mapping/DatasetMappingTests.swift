import Foundation
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What the article *Coming from Cognito Sync and DataStore* says of datasets, of the client that
/// hands them out, and of records: each test does what its row says.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct DatasetMappingTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    // MARK: - Names and positions

    @Test func aNameOf255BytesReachesThePeerAndALongerOneIsRefused() async throws {
        let names = ["a.b:c_d-e", String(repeating: "n", count: 255)]
        for name in names { try a.dataset(name).put("1", for: "key") }
        try await a.store.synchronize(with: b.transport)
        #expect(try b.store.datasets().map(\.name) == names)
        let error = #expect(throws: StoreError.self) {
            try a.dataset(String(repeating: "n", count: 256))
        }
        #expect(error?.code == .invalidArgument)
    }

    @Test func aPositionIsOfOnePeerAndMovesOnlyOverWhatHasCome() async throws {
        try fill(b, 0..<10, "theirs")
        let (ours, theirs) = (try a.dataset(), try b.dataset())
        let first = try await ours.synchronize(
            with: b.transport, options: SyncOptions(recordsPerRunMax: 4))
        #expect(first.pulled == 4 && !first.isComplete)
        let reached = try ours.syncFacts(with: b.store.replicaID).lastSyncCount
        #expect(reached > .zero)
        #expect(try reached < theirs.syncCount)
        let passed = try theirs.records().collect().filter { $0.syncCount <= reached }
        #expect(passed.count == 4)
        for record in passed { #expect(try ours.get(record.key) == record.value) }
        try await ours.synchronize(with: b.transport)
        let end = try ours.syncFacts(with: b.store.replicaID).lastSyncCount
        #expect(try end == theirs.syncCount)
        #expect(try ours.syncFacts(with: c.store.replicaID).lastSyncCount == .zero)
    }

    // MARK: - Who wrote what, and when

    @Test func aVersionNamesItsAuthorItsReplicaAndATimeLaterThanAllThatWasSeen() async throws {
        b.clock.putForward(bySeconds: 60)
        try b.dataset().put("theirs", for: "first")
        try await a.dataset().synchronize(with: b.transport)
        // The clock here is behind the one there, and what was seen counts all the same.
        try a.dataset().put("ours", for: "second")
        try await a.dataset().synchronize(with: b.transport)
        var times: [[HybridTime]] = []
        for replica in [a, b] {
            let records = try replica.dataset().records().collect()
            #expect(records.map(\.keyText) == ["first", "second"])
            #expect(records.map(\.version.author) == ["b", "a"])
            #expect(
                records.map(\.version.dot.replica) == [b.store.replicaID, a.store.replicaID])
            times.append(records.map(\.version.time))
        }
        #expect(times[0] == times[1])
        #expect(times[0][0] < times[0][1])
    }

    @Test func aWriteIsDirtyUntilAPeerIsKnownToHaveIt() async throws {
        for number in 0..<5 { try a.dataset().put("\(number)", for: "edited") }
        try a.dataset().put("1", for: "other")
        #expect(try a.dataset().dirtyCount() == 2)
        #expect(try a.dataset().record(for: "edited")?.isDirty == true)
        try await a.dataset().synchronize(with: b.transport)
        #expect(try a.dataset().dirtyCount() == 0)
        for replica in [a, b] {
            #expect(try replica.dataset().record(for: "edited")?.isDirty == false)
        }
        try await c.dataset().synchronize(with: b.transport)
        #expect(try c.dataset().dirtyCount() == 0)
    }

    @Test func theSameReplicaIDIsInWritesInPositionsAndInNotices() async throws {
        try b.dataset().put("1", for: "key")
        let synchronizer = Synchronizer(store: a.store, transport: b.transport)
        let peer = b.store.replicaID
        let notice = SyncNotice(
            dataset: "notes", syncCount: try b.dataset().syncCount, peer: peer)
        #expect(try await synchronizer.receive(notice))
        #expect(synchronizer.peer == peer)
        #expect(try a.dataset().record(for: "key")?.version.dot.replica == peer)
        #expect(try a.dataset().syncFacts(with: peer).lastSyncCount == notice.syncCount)
        await synchronizer.shutdown()
    }

    // MARK: - Reading and writing

    @Test func aKeyHas1To65535BytesOfAnyKind() async throws {
        let dataset = try a.dataset()
        let longest = [UInt8](repeating: 0xFF, count: 65_535)
        for key in [[0], longest] as [[UInt8]] { try dataset.put([0xC3, 0x28], for: key) }
        for key in [[], longest + [0]] as [[UInt8]] {
            let error = #expect(throws: StoreError.self) { try dataset.put([1], for: key) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains("1...65535 bytes") == true)
        }
        try await dataset.synchronize(with: b.transport)
        #expect(try b.dataset().records().collect().map(\.key) == [[0], longest])
    }

    @Test func whatIsNoTextIsAnErrorAndItsBytesAreThere() throws {
        let dataset = try a.dataset()
        try dataset.put([0xC3, 0x28], for: Array("bytes".utf8))
        try dataset.put("words", for: "text")
        #expect(try dataset.text("text") == "words")
        #expect(try dataset.text("missing") == nil)
        let error = #expect(throws: StoreError.self) { try dataset.text("bytes") }
        #expect(error?.code == .invalidArgument)
        #expect(try dataset.get("bytes") == [0xC3, 0x28])
    }

    @Test func aRefusedWriteDeletesNothing() throws {
        let dataset = try a.dataset()
        let key = Array("key".utf8)
        try dataset.put("before", for: "key")
        let error = #expect(throws: StoreError.self) {
            try dataset.put([1], for: key, expiresAt: .max)
        }
        #expect(error?.code == .invalidArgument)
        #expect(try dataset.text("key") == "before")
    }

    @Test func aCursorGivesOneMomentInTheOrderOfKeys() throws {
        let dataset = try a.dataset()
        for key in ["c", "a", "b", "gone"] { try dataset.put("1", for: key) }
        try dataset.delete("gone")
        let cursor = try dataset.records()
        let first = try cursor.next()
        try dataset.delete("b")
        try dataset.put("2", for: "c")
        try dataset.put("2", for: "d")
        let rest = try cursor.collect()
        #expect(([first].compactMap { $0 } + rest).map(\.keyText) == ["a", "b", "c"])
        #expect(rest.map(\.valueText) == ["1", "1"])
        let all = try dataset.records(includingDeleted: true).collect()
        #expect(all.map(\.keyText) == ["a", "b", "c", "d", "gone"])
        #expect(all.map(\.isDeleted) == [false, true, false, false, true])
    }

    @Test func clearDeletesTheRecordsAndKeepsTheDataset() async throws {
        try fill(a, 0..<3, "ours")
        let made = try a.dataset().creationTime
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().clear()
        try await a.dataset().synchronize(with: b.transport)
        for replica in [a, b] {
            #expect(try replica.store.existingDataset("notes")?.creationTime == made)
            #expect(try replica.dataset().count() == 0)
        }
    }

    @Test func theSizeOfADeletedDatasetIsAnErrorAndNotZero() throws {
        let dataset = try a.dataset()
        try dataset.put("four", for: "key")
        let size = try dataset.size()
        #expect(size.keyBytes == 3 && size.valueBytes == 4)
        try a.store.deleteDataset("notes")
        let error = #expect(throws: StoreError.self) { try dataset.size() }
        #expect(error?.code == .datasetNotFound)
    }

    @Test func twoHandlesAreOneDataset() async throws {
        let (first, second) = (try a.dataset(), try a.dataset())
        try first.put("1", for: "key")
        #expect(try second.text("key") == "1")
        let gate = GatedTransport(b.transport)
        async let one = first.synchronize(with: gate)
        async let other = second.synchronize(with: gate)
        await gate.untilArrived(2)
        gate.open()
        let results = try await [one, other]
        #expect(results.map(\.isComplete) == [true, true])
        #expect(results.map(\.pushed).reduce(0, +) == 1)
        try expectEqual([a, b])
    }

    // MARK: - Deleting

    @Test func aDeletedDatasetIsGoneHereBeforeThePeerKnows() async throws {
        try a.dataset().put("1", for: "key")
        try await a.store.synchronize(with: b.transport)
        try a.store.deleteDataset("notes")
        #expect(try a.store.existingDataset("notes") == nil)
        #expect(try b.dataset().text("key") == "1")
        try await a.store.synchronize(with: b.transport)
        #expect(try b.store.existingDataset("notes") == nil)
        #expect(try a.store.existingDataset("notes") == nil)
    }

    @Test func withoutAHandlerADeletionThereStopsTheExchangeAndLosesNothing() async throws {
        try a.dataset().put("1", for: "key")
        try await a.store.synchronize(with: b.transport)
        try a.dataset().put("2", for: "unsent")
        try b.store.deleteDataset("notes")
        let before = try Contents(a.dataset())
        let error = await #expect(throws: SyncError.self) {
            try await a.store.synchronize(with: b.transport)
        }
        #expect(error?.code == .datasetDeleted && error?.dataset == "notes")
        #expect(try Contents(a.dataset()) == before)
        #expect(try b.store.existingDataset("notes") == nil)
    }

    @Test func aStoreWhoseDirectoryIsRemovedIsForgottenHereAndNowhereElse() async throws {
        try a.dataset().put("1", for: "key")
        try await a.store.synchronize(with: b.transport)
        let before = a.store.replicaID
        try a.store.close()
        try FileManager.default.removeItem(atPath: a.store.path)
        #expect(try b.dataset().text("key") == "1")
        let again = try TestReplica("a", in: a.directory)
        #expect(again.store.replicaID != before)
        #expect(try again.store.datasets().isEmpty)
        try await again.store.synchronize(with: b.transport)
        #expect(try again.dataset().text("key") == "1")
    }

    // MARK: - The halves of an exchange

    @Test func nothingIsPushedBeforeEveryPageIsPulled() async throws {
        try fill(a, 0..<6, "ours")
        try fill(b, 10..<16, "theirs")
        let phases = Box<SyncProgress.Phase>()
        let result = try await a.dataset().synchronize(
            with: b.transport,
            options: SyncOptions(pageRecordsMax: 2, progress: { phases.set($0.phase) }))
        #expect(result.pulled == 6 && result.pushed == 6 && result.attempts == 1)
        #expect(result.pagesReceived >= 3 && result.pagesSent >= 3)
        let firstPush = try #require(phases.all.firstIndex(of: .pushing))
        #expect(phases.all[..<firstPush].contains(.pulling))
        #expect(!phases.all[firstPush...].contains(.pulling))
        try expectEqual([a, b])
    }

    @Test(arguments: 2...4)
    func aPullThatBreaksOffGoesOnWithAtMostOnePageTwice(_ number: Int) async throws {
        try fill(b, 0..<9, "theirs")
        let options = SyncOptions(pageRecordsMax: 2)
        let breaking = InterposedTransport(b.responder) { point in
            guard point.number == number, point.moment == .beforeRequest else { return }
            throw SyncError(.unreachable, "the test broke off")
        }
        let report = await a.store.synchronizeEach(
            with: breaking, datasets: ["notes"], options: options)
        #expect(report.firstError?.code == .unreachable)
        let before = try #require(report["notes"]?.result?.pulled)
        #expect(try a.store.existingDataset("notes")?.count() ?? 0 == before)
        let received = Box<Int>()
        var rest = options
        rest.progress = { received.set($0.recordsReceived) }
        let result = try await a.dataset().synchronize(with: b.transport, options: rest)
        #expect(before < 9 && before + result.pulled == 9)
        let repeated = try #require(received.value) - result.pulled
        #expect((0...2).contains(repeated))
        try expectEqual([a, b])
    }

    @Test func aPushThatMeetsAChangeIsFollowedByAnotherPull() async throws {
        try fill(a, 0..<3, "base")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours", for: "key 0")
        let theirs = try b.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "push", point.numberOfKind == 1, point.moment == .beforeRequest
            else { return }
            try theirs.put("theirs", for: "key 0")
        }
        let asked = Box<Conflict>()
        let result = try await a.dataset().synchronize(
            with: transport,
            options: SyncOptions(
                policy: .custom { conflict in
                    asked.set(conflict)
                    return .value(Array("both".utf8))
                }))
        #expect(result.attempts == 2 && result.isComplete)
        #expect(asked.all.map(\.remote.valueText) == ["theirs"])
        #expect(try b.dataset().text("key 0") == "both")
        try expectEqual([a, b])
    }
}
