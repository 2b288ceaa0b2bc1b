import Synchronization
import Testing
import TidemarkSync

/// Lets a test do something at any point of an exchange: before a request arrives, and before its
/// answer does.
final class InterposedTransport: SyncTransport {
    enum Moment: Hashable, Sendable, CaseIterable {
        case beforeRequest
        case beforeAnswer
    }

    struct Point: Hashable, Sendable {
        /// "hello", "pull", "push".
        let kind: String
        /// Of all requests, from 1.
        let number: Int
        /// Of the requests of this kind, from 1.
        let numberOfKind: Int
        let moment: Moment
    }

    private struct Counts {
        var all = 0
        var ofKind: [String: Int] = [:]
    }

    private let responder: SyncResponder
    private let act: @Sendable (Point) async throws -> Void
    private let counts = Mutex(Counts())

    /// - Parameter act: called at each point. A `SyncError` that it throws is what the asker gets
    ///   in place of an answer; any other error is a failure of the test.
    init(_ responder: SyncResponder, _ act: @escaping @Sendable (Point) async throws -> Void) {
        self.responder = responder
        self.act = act
    }

    /// Requests so far.
    var messageCount: Int { counts.withLock { $0.all } }

    /// Requests of a kind so far.
    func messageCount(of kind: String) -> Int { counts.withLock { $0.ofKind[kind] ?? 0 } }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let kind = MessageLabel.kind(of: request)
        let (number, numberOfKind) = counts.withLock { counts in
            counts.all += 1
            counts.ofKind[kind, default: 0] += 1
            return (counts.all, counts.ofKind[kind, default: 0])
        }
        try await come(to: .beforeRequest, kind, number, numberOfKind)
        let answer = responder.respond(to: request)
        try await come(to: .beforeAnswer, kind, number, numberOfKind)
        return answer
    }

    private func come(
        to moment: Moment, _ kind: String, _ number: Int, _ numberOfKind: Int
    ) async throws(SyncError) {
        let point = Point(kind: kind, number: number, numberOfKind: numberOfKind, moment: moment)
        do {
            try await act(point)
        } catch let error as SyncError {
            throw error
        } catch {
            Issue.record(error)
        }
    }
}
