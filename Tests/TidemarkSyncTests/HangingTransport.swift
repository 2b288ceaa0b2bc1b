import Synchronization
import TidemarkSync

/// Answers so many requests, and of the others lets none return before its task is cancelled.
final class HangingTransport: SyncTransport {
    private struct State {
        var count = 0
        var hangingCount = 0
    }

    private let responder: SyncResponder
    private let goodMessages: Int
    private let whenHanging: @Sendable (_ hangingCount: Int) -> Void
    private let state = Mutex(State())

    /// - Parameter whenHanging: called when one more request hangs.
    init(
        _ responder: SyncResponder, after goodMessages: Int,
        whenHanging: @escaping @Sendable (_ hangingCount: Int) -> Void
    ) {
        self.responder = responder
        self.goodMessages = goodMessages
        self.whenHanging = whenHanging
    }

    /// Requests so far, answered or not.
    var messageCount: Int { state.withLock { $0.count } }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let (number, hangingCount) = state.withLock { state in
            state.count += 1
            if state.count > goodMessages { state.hangingCount += 1 }
            return (state.count, state.hangingCount)
        }
        guard number > goodMessages else { return responder.respond(to: request) }
        whenHanging(hangingCount)
        // Nothing ever comes, and it ends when the task is cancelled.
        let (nothing, source) = AsyncStream.makeStream(of: Void.self)
        for await _ in nothing {}
        withExtendedLifetime(source) {}
        throw SyncError(.unreachable, "the test broke off message \(number)")
    }
}
