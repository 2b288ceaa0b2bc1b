import Testing
import Tidemark

@testable import TidemarkSync

/// An entry of a record that failed is tried again or given up by compare-and-set: what an exchange
/// takes out of the list meanwhile stays out.
struct FailedRecordChangeTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private struct Refusal: Error {}

    private func refuse(_ key: String) async throws -> FailedRecord {
        try b.dataset().put("bad", for: key)
        var options = SyncOptions()
        options.validate = { _ in throw Refusal() }
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: b.transport, options: options)
        }
        return try #require(try a.dataset().failedRecords().last)
    }

    @Test func anEntryThatGoesMeanwhileStaysGone() async throws {
        let dataset = try a.dataset()
        for round in 0..<30 {
            let failed = try await refuse("key \(round)")
            let remover = Task.detached {
                let book = try FailedBook(dataset, .incoming)
                var batch = ReplicationBatch()
                batch.notes = try book.notes(removing: book.entries)
                _ = try dataset.replicate(batch)
            }
            while try dataset.retry(failed), try dataset.drop(failed) {}
            try await remover.value
            #expect(try dataset.failedRecords(includingDropped: true).isEmpty)
            #expect(try !dataset.retry(failed))
            #expect(try !dataset.holdsBackVectors())
        }
    }

    /// An exchange of all datasets passes by those in which nothing has changed.
    @Test func whatIsToBeTriedAgainIsLookedAt() async throws {
        let failed = try await refuse("key")
        for _ in 0..<3 { _ = await a.store.synchronizeEach(with: b.transport) }
        #expect(try a.dataset().text("key") == nil)
        #expect(try a.dataset().retry(failed))
        _ = await a.store.synchronizeEach(with: b.transport)
        #expect(try a.dataset().text("key") == "bad")
        #expect(try a.dataset().failedRecords().isEmpty)
    }

    /// Of another form, or another entry in the same place, nothing is changed.
    @Test func onlyTheEntryThatWasToldIsChanged() async throws {
        let failed = try await refuse("key")
        let list = FailedBook.list(of: try a.dataset(), .incoming)
        let home = try list.home()
        let place = list.key(at: failed.since)
        try home.put([2, 9, 9], for: place)
        #expect(try !a.dataset().drop(failed))
        #expect(try home.get(place) == [2, 9, 9])
    }
}
