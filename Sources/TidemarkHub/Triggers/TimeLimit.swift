import TidemarkSync

/// Lets something take only so long.
enum TimeLimit {
    /// What the body returns; nil if the time is over before it does.
    ///
    /// It is cancelled then, and whoever called goes on even if it does not heed that. So it also
    /// holds for closures of others.
    ///
    /// - Throws: what the body throws, and `CancellationError` when the caller is cancelled.
    static func run<Value: Sendable>(
        _ limit: Duration, _ clock: any SyncEnvironment,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let (outcomes, continuation) = AsyncStream.makeStream(
            of: Result<Value, any Error>?.self, bufferingPolicy: .bufferingOldest(1))
        let work = Task {
            do {
                continuation.yield(.success(try await body()))
            } catch {
                continuation.yield(.failure(error))
            }
        }
        let alarm = Task {
            do {
                try await clock.sleep(for: limit)
                continuation.yield(nil)
            } catch {
                // Nobody waits any more.
            }
        }
        defer {
            work.cancel()
            alarm.cancel()
        }
        for await outcome in outcomes {
            return try outcome?.get()
        }
        throw CancellationError()
    }

    /// What the body returns, however long that takes.
    ///
    /// When the caller is cancelled so is the body, and the caller goes on even if it does not heed
    /// that.
    ///
    /// - Throws: what the body throws, and `CancellationError` when the caller is cancelled.
    static func unlessCancelled<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let (outcomes, continuation) = AsyncStream.makeStream(
            of: Result<Value, any Error>.self, bufferingPolicy: .bufferingOldest(1))
        let work = Task {
            do {
                continuation.yield(.success(try await body()))
            } catch {
                continuation.yield(.failure(error))
            }
        }
        defer { work.cancel() }
        for await outcome in outcomes {
            return try outcome.get()
        }
        throw CancellationError()
    }
}
