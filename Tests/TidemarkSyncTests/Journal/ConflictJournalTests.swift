import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What the journal keeps of conflicts that were settled here, and for how long.
struct ConflictJournalTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private func options(
        _ policy: MergePolicy, _ journal: SyncJournalOptions = SyncJournalOptions()
    ) -> SyncOptions {
        var options = SyncOptions(policy: policy)
        options.journal = journal
        return options
    }

    /// Both sides have changed the key since they last met; the other side's is the later one.
    private func makeConflict(_ key: String = "key") async throws {
        try a.dataset().put("base", for: key)
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours", for: key)
        b.clock.putForward(bySeconds: 1)
        try b.dataset().put("theirs", for: key)
    }

    private func synchronize(_ options: SyncOptions) async throws {
        try await a.dataset().synchronize(with: b.transport, options: options)
    }

    struct Expected: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let policy: MergePolicy
        let settler: SettledConflict.Policy
        let decision: SyncResult.Settlement.Decision
        let outcome: String?
    }

    static let outcomes = [
        Expected(
            testDescription: "last writer wins", policy: .lastWriterWins,
            settler: .lastWriterWins, decision: .remote, outcome: "theirs"),
        Expected(
            testDescription: "keep local", policy: .keepLocal, settler: .keepLocal,
            decision: .local, outcome: "ours"),
        Expected(
            testDescription: "keep remote", policy: .keepRemote, settler: .keepRemote,
            decision: .remote, outcome: "theirs"),
        Expected(
            testDescription: "auto-merge", policy: .autoMerge(AutoMerge()), settler: .autoMerge,
            decision: .remote, outcome: "theirs"),
        Expected(
            testDescription: "mergeable", policy: .mergeable, settler: .mergeable,
            decision: .remote, outcome: "theirs"),
        Expected(
            testDescription: "custom: value", policy: .custom { _ in .value(Array("both".utf8)) },
            settler: .custom, decision: .merged, outcome: "both"),
        Expected(
            testDescription: "custom: delete", policy: .custom { _ in .delete },
            settler: .custom, decision: .deleted, outcome: nil),
    ]

    @Test(arguments: outcomes)
    func everythingAboutASettledConflictIsKept(_ expected: Expected) async throws {
        try await makeConflict()
        let journal = SyncJournalOptions(scope: .everything, policyVersion: 9)
        let before = try #require(try a.dataset().record(for: "key"))
        try await synchronize(options(expected.policy, journal))
        for isReopened in [false, true] {
            if isReopened { try a.reopen() }
            let entries = try a.dataset().settledConflicts()
            try #require(entries.count == 1)
            let entry = entries[0]
            #expect(entry.dataset == "notes" && entry.keyText == "key")
            #expect(entry.peer == b.store.replicaID && entry.exchange != nil)
            #expect(entry.policy == expected.settler && entry.policyVersion == 9)
            #expect(entry.decision == expected.decision)
            #expect(entry.ancestor?.content.valueText == "base")
            #expect(entry.local.content.valueText == "ours")
            #expect(entry.local.version == before.version)
            #expect(entry.remote.content.valueText == "theirs")
            #expect(entry.remote.version.author == "b")
            #expect(entry.outcome.valueText == expected.outcome)
            let record = try #require(
                try a.dataset().record(for: "key", includingDeleted: true))
            #expect(entry.write == record.version.dot)
            #expect(record.valueText == expected.outcome)
            #expect(entry.time.milliseconds >= before.version.time.milliseconds)
        }
        try expectEqual([a, b])
    }

    @Test func whatTheApplicationSettlesIsKept() async throws {
        try await makeConflict()
        let pending = Box<Conflict>()
        let leaving = SyncOptions(
            policy: .leavePending, onPending: { conflict in pending.set(conflict) })
        await #expect(throws: SyncError.self) { try await synchronize(leaving) }
        #expect(try a.dataset().settledConflicts().isEmpty)
        let conflict = try #require(pending.value)
        try a.dataset().settle(
            conflict, as: .value(Array("both".utf8)),
            journal: SyncJournalOptions(policyVersion: 4))
        let entry = try #require(try a.dataset().settledConflicts().first)
        #expect(entry.policy == .application && entry.policyVersion == 4)
        #expect(entry.decision == .merged && entry.outcome.valueText == "both")
        let record = try #require(try a.dataset().record(for: "key"))
        #expect(entry.write == record.version.dot)
    }

    @Test func byDefaultTheLastWriterLeavesNoEntry() async throws {
        try await makeConflict()
        try await synchronize(options(.lastWriterWins))
        #expect(try a.dataset().settledConflicts().isEmpty)
        #expect(try a.store.existingSystemDataset(.conflicts) == nil)
    }

    @Test func switchedOffItKeepsNothing() async throws {
        try await makeConflict()
        try await synchronize(options(.keepLocal, .off))
        #expect(try a.store.existingSystemDataset(.conflicts) == nil)
        try expectEqual([a, b])
    }

    @Test func theOldestGoWhenThereAreTooMany() async throws {
        let journal = SyncJournalOptions(conflictsMax: 3)
        for number in 0..<5 {
            try await makeConflict("key \(number)")
            try await synchronize(options(.keepLocal, journal))
        }
        let kept = try a.dataset().settledConflicts().map(\.keyText)
        #expect(kept == ["key 4", "key 3", "key 2"])
        // Of more in one page than may be kept the last ones stay.
        for number in 0..<6 { try a.dataset().put("base", for: "page \(number)") }
        try await synchronize(SyncOptions())
        for number in 0..<6 {
            try a.dataset().put("ours", for: "page \(number)")
            try b.dataset().put("theirs", for: "page \(number)")
        }
        try await synchronize(options(.keepLocal, journal))
        let last = try a.dataset().settledConflicts().map(\.keyText)
        #expect(last == ["page 5", "page 4", "page 3"])
    }

    @Test func theOnesThatAreTooOldGo() async throws {
        let journal = SyncJournalOptions(age: .seconds(60))
        try await makeConflict("first")
        try await synchronize(options(.keepLocal, journal))
        for replica in [a, b] { replica.clock.putForward(bySeconds: 61) }
        #expect(try a.dataset().settledConflicts().count == 1)
        try await makeConflict("second")
        try await synchronize(options(.keepLocal, journal))
        #expect(try a.dataset().settledConflicts().map(\.keyText) == ["second"])
    }

    @Test func longValuesAreLeftOut() async throws {
        try await makeConflict()
        let long = String(repeating: "x", count: 100)
        try a.dataset().put(long, for: "key")
        let journal = SyncJournalOptions(valueBytesMax: 99)
        try await synchronize(options(.keepLocal, journal))
        let entry = try #require(try a.dataset().settledConflicts().first)
        #expect(entry.local.content == .leftOut(byteCount: 100))
        #expect(entry.outcome == .leftOut(byteCount: 100))
        #expect(entry.remote.content.valueText == "theirs")
        #expect(try b.dataset().text("key") == long)
    }

    @Test func itIsListedByKeyAndTimeAndForgotten() async throws {
        for key in ["x", "y", "x"] {
            try await makeConflict(key)
            try await synchronize(options(.keepLocal))
        }
        let notes = try a.dataset()
        let all = try notes.settledConflicts()
        #expect(all.map(\.keyText) == ["x", "y", "x"])
        #expect(all.map(\.time) == all.map(\.time).sorted(by: >))
        #expect(try notes.settledConflicts(of: Array("x".utf8)) == [all[0], all[2]])
        #expect(try notes.settledConflicts(of: Array("x".utf8), limit: 1) == [all[0]])
        #expect(try notes.settledConflicts(since: all[1].time) == Array(all[..<2]))
        #expect(try notes.settledConflicts(limit: 0).isEmpty)
        // Of another dataset, whose name begins with the same letters.
        #expect(try a.dataset("notes2").settledConflicts().isEmpty)
        #expect(try a.dataset("note").settledConflicts().isEmpty)
        try notes.forgetSettledConflicts(before: all[1].time)
        #expect(try notes.settledConflicts() == Array(all[..<2]))
        try notes.forgetSettledConflicts()
        #expect(try notes.settledConflicts().isEmpty)
    }

    @Test func numbersAreMovedIntoTheirBounds() {
        let low = SyncJournalOptions(
            conflictsMax: -1, age: .seconds(-1), valueBytesMax: -1, exchangesMax: -1
        ).bounded
        #expect(low.conflictsMax == 0 && low.age == .zero)
        #expect(low.valueBytesMax == 0 && low.exchangesMax == 0)
        let high = SyncJournalOptions(
            conflictsMax: .max, age: .seconds(Int64.max), valueBytesMax: .max, exchangesMax: .max
        ).bounded
        #expect(high.conflictsMax == SyncLimits.journalConflictsMax)
        #expect(high.age == SyncLimits.journalAgeMax)
        #expect(high.valueBytesMax == SyncLimits.journalValueBytesMax)
        #expect(high.exchangesMax == SyncLimits.journalExchangesMax)
        #expect(SyncOptions(policy: .keepLocal).bounded.journal == SyncJournalOptions())
    }

    /// Over random writes and exchanges: there is one entry for each conflict that was settled, its
    /// sides met without knowing of each other, and its write is in the history of the key.
    @Test(arguments: 0..<4)
    func thereIsOneEntryForEachConflict(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let policies: [MergePolicy] = [
            .keepLocal, .keepRemote, .lastWriterWins,
            .custom { .value(($0.local.value ?? []) + ($0.remote.value ?? [])) },
        ]
        var settled: [[UInt8]] = []
        for _ in 0..<15 {
            for _ in 0..<Int.random(in: 1..<9, using: &random) {
                let replica = Bool.random(using: &random) ? a : b
                let key = "key \(Int.random(in: 0..<5, using: &random))"
                if Int.random(in: 0..<5, using: &random) == 0 {
                    try replica.dataset().delete(key)
                } else {
                    try replica.dataset().put("\(random.next() % 1_000)", for: key)
                }
            }
            _ = try a.dataset()
            var options = options(
                policies.randomElement(using: &random) ?? .keepLocal,
                SyncJournalOptions(scope: .everything))
            options.pageRecordsMax = Int.random(in: 1..<4, using: &random)
            let result = try await a.dataset().synchronize(with: b.transport, options: options)
            settled += result.settled.map(\.key)
        }
        let entries = try a.dataset().settledConflicts()
        #expect(entries.reversed().map(\.key) == settled, "seed \(seed)")
        #expect(!entries.isEmpty, "seed \(seed)")
        for entry in entries {
            let (local, remote) = (entry.local.version, entry.remote.version)
            #expect(local.relation(to: remote) == .concurrent, "seed \(seed)")
            if let ancestor = entry.ancestor?.version.dot {
                #expect(local.vector.contains(ancestor), "seed \(seed)")
                #expect(remote.vector.contains(ancestor), "seed \(seed)")
            }
            let record = try #require(
                try a.dataset().record(for: entry.key, includingDeleted: true))
            #expect(record.version.vector.contains(entry.write), "seed \(seed)")
            #expect(record.version.vector.contains(remote.dot), "seed \(seed)")
        }
        try expectEqual([a, b], "seed \(seed)")
    }

    // MARK: - As bytes

    private static func entry() -> SettledConflict {
        func side(_ counter: UInt64, _ value: [UInt8]?) -> Record {
            Record(
                key: [0, 255], value: value,
                version: Version(
                    dot: Dot(replica: MessageTests.a, counter: counter),
                    vector: VersionVector([Dot(replica: MessageTests.b, counter: 300)]),
                    time: HybridTime(rawValue: 1 << 40), author: "ünï"),
                syncCount: .zero, isDirty: false, expiresAt: value == nil ? nil : 5_000)
        }
        let conflict = Conflict(
            dataset: "notes", key: [0, 255], ancestry: .known(side(1, [1])),
            local: side(2, [2, 2]), remote: side(3, nil))
        let outcome = conflict.settled(as: .value([7]))
        var source = ConflictJournal.Source(policy: .custom)
        source.peer = MessageTests.b
        source.exchange = .max
        guard let outcome else { preconditionFailure("a value settles") }
        return SettledConflict(
            outcome, at: HybridTime(rawValue: 77), by: source, version: .max, valueBytesMax: 1)
    }

    /// With the stamp that the store adds: of replica 1, 2 the write 9.
    private static func bytes() -> [UInt8] {
        var writer = ByteWriter()
        writer.append(entry().encoded)
        for number in [1, 2, 9] as [UInt64] { writer.putFixed(number) }
        return writer.bytes
    }

    @Test func whatIsWrittenIsRead() throws {
        let time = HybridTime(rawValue: 77)
        let read = try #require(
            SettledConflict(dataset: "notes", time: time, decoding: Self.bytes()))
        let entry = Self.entry()
        #expect(read.write == Dot(replica: MessageTests.a, counter: 9))
        #expect(read.key == entry.key && read.time == entry.time && read.peer == entry.peer)
        #expect(read.exchange == .max && read.policy == .custom && read.policyVersion == .max)
        #expect(read.ancestry == entry.ancestry && read.local == entry.local)
        #expect(read.local.content == .leftOut(byteCount: 2))
        #expect(read.remote == entry.remote && read.decision == .merged)
        #expect(read.outcome == .value([7]) && read.outcomeExpiresAt == nil)
    }

    @Test func damagedBytesAreNoEntry() {
        let (bytes, time) = (Self.bytes(), HybridTime(rawValue: 77))
        for count in bytes.indices {
            #expect(
                SettledConflict(
                    dataset: "notes", time: time, decoding: Array(bytes[..<count])) == nil)
        }
        #expect(SettledConflict(dataset: "notes", time: time, decoding: bytes + [0]) == nil)
        // A later form, an unknown policy and an unknown decision.
        for (index, byte) in [(0, 2), (1, 99), (12, 9)] as [(Int, UInt8)] {
            var forged = bytes
            forged[index] = byte
            #expect(SettledConflict(dataset: "notes", time: time, decoding: forged) == nil)
        }
        // Whatever else is there is read or refused, and does not trap.
        for index in bytes.indices {
            for byte in [0, 1, 2, 0x7F, 0x80, 0xFF] as [UInt8] {
                var forged = bytes
                forged[index] = byte
                _ = SettledConflict(dataset: "notes", time: time, decoding: forged)
            }
        }
    }

    @Test func anEntryOfALaterFormIsPassedBy() async throws {
        try await makeConflict()
        try await synchronize(options(.keepLocal))
        let notes = try a.dataset()
        let list = TimedNotes(which: .conflicts, dataset: notes)
        try list.home().put([2, 9, 9], for: list.key(at: list.nextTime()))
        #expect(try notes.settledConflicts().count == 1)
        #expect(try notes.settledConflicts(limit: 1).count == 1)
    }
}
