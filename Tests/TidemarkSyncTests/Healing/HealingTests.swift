import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// A block that is found damaged is healed from a peer that has the records; where a doubt is left
/// it stays, and the report says why.
struct HealingTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private static func key(_ number: Int) -> String { "\(100_000 + number)" }

    private func fill(
        _ replica: TestReplica, _ numbers: some Sequence<Int>, _ text: String
    ) throws {
        let dataset = try replica.dataset()
        for number in numbers { try dataset.put("\(text) \(number)", for: Self.key(number)) }
    }

    /// Two runs in `a`, and the same in all three.
    private func prepare() async throws {
        try fill(a, 0..<3_000, "first")
        try a.store.sealAll()
        try fill(a, stride(from: 0, to: 3_000, by: 3), "second")
        for number in stride(from: 1, to: 3_000, by: 5) { try a.dataset().delete(Self.key(number)) }
        try a.store.sealAll()
        for other in [b, c] {
            try await other.dataset().synchronize(with: a.transport)
            try await a.dataset().synchronize(with: other.transport)
        }
        try expectEqual([a, b, c])
    }

    /// Damages that many blocks in `a`, none of which holds what the store keeps for itself.
    private func damage(_ count: Int, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try a.damage { blocks in
            let chosen = try blocks.all().filter { !$0.isAtEnd }.shuffled(using: &random)
            for block in chosen.prefix(count) { try blocks.damage(block, &random) }
        }
    }

    /// How many places verification finds damaged, however often it meets each.
    private func places(_ replica: TestReplica) throws -> Int {
        Set(try replica.store.verify().damages.map(\.location)).count
    }

    private func expectWhole(_ replica: TestReplica) throws {
        #expect(try replica.store.verify().damages.isEmpty)
        #expect(try replica.store.damage().isEmpty)
    }

    // MARK: - Healed

    @Test(arguments: 0..<12)
    func whateverBlocksAreDamaged(run: UInt64) async throws {
        let seed = baseSeed + run
        print("whateverBlocksAreDamaged: TIDEMARK_SEED=\(seed)")
        try await prepare()
        try damage(1 + Int(run), seed: seed)
        let found = try places(a)
        #expect(found > 0)
        #expect(try a.dataset().damage().count >= found, "seed \(seed)")
        let report = try await a.store.heal(from: b.transport)
        #expect(report.isComplete && report.blocksHealed == found, "seed \(seed): \(report)")
        try expectWhole(a)
        try expectEqual([a, b, c], "seed \(seed)")
        // Nothing of it is news to anybody, and what is written goes on from there.
        try fill(a, [7, 8], "third")
        try await a.dataset().synchronize(with: b.transport)
        try await c.dataset().synchronize(with: a.transport)
        try expectEqual([a, b, c], "seed \(seed)")
        try a.reopen()
        try expectWhole(a)
        try expectEqual([a, b], "seed \(seed)")
    }

    /// No dot, no vector and no version is other than it was.
    @Test func versionsStay() async throws {
        try await prepare()
        let before = try a.dataset().records(includingDeleted: true).collect()
        let vector = try a.dataset().vector
        try damage(3, seed: baseSeed)
        #expect(try !a.store.verify().damages.isEmpty)
        let report = try await a.dataset().heal(from: b.transport)
        #expect(report.isComplete && report.recordsRestored > 0)
        let after = try a.dataset().records(includingDeleted: true).collect()
        #expect(before.map(\.version) == after.map(\.version))
        #expect(before.map(\.value) == after.map(\.value))
        #expect(try a.dataset().vector == vector)
        #expect(try a.dataset().syncCount.rawValue > 0)
    }

    /// Only one block was met by a reader; the others are met when their segment is written anew.
    @Test func whatIsMetOnTheWayIsHealedToo() async throws {
        try await prepare()
        try damage(8, seed: baseSeed)
        for number in 0..<3_000 {
            guard try a.store.damage().isEmpty else { break }
            _ = try? a.dataset().get(Self.key(number))
        }
        #expect(try !a.store.damage().isEmpty)
        let report = try await a.store.heal(from: b.transport)
        #expect(report.isComplete, "\(report)")
        _ = try a.store.verify()
        _ = try await a.store.heal(from: b.transport)
        try expectWhole(a)
        try expectEqual([a, b])
    }

    @Test func aPeerThatIsAheadBringsWhatItHas() async throws {
        try await prepare()
        try fill(b, 0..<3_000, "later")
        try damage(4, seed: baseSeed)
        _ = try a.store.verify()
        #expect(try await a.store.heal(from: b.transport).isComplete)
        try expectWhole(a)
        let texts = try (0..<3_000).compactMap { try a.dataset().text(Self.key($0)) }
        #expect(texts.contains { $0.hasPrefix("later") })
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
    }

    /// What is written here while records are on their way stands.
    @Test func aWriteMeanwhileStands() async throws {
        try await prepare()
        try damage(2, seed: baseSeed)
        _ = try a.store.verify()
        let store = a.store
        let keys = (0..<3_000).map(Self.key)
        let hasWritten = Mutex(false)
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind == "fetch", point.moment == .beforeAnswer,
                hasWritten.withLock({ has -> Bool in
                    defer { has = true }
                    return !has
                })
            else { return }
            let dataset = try store.dataset("notes")
            for key in keys { try dataset.put("mine", for: key) }
        }
        #expect(try await a.store.heal(from: transport).isComplete)
        #expect(hasWritten.withLock { $0 })
        try expectWhole(a)
        for key in keys { #expect(try a.dataset().text(key) == "mine") }
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
    }

    @Test func anIndexIsMadeAnewWithoutThePeer() async throws {
        try await prepare()
        // What a log names for the first time is looked up in all segments when it is replayed.
        try a.store.sealAll()
        var random = SeededGenerator(seed: baseSeed)
        try a.damage { try $0.damageIndex(&random) }
        #expect(try !a.store.verify().damages.isEmpty)
        #expect(try a.store.damage().allSatisfy { $0.kind == .index })
        let transport = InterposedTransport(b.responder) { _ in }
        let report = try await a.store.heal(from: transport)
        #expect(report.isComplete && report.blocksHealed == 1)
        #expect(transport.messageCount == 0)
        try expectWhole(a)
        try expectEqual([a, b])
    }

    @Test func aLargeValueComesBack() async throws {
        var random = SeededGenerator(seed: baseSeed)
        let value = (0..<5_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        try fill(a, 0..<500, "small")
        try a.dataset().put(value, for: Array("large".utf8))
        try await b.dataset().synchronize(with: a.transport)
        try await a.dataset().synchronize(with: b.transport)
        // Away from what the store keeps for itself.
        let other = try a.store.dataset("zzz")
        for number in 0..<500 { try other.put("filling \(number)", for: Self.key(number)) }
        try await b.store.dataset("zzz").synchronize(with: a.transport)
        try await a.store.dataset("zzz").synchronize(with: b.transport)
        try a.store.sealAll()
        try a.damage { try $0.damageValue(&random) }
        #expect(try !a.store.verify().damages.isEmpty)
        let damage = try a.store.damage()
        #expect(damage.map(\.kind) == [.value])
        #expect(damage.first?.keys == KeyRange.only("large"))
        #expect(try await a.store.heal(from: b.transport).isComplete)
        #expect(try a.dataset().get(Array("large".utf8)) == value)
        try expectWhole(a)
        try expectEqual([a, b])
    }

    /// The peer's greeting claims what it holds because of its date, and its answers do not.
    @Test func aPeerThatHoldsAWriteHealsWhatHadNotSeenIt() async throws {
        try await prepare()
        c.clock.putForward(bySeconds: 3_600)
        try fill(c, [5], "future")
        try await b.dataset().synchronize(with: c.transport)
        #expect(try b.dataset().quarantined().count == 1)
        try damage(3, seed: baseSeed)
        #expect(try !a.store.verify().damages.isEmpty)
        #expect(try await a.store.heal(from: b.transport).isComplete)
        try expectWhole(a)
        try expectEqual([a, b])
    }

    // MARK: - Not healed

    @Test func aPeerThatHoldsWhatCountsHereHealsNothing() async throws {
        try await prepare()
        for replica in [a, c] { replica.clock.putForward(bySeconds: 3_600) }
        try fill(c, [5], "future")
        for replica in [a, b] { try await replica.dataset().synchronize(with: c.transport) }
        #expect(try a.dataset().text(Self.key(5)) == "future 5")
        #expect(try b.dataset().quarantined().count == 1)
        try damage(3, seed: baseSeed)
        #expect(try !a.store.verify().damages.isEmpty)
        let report = try await a.store.heal(from: b.transport)
        #expect(!report.isComplete && report.recordsRestored == 0)
        for left in report.unhealed {
            #expect(left.reason == .peerIsBehind)
            #expect(left.lacking.dots.map(\.replica) == [c.store.replicaID])
        }
        #expect(try await a.store.heal(from: c.transport).isComplete)
        try expectWhole(a)
        try expectEqual([a, c])
    }

    @Test func aPeerThatIsBehindHealsNothing() async throws {
        try await prepare()
        try fill(a, [5], "news")
        try await c.dataset().synchronize(with: a.transport)
        try damage(3, seed: baseSeed)
        let found = try a.store.verify().damages
        let known = Set(try a.store.damage())
        let report = try await a.store.heal(from: b.transport)
        #expect(!report.isComplete && report.blocksHealed == 0 && report.recordsRestored == 0)
        #expect(Set(report.unhealed.map(\.damage)) == known)
        for left in report.unhealed {
            #expect(left.reason == .peerIsBehind)
            #expect(left.lacking.dots.map(\.replica) == [a.store.replicaID])
        }
        #expect(Set(try a.store.verify().damages) == Set(found))
        // Another one has seen it.
        #expect(try await a.store.heal(from: c.transport).isComplete)
        try expectWhole(a)
        try expectEqual([a, c])
    }

    @Test func aPeerWithoutTheDatasetHealsNothing() async throws {
        try await prepare()
        try damage(1, seed: baseSeed)
        let found = try a.store.verify().damages
        let stranger = try TestReplica("stranger", in: a.directory)
        let report = try await a.store.heal(from: stranger.transport)
        #expect(report.unhealed.allSatisfy { $0.reason == .peerLacksDataset })
        #expect(!report.unhealed.isEmpty)
        #expect(try a.store.verify().damages == found)
    }

    @Test func aDatasetDeletedThereIsLeftToAnExchange() async throws {
        try await prepare()
        try damage(1, seed: baseSeed)
        let found = try a.store.verify().damages
        try b.store.deleteDataset("notes")
        let report = try await a.store.heal(from: b.transport)
        #expect(report.unhealed.allSatisfy { $0.reason == .isDeletedOnOneSide })
        #expect(!report.unhealed.isEmpty)
        #expect(try a.store.verify().damages == found)
    }

    /// The peer has seen everything, and yet has nothing of some keys: what it has is restored, and
    /// the block stays.
    @Test func keysThatThePeerDoesNotKnowKeepTheBlock() async throws {
        try await prepare()
        try damage(1, seed: baseSeed)
        let found = try a.store.verify().damages
        let keys = try #require(try a.dataset().damage().first?.keys)
        var batch = ReplicationBatch()
        for record in try b.dataset().records(in: keys, includingDeleted: true).collect() {
            guard batch.drops.count < 3 else { break }
            batch.drops.append(LocalDrop(key: record.key, expected: record.version))
        }
        let dropped = batch.drops.count
        #expect(try b.dataset().replicate(batch).isEmpty)
        let report = try await a.store.heal(from: b.transport)
        // One of the three may have its newest version in another block.
        if report.isComplete {
            try expectWhole(a)
        } else {
            #expect(dropped > 0)
            #expect(report.unhealed.allSatisfy { $0.reason == .keysUnknownToPeer })
            #expect(try a.store.verify().damages == found)
        }
        #expect(try await a.store.heal(from: c.transport).isComplete)
        try expectWhole(a)
        try expectEqual([a, c])
    }

    /// Of what the peer has deleted and forgotten it has nothing: nothing older comes up for it.
    @Test func whatThePeerHasForgottenKeepsTheBlock() async throws {
        try await prepare()
        try b.store.compact()
        #expect(try !b.dataset().knowledge().forgotten.isEmpty)
        let live = try b.dataset().count()
        try damage(4, seed: baseSeed)
        let found = try a.store.verify().damages
        let report = try await a.store.heal(from: b.transport)
        if report.isComplete {
            try expectWhole(a)
        } else {
            let reasons: [HealReport.Reason] = [.keysUnknownToPeer, .besideOthers]
            #expect(report.unhealed.allSatisfy { reasons.contains($0.reason) })
            #expect(Set(try a.store.verify().damages).isSubset(of: Set(found)))
        }
        // One that still has the tombstones brings them.
        #expect(try await a.store.heal(from: c.transport).isComplete)
        try expectWhole(a)
        #expect(try a.dataset().count() == live)
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b, c])
    }

    /// A merge that was cut off has noted them as forgotten, and left them where they were.
    @Test func whatIsForgottenHereStaysForgotten() async throws {
        try await prepare()
        var batch = ReplicationBatch()
        var forgotten = ForgottenDeletions()
        for record in try a.dataset().records(includingDeleted: true).collect()
        where record.isDeleted { forgotten.insert(record.version) }
        batch.forgotten = forgotten
        #expect(try a.dataset().replicate(batch).isEmpty)
        try damage(5, seed: baseSeed)
        _ = try a.store.verify()
        let report = try await a.store.heal(from: b.transport)
        #expect(report.isComplete && report.recordsRestored > 0)
        try expectWhole(a)
        #expect(try a.dataset().knowledge().forgotten == forgotten)
        let told = try a.dataset().changesPage(
            since: .zero, recordsMax: 10_000, bytesMax: 1 << 30, excluding: VersionVector())
        #expect(told.isLast && !told.records.isEmpty)
        #expect(!told.records.contains(where: { $0.isDeleted }))
        try await b.dataset().synchronize(with: a.transport)
        try expectEqual([a, b])
    }

    /// What the store keeps for itself no peer has. Nothing of it goes.
    @Test func theStoresOwnRecordsStay() async throws {
        try await prepare()
        try a.store.sealAll()
        var random = SeededGenerator(seed: baseSeed)
        try a.damage { blocks in
            let last = try #require(try blocks.all().last)
            try blocks.damage(last, &random)
        }
        let found = try a.store.verify().damages
        #expect(!found.isEmpty)
        do throws(SyncError) {
            let report = try await a.store.heal(from: b.transport)
            #expect(!report.isComplete)
        } catch {
            #expect(error.code == .store && error.storeError?.code == .corruption)
        }
        #expect(Set(try a.store.verify().damages) == Set(found))
    }

    // MARK: - Interrupted

    @Test func interruptedAnywhereItGoesOn() async throws {
        try await prepare()
        try damage(6, seed: baseSeed)
        _ = try a.store.verify()
        var failures = 0
        for number in 1..<200 {
            let transport = InterposedTransport(b.responder) { point in
                guard point.number == number, point.moment == .beforeAnswer else { return }
                throw SyncError(.unreachable, "cut by the test")
            }
            do throws(SyncError) {
                let report = try await a.store.heal(from: transport)
                #expect(report.isComplete)
                break
            } catch {
                #expect(error.code == .unreachable)
                failures += 1
            }
            if number.isMultiple(of: 4) {
                try a.reopen()
                _ = try a.store.verify()
            }
        }
        #expect(failures > 2)
        try expectWhole(a)
        try expectEqual([a, b])
    }

    @Test func nothingIsAskedWhereNothingIsDamaged() async throws {
        try await prepare()
        let transport = InterposedTransport(b.responder) { _ in }
        let report = try await a.store.heal(from: transport)
        #expect(report == HealReport())
        #expect(transport.messageCount == 0)
    }

    /// Neither the past nor a position in it is told of as if nothing had gone.
    @Test func thePastBeforeIsNotToldOf() async throws {
        try await prepare()
        let before = try a.dataset().syncCount
        try damage(3, seed: baseSeed)
        _ = try a.store.verify()
        #expect(try await a.store.heal(from: b.transport).isComplete)
        let changes = try a.dataset().changes(since: before).collect()
        #expect(!changes.isEmpty, "what was restored is told of again")
        #expect(throws: StoreError.self) {
            _ = try a.dataset().records(at: .syncCount(before)).collect()
        }
    }
}
