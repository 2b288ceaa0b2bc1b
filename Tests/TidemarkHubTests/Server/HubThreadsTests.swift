import Logging
import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// Calls of the store off the event loops, and what callers are told when there are too many.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct HubThreadsTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func started(callsMax: Int) throws -> HubThreads {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let threads = HubThreads(
            stores: StoreHolder(try directory.store("hub")), readers: 1, writers: 1,
            callsMax: callsMax, logger: logger)
        threads.start()
        return threads
    }

    private static func failure(
        _ threads: HubThreads, _ body: @escaping @Sendable (Store) throws -> Int
    ) async -> APIFailure.Kind? {
        do throws(APIFailure) {
            _ = try await threads.write(body)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("results and failures come back as what clients are told")
    func outcomes() async throws {
        let threads = try started(callsMax: 4)
        #expect(try await threads.read { _ in 7 } == 7)
        let conflict = await Self.failure(threads) { _ in throw APIFailure(.resourceConflict, "c") }
        #expect(conflict == .resourceConflict)
        let full = await Self.failure(threads) { _ in throw StoreError(.diskFull, "full") }
        #expect(full == .serviceUnavailable)
        let other = await Self.failure(threads) { _ in throw CancellationError() }
        #expect(other == .internalError)
        #expect(threads.callCounts.reads == 0)
        #expect(threads.callCounts.writes == 0)
        try await threads.shutdown()
        #expect(await Self.failure(threads) { _ in 1 } == .serviceUnavailable)
    }

    @Test("who comes when too many wait is told to come again, and nothing of it is left")
    func tooMany() async throws {
        let threads = try started(callsMax: 0)
        #expect(await Self.failure(threads) { _ in 1 } == .tooManyRequests)
        #expect(threads.callCounts.writes == 0)
        try await threads.shutdown()
    }

    @Test("a store is opened anew once, by the first who finds that it failed")
    func reopening() throws {
        let first = try directory.store("hub")
        try first.dataset("notes").put("1", for: "a", durability: .disk)
        let path = first.path
        let holder = StoreHolder(first) { () throws(StoreError) in try Store.open(at: path) }
        #expect(holder.mayReopen)
        #expect(try holder.reopen(after: first))
        #expect(try !holder.reopen(after: first))
        #expect(holder.current !== first)
        #expect(try holder.current.dataset("notes").text("a") == "1")
        let foreign = StoreHolder(holder.current)
        #expect(try !foreign.reopen(after: foreign.current))
        try holder.current.close()
    }
}
