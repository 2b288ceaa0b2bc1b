/// Carries one request to a peer and its answer back.
///
/// Every message is self-contained and checked by its receiver, so a transport need not keep order
/// between requests, may lose requests or answers (it throws then) and may repeat them.
public protocol SyncTransport: Sendable {
    /// - Returns: the peer's answer, untouched.
    /// - Throws: `unreachable`, `unauthorized`, `tooLarge`, `badMessage`, `peerFailed` or
    ///   `cancelled`. After an error the request may or may not have taken effect.
    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8]

    /// The same for a request whose answer may be as late as ``SyncLimits/watchMillisecondsMax``,
    /// because it waits for something to happen. Unless the transport can wait so long, this is
    /// ``send(_:)``, and the answer comes at once.
    func watch(_ request: [UInt8]) async throws(SyncError) -> [UInt8]
}

extension SyncTransport {
    public func watch(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        try await send(request)
    }
}

/// A peer in the same process. The same bytes pass as over any other transport.
public struct InMemoryTransport: SyncTransport {
    private let responder: SyncResponder

    public init(_ responder: SyncResponder) {
        self.responder = responder
    }

    public func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        responder.respond(to: request)
    }

    public func watch(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        await responder.watch(request)
    }
}
