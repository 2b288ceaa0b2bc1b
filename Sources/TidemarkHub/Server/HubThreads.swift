import Logging
import NIOPosix
import Synchronization
import Tidemark

/// Where calls of the store run, which block on the disk: never on an event loop.
///
/// Reads and writes have threads of their own, so that a slow disk does not hold up what is read
/// from memory. Writers are many, because they wait together for one sync. What is waiting is
/// bounded, and whoever comes then is told to come again: a slow disk costs callers time, and the
/// hub no memory.
final class HubThreads: Sendable {
    /// What the calls are of.
    let stores: StoreHolder
    private let readers: NIOThreadPool
    private let writers: NIOThreadPool
    private let callsMax: Int
    private let reading = Atomic<Int>(0)
    private let writing = Atomic<Int>(0)
    private let logger: Logger

    /// - Parameters:
    ///   - stores: handed to each call as it is then.
    ///   - readers: threads, 1...
    ///   - writers: threads, 1...
    ///   - callsMax: of reads, and as many of writes, under way and waiting together.
    init(
        stores: StoreHolder, readers: Int, writers: Int, callsMax: Int, logger: Logger
    ) {
        self.stores = stores
        self.readers = NIOThreadPool(numberOfThreads: readers)
        self.writers = NIOThreadPool(numberOfThreads: writers)
        self.callsMax = callsMax
        self.logger = logger
    }

    func start() {
        readers.start()
        writers.start()
    }

    /// Calls under way end, those that wait are refused.
    func shutdown() async throws {
        try await readers.shutdownGracefully()
        try await writers.shutdownGracefully()
    }

    /// Reads and writes that are under way or wait. For metrics.
    var callCounts: (reads: Int, writes: Int) {
        (reading.load(ordering: .relaxed), writing.load(ordering: .relaxed))
    }

    /// Runs what reads the store.
    ///
    /// - Throws: `tooManyRequests` if too many calls wait, `serviceUnavailable` when the hub shuts
    ///   down; an `APIFailure` of the body as it is, and what ``APIFailure/init(_:)`` makes of a
    ///   failure of the store.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Store) throws -> Value
    ) async throws(APIFailure) -> Value {
        let count = reading.wrappingAdd(1, ordering: .relaxed).newValue
        defer { reading.wrappingSubtract(1, ordering: .relaxed) }
        return try await run(body, on: readers, count: count)
    }

    /// Runs what writes to the store, or waits for it to be durable. Otherwise as `read`.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Store) throws -> Value
    ) async throws(APIFailure) -> Value {
        let count = writing.wrappingAdd(1, ordering: .relaxed).newValue
        defer { writing.wrappingSubtract(1, ordering: .relaxed) }
        return try await run(body, on: writers, count: count)
    }

    private func run<Value: Sendable>(
        _ body: @escaping @Sendable (Store) throws -> Value, on pool: NIOThreadPool, count: Int
    ) async throws(APIFailure) -> Value {
        guard count <= callsMax else {
            throw APIFailure(
                .tooManyRequests, "the hub has more to do than it can; repeat the request later",
                retryAfterSeconds: 1)
        }
        let stores = stores
        let outcome: Result<Value, any Error>
        do {
            outcome = try await pool.runIfActive { () -> Result<Value, any Error> in
                do {
                    return .success(try body(stores.current))
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw APIFailure(
                .serviceUnavailable, "the hub is shutting down; repeat the request later",
                retryAfterSeconds: 1)
        }
        switch outcome {
        case .success(let value): return value
        case .failure(let error): throw told(error)
        }
    }

    /// What the caller is told. The log has the rest, under the request's id if it is one.
    private func told(_ error: any Error) -> APIFailure {
        if let failure = error as? APIFailure { return failure }
        // Outside of requests there is none, which has no label.
        let ofRequest = Logger.current
        let logger = ofRequest.label.isEmpty ? logger : ofRequest
        if let error = error as? StoreError {
            logger.error("the store failed", metadata: ["error": "\(error)"])
            return APIFailure(error)
        }
        logger.error("a call failed", metadata: ["error": "\(error)"])
        return APIFailure(.internalError, "the hub failed; its log says why")
    }
}
