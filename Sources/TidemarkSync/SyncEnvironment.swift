import Tidemark

/// The door of a ``Synchronizer`` to time and chance, so that tests can put a clock of their own
/// behind it and wait for nothing.
public protocol SyncEnvironment: Sendable {
    /// Milliseconds since 1970-01-01 UTC.
    func now() -> UInt64

    /// Returns after the duration; at once if it is not positive.
    ///
    /// - Throws: when the task is cancelled, at once.
    func sleep(for duration: Duration) async throws(CancellationError)

    /// 64 random bits, for the jitter of the back-off. Not for secrets.
    func random() -> UInt64
}

/// The system's clock and randomness.
public struct SystemSyncEnvironment: SyncEnvironment {
    private let storage = SystemStorage()

    public init() {}

    public func now() -> UInt64 { storage.wallClockMilliseconds() }

    public func sleep(for duration: Duration) async throws(CancellationError) {
        guard duration > .zero else { return }
        do {
            try await ContinuousClock().sleep(for: duration)
        } catch {
            throw CancellationError()
        }
    }

    public func random() -> UInt64 { storage.randomUInt64() }
}
