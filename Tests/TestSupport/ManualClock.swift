/// A clock on which a sleep lasts until the test ends it.
package final class ManualClock: Clock, Sendable {
    package typealias Instant = ContinuousClock.Instant

    private let start = ContinuousClock.now
    private let bells: AsyncStream<Void>
    private let ringer: AsyncStream<Void>.Continuation

    package init() {
        (bells, ringer) = AsyncStream.makeStream(of: Void.self)
    }

    package var now: Instant { start }

    package var minimumResolution: Duration { .nanoseconds(1) }

    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        for await _ in bells { return }
        throw CancellationError()
    }

    /// Ends the sleep of whoever sleeps, now or later.
    package func ring() {
        ringer.yield()
    }
}
