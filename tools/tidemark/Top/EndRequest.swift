import Synchronization
import UnixSignals

/// Whether somebody has asked the command to end, by Ctrl-C or as a service manager does. Then the
/// signal does not end the process, so that it can clean up.
final class EndRequest: Sendable {
    private static let step = Duration.milliseconds(50)

    private let hasCome = Atomic<Bool>(false)

    /// Looks out for the signals from now on.
    static func watched() async -> EndRequest {
        let request = EndRequest()
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        Task {
            for await _ in signals { request.hasCome.store(true, ordering: .relaxed) }
        }
        return request
    }

    var isAsked: Bool { hasCome.load(ordering: .relaxed) }

    /// Waits, but no longer than until somebody asks. Returns false then.
    func wait(for duration: Duration) async throws -> Bool {
        let clock = ContinuousClock()
        let end = clock.now + duration
        while !isAsked, clock.now < end {
            try await clock.sleep(for: min(Self.step, end - clock.now))
        }
        return !isAsked
    }
}
