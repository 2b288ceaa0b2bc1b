import Logging
import Metrics
import Tidemark
import TidemarkHTTP
import TidemarkSync

/// Answers replicas: messages of the sync protocol, which come as bodies of `POST /v1/sync` and
/// `POST /v1/watch`. Who asks is known by then, and the body is read.
///
/// Whatever the bytes are, the answer is a message of the protocol, with a failure in it if need
/// be; only what keeps the whole hub from answering is thrown.
struct NativeResponder: Sendable {
    private let threads: HubThreads
    private let namespaces: NativeNamespaces
    /// Measures the time of those who wait for news.
    private let environment: any SyncEnvironment

    init(
        threads: HubThreads, namespaces: NativeNamespaces,
        environment: any SyncEnvironment = SystemSyncEnvironment()
    ) {
        self.threads = threads
        self.namespaces = namespaces
        self.environment = environment
    }

    /// Whether a body that is declared so may be a message.
    static func isMessage(_ contentType: String?) -> Bool {
        (contentType ?? "").lowercased().hasPrefix(HTTPTransport.contentType)
    }

    /// Whether a message asks for news alone. All others can change something.
    static func isWatch(_ message: [UInt8]) -> Bool {
        MessageLabel.isWatch(message)
    }

    /// Bytes of a request that may wait for news, since it stays in memory all the while: twice
    /// what the names and counts of all datasets take that one watch may ask about.
    static let watchBytesMax =
        2 * SyncLimits.watchedDatasetsMax * (Limits.datasetNameBytesMax + 16)

    /// To be asked before the body is read, so that strangers take no memory.
    ///
    /// - Throws: `missingAuthenticationToken` or `notAuthorized` for whoever is no replica.
    func requestBytesMax(for principal: Principal) throws(APIFailure) -> Int {
        try namespaces.requestBytesMax(for: principal)
    }

    /// Answers a message. On threads that may block.
    ///
    /// - Throws: as `requestBytesMax(for:)`; `tooManyRequests` if too many wait for the disk;
    ///   `serviceUnavailable` if the store cannot write, or the hub shuts down.
    func sync(
        _ message: [UInt8], by principal: Principal, _ logger: Logger
    ) async throws(APIFailure) -> [UInt8] {
        let started = ContinuousClock.now
        let answer = try await answered(message, by: principal, logger)
        Self.record(message, answer, since: started, logger)
        return answer
    }

    /// The same, but a watch is answered when there is news, or the time that it gives is over. No
    /// thread waits with it. Cancelling the task ends the wait with an answer without news.
    ///
    /// - Throws: as ``sync(_:by:_:)``.
    func watch(
        _ message: [UInt8], by principal: Principal, _ logger: Logger
    ) async throws(APIFailure) -> [UInt8] {
        guard MessageLabel.isWatch(message) else {
            return try await sync(message, by: principal, logger)
        }
        let started = ContinuousClock.now
        // What it is about is looked up where that may block. From then on it is in memory.
        let namespaces = namespaces
        let responder = try await threads.read { store throws -> SyncResponder in
            let responder = try namespaces.responder(for: principal, in: store)
            _ = responder.respond(to: message)
            return responder
        }
        let answer = await responder.watch(message, environment: environment)
        Self.record(message, answer, since: started, logger)
        return answer
    }

    private func answered(
        _ message: [UInt8], by principal: Principal, _ logger: Logger
    ) async throws(APIFailure) -> [UInt8] {
        let namespaces = namespaces
        // Nearly every message makes something durable before it is answered.
        return try await threads.write { store throws -> [UInt8] in
            let responder = try namespaces.responder(for: principal, in: store)
            do throws(SyncError) {
                return try responder.answered(message)
            } catch {
                if let failure = error.storeError {
                    if Self.concernsAll(failure) { throw failure }
                    Self.log(failure, logger)
                }
                return responder.encoded(error)
            }
        }
    }

    /// Whether every other request would meet the same.
    private static func concernsAll(_ error: StoreError) -> Bool {
        [.closed, .diskFull, .readOnly, .writerStopped].contains(error.code)
    }

    private static func log(_ error: StoreError, _ logger: Logger) {
        // Those are the replica's own doing.
        guard error.code != .invalidArgument, error.code != .datasetNotFound else { return }
        logger.error("a replica could not be answered", metadata: ["error": "\(error)"])
    }

    private static func record(
        _ message: [UInt8], _ answer: [UInt8], since started: ContinuousClock.Instant,
        _ logger: Logger
    ) {
        let (kind, duration) = (MessageLabel.kind(of: message), ContinuousClock.now - started)
        let isFailure = MessageLabel.isFailure(answer)
        let labels = [("kind", kind), ("outcome", isFailure ? "failure" : "success")]
        Counter(label: "tidemark_hub_messages", dimensions: labels).increment()
        Counter(label: "tidemark_hub_received_bytes", dimensions: [("kind", kind)])
            .increment(by: message.count)
        Counter(label: "tidemark_hub_sent_bytes", dimensions: [("kind", kind)])
            .increment(by: answer.count)
        Timer(label: "tidemark_hub_message_duration", dimensions: [("kind", kind)])
            .record(duration: duration)
        logger.log(
            level: isFailure ? .notice : .debug, "message answered",
            metadata: [
                "kind": "\(kind)", "received": "\(message.count)", "sent": "\(answer.count)",
                "outcome": isFailure ? "failure" : "success", "duration": "\(duration)",
            ])
    }
}
