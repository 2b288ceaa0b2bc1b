import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Whoever comes late may have any amount to bring, of which no batch has more than a page.
struct FreshStartRoundTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    /// a has forgotten the deletion of "gone", of which c never heard.
    private func forget() async throws {
        try put("old", a, "gone")
        for replica in [b, c] { try await replica.dataset().synchronize(with: a.transport) }
        try a.dataset().delete("gone")
        try await b.dataset().synchronize(with: a.transport)
        try a.store.retire(c.store.replicaID)
        try a.store.compact()
        #expect(try !a.dataset().knowledge().forgotten.isEmpty)
    }

    @Test func noBatchHasMoreThanAPage() async throws {
        try await forget()
        let dataset = try c.dataset()
        let value = [UInt8](repeating: 7, count: 1_000)
        for number in 0..<20 { try dataset.put(value, for: Array("key \(number)".utf8)) }
        let theirs = PeerKnowledge(try a.dataset().knowledge())
        let session = SyncSession(
            store: c.store, dataset: dataset, connection: PeerConnection(transport: a.transport),
            options: SyncOptions(pageBytesMax: 3_500), peer: a.store.replicaID)
        let page = try dataset.unsettledPage(
            since: .zero, lacking: theirs.forgotten.vector, isOwn: false, countMax: 100,
            bytesMax: 1 << 20)
        #expect(page.versions.count == 21)
        var rest = page.versions[...]
        var (rounds, outlivers, buried) = (0, 0, 0)
        while !rest.isEmpty {
            let round = try session.settlementRound(of: rest, theirs)
            try #require(round.count > 0)
            var bytes = 0
            for write in round.batch.writes {
                bytes += write.key.count + (write.value?.count ?? 0)
                outlivers += write.value == nil ? 0 : 1
            }
            // A page and a record.
            #expect(bytes < 3_500 + 1_010)
            buried += round.buried.count
            rounds += 1
            rest = rest.dropFirst(round.count)
        }
        #expect(rounds >= 5)
        #expect(outlivers == 20 && buried == 1)
    }

    /// A page of questions has more keys than a batch may have values.
    @Test func allIsSettledInHoweverManyRounds() async throws {
        try await forget()
        for number in 0..<30 { try put("mine \(number)", c, "key \(number)") }
        try await c.dataset().synchronize(
            with: a.transport, options: SyncOptions(pageBytesMax: 40))
        let forgotten = try a.dataset().knowledge().forgotten.vector
        for number in 0..<30 {
            let record = try #require(try c.dataset().record(for: "key \(number)"))
            #expect(record.valueText == "mine \(number)")
            #expect(record.version.vector.covers(forgotten))
        }
        #expect(try c.dataset().text("gone") == nil)
        try expectEqual([a, c])
    }

    /// Too late to be asked about, and too much for the batch of the last page.
    @Test func muchIsWrittenInTheLastMoment() async throws {
        try await forget()
        try put("theirs", a, "other")
        let late = try c.dataset()
        let isFirst = Mutex(true)
        var options = SyncOptions()
        options.validate = { _ in
            let isDue = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            guard isDue else { return }
            for number in 0..<3 {
                let value = [UInt8](repeating: UInt8(number), count: 8 << 20)
                try late.put(value, for: Array("large \(number)".utf8))
            }
        }
        let result = try await late.synchronize(with: a.transport, options: options)
        #expect(result.attempts == 2)
        let forgotten = try a.dataset().knowledge().forgotten.vector
        for number in 0..<3 {
            let record = try #require(try a.dataset().record(for: "large \(number)"))
            #expect(record.value?.count == 8 << 20)
            #expect(record.version.vector.covers(forgotten))
        }
        try expectEqual([a, c])
    }
}
