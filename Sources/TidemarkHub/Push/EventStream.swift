import HTTPTypes
import Hummingbird
import NIOCore
import Tidemark
import TidemarkSync

/// Answers `GET /v1/push?device=ID`: server-sent events for one device, as the HTML standard has
/// them in section 9.2. No task, thread or timer waits for a device but the one of its connection.
///
///     event: sync
///     id: 7
///     data: {"source":"cognito-sync","identityPoolId":…,"identityId":…,"datasetName":…,…}
///
/// A device that comes, for the first time or again, is told the present count of each dataset that
/// it has subscribed to. So nothing is missed, whatever happened to the connection before.
struct EventStream: Sendable {
    let threads: HubThreads
    let pools: PoolBook
    let connected: ConnectedDevices
    let clock: any SyncEnvironment

    /// At the end of which a connection is closed, if what it came with is good for longer.
    static let connectionMilliseconds: UInt64 = 3_600_000
    /// Between two looks at all connections.
    static let tick = Duration.seconds(5)
    /// Of these looks, each so many has a sign of life sent.
    static let ticksPerBeat = 5

    /// - Parameters:
    ///   - device: of the query, decoded; nil if it is not there.
    ///   - endsAt: when the caller's credentials end, in milliseconds since 1970; nil if that is
    ///     not known.
    ///   - isStillLetIn: asked once the connection is listed: whoever was let in before may have
    ///     been merged, deleted or signed in as meanwhile, and only those listed then are closed.
    ///   - cut: breaks the connection off. Called if it does not end by itself, since the device
    ///     does not read.
    /// - Throws: `notAuthorized` for whoever is no identity, `invalidParameter`,
    ///   `resourceNotFound` for a device that the identity has not registered,
    ///   `invalidConfiguration` for a pool without push, `serviceUnavailable`.
    func response(
        to principal: Principal, device: String?, endsAt: UInt64? = nil,
        isStillLetIn: @escaping @Sendable () async -> Bool = { true },
        cut: @escaping @Sendable () -> Void = {}
    ) async throws(APIFailure) -> Response {
        guard case .identity(let identity, let pool, _) = principal else {
            throw APIFailure(.notAuthorized, "only an identity can listen for its devices")
        }
        guard let id = device.flatMap({ DeviceID($0) }) else {
            throw APIFailure(.invalidParameter, "the parameter device is missing or too long")
        }
        guard pools.record(of: pool)?.hasPush ?? false else {
            throw APIFailure(
                .invalidConfiguration,
                "the pool has no push; set PushSync with SetIdentityPoolConfiguration")
        }
        let isRegistered = try await threads.read { store in
            try DeviceBook.device(id, of: identity, in: store) != nil
        }
        guard isRegistered else {
            throw APIFailure(.resourceNotFound, "there is no such device; register it")
        }
        guard connected.hasRoom else {
            throw APIFailure(
                .serviceUnavailable, "too many devices listen; come again later",
                retryAfterSeconds: 30)
        }
        let latest = clock.now() + Self.connectionMilliseconds
        let connection = DeviceConnection(
            device: id, identity: identity, pool: pool, endsAt: min(latest, endsAt ?? latest),
            cut: cut)
        var fields: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store"]
        // Some proxies would hold events back until they have many.
        if let name = HTTPField.Name("X-Accel-Buffering") { fields[name] = "no" }
        let (connected, threads) = (connected, threads)
        return Response(
            status: .ok, headers: fields,
            body: ResponseBody { writer in
                // Listed here and not before: a body that is never asked for leaves nothing behind.
                guard connected.open(connection) else { return try await writer.finish(nil) }
                defer { connected.remove(connection) }
                guard await isStillLetIn() else { return try await writer.finish(nil) }
                try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                let found = try await threads.read { store -> [String: UInt64]? in
                    // Forgotten before it was listed, with the identity that it was of.
                    guard try DeviceBook.device(id, of: identity, in: store) != nil else {
                        return nil
                    }
                    return try Self.counts(for: id, identity, in: store)
                }
                guard let counts = found else { return try await writer.finish(nil) }
                connection.begin(counts)
                for await _ in connection.wakes {
                    let news = connection.take()
                    let text = Self.text(news, connection)
                    if !text.isEmpty { try await writer.write(ByteBuffer(string: text)) }
                    if news.isClosed { break }
                }
                try await writer.finish(nil)
            })
    }

    /// By the names of the API.
    private static func counts(
        for device: DeviceID, _ identity: IdentityID, in store: Store
    ) throws(StoreError) -> [String: UInt64] {
        var counts: [String: UInt64] = [:]
        for storeName in try DeviceBook.subscriptions(of: device, identity, in: store) {
            guard let name = StoreNames.apiName(of: storeName, identity) else { continue }
            counts[name.text] = try DatasetCount.current(of: storeName, in: store)
        }
        return counts
    }

    static func text(_ news: DeviceConnection.News, _ connection: DeviceConnection) -> String {
        var text = ""
        for count in news.counts {
            let data = PushPayload.object(
                pool: connection.pool.text, identity: connection.identity.text,
                dataset: count.dataset, count: count.count)
            text += "event: sync\nid: \(count.count)\ndata: \(data)\n\n"
        }
        // A comment, for those that had nothing else to hear.
        if news.isBeatDue, text.isEmpty { text = ": \n\n" }
        return text
    }
}
