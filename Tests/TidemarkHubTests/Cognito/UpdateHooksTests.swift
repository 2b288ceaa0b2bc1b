import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// Triggers, strategies and what follows from an update, where they take part in it.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct UpdateHooksTests {
    /// Answers as the test says, and notes what it was asked.
    private final class Trigger: SyncTrigger {
        let seen = Mutex<[[TriggerRecord]]>([])
        let answer: @Sendable ([TriggerRecord]) throws(APIFailure) -> [TriggerRecord]?
        /// Runs while the update waits.
        let meanwhile: @Sendable () async throws -> Void

        init(
            _ answer: @escaping @Sendable ([TriggerRecord]) throws(APIFailure) -> [TriggerRecord]?,
            meanwhile: @escaping @Sendable () async throws -> Void = {}
        ) {
            self.answer = answer
            self.meanwhile = meanwhile
        }

        func changed(
            _ records: [TriggerRecord], _ context: UpdateContext
        ) async throws(APIFailure) -> [TriggerRecord]? {
            seen.withLock { $0.append(records) }
            do {
                try await meanwhile()
            } catch {
                throw APIFailure(.internalError, "\(error)")
            }
            return try answer(records)
        }

        func isNeeded(_ context: UpdateContext) -> Bool { true }
    }

    private final class Resolver: ConflictResolver {
        let seen = Mutex<[RecordConflict]>([])
        let answer: @Sendable (RecordConflict) -> ConflictDecision

        init(_ answer: @escaping @Sendable (RecordConflict) -> ConflictDecision) {
            self.answer = answer
        }

        func decision(
            _ conflict: RecordConflict, _ context: UpdateContext
        ) async throws(APIFailure) -> ConflictDecision {
            seen.withLock { $0.append(conflict) }
            return answer(conflict)
        }
    }

    /// Puts a note of each update into a dataset, in the update's batch.
    private final class Sink: ChangeSink {
        let told = Mutex<[UInt64]>([])
        let home: Mutex<Dataset?> = Mutex(nil)

        func append(
            to batch: inout WriteBatch, _ changes: [AppliedChange], count: UInt64,
            _ context: UpdateContext
        ) throws(StoreError) {
            guard let home = home.withLock({ $0 }) else { return }
            let text = changes.map { "\($0.key)=\($0.value ?? "-")@\($0.position)" }
            batch.put(text.joined(separator: ","), for: "c\(count)", in: home)
        }

        func committed(count: UInt64, _ context: UpdateContext) {
            told.withLock { $0.append(count) }
        }

        func willChange(_ storeNames: [String]) throws(StoreError) {}

        func didChange(_ storeNames: [String]) {}
    }

    @Test("what follows from an update is in its batch, and told once it is durable")
    func sink() async throws {
        let sink = Sink()
        try await withCognito(hooks: CognitoFixture.Hooks(sink: sink)) { fixture in
            let home = try fixture.store.dataset("sink")
            sink.home.withLock { $0 = home }
            let device = CognitoDevice(fixture: fixture)
            try await device.sync([.put("1", "a"), .put("2", "b")])
            try await device.sync([.remove("a", 1)])
            let session = try await device.list().syncSessionToken
            _ = try await refusal { try await device.update([.put("3", "b", 7)], session: session) }
            #expect(try home.text("c1") == "a=1@1,b=2@2")
            #expect(try home.text("c2") == "a=-@3")
            #expect(try home.count() == 2)
            #expect(sink.told.withLock { $0 } == [1, 2])
            sink.home.withLock { $0 = nil }
        }
    }

    @Test("a trigger sees all records as they would be, and its changes are written and told")
    func trigger() async throws {
        let trigger = Trigger { records in
            var changed = records.filter(\.isChanged)
            for index in changed.indices {
                if changed[index].key == "b" { changed[index].newValue = "altered" }
                if changed[index].key == "c" { changed[index].newValue = nil }
            }
            changed.append(
                TriggerRecord(key: "added", oldValue: nil, newValue: "new", isChanged: true))
            return changed
        }
        try await withCognitoDevice(hooks: CognitoFixture.Hooks(trigger: trigger)) {
            device, fixture in
            try fixture.dataset().put("0", for: "a")
            try fixture.dataset().put("0", for: "c")
            let session = try await device.list().syncSessionToken
            let patches: [Patch] = [.put("1", "b"), .put("1", "c", 2)]
            let answer = try await device.update(patches, session: session)
            // A repeat is told the same, and is not shown to the trigger.
            #expect(try await device.update(patches, session: session) == answer)
            #expect(trigger.seen.withLock { $0.count } == 1)
            let told = Dictionary(uniqueKeysWithValues: answer.map { ($0.key, $0.value) })
            #expect(told == ["b": "altered", "c": nil, "added": "new"])
            #expect(answer.allSatisfy { $0.syncCount == 3 })
            #expect(
                try await device.list().contents
                    == ["a": "0@1", "b": "altered@3", "c": "-@3", "added": "new@3"])
            let seen = try #require(trigger.seen.withLock { $0 }.first)
            #expect(
                seen == [
                    TriggerRecord(key: "a", oldValue: "0", newValue: "0", isChanged: false),
                    TriggerRecord(key: "b", oldValue: nil, newValue: "1", isChanged: true),
                    TriggerRecord(key: "c", oldValue: "0", newValue: "1", isChanged: true),
                ])
        }
    }

    @Test("a patch that the trigger leaves out is answered with what is there, or with nothing")
    func leftOut() async throws {
        let trigger = Trigger { _ in [] }
        try await withCognitoDevice(hooks: CognitoFixture.Hooks(trigger: trigger)) {
            device, fixture in
            try fixture.dataset().put("0", for: "a")
            let answer = try await device.sync([.put("1", "a", 1), .put("1", "b")])
            #expect(answer.map(\.key) == ["a", "b"])
            #expect(answer.map(\.value) == ["0", nil])
            #expect(answer.map(\.syncCount) == [1, 0])
            #expect(try await device.list().contents == ["a": "0@1"])
        }
    }

    @Test("what a trigger refuses, or answers out of bounds, is not written")
    func refusedByTrigger() async throws {
        let long = String(repeating: "k", count: 1_025)
        let twice = TriggerRecord(key: "a", oldValue: nil, newValue: "1", isChanged: true)
        let outputs: [[TriggerRecord]?] = [
            [twice, twice],
            [TriggerRecord(key: long, oldValue: nil, newValue: "1", isChanged: true)],
            [TriggerRecord(key: "", oldValue: nil, newValue: "1", isChanged: true)],
            nil,
        ]
        for output in outputs {
            let trigger = Trigger { _ throws(APIFailure) in
                guard let output else { throw APIFailure(.triggerThrottled, "busy") }
                return output
            }
            try await withCognitoDevice(hooks: CognitoFixture.Hooks(trigger: trigger)) {
                device, _ in
                let refused = try await refusal { try await device.sync([.put("1", "a")]) }
                #expect(
                    refused?.kind == (output == nil ? .triggerThrottled : .invalidTriggerOutput))
                #expect(try await !device.list().datasetExists)
            }
        }
    }

    @Test("what is written while the trigger thinks refuses the update")
    func writtenMeanwhile() async throws {
        let change = Mutex<(@Sendable () async throws -> Void)?>(nil)
        let trigger = Trigger(
            { _ in nil },
            meanwhile: {
                // Once: what it does may come by the trigger itself.
                let once = change.withLock { change in
                    defer { change = nil }
                    return change
                }
                try await once?()
            })
        try await withCognitoDevice(hooks: CognitoFixture.Hooks(trigger: trigger)) {
            device, fixture in
            try await device.sync([.put("1", "a")])
            let dataset = try fixture.dataset()
            change.withLock { $0 = { _ = try dataset.put("2", for: "other") } }
            let refused = try await refusal { try await device.sync([.put("2", "a", 1)]) }
            #expect(refused?.kind == .resourceConflict)
            // Unless it was this very update, by another connection.
            let session = try await device.list().syncSessionToken
            let patches: [Patch] = [.put("3", "a", 1)]
            change.withLock { $0 = { _ = try await device.update(patches, session: session) } }
            let answer = try await device.update(patches, session: session)
            #expect(answer.map(\.value) == ["3"])
            #expect(try await device.list().contents == ["a": "3@3", "other": "2@2"])
        }
    }

    @Test("no dataset is begun for an identity that was merged while its call was under way")
    func mergedMeanwhile() async throws {
        let isInUse = Mutex(true)
        let name = "\(CognitoFixture.identity):notes"
        let fixture = try CognitoFixture(isInUse: { identity, store in
            #expect(identity.text == CognitoFixture.identity)
            // For a merge that is noted from now on to find.
            let found = try store.existingDataset(name)
            #expect(found != nil)
            return isInUse.withLock { $0 }
        })
        let device = CognitoDevice(fixture: fixture)
        isInUse.withLock { $0 = false }
        let refused = try await refusal { try await device.sync([.put("1", "a")]) }
        #expect(refused?.kind == .notAuthorized)
        #expect(try await device.list().records.isEmpty)
        isInUse.withLock { $0 = true }
        try await device.sync([.put("1", "a")])
        #expect(try await device.list().contents == ["a": "1@1"])
        try await fixture.threads.shutdown()
        try fixture.store.close()
    }

    @Test("a developer's update passes by the trigger")
    func developers() async throws {
        let trigger = Trigger { _ in [] }
        try await withCognitoDevice(hooks: CognitoFixture.Hooks(trigger: trigger)) { device, _ in
            let session = try await device.list().syncSessionToken
            try await device.update(
                [.put("1", "a")], session: session, as: .developer(keyID: "AKID", pools: nil))
            #expect(try await device.list().contents == ["a": "1@1"])
            #expect(trigger.seen.withLock { $0 }.isEmpty)
        }
    }

    @Test(
        "a strategy decides a conflict instead of the refusal",
        arguments: [
            (ConflictDecision.put("merged"), "merged@4"), (.remove, "-@4"),
            (.keepExisting, "theirs@3"),
        ] as [(ConflictDecision, String)])
    func strategies(decision: ConflictDecision, outcome: String) async throws {
        let resolver = Resolver { _ in decision }
        try await withCognitoDevice(hooks: CognitoFixture.Hooks(resolver: resolver)) { device, _ in
            try await device.sync([.put("base", "a")])
            try await device.sync([.put("1", "b")])
            try await device.sync([.put("theirs", "a", 1)])
            var patch = Patch.put("mine", "a", 1)
            patch.date = 7
            let session = try await device.list().syncSessionToken
            let patches = [patch, .put("2", "c")]
            let answer = try await device.update(patches, session: session)
            #expect(try await device.update(patches, session: session) == answer)
            #expect(resolver.seen.withLock { $0.count } == 1)
            #expect(answer.map(\.key).sorted() == ["a", "c"])
            let contents = try await device.list().contents
            #expect(contents["a"] == outcome)
            #expect(contents["c"] == "2@4")
            let told = try #require(answer.first { $0.key == "a" })
            #expect("\(told.value ?? "-")@\(told.syncCount)" == outcome)
            let conflict = try #require(resolver.seen.withLock { $0 }.first)
            #expect(conflict.key == "a" && conflict.incoming == "mine")
            #expect(conflict.existing == "theirs" && conflict.incomingMilliseconds == 7_000)
        }
    }

    @Test("a strategy that rejects refuses as ever, and is not asked about repeats")
    func rejection() async throws {
        let resolver = Resolver { _ in .reject }
        try await withCognitoDevice(hooks: CognitoFixture.Hooks(resolver: resolver)) { device, _ in
            let session = try await device.list().syncSessionToken
            for _ in 0..<2 { try await device.update([.put("1", "a")], session: session) }
            #expect(resolver.seen.withLock { $0 }.isEmpty)
            let refused = try await refusal { try await device.sync([.put("2", "a", 0)]) }
            #expect(refused?.message == "Current SyncCount for: a is: 1 not: 0")
        }
    }
}
