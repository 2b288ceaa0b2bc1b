import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What can be told of a record: who wrote it, which exchange brought it, and what it is merged of.
struct ProvenanceTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private func exchange(
        _ from: TestReplica, _ to: TestReplica, _ options: SyncOptions = SyncOptions()
    ) async throws {
        try await from.dataset().synchronize(with: to.transport, options: options)
    }

    @Test func whatIsWrittenHereSaysSo() async throws {
        try put("1", a)
        try a.dataset().delete("gone")
        for isExchanged in [false, true] {
            if isExchanged { try await exchange(a, b) }
            for key in ["key", "gone"] {
                let provenance = try #require(try a.dataset().provenance(of: key))
                #expect(provenance.origin == .written && provenance.isOwn)
                #expect(provenance.replica == a.store.replicaID)
                #expect(provenance.arrival == nil && provenance.merge == nil)
            }
        }
        #expect(try a.dataset().provenance(of: "nowhere") == nil)
    }

    /// b's write wins, and comes back to b joined with the one that it won over.
    @Test func aVersionThatIsStoredTwiceIsOneOfTheHistory() async throws {
        try put("lost", a)
        b.clock.putForward(bySeconds: 1)
        try put("won", b)
        try await exchange(a, b)
        let key = Array("key".utf8)
        let stored = try b.dataset().storedVersions(of: key)
        #expect(stored.map(\.valueText) == ["won", "won"])
        #expect(stored.map(\.version.vector.dots.count) == [2, 1])
        let history = try b.dataset().history(of: key)
        #expect(history == [stored[0]])
        // The limit is of versions, not of copies.
        try put("later", b)
        try put("lost again", b)
        #expect(
            try b.dataset().history(of: key, limit: 3).map(\.valueText)
                == ["lost again", "later", "won"])
    }

    /// B pulls what A wrote and pushes it to C: what each side tells of it.
    @Test func whatArrivedSaysByWhichExchange() async throws {
        try put("1", a)
        try put("2", a, "other")
        try await exchange(b, a)
        try put("3", a, "later")
        try await exchange(b, a)
        try await exchange(b, c)
        for isReopened in [false, true] {
            if isReopened {
                try b.reopen()
                try c.reopen()
            }
            let pulled = try #require(try b.dataset().provenance(of: "key")?.arrival)
            #expect(pulled.peer == a.store.replicaID && pulled.role == .asked)
            #expect(pulled.exchange != nil && pulled.dataset == "notes")
            #expect(pulled.after == 0 && pulled.through == 2)
            #expect(try b.dataset().provenance(of: "other")?.origin == .arrived(pulled))
            let later = try #require(try b.dataset().provenance(of: "later")?.arrival)
            #expect(later.exchange != pulled.exchange && later.time > pulled.time)
            #expect(try b.dataset().arrivals() == [later, pulled])
            #expect(try b.dataset().arrivals(limit: 1) == [later])
            let pushed = try #require(try c.dataset().provenance(of: "key"))
            #expect(pushed.replica == a.store.replicaID && !pushed.isOwn)
            #expect(pushed.arrival?.peer == b.store.replicaID)
            #expect(pushed.arrival?.role == .answered && pushed.arrival?.exchange == nil)
            #expect(try c.dataset().arrivals().count == 1)
        }
    }

    @Test func whatWasMergedSaysWhoWonAndWhy() async throws {
        try put("base", a)
        try await exchange(a, b)
        try put("ours", a)
        try put("theirs", b)
        var options = SyncOptions(policy: .keepRemote)
        options.journal.policyVersion = 3
        try await exchange(a, b, options)
        let provenance = try #require(try a.dataset().provenance(of: "key"))
        guard case .merged(let conflict) = provenance.origin else {
            Issue.record("\(provenance.origin)")
            return
        }
        #expect(conflict.policy == .keepRemote && conflict.policyVersion == 3)
        #expect(conflict.decision == .remote && conflict.remote.version.author == "b")
        #expect(conflict.write == provenance.record.version.dot && provenance.isOwn)
        // The same exchange, as its batch has noted it.
        #expect(provenance.arrival?.exchange == conflict.exchange)
        // At B it is what the exchange brought, and its own write is in the history.
        let there = try #require(try b.dataset().provenance(of: "key"))
        let arrival = try #require(there.arrival)
        #expect(there.origin == .arrived(arrival))
        // What is written over it is a write of its own.
        try put("next", a)
        #expect(try a.dataset().provenance(of: "key")?.origin == .written)
        let before = try a.dataset().history(of: Array("key".utf8)).first {
            $0.version.dot == conflict.write
        }
        if let before {
            #expect(try a.dataset().provenance(of: before).merge == conflict)
        }
    }

    @Test func whatWasForgottenIsUnknown() async throws {
        var options = SyncOptions()
        options.journal.exchangesMax = 2
        for number in 0..<4 {
            try put("1", b, "key \(number)")
            try await exchange(a, b, options)
        }
        #expect(try a.dataset().arrivals().count == 2)
        #expect(try a.dataset().provenance(of: "key 1")?.origin == .unknown)
        #expect(try a.dataset().provenance(of: "key 2")?.arrival?.peer == b.store.replicaID)
        options.journal = .off
        try put("1", b, "key 4")
        try await exchange(a, b, options)
        #expect(try a.dataset().provenance(of: "key 4")?.origin == .unknown)
    }

    @Test func anIdleExchangeLeavesNoTrace() async throws {
        try put("1", b)
        try await exchange(a, b)
        let (ours, theirs) = (try a.dataset().arrivals(), try b.dataset().arrivals())
        #expect(ours.count == 1 && theirs.isEmpty)
        for _ in 0..<3 { try await exchange(a, b) }
        #expect(try a.dataset().arrivals() == ours)
        #expect(try b.dataset().arrivals().isEmpty)
    }

    /// A dataset that is taken over as it lies in the peer's segments.
    @Test func whatWasTakenOverIsOneBatch() async throws {
        var batch = WriteBatch()
        let theirs = try b.dataset()
        for number in 0..<2_000 { batch.put("value", for: "key \(number)", in: theirs) }
        try b.store.write(batch)
        let responder = SyncResponder(
            store: b.store, limits: SyncResponder.Limits(segmentBytesMin: 0))
        let result = try await a.dataset().synchronize(with: InMemoryTransport(responder))
        try #require(result.adopted == 2_000)
        for number in [0, 1_999] {
            let provenance = try #require(try a.dataset().provenance(of: "key \(number)"))
            #expect(provenance.arrival?.peer == b.store.replicaID)
            #expect(provenance.arrival?.after == 0 && provenance.arrival?.role == .asked)
        }
    }

    /// Over random exchanges: what a store did not write it was brought, by somebody else, in a
    /// batch that holds its count; batches do not overlap; and what it merged has its entry.
    @Test(arguments: 0..<4)
    func everythingComesFromSomewhere(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let replicas = [a, b, c]
        for replica in replicas { _ = try replica.dataset() }
        for _ in 0..<60 {
            let from = replicas[Int.random(in: 0..<3, using: &random)]
            if Bool.random(using: &random) {
                try put("\(random.next())", from, "key \(Int.random(in: 0..<8, using: &random))")
                continue
            }
            let others = replicas.filter { $0 !== from }
            let policies: [MergePolicy] = [.lastWriterWins, .keepLocal, .keepRemote]
            var options = SyncOptions(
                policy: policies[Int.random(in: 0..<3, using: &random)],
                pageRecordsMax: Int.random(in: 1..<5, using: &random))
            options.journal.scope = .everything
            try await exchange(from, others[Int.random(in: 0..<2, using: &random)], options)
        }
        var mergedCount = 0
        for replica in replicas {
            let dataset = try replica.dataset()
            let arrivals = try dataset.arrivals()
            for (later, earlier) in zip(arrivals, arrivals.dropFirst()) {
                #expect(earlier.after < earlier.through, "seed \(seed)")
                #expect(earlier.through <= later.after, "seed \(seed)")
            }
            for record in try dataset.records(includingDeleted: true).collect() {
                let provenance = try dataset.provenance(of: record)
                let isOwn = record.version.dot.replica == replica.store.replicaID
                #expect(provenance.isOwn == isOwn, "seed \(seed)")
                mergedCount += provenance.merge == nil ? 0 : 1
                guard !isOwn else { continue }
                let arrival = try #require(provenance.arrival, "seed \(seed)")
                #expect(arrival.contains(record.syncCount), "seed \(seed)")
                #expect(arrival.peer != replica.store.replicaID, "seed \(seed)")
                #expect(provenance.origin != .unknown && provenance.origin != .written)
            }
        }
        print("everythingComesFromSomewhere: \(mergedCount) records of merges")
    }

    @Test func damagedEntriesArePassedBy() async throws {
        try put("1", b)
        try await exchange(a, b)
        let notes = try a.dataset()
        let list = TimedNotes(which: .exchanges, dataset: notes)
        let time = try #require(try notes.arrivals().first?.time)
        let good = try #require(try list.home().get(list.key(at: time)))
        for count in 0..<good.count {
            try list.home().put(Array(good[..<count]), for: list.key(at: list.nextTime()))
        }
        try list.home().put([2] + good.dropFirst(), for: list.key(at: list.nextTime()))
        #expect(try notes.arrivals().count == 1)
    }
}
