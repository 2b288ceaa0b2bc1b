import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Mergeable values as records of a dataset: changed by many at once, exchanged, copied, deleted.
struct MergeableDatasetTests {
    private let directory = TemporaryDirectory()

    private func replicas(_ names: String...) throws -> [TestReplica] {
        try names.map { try TestReplica($0, in: directory) }
    }

    private func add(_ amount: Int, _ replica: TestReplica) throws {
        try replica.dataset().update("n", as: Counter.self) { $0.add(amount, $1) }
    }

    private func value(_ replica: TestReplica) throws -> Int? {
        try replica.dataset().value(of: "n", as: Counter.self)?.value
    }

    private func exchange(_ from: TestReplica, _ to: TestReplica) async throws {
        try await from.dataset().synchronize(
            with: to.transport, options: SyncOptions(policy: .mergeable))
    }

    /// Eight writers at one key, by compare-and-set.
    @Test func concurrentWritersLoseNothing() throws {
        let replica = try replicas("a")[0]
        let dataset = try replica.dataset()
        let work: @Sendable () throws -> Void = {
            for _ in 0..<250 {
                try dataset.update("n", as: Counter.self) { $0.add(1, $1) }
            }
        }
        try runOnThreads(Array(repeating: work, count: 8))
        #expect(try value(replica) == 2_000)
    }

    @Test func aChangeIsMadeAgainToWhatSomebodyElseWrote() throws {
        let replica = try replicas("a")[0]
        let dataset = try replica.dataset()
        var calls = 0
        let result = try dataset.update("n", as: Counter.self) { counter, turn in
            calls += 1
            if calls == 1 { try add(10, replica) }
            counter.add(1, turn)
        }
        #expect(calls == 2)
        #expect(result.value == 11)
        #expect(try value(replica) == 11)
        #expect(throws: StoreError.self) {
            try dataset.update("n", as: Counter.self, attemptsMax: 3) { counter, turn in
                try add(1, replica)
                counter.add(1, turn)
            }
        }
        #expect(try value(replica) == 14)
    }

    @Test func whatIsNotChangedIsNotWritten() throws {
        let dataset = try replicas("a")[0].dataset()
        try dataset.update("n", as: Counter.self) { $0.add(1, $1) }
        let count = try dataset.syncCount
        try dataset.update("n", as: Counter.self) { $0.add(0, $1) }
        #expect(try dataset.syncCount == count)
    }

    @Test func anUpdateKeepsTheExpiry() throws {
        let dataset = try replicas("a")[0].dataset()
        let turn = MergeTurn(opening: 1, time: HybridTime(rawValue: 1))
        let end = try dataset.expiry(after: .seconds(3_600))
        try dataset.put(Counter(turn).encoded, for: Array("n".utf8), expiresAt: end)
        try dataset.update("n", as: Counter.self) { $0.add(1, $1) }
        #expect(try dataset.record(for: "n")?.expiresAt == end)
    }

    @Test func otherBytesAreATypedError() throws {
        let dataset = try replicas("a")[0].dataset()
        try dataset.put("text", for: "n")
        #expect(throws: MergeableError.self) { try dataset.value(of: "n", as: Counter.self) }
        #expect(throws: MergeableError.self) {
            try dataset.update("n", as: Counter.self) { $0.add(1, $1) }
        }
        #expect(try dataset.text("n") == "text")
        #expect(try dataset.value(of: "none", as: Counter.self) == nil)
        try dataset.update("s", as: GrowOnlySet.self) { set, _ in set.insert("x") }
        #expect(throws: MergeableError.self) { try dataset.value(of: "s", as: Counter.self) }
    }

    @Test func countsOfReplicasAddUp() async throws {
        let all = try replicas("a", "b", "c")
        try add(1, all[0])
        for replica in all[1...] { try await exchange(replica, all[0]) }
        for (amount, replica) in zip([10, 100, 1_000], all) { try add(amount, replica) }
        for _ in 0..<2 {
            for replica in all[1...] { try await exchange(replica, all[0]) }
        }
        #expect(try all.map { try value($0) } == [1_111, 1_111, 1_111])
        try expectEqual(all)
    }

    /// The directory is put back from a copy: the store goes on under the id it had, and counts
    /// before it meets anybody who knows better. Two of its writes are lost, and it makes one.
    ///
    /// All of that may happen within a millisecond, so that no clock can tell what came first.
    @Test(arguments: [true, false])
    func whatACopyCountsIsNotLost(_ losesTheSameDot: Bool) async throws {
        let all = try replicas("a", "b")
        try add(1, all[0])
        try all[0].backUp()
        if losesTheSameDot {
            try add(10, all[0])
            try all[0].dataset().put("other", for: "other")
        } else {
            try add(4, all[0])
            try add(6, all[0])
        }
        try await exchange(all[0], all[1])
        let id = all[0].store.replicaID
        try all[0].restore()
        try add(100, all[0])
        #expect(try value(all[0]) == 101)
        try await exchange(all[0], all[1])
        #expect(all[0].store.replicaID != id)
        try add(1_000, all[0])
        try await exchange(all[0], all[1])
        let values = try all.map { try value($0) }
        #expect(values == [1_111, 1_111])
        try expectEqual(all)
    }

    /// A value that is deleted and made anew does not mix up its counts with those from before,
    /// which a replica that does not know of the deletion still has.
    @Test func aValueMadeAnewCountsAnew() async throws {
        let all = try replicas("a", "b")
        try add(5, all[0])
        try await exchange(all[0], all[1])
        try add(10, all[1])
        try all[0].dataset().delete("n")
        try add(1, all[0])
        #expect(try value(all[0]) == 1)
        try await exchange(all[0], all[1])
        #expect(try all.map { try value($0) } == [16, 16])
        try expectEqual(all)
    }

    @Test func aDeletionYieldsToAChange() async throws {
        let all = try replicas("a", "b")
        try add(5, all[0])
        try await exchange(all[0], all[1])
        try add(1, all[1])
        try all[0].dataset().delete("n")
        let result = try await all[0].dataset().synchronize(
            with: all[1].transport, options: SyncOptions(policy: .mergeable))
        #expect(result.reports.map(\.lost).map(\.count) == [1])
        #expect(try all.map { try value($0) } == [6, 6])
        try expectEqual(all)
    }

    @Test func whatCannotBeMergedIsLeftToTheLastWriterAndReported() async throws {
        let all = try replicas("a", "b")
        try add(5, all[0])
        try all[1].dataset().put("text", for: "n")
        let result = try await all[0].dataset().synchronize(
            with: all[1].transport, options: SyncOptions(policy: .mergeable))
        #expect(result.reports.count == 1)
        #expect(result.reports.first?.obstacle != nil)
        #expect(result.reports.first?.lost.map(\.path) == [.whole])
        try expectEqual(all)
    }

    /// A type that the module does not know.
    @Test func aTypeOfOnesOwn() async throws {
        let all = try replicas("a", "b")
        let key = Array("k".utf8)
        try all[0].dataset().put(Longest(text: "ab").encoded, for: key)
        try all[1].dataset().put(Longest(text: "abc").encoded, for: key)
        try await all[0].dataset().synchronize(
            with: all[1].transport, options: SyncOptions(policy: .merging(Longest.self)))
        #expect(try all[1].dataset().value(of: key, as: Longest.self)?.text == "abc")
        try expectEqual(all)
    }

    private struct Longest: MergeableValue {
        var text: String

        init(text: String) { self.text = text }
        init(_ turn: MergeTurn) { text = "" }
        init(decoding bytes: [UInt8]) throws(MergeableError) {
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw MergeableError("not UTF-8")
            }
            self.text = text
        }
        var encoded: [UInt8] { Array(text.utf8) }
        mutating func merge(_ other: Longest) {
            let (ours, theirs) = (text.utf8.count, other.text.utf8.count)
            if theirs > ours || theirs == ours && other.text > text { text = other.text }
        }
    }

    // MARK: - Against a model

    /// Three replicas change a counter and a set at random, exchange at random, and are
    /// reopened; in the end they hold what the model says.
    @Test func randomReplicasConvergeToTheModel() async throws {
        print("randomReplicasConvergeToTheModel: seeds from \(baseSeed)")
        for seed in baseSeed..<baseSeed + 30 {
            var json = RandomJSON(seed: seed)
            let directory = TemporaryDirectory()
            let all = try ["a", "b", "c"].map { try TestReplica($0, in: directory) }
            var sum = 0
            var highest = Int.min
            var added: Set<[UInt8]> = []
            for _ in 0..<40 {
                let replica = all[json.below(3)]
                switch json.below(8) {
                case 0, 1:
                    let amount = json.below(200) - 100
                    sum += amount
                    try replica.dataset().update("n", as: Counter.self) { $0.add(amount, $1) }
                case 2:
                    let score = json.below(1_000)
                    highest = max(highest, score)
                    try replica.dataset().update("m", as: Maximum<Int>.self) { best, _ in
                        best.offer(score)
                    }
                case 3, 4:
                    let text = json.text()
                    added.insert(Array(text.utf8))
                    try replica.dataset().update("g", as: GrowOnlySet.self) { set, _ in
                        set.insert(text)
                    }
                case 5: try replica.reopen()
                default:
                    let other = all[json.below(3)]
                    if other !== replica { try await exchange(replica, other) }
                }
            }
            for _ in 0..<2 {
                try await exchange(all[0], all[1])
                try await exchange(all[2], all[1])
            }
            for replica in all {
                #expect(try value(replica) ?? 0 == sum, "seed \(seed)")
                let dataset = try replica.dataset()
                let best = try dataset.value(of: "m", as: Maximum<Int>.self)?.value
                #expect(best ?? .min == highest, "seed \(seed)")
                let texts = try dataset.value(of: "g", as: GrowOnlySet.self)?.elements ?? []
                #expect(Set(texts) == added, "seed \(seed)")
            }
            try expectEqual(all, "seed \(seed)")
            for replica in all { try replica.store.close() }
        }
    }

    /// Of a set, as in its paper: what nobody removed who had seen it is there.
    @Test func anAdditionThatARemovalHasNotSeenStays() async throws {
        let all = try replicas("a", "b")
        func change(
            _ replica: TestReplica, _ body: (inout ObservedRemoveSet, MergeTurn) -> Void
        ) throws {
            try replica.dataset().update("s", as: ObservedRemoveSet.self) { body(&$0, $1) }
        }
        try change(all[0]) { set, turn in
            for text in ["seen", "again", "gone"] { set.insert(text, turn) }
        }
        try await exchange(all[0], all[1])
        try change(all[0]) { set, turn in
            set.insert("again", turn)
            set.insert("new", turn)
            set.remove("gone")
        }
        try change(all[1]) { set, _ in
            set.remove("again")
            set.remove("new")
        }
        try await exchange(all[0], all[1])
        for replica in all {
            let set = try #require(
                try replica.dataset().value(of: "s", as: ObservedRemoveSet.self))
            #expect(set.elements == ["again", "new", "seen"].map { Array($0.utf8) })
        }
        try expectEqual(all)
    }

    /// Fields are merged one by one; of one field the later write stays.
    @Test func fieldsAreMergedOneByOne() async throws {
        let all = try replicas("a", "b")
        func set(_ replica: TestReplica, _ value: String?, _ name: String) throws {
            try replica.dataset().update("r", as: RegisterMap.self) { map, turn in
                if let value { map.set(value, for: name, turn) } else { map.remove(name, turn) }
            }
        }
        for name in ["name", "mail", "town"] { try set(all[0], "old", name) }
        try await exchange(all[0], all[1])
        try set(all[0], "Ada", "name")
        try set(all[1], nil, "town")
        try set(all[1], "ada@example.org", "mail")
        try await exchange(all[0], all[1])
        for replica in all {
            let map = try #require(try replica.dataset().value(of: "r", as: RegisterMap.self))
            #expect(map.text("name") == "Ada" && map.text("mail") == "ada@example.org")
            #expect(map.names.count == 2 && map.text("town") == nil)
        }
        try expectEqual(all)
    }
}
