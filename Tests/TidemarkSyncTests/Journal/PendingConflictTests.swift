import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Conflicts that no policy settles: they wait, are listed and settled later, hold up nothing but
/// the push, and nothing of them is lost.
struct PendingConflictTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private struct Refusal: Error, CustomStringConvertible {
        let description = "the handler's own words"
    }

    @discardableResult
    private func exchange(
        _ from: TestReplica, _ to: TestReplica, _ policy: MergePolicy
    ) async throws -> SyncResult {
        try await from.dataset().synchronize(
            with: to.transport, options: SyncOptions(policy: policy))
    }

    private func expectPending(
        _ from: TestReplica, _ to: TestReplica, _ policy: MergePolicy = .leavePending
    ) async throws {
        let error = await #expect(throws: SyncError.self) {
            try await exchange(from, to, policy)
        }
        #expect(error?.code == .conflictPending)
    }

    private func makeConflict() async throws {
        try put("base", a)
        try await exchange(a, b, .lastWriterWins)
        try put("ours", a)
        try put("theirs", b)
    }

    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let policy: MergePolicy
        let reason: PendingConflict.Reason
    }

    static let ways = [
        Way(testDescription: "left", policy: .leavePending, reason: .left),
        Way(testDescription: "stopped", policy: .custom { _ in .stop }, reason: .stopped),
        Way(
            testDescription: "threw", policy: .custom { _ in throw Refusal() },
            reason: .failed("the handler's own words")),
    ]

    @Test(arguments: ways)
    func whatWaitsIsListedAndSettledLater(_ way: Way) async throws {
        try await makeConflict()
        try put("new here", a, "other")
        try put("new there", b, "another")
        let theirs = try #require(try b.dataset().record(for: "key")?.version)
        try await expectPending(a, b, way.policy)
        for isReopened in [false, true] {
            if isReopened { try a.reopen() }
            let waiting = try a.dataset().pendingConflicts()
            try #require(waiting.count == 1)
            #expect(waiting[0].reason == way.reason && waiting[0].peer == b.store.replicaID)
            let conflict = waiting[0].conflict
            #expect(conflict.dataset == "notes" && conflict.key == Array("key".utf8))
            #expect(conflict.ancestor?.valueText == "base")
            #expect(conflict.local.valueText == "ours")
            #expect(conflict.remote.valueText == "theirs" && conflict.remote.version == theirs)
            #expect(try a.dataset().pendingConflicts(of: Array("other".utf8)).isEmpty)
            #expect(try a.dataset().pendingConflicts(limit: 0).isEmpty)
        }
        // The rest was taken in, and nothing has left.
        #expect(try a.dataset().text("another") == "new there")
        #expect(try b.dataset().text("other") == nil)
        let key = Array("key".utf8)
        #expect(try !a.dataset().settle(key, with: .stop))
        #expect(try !a.dataset().settle(Array("other".utf8), with: .keepLocal))
        #expect(try a.dataset().settle(key, with: .value(Array("both".utf8))))
        #expect(try a.dataset().pendingConflicts().isEmpty)
        #expect(try !a.dataset().settle(key, with: .keepLocal))
        let entry = try #require(try a.dataset().settledConflicts().first)
        #expect(entry.policy == .application && entry.peer == b.store.replicaID)
        let result = try await exchange(a, b, way.policy)
        #expect(result.conflicts == 0 && result.pendingCount == 0 && result.isComplete)
        #expect(try b.dataset().text("key") == "both")
        #expect(try b.dataset().text("other") == "new here")
        try expectEqual([a, b])
    }

    @Test func anotherPolicySettlesWhatWaits() async throws {
        try await makeConflict()
        try await expectPending(a, b)
        let result = try await exchange(a, b, .keepRemote)
        #expect(result.conflicts == 1 && result.settled.map(\.decision) == [.remote])
        #expect(try a.dataset().pendingConflicts().isEmpty)
        #expect(try a.dataset().text("key") == "theirs")
        try expectEqual([a, b])
        // Then it is as if nothing had ever waited.
        let idle = try await exchange(a, b, .leavePending)
        #expect(idle.pulled == 0 && idle.pushed == 0)
    }

    @Test func aHandlerThatThrowsHoldsUpNoOtherConflict() async throws {
        for number in 0..<6 { try put("base", a, "key \(number)") }
        try await exchange(a, b, .lastWriterWins)
        for number in 0..<6 {
            try put("ours", a, "key \(number)")
            try put("theirs", b, "key \(number)")
        }
        try await expectPending(
            a, b,
            .custom { conflict in
                if conflict.local.keyText == "key 2" { throw Refusal() }
                return .keepRemote
            })
        for number in 0..<6 {
            #expect(
                try a.dataset().text("key \(number)") == (number == 2 ? "ours" : "theirs"))
        }
        #expect(try a.dataset().pendingConflicts().map(\.conflict.local.keyText) == ["key 2"])
    }

    /// With a bound to the records of an exchange, one that waits must not be met again and again
    /// in place of those behind it.
    @Test func whatWaitsDoesNotStandStillInTheWay() async throws {
        try await makeConflict()
        for number in 0..<10 { try put("theirs", b, "later \(number)") }
        let options = SyncOptions(policy: .leavePending, recordsPerRunMax: 3)
        for _ in 0..<4 {
            let error = await #expect(throws: SyncError.self) {
                try await a.dataset().synchronize(with: b.transport, options: options)
            }
            #expect(error?.code == .conflictPending)
        }
        for number in 0..<10 { #expect(try a.dataset().text("later \(number)") == "theirs") }
        #expect(try a.dataset().pendingConflicts().count == 1)
        #expect(try a.dataset().settle(Array("key".utf8), with: .keepRemote))
        try await exchange(a, b, .leavePending)
        try expectEqual([a, b])
    }

    /// While it waits, ours claims to have seen nothing of it: whoever asks ours gets the other
    /// side's version from whoever has it.
    @Test func whatWaitsIsSeenByNobodyThroughUs() async throws {
        try await makeConflict()
        try await expectPending(a, b)
        let theirs = try #require(try b.dataset().record(for: "key")?.version.dot)
        #expect(try !a.dataset().vector.contains(theirs))
        // C hears of ours first, and then of theirs.
        try await exchange(c, a, .lastWriterWins)
        #expect(try c.dataset().text("key") == "ours")
        let result = try await exchange(c, b, .custom { _ in .value(Array("both".utf8)) })
        #expect(result.conflicts == 1)
        try await exchange(a, b, .leavePending)
        #expect(try a.dataset().text("key") == "both")
        #expect(try a.dataset().pendingConflicts().isEmpty)
        try expectEqual([a, b, c])
    }

    /// One that pushes what lies behind the version that waits, and claims to have seen all of it,
    /// is not believed to have brought it.
    @Test func noPushMakesUsBelieveThatItIsHere() async throws {
        try await makeConflict()
        try await expectPending(a, b)
        let (ours, theirs) = (try a.dataset(), try b.dataset())
        let waiting = try #require(try theirs.record(for: "key")?.version.dot)
        let knowledge = try theirs.told(try theirs.knowledge())
        let page = RecordPage(
            records: [], through: knowledge.syncCount, isLast: true, knowledge: knowledge)
        let request = PushRequest(
            address: Address(from: b.store.replicaID, to: a.store.replicaID, dataset: "notes"),
            since: try ours.checkpoint(for: b.store.replicaID).pulledThrough, acknowledged: 0,
            page: page)
        let answer = a.responder.respond(to: try SyncMessage.push(request).encoded())
        guard case .pushAnswer(let pushed) = try SyncMessage(MessageFrame.decoded(answer)) else {
            Issue.record("no answer to a push")
            return
        }
        #expect(pushed.outcome == .accepted(changed: 0))
        #expect(!pushed.knowledge.vector.contains(waiting))
        #expect(try !ours.vector.contains(waiting))
        #expect(try ours.settle(Array("key".utf8), with: .keepLocal))
        try await exchange(a, b, .leavePending)
        try expectEqual([a, b])
    }

    /// A hub asks nobody; what waits there came with the files of one that did.
    @Test func whatOthersHaveSettledIsLetGoByOneThatAsksNobody() async throws {
        try await makeConflict()
        try await expectPending(a, b)
        for _ in 0..<3 { try await exchange(b, a, .lastWriterWins) }
        #expect(try a.dataset().pendingConflicts().isEmpty)
        #expect(try a.dataset().vector == b.dataset().vector)
        try expectEqual([a, b])
        // What nobody has settled stays.
        try put("ours again", a)
        try put("theirs again", b)
        try await expectPending(a, b)
        try await exchange(c, a, .lastWriterWins)
        #expect(try a.dataset().pendingConflicts().count == 1)
    }

    @Test func aLaterVersionTakesThePlaceOfTheOneThatWaits() async throws {
        try await makeConflict()
        try await expectPending(a, b)
        try put("theirs, later", b)
        try await expectPending(a, b)
        let waiting = try a.dataset().pendingConflicts()
        #expect(waiting.map(\.conflict.remote.valueText) == ["theirs, later"])
        #expect(try a.dataset().settle(Array("key".utf8), with: .keepRemote))
        try await exchange(a, b, .leavePending)
        #expect(try b.dataset().text("key") == "theirs, later")
        try expectEqual([a, b])
    }

    @Test func aWriteHereMeanwhileIsPartOfTheConflict() async throws {
        try await makeConflict()
        try await expectPending(a, b)
        try put("ours, later", a)
        let waiting = try a.dataset().pendingConflicts()
        #expect(waiting.map(\.conflict.local.valueText) == ["ours, later"])
        try a.dataset().settle(waiting[0].conflict, as: .keepLocal)
        #expect(try a.dataset().pendingConflicts().isEmpty)
        try await exchange(a, b, .leavePending)
        #expect(try b.dataset().text("key") == "ours, later")
        try expectEqual([a, b])
    }

    /// Two peers each have another version. Settling the key settles both.
    @Test(arguments: [Resolution.keepRemote, .keepLocal, .value([7]), .delete])
    func versionsOfTwoPeersWaitSideBySide(_ resolution: Resolution) async throws {
        try put("base", a)
        for peer in [b, c] { try await exchange(a, peer, .lastWriterWins) }
        try put("ours", a)
        try put("of B", b)
        c.clock.putForward(bySeconds: 5)
        try put("of C", c)
        try await expectPending(a, b)
        try await expectPending(a, c)
        let waiting = try a.dataset().pendingConflicts()
        #expect(Set(waiting.map(\.conflict.remote.valueText)) == ["of B", "of C"])
        #expect(Set(waiting.map(\.peer)) == [b.store.replicaID, c.store.replicaID])
        let key = Array("key".utf8)
        #expect(try a.dataset().settle(key, with: resolution))
        #expect(try a.dataset().pendingConflicts().isEmpty)
        let expected: [UInt8]? =
            switch resolution {
            case .keepRemote: Array("of C".utf8)
            case .keepLocal: Array("ours".utf8)
            case .value(let value): value
            case .delete, .stop: nil
            }
        #expect(try a.dataset().get(key) == expected)
        for (from, to) in [(a, b), (a, c), (b, c)] {
            let result = try await exchange(from, to, .custom { _ in .stop })
            #expect(result.conflicts == 0)
        }
        try expectEqual([a, b, c])
    }

    /// What waits for one peer is not in the way of the exchange with another.
    @Test func anotherPeerIsPushedToAllTheSame() async throws {
        try await makeConflict()
        try await expectPending(a, b)
        try put("new", a, "other")
        try await exchange(a, c, .leavePending)
        #expect(try c.dataset().text("other") == "new")
        #expect(try c.dataset().text("key") == "ours")
        #expect(try a.dataset().pendingConflicts().count == 1)
    }

    @Test func thatConflictsWaitIsToldOnceInEachRun() async throws {
        try await makeConflict()
        let options = SynchronizerOptions(exchange: SyncOptions(policy: .leavePending))
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, options: options,
            environment: VirtualEnvironment(passesBySleeping: true))
        for _ in 0..<2 {
            let events = synchronizer.events()
            let report = try await synchronizer.synchronizeEach()
            #expect(report["notes"]?.result?.pending == [Array("key".utf8)])
            #expect(report["notes"]?.result?.pendingCount == 1)
            let labels = await collect(events, completions: 1).map(\.label)
            #expect(labels == ["started all", "pending notes key", "ended notes"])
        }
        await synchronizer.shutdown()
    }

    /// More than may wait stays where it is, and comes when there is room again.
    @Test func whatIsTooMuchToWaitIsNotLost() async throws {
        let count = SyncLimits.pendingMax + 1
        for (replica, value) in [(a, "ours"), (b, "theirs")] {
            var batch = WriteBatch()
            let dataset = try replica.dataset()
            for number in 0..<count { batch.put(value, for: "key \(number)", in: dataset) }
            try replica.store.write(batch)
        }
        let options = SyncOptions(policy: .leavePending, pageRecordsMax: count / 2)
        for isSettled in [false, true] {
            let error = await #expect(throws: SyncError.self) {
                try await a.dataset().synchronize(with: b.transport, options: options)
            }
            #expect(error?.code == .conflictPending)
            let waiting = try a.dataset().pendingConflicts()
            #expect(waiting.count == count - 1)
            let keys = Set(waiting.compactMap(\.conflict.local.keyText))
            #expect(keys.contains("key \(count - 1)") == isSettled)
            guard !isSettled else { break }
            try a.dataset().settle(waiting[0].conflict, as: .keepRemote)
        }
        let result = try await exchange(a, b, .keepRemote)
        #expect(result.conflicts == count - 1)
        try expectEqual([a, b])
    }

    /// A list that is full has room for a later version in place of one that waits.
    @Test func aLaterVersionTakesAPlaceInAFullList() async throws {
        for (replica, value) in [(a, "ours"), (b, "theirs")] {
            var batch = WriteBatch()
            let dataset = try replica.dataset()
            for number in 0..<SyncLimits.pendingMax {
                batch.put(value, for: "key \(number)", in: dataset)
            }
            try replica.store.write(batch)
        }
        try await expectPending(a, b)
        try put("theirs, later", b, "key 7")
        try await expectPending(a, b)
        let waiting = try a.dataset().pendingConflicts(of: Array("key 7".utf8))
        #expect(waiting.map(\.conflict.remote.valueText) == ["theirs, later"])
        #expect(try PendingBook(a.dataset()).entries.count == SyncLimits.pendingMax)
        // It was taken in with the position behind it.
        let reached = try a.dataset().checkpoint(for: b.store.replicaID).pulledThrough
        #expect(try reached == b.dataset().syncCount)
    }

    /// Of a list with several versions of several keys, whatever is selected is the same as what is
    /// picked out of the whole.
    @Test func whatIsSelectedIsThatOfTheWholeList() async throws {
        let seed = Seed.drawn().rawValue
        var random = SeededGenerator(seed: seed)
        let keys = (0..<12).map { "key \($0)" }
        for key in keys { try put("ours", a, key) }
        for peer in [b, c] {
            for key in keys where Int.random(in: 0..<4, using: &random) > 0 {
                let length = Int.random(in: 0..<300, using: &random)
                try put(String(repeating: "x", count: length), peer, key)
            }
            try peer.dataset().delete("key 3")
            try await expectPending(a, peer)
        }
        let all = try a.dataset().pendingConflicts()
        let book = try PendingBook(a.dataset())
        #expect(!all.isEmpty && all.count == book.entries.count, "seed \(seed)")
        for limit in 0...all.count + 1 {
            let given = try a.dataset().pendingConflicts(limit: limit)
            #expect(given == Array(all.prefix(limit)), "seed \(seed)")
        }
        for key in keys.map({ Array($0.utf8) }) {
            let ofKey = all.filter { $0.conflict.key == key }
            #expect(try a.dataset().pendingConflicts(of: key) == ofKey, "seed \(seed)")
            let first = try a.dataset().pendingConflicts(of: key, limit: 1)
            #expect(first == Array(ofKey.prefix(1)), "seed \(seed)")
            let versions = try PendingBook(a.dataset(), of: key).entries.map(\.version)
            #expect(versions == ofKey.map(\.conflict.remote.version), "seed \(seed)")
        }
        // By the documented loop all are settled.
        for waiting in all { try a.dataset().settle(waiting.conflict.key, with: .keepRemote) }
        #expect(try PendingBook(a.dataset()).entries.isEmpty, "seed \(seed)")
    }

    // MARK: - Nothing is lost

    private static func numbers(_ value: [UInt8]?) -> Set<Int> {
        let text = String(decoding: value ?? [], as: UTF8.self)
        return Set(text.split(separator: ",").compactMap { Int($0) })
    }

    private static func text(_ numbers: Set<Int>) -> String {
        numbers.sorted().map(String.init).joined(separator: ",")
    }

    /// Three replicas add numbers to sets; conflicts are merged, or left waiting, as it comes. In
    /// the end every number that was ever added is everywhere.
    @Test(arguments: 0..<8)
    func everythingThatWaitedIsThereInTheEnd(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let replicas = [a, b, c]
        let union = MergePolicy.custom { conflict in
            let both = Self.numbers(conflict.local.value).union(Self.numbers(conflict.remote.value))
            return .value(Array(Self.text(both).utf8))
        }
        var written: [String: Set<Int>] = [:]
        for replica in replicas { _ = try replica.dataset() }
        for step in 0..<80 {
            let from = replicas[Int.random(in: 0..<3, using: &random)]
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let key = "key \(Int.random(in: 0..<4, using: &random))"
                var numbers = Self.numbers(try from.dataset().get(key))
                numbers.insert(step)
                written[key, default: []].insert(step)
                try put(Self.text(numbers), from, key)
            case 5..<9:
                let others = replicas.filter { $0 !== from }
                let to = others[Int.random(in: 0..<2, using: &random)]
                let policies: [MergePolicy] = [.leavePending, union, .custom { _ in .stop }]
                let options = SyncOptions(
                    policy: policies[Int.random(in: 0..<3, using: &random)],
                    pageRecordsMax: Int.random(in: 1..<4, using: &random),
                    recordsPerRunMax: Bool.random(using: &random) ? 2 : nil)
                let outcome = await from.store.synchronizeEach(
                    with: to.transport, options: options)
                let code = outcome.firstError?.code
                #expect(code == nil || code == .conflictPending, "seed \(seed)")
            default:
                for waiting in try from.dataset().pendingConflicts() {
                    let both = Self.numbers(waiting.conflict.local.value)
                        .union(Self.numbers(waiting.conflict.remote.value))
                    try from.dataset().settle(
                        waiting.conflict, as: .value(Array(Self.text(both).utf8)))
                    break
                }
            }
        }
        for _ in 0..<4 {
            for (from, to) in [(a, b), (b, c), (c, a)] { try await exchange(from, to, union) }
        }
        try expectEqual(replicas, "seed \(seed)")
        for (key, numbers) in written {
            #expect(Self.numbers(try a.dataset().get(key)) == numbers, "seed \(seed), \(key)")
        }
        for replica in replicas {
            #expect(try replica.dataset().pendingConflicts().isEmpty, "seed \(seed)")
            #expect(try !replica.dataset().holdsBackVectors(), "seed \(seed)")
        }
    }

    /// What is not an entry of this form keeps vectors from being joined, but is not listed.
    @Test func anEntryOfALaterFormIsNotOverlooked() async throws {
        try put("1", a)
        let list = TimedNotes(which: .pending, dataset: try a.dataset())
        try list.home().put([2, 9, 9], for: list.key(at: list.nextTime()))
        #expect(try a.dataset().pendingConflicts().isEmpty)
        try put("2", b, "other")
        try await exchange(a, b, .leavePending)
        #expect(try a.dataset().text("other") == "2")
        let theirs = try #require(try b.dataset().record(for: "other")?.version.dot)
        #expect(try !a.dataset().vector.contains(theirs))
    }

    @Test func longReasonsAreCut() {
        #expect("abc".cut(toBytes: 3) == "abc")
        #expect("abcd".cut(toBytes: 3) == "abc")
        #expect("aüü".cut(toBytes: 4) == "aü")
        #expect("ü".cut(toBytes: 1) == "")
        struct Long: Error, CustomStringConvertible {
            let description = String(repeating: "x", count: 5_000)
        }
        let text = String(repeating: "x", count: SyncLimits.reasonBytesMax)
        #expect(PendingConflict.Reason(Long()) == .failed(text))
    }
}
