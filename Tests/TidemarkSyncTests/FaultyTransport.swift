import Synchronization
import TidemarkSync

/// Loses and repeats messages according to a plan.
final class FaultyTransport: SyncTransport {
    enum Fault: Sendable {
        /// The request never arrives.
        case losesRequest
        /// The request takes effect and its answer never arrives.
        case losesAnswer
    }

    private let responder: SyncResponder
    private let fault: Fault?
    private let goodMessages: Int
    private let repeatsEach: Int
    private let count = Mutex(0)

    /// - Parameters:
    ///   - fault: what happens to every message after the first `goodMessages`.
    ///   - repeatsEach: every n-th request arrives twice; 0 for none.
    init(
        _ responder: SyncResponder, _ fault: Fault? = nil, after goodMessages: Int = 0,
        repeatsEach: Int = 0
    ) {
        self.responder = responder
        self.fault = fault
        self.goodMessages = goodMessages
        self.repeatsEach = repeatsEach
    }

    /// With a random fault or none, after a few good messages.
    convenience init(_ responder: SyncResponder, drawnFrom random: inout some RandomNumberGenerator)
    {
        let faults: [Fault?] = [nil, .losesRequest, .losesAnswer]
        self.init(
            responder, faults.randomElement(using: &random) ?? nil,
            after: Int.random(in: 0...8, using: &random),
            repeatsEach: Int.random(in: 0...3, using: &random))
    }

    var messageCount: Int { count.withLock { $0 } }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let number = count.withLock { count in
            count += 1
            return count
        }
        if let fault, number > goodMessages {
            if case .losesAnswer = fault {
                _ = responder.respond(to: request)
            }
            throw SyncError(.unreachable, "the test lost message \(number); repeat the exchange")
        }
        if repeatsEach > 0, number % repeatsEach == 0 {
            _ = responder.respond(to: request)
        }
        return responder.respond(to: request)
    }
}

/// Answers with whatever the closure makes of the request.
struct ScriptedTransport: SyncTransport {
    let answer: @Sendable ([UInt8]) throws(SyncError) -> [UInt8]

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        try answer(request)
    }
}
