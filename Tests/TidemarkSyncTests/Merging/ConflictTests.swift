import Synchronization
import Testing
import Tidemark
import TidemarkSync

/// What a handler is told of a conflict, what becomes of one that is left for later, and that the
/// policies of this module settle a conflict once and for all.
struct ConflictTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    @discardableResult
    private func exchange(
        _ from: TestReplica, _ to: TestReplica, _ policy: MergePolicy
    ) async throws -> SyncResult {
        try await from.dataset().synchronize(
            with: to.transport, options: SyncOptions(policy: policy))
    }

    /// Settles by keeping ours, and gives what was told of each conflict.
    private func conflicts(_ from: TestReplica, _ to: TestReplica) async throws -> [Conflict] {
        let told = Mutex<[Conflict]>([])
        try await exchange(
            from, to,
            .custom { conflict in
                told.withLock { $0.append(conflict) }
                return .keepLocal
            })
        return told.withLock { $0 }
    }

    // MARK: - The ancestor

    @Test func aKnownAncestorIsHandedOver() async throws {
        try put("base", a)
        try await exchange(a, b, .lastWriterWins)
        try put("ours", a)
        try put("theirs", b)
        let conflict = try #require(try await conflicts(a, b).first)
        #expect(conflict.ancestor?.valueText == "base")
        guard case .known = conflict.ancestry else {
            Issue.record("\(conflict.ancestry)")
            return
        }
    }

    @Test func thatThereNeverWasAnAncestorIsSaid() async throws {
        // They have nothing in common at all.
        try put("ours", a)
        try put("theirs", b)
        #expect(try await conflicts(a, b).map(\.ancestry) == [.nonexistent])
        // They have, but not of this key: told by the side that has written nothing else to it.
        try put("ours", a, "new")
        try put("theirs", b, "new")
        #expect(try await conflicts(a, b).map(\.ancestry) == [.nonexistent])
    }

    @Test func anAncestorThatWasDroppedIsNotCalledNonexistent() async throws {
        try put("base", a)
        try await exchange(a, b, .lastWriterWins)
        // B comes to have what A makes of it by way of C, and C never saw the base.
        try put("second", a)
        try await exchange(c, a, .lastWriterWins)
        try put("theirs", b)
        #expect(try await conflicts(c, b).map(\.ancestry) == [.notKept])
    }

    /// B goes on from what A has merged in, before A's merge reaches it: then what A merged in is
    /// the ancestor, on either side, also after a compaction that keeps no history.
    @Test(arguments: [true, false])
    func whatWasMergedInIsTheAncestorOfTheNextConflict(_ asksA: Bool) async throws {
        try put(#"{"a":0,"b":0}"#, a)
        try await exchange(a, b, .lastWriterWins)
        try put(#"{"a":1,"b":0}"#, a)
        try put(#"{"a":0,"b":1}"#, b)
        let (responder, theirs, ours) = (b.responder, try b.dataset(), a.store)
        let hasWritten = Mutex(false)
        let transport = ScriptedTransport { request throws(SyncError) in
            let isFirstPush = hasWritten.withLock { hasWritten in
                guard !hasWritten, MessageLabel.kind(of: request) == "push" else { return false }
                hasWritten = true
                return true
            }
            guard isFirstPush else { return responder.respond(to: request) }
            _ = try? theirs.put(#"{"a":0,"b":2}"#, for: "key")
            _ = try? ours.compact()
            // The exchange ends here if it is B that is to settle what comes of it.
            if !asksA { throw SyncError(.unreachable, "the test lost a message; repeat") }
            return responder.respond(to: request)
        }
        let options = SyncOptions(policy: .autoMerge(AutoMerge()))
        if asksA {
            let result = try await a.dataset().synchronize(with: transport, options: options)
            #expect(result.attempts == 2 && result.conflicts == 2)
            #expect(result.reports.isEmpty)
        } else {
            await #expect(throws: SyncError.self) {
                try await a.dataset().synchronize(with: transport, options: options)
            }
            let result = try await exchange(b, a, options.policy)
            #expect(result.conflicts == 1)
            #expect(result.reports.isEmpty)
        }
        #expect(try a.dataset().text("key") == #"{"a":1,"b":2}"#)
        try expectEqual([a, b])
    }

    // MARK: - Left pending

    @Test func aConflictThatIsLeftDoesNotHoldUpTheRest() async throws {
        for number in 0..<20 { try put("base", a, "key \(number)") }
        try await exchange(a, b, .lastWriterWins)
        for number in 0..<20 { try put("theirs", b, "key \(number)") }
        try put("ours", a, "key 3")
        try put("ours", a, "key 12")
        try put("new", a, "other")
        let pending = Mutex<[Conflict]>([])
        let options = SyncOptions(
            policy: .leavePending, pageRecordsMax: 4,
            onPending: { conflict in pending.withLock { $0.append(conflict) } })
        for _ in 0..<2 {
            pending.withLock { $0 = [] }
            let error = await #expect(throws: SyncError.self) {
                try await a.dataset().synchronize(with: b.transport, options: options)
            }
            #expect(error?.code == .conflictPending)
            #expect(error?.key == Array("key 3".utf8))
            let told = pending.withLock { $0 }
            #expect(told.map { $0.local.keyText } == ["key 3", "key 12"])
            #expect(told.map { $0.ancestor?.valueText } == ["base", "base"])
            for number in 0..<20 {
                let isPending = number == 3 || number == 12
                let text = try a.dataset().text("key \(number)")
                #expect(text == (isPending ? "ours" : "theirs"))
            }
            // Nothing of ours has left.
            #expect(try b.dataset().text("other") == nil)
        }
        // One is settled, the other is changed once more before it is.
        let told = pending.withLock { $0 }
        try #require(told.count == 2)
        try a.dataset().settle(told[0], as: .value(Array("both".utf8)))
        try put("ours again", a, "key 12")
        let error = #expect(throws: StoreError.self) {
            try a.dataset().settle(told[1], as: .keepRemote)
        }
        #expect(error?.code == .versionMismatch)
        try a.dataset().settle(told[1], as: .stop)
        pending.withLock { $0 = [] }
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: b.transport, options: options)
        }
        let again = pending.withLock { $0 }
        try #require(again.map { $0.local.valueText } == ["ours again"])
        try a.dataset().settle(again[0], as: .keepLocal)
        let result = try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(result.conflicts == 0)
        #expect(try b.dataset().text("key 3") == "both")
        #expect(try b.dataset().text("key 12") == "ours again")
        #expect(try b.dataset().text("other") == "new")
        try expectEqual([a, b])
        #expect(try a.dataset().records().collect().filter(\.isDirty).isEmpty)
    }

    /// While ours holds a conflict back, others go on; and whoever asks ours in the meantime is
    /// not told that we have what we have not.
    @Test func nobodyIsToldThatAPendingRecordWasTakenIn() async throws {
        try put("base", a)
        for (from, to) in [(a, b), (c, b)] { try await exchange(from, to, .lastWriterWins) }
        try put("ours", a)
        try put("theirs", b)
        await #expect(throws: SyncError.self) { try await exchange(a, b, .leavePending) }
        // The one that is asked lacks the conflict's other side; what C brings is from B.
        try await exchange(c, b, .lastWriterWins)
        await #expect(throws: SyncError.self) { try await exchange(c, a, .leavePending) }
        try await exchange(c, a, .keepLocal)
        #expect(try a.dataset().text("key") == "theirs")
        try await exchange(a, b, .leavePending)
        try expectEqual([a, b, c])
    }

    // MARK: - Policies

    @Test func eachDatasetHasItsPolicy() async throws {
        for name in ["kept", "merged", "others"] {
            try a.store.dataset(name).put("[1]", for: "key")
        }
        try await a.store.synchronize(with: b.transport)
        for name in ["kept", "merged", "others"] {
            try a.store.dataset(name).put("[1,2]", for: "key")
            try b.store.dataset(name).put("[1,3]", for: "key")
        }
        let results = try await a.store.synchronize(
            with: b.transport,
            options: SyncOptions(
                policy: .keepRemote,
                policies: ["kept": .keepLocal, "merged": .autoMerge(AutoMerge())]))
        #expect(results.map(\.conflicts) == [1, 1, 1])
        let values = try ["kept", "merged", "others"].map {
            try b.store.dataset($0).text("key")
        }
        #expect(values[0] == "[1,2]")
        #expect(["[1,2,3]", "[1,3,2]"].contains(values[1]))
        #expect(values[2] == "[1,3]")
    }

    @Test func whatLostIsTold() async throws {
        try put(#"{"title":"x","tags":["a"],"done":false}"#, a)
        try await exchange(a, b, .lastWriterWins)
        try put(#"{"title":"ours","tags":["a","b"],"done":false}"#, a)
        let theirs = #"{"title":"theirs","tags":["a","c"],"done":true}"#
        try b.store.dataset("notes").put(theirs, for: "key")
        let result = try await exchange(a, b, .autoMerge(AutoMerge()))
        let report = try #require(result.reports.first)
        #expect(result.reports.count == 1 && result.reportsLeftOut == 0)
        #expect(report.key == Array("key".utf8) && report.obstacle == nil)
        try #require(report.lost.map(\.path) == [["title"]])
        // Which of the two is the later their clocks decide, in one millisecond their ids.
        let loser = report.lost[0].side
        #expect(report.lost[0].value == (loser == .local ? "ours" : "theirs"))
        let value = try JSONValue(parsing: try #require(try b.dataset().get("key")))
        #expect(value["title"] == (loser == .local ? "theirs" : "ours"))
        #expect(value["done"] == true)
        #expect(Set(value["tags"]?.elements ?? []) == ["a", "b", "c"])
        #expect(result.settled.map(\.decision) == [.merged])
        try expectEqual([a, b])
    }

    struct Named: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let policy: MergePolicy
        let values: [[UInt8]]
    }

    private static let turns = (1...3).map {
        MergeTurn(opening: UInt64($0), time: HybridTime(rawValue: UInt64($0)))
    }

    private static func counted(_ turn: MergeTurn) -> [UInt8] {
        var counter = Counter(turn)
        counter.add(1, turn)
        return counter.encoded
    }

    static let deterministic = [
        Named(
            testDescription: "last writer wins", policy: .lastWriterWins,
            values: [[1], [2], [3]]),
        Named(
            testDescription: "three-way", policy: .autoMerge(AutoMerge()),
            values: ["[1]", "[2]", "[3]"].map { Array($0.utf8) }),
        Named(
            testDescription: "AppSync",
            policy: .autoMerge(AutoMerge(rules: .appSync(server: .later))),
            values: ["[1]", "[2]", "[3]"].map { Array($0.utf8) }),
        Named(
            testDescription: "mergeable", policy: .mergeable, values: turns.map { counted($0) }),
    ]

    /// A and C each merge the same two versions without knowing of each other: the two merges are
    /// no new conflict, neither between the two nor at the hub in their middle.
    ///
    ///     A ── x        A ── merge(x, y) ─┐
    ///     B ── y                          B ── one value, no conflict
    ///     C ── x        C ── merge(x, y) ─┘
    @Test(arguments: deterministic)
    func theSameMergeMadeTwiceIsNoNewConflict(_ named: Named) async throws {
        let key = Array("key".utf8)
        try a.dataset().put(named.values[0], for: key)
        try await exchange(c, a, named.policy)
        try b.dataset().put(named.values[1], for: key)
        // Both pull from B and merge; neither push arrives.
        for replica in [a, c] {
            let responder = b.responder
            let transport = ScriptedTransport { request throws(SyncError) in
                guard MessageLabel.kind(of: request) != "push" else {
                    throw SyncError(.unreachable, "the test lost a message; repeat")
                }
                return responder.respond(to: request)
            }
            await #expect(throws: SyncError.self) {
                try await replica.dataset().synchronize(
                    with: transport, options: SyncOptions(policy: named.policy))
            }
        }
        #expect(try a.dataset().get(key) == c.dataset().get(key))
        for (from, to) in [(a, b), (c, b), (a, b), (a, c)] {
            let result = try await exchange(from, to, .custom { _ in .stop })
            #expect(result.conflicts == 0)
        }
        try expectEqual([a, b, c])
    }
}
