import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

// Each defect that was found in Cognito Sync's clients and in Amplify DataStore, as a test that
// would fail if it were here. The numbers in the names are the sections of the study of those
// systems: 2.3 and 2.4 are of all clients, 2.6 is amazon-cognito-js, 2.7 the clients for other
// platforms, 5.4 DataStore. What each of them did wrong stands above its test.

struct CognitoDefectTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    /// Stops at any conflict, so that an exchange that completes had none.
    static let allowsNoConflict = SyncOptions(policy: .custom { _ in .stop })

    // MARK: - 2.3 A refused push

    /// They went back to the greatest count among the pushed records; if the conflict was older
    /// than that, it never came up and the push was refused until the attempts ran out.
    @Test("2.3: a refused push always brings its conflict up")
    func aRefusedPushAlwaysBringsItsConflictUp() async throws {
        try fill(a, 0..<3, "base")
        try await a.dataset().synchronize(with: b.transport)
        // The other patch is up to date, and its record the newest of all there.
        try b.dataset().put("newest", for: "key 2")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours 0", for: "key 0")
        try a.dataset().put("ours 2", for: "key 2")
        let theirs = try b.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "push", point.numberOfKind == 1, point.moment == .beforeRequest
            else { return }
            try theirs.put("theirs 0", for: "key 0")
        }
        let asked = Mutex<[Conflict]>([])
        let result = try await a.dataset().synchronize(
            with: transport,
            options: SyncOptions(
                policy: .custom { conflict in
                    asked.withLock { $0.append(conflict) }
                    return .value(Array("merged".utf8))
                }))
        #expect(asked.withLock { $0.map(\.key) } == [Array("key 0".utf8)])
        #expect(result.attempts == 2)
        #expect(try b.dataset().text("key 0") == "merged")
        #expect(try b.dataset().text("key 2") == "ours 2")
        try expectEqual([a, b])
    }

    /// The JavaScript client repeated everything four times and said "exceeded retry count".
    @Test("2.3: the reason survives the retries")
    func theReasonSurvivesTheRetries() async throws {
        try fill(a, 0..<3, "ours")
        let (responder, id) = (b.responder, b.store.replicaID)
        let transport = ScriptedTransport { request throws(SyncError) in
            guard MessageLabel.kind(of: request) == "push" else {
                return responder.respond(to: request)
            }
            let failure = Failure(code: "peerChanged", message: "the peer is not \(id); repeat")
            return try SyncMessage.failure(failure).encoded()
        }
        let report = await a.store.synchronizeEach(
            with: transport, options: SyncOptions(attemptsMax: 3))
        let outcome = try #require(report["notes"])
        #expect(outcome.error?.code == .peerChanged)
        #expect(outcome.error?.message == "the peer is not \(id); repeat")
        #expect(outcome.error?.dataset == "notes")
        #expect(outcome.error?.peer == b.store.replicaID.description)
        #expect(outcome.result?.attempts == 3)
    }

    // MARK: - 2.4 A dataset deleted on the other side

    /// On iOS a handler was asked about a deletion at the very first exchange, and one that
    /// answered that the local data may go lost what had never been sent.
    @Test(
        "2.4: a first exchange asks about no deletion",
        arguments: [DatasetDeletedAction.keepAndStop, .discardLocal, .keepAndRecreate])
    func aFirstExchangeAsksAboutNoDeletion(_ action: DatasetDeletedAction) async throws {
        try a.dataset().put("never sent", for: "key")
        _ = try a.dataset("empty")
        // Another dataset of that name was deleted there, later than ours was made.
        for name in ["notes", "empty"] {
            try b.dataset(name).put("another", for: "other")
            try b.store.deleteDataset(name)
        }
        try await a.store.synchronize(
            with: b.transport, options: SyncOptions(onDatasetDeleted: action))
        #expect(try a.dataset().text("key") == "never sent")
        #expect(try b.dataset().text("key") == "never sent")
        #expect(try b.dataset().text("other") == nil)
        #expect(try a.store.existingDataset("empty") != nil)
        #expect(try b.store.existingDataset("empty") != nil)
        try expectEqual([a, b])
        // From now on it is one dataset, and its deletion is asked about.
        try b.store.deleteDataset("notes")
        let error = await #expect(throws: SyncError.self) {
            try await a.store.synchronize(with: b.transport)
        }
        #expect(error?.code == .datasetDeleted)
        #expect(try a.dataset().text("key") == "never sent")
    }

    // MARK: - 2.6 amazon-cognito-js

    /// Answering that the local copy may go ended in a call of a function that did not exist: no
    /// callback ever.
    @Test("2.6.1: discarding a deleted dataset completes")
    func discardingADeletedDatasetCompletes() async throws {
        try fill(a, 0..<3, "ours")
        try await a.store.synchronize(with: b.transport)
        try b.store.deleteDataset("notes")
        let report = await a.store.synchronizeEach(
            with: b.transport, options: SyncOptions(onDatasetDeleted: .discardLocal))
        #expect(report.firstError == nil)
        #expect(report["notes"]?.isComplete == true)
        #expect(try a.store.existingDataset("notes") == nil)
    }

    /// An empty list of records in an answer hung the client for ever.
    @Test("2.6.3: an answer without records completes", arguments: ["pull", "push"])
    func anAnswerWithoutRecordsCompletes(_ kind: String) async throws {
        try fill(a, 0..<3, "ours")
        try fill(b, 10..<13, "theirs")
        let responder = b.responder
        let transport = ScriptedTransport { request throws(SyncError) in
            let answer = responder.respond(to: request)
            switch try SyncMessage(MessageFrame.decoded(answer)) {
            case .pullAnswer(var pulled) where kind == "pull":
                pulled.page.records = []
                return try SyncMessage.pullAnswer(pulled).encoded()
            case .pushAnswer(var pushed) where kind == "push":
                pushed.outcome = .accepted(changed: 0)
                return try SyncMessage.pushAnswer(pushed).encoded()
            default: return answer
            }
        }
        let result = try await a.dataset().synchronize(with: transport)
        #expect(result.isComplete)
        #expect(kind == "pull" ? result.pulled == 0 : result.pushed == 0)
    }

    /// `resolve` with an empty list hung.
    @Test("2.6.4: resolving nothing completes")
    func resolvingNothingCompletes() async throws {
        try fill(a, 0..<3, "base")
        try await a.dataset().synchronize(with: b.transport)
        #expect(try a.dataset().replicate(ReplicationBatch()).isEmpty)
        // Nothing to settle, and something to settle that changes nothing.
        try a.dataset().put("ours", for: "key 0")
        try b.dataset().put("theirs", for: "key 0")
        let policy = MergePolicy.custom { .value($0.local.value ?? []) }
        for expected in [1, 0] {
            let result = try await a.dataset().synchronize(
                with: b.transport, options: SyncOptions(policy: policy))
            #expect(result.conflicts == expected)
            #expect(result.isComplete)
        }
        try expectEqual([a, b])
    }

    /// The client took the count of its own push for all that had happened there, and never pulled
    /// what another device had written meanwhile.
    @Test(
        "2.6.5: a write of another key between pull and push arrives", arguments: 1...4,
        InterposedTransport.Moment.allCases)
    func aWriteOfAnotherKeyBetweenPullAndPushArrives(
        _ page: Int, _ moment: InterposedTransport.Moment
    ) async throws {
        let options = SyncOptions(
            policy: Self.allowsNoConflict.policy, pageRecordsMax: 3)
        try fill(b, 20..<23, "before")
        try await a.dataset().synchronize(with: b.transport, options: options)
        try fill(a, 0..<10, "ours")
        try fill(b, 23..<26, "pulled")
        let theirs = try b.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "push", point.numberOfKind == page, point.moment == moment
            else { return }
            try theirs.put("between", for: "another key")
        }
        let result = try await a.dataset().synchronize(with: transport, options: options)
        #expect(transport.messageCount(of: "push") == 4)
        #expect(result.pushed == 10)
        try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(try a.dataset().text("another key") == "between")
        try expectEqual([a, b])
    }

    /// A put made while the push of the same key was in flight was overwritten by the answer and
    /// marked clean.
    @Test(
        "2.6.6: an edit during its own push stays and is pushed", arguments: 1...4,
        InterposedTransport.Moment.allCases)
    func anEditDuringItsPushStaysAndIsPushed(
        _ page: Int, _ moment: InterposedTransport.Moment
    ) async throws {
        let options = SyncOptions(
            policy: Self.allowsNoConflict.policy, pageRecordsMax: 3)
        try fill(a, 0..<10, "base")
        try await a.dataset().synchronize(with: b.transport, options: options)
        try fill(a, 0..<10, "pushed")
        let ours = try a.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "push", point.numberOfKind == page, point.moment == moment
            else { return }
            for number in 0..<10 {
                try ours.put("edited meanwhile", for: "key \(number)")
            }
        }
        try await a.dataset().synchronize(with: transport, options: options)
        for number in 0..<10 {
            let record = try #require(try a.dataset().record(for: "key \(number)"))
            #expect(record.valueText == "edited meanwhile")
            let known = try b.dataset().text("key \(number)")
            #expect(record.isDirty == (known != "edited meanwhile"))
        }
        try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(try b.dataset().text("key 9") == "edited meanwhile")
        #expect(try a.dataset().records().collect().allSatisfy { !$0.isDirty })
        try expectEqual([a, b])
    }

    /// An empty value was sent as a removal, and what was removed showed up as an empty value.
    @Test("2.6.7: empty is not removed")
    func emptyIsNotRemoved() async throws {
        try a.dataset().put("", for: "empty")
        try a.dataset().put("text", for: "gone")
        try await a.dataset().synchronize(with: b.transport)
        #expect(try b.dataset().get("empty") == [])
        try b.dataset().delete("gone")
        try a.dataset().put("", for: "emptied")
        try await a.dataset().synchronize(with: b.transport)
        for replica in [a, b] {
            #expect(try replica.dataset().get("gone") == nil)
            let live = try replica.dataset().records().collect()
            #expect(live.map(\.keyText) == ["emptied", "empty"])
            #expect(live.allSatisfy { $0.value == [] && !$0.isDeleted })
        }
        try expectEqual([a, b])
    }

    /// A dataset whose name began with "NAME." was taken for something to merge into NAME.
    @Test("2.6.8: a name with a dot is just a name")
    func aNameWithADotIsJustAName() async throws {
        for name in ["notes", "notes.us-east-1:1", "notes."] {
            try b.dataset(name).put(name, for: "name")
        }
        let results = try await a.store.synchronize(with: b.transport, datasets: ["notes"])
        #expect(results.map(\.dataset) == ["notes"])
        #expect(try a.store.datasetNames() == ["notes"])
        try await a.store.synchronize(with: b.transport)
        for name in ["notes", "notes.us-east-1:1", "notes."] {
            #expect(try a.dataset(name).text("name") == name)
        }
    }

    /// What could never succeed was tried eight times, and its reason lost.
    @Test("2.6.9: a permanent refusal stops at once with its reason")
    func aPermanentRefusalStopsAtOnceWithItsReason() async throws {
        try fill(a, 0..<3, "ours")
        let responder = b.responder
        let count = Mutex(0)
        let transport = ScriptedTransport { request throws(SyncError) in
            count.withLock { $0 += 1 }
            guard MessageLabel.kind(of: request) == "push" else {
                return responder.respond(to: request)
            }
            return try SyncMessage.failure(
                Failure(code: "quotaExceeded", message: "the quota of a is used up")
            ).encoded()
        }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: transport)
        }
        #expect(error?.code == .peerFailed)
        #expect(error?.message == "the quota of a is used up")
        #expect(count.withLock { $0 } == 2)
    }

    /// So was what is too large.
    @Test("2.6.10: what is too large stops at once and the limit is told")
    func tooLargeStopsAtOnceAndSaysTheLimit() async throws {
        var random = SeededGenerator(seed: 1)
        let bytes = (0..<4_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        try a.dataset().put(bytes, for: Array("large".utf8))
        let responder = SyncResponder(
            store: b.store, limits: SyncResponder.Limits(requestBytesMax: 2_345))
        let transport = InterposedTransport(responder) { _ in }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: transport)
        }
        #expect(error?.code == .tooLarge)
        #expect(error?.message.contains("2345") == true)
        // Once, and then everything but that record: here there is nothing else.
        #expect(transport.messageCount == 3)
        let failed = try a.dataset().failedRecords()
        #expect(failed.map(\.keyText) == ["large"] && failed.map(\.attempts) == [1])
        // It is not sent again by itself.
        let result = try await a.dataset().synchronize(with: transport)
        #expect(result.failedCount == 0 && !result.isComplete)
    }

    /// Deleting a dataset that had never reached the server failed for ever.
    @Test("2.6.11: deleting what the peer never had succeeds")
    func deletingWhatThePeerNeverHadSucceeds() async throws {
        try fill(a, 0..<3, "never sent")
        try a.store.deleteDataset("notes")
        try a.dataset("other").delete("what nobody has")
        for _ in 0..<2 {
            let results = try await a.store.synchronize(with: b.transport)
            #expect(results.map(\.dataset) == ["notes", "other"])
            #expect(results.allSatisfy { $0.isComplete })
        }
        #expect(try b.store.existingDataset("notes") == nil)
        #expect(try b.dataset("other").count() == 0)
    }

    /// After a deletion the handle was dead. Here it says so until the dataset is made again.
    @Test("2.6.12: the handle lives after deletion and recreation")
    func theHandleLivesAfterDeletionAndRecreation() async throws {
        let handle = try a.dataset()
        try handle.put("1", for: "key")
        try await handle.synchronize(with: b.transport)
        try a.store.deleteDataset("notes")
        #expect(throws: StoreError.self) { try handle.put("2", for: "key") }
        try await handle.synchronize(with: b.transport)
        #expect(try b.store.existingDataset("notes") == nil)
        _ = try a.dataset()
        try handle.put("3", for: "key")
        try await handle.synchronize(with: b.transport)
        #expect(try b.dataset().text("key") == "3")
        try expectEqual([a, b])
    }

    /// The list of what was pulled was always empty (#60).
    @Test("2.6: the result says what was pulled")
    func theResultSaysWhatWasPulled() async throws {
        try fill(a, 0..<2, "ours")
        try fill(b, 5..<10, "theirs")
        let before = try a.dataset().syncCount
        let result = try await a.dataset().synchronize(with: b.transport)
        #expect(result.pulled == 5)
        #expect(result.pushed == 2)
        #expect(result.localSyncCount == (try a.dataset().syncCount))
        let changes = try a.dataset().changes(since: before).collect()
        #expect(changes.map(\.valueText) == (5..<10).map { "theirs \($0)" })
    }

    /// The client passed over the word that the dataset no longer exists.
    @Test("2.6: a dataset that is gone is noticed")
    func aDatasetThatIsGoneIsNoticed() async throws {
        try fill(a, 0..<3, "ours")
        try await a.store.synchronize(with: b.transport)
        try b.store.deleteDataset("notes")
        for _ in 0..<2 {
            let report = await a.store.synchronizeEach(with: b.transport)
            #expect(report["notes"]?.error?.code == .datasetDeleted)
            #expect(try a.dataset().count() == 3)
        }
    }

    /// What was no text was neither refused nor kept (#8).
    @Test("2.6: any bytes are a value")
    func anyBytesAreAValue() async throws {
        let values: [[UInt8]] = [
            [], [0], [0xFF, 0xFE], Array(0...255), [0xC3, 0x28], Array("null".utf8), [0, 0, 0],
        ]
        for (index, value) in values.enumerated() {
            try a.dataset().put(value, for: [UInt8(index), 0, 0xFF])
        }
        try await a.dataset().synchronize(with: b.transport)
        #expect(try b.dataset().records().collect().compactMap(\.value) == values)
        try expectEqual([a, b])
    }
}
