import Synchronization

/// A device that listens: what it is to be told, until it was.
///
/// Of each dataset the newest count waits alone, so a device that reads slowly costs as much memory
/// as it has subscriptions, however much is written.
final class DeviceConnection: Sendable {
    private struct State {
        /// nil until they were read from the store: till then all is noted.
        var subscriptions: Set<String>?
        var pending: [String: UInt64] = [:]
        /// Subscriptions that were made while the others were read.
        var early: Set<String> = []
        var isBeatDue = false
        var isClosed = false
        var looksSinceClosed = 0
    }

    /// What there is to tell.
    struct News: Hashable, Sendable {
        /// Counts by the datasets' names, in their order.
        var counts: [Count] = []
        var isBeatDue = false
        var isClosed = false

        struct Count: Hashable, Sendable {
            let dataset: String
            let count: UInt64
        }
    }

    let device: DeviceID
    let identity: IdentityID
    let pool: PoolID
    /// Milliseconds since 1970: then it is closed.
    let endsAt: UInt64
    /// Says that there is something to tell. For one reader.
    let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private let state = Mutex(State())
    /// Breaks the connection off, whatever is being written to it.
    let cut: @Sendable () -> Void

    init(
        device: DeviceID, identity: IdentityID, pool: PoolID, endsAt: UInt64,
        cut: @escaping @Sendable () -> Void = {}
    ) {
        self.device = device
        self.identity = identity
        self.pool = pool
        self.endsAt = endsAt
        self.cut = cut
        (wakes, wake) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// What was read from the store after the connection was listed, so that nothing falls between.
    func begin(_ counts: [String: UInt64]) {
        state.withLock { state in
            var pending = counts
            for (dataset, count) in state.pending {
                guard pending[dataset] != nil || state.early.contains(dataset) else { continue }
                pending[dataset] = max(pending[dataset] ?? 0, count)
            }
            state.pending = pending
            state.subscriptions = state.early.union(counts.keys)
            state.early = []
        }
        wake.yield()
    }

    func tell(_ dataset: String, _ count: UInt64) {
        let isNews = state.withLock { state in
            guard state.subscriptions?.contains(dataset) ?? true else { return false }
            state.pending[dataset] = max(state.pending[dataset] ?? 0, count)
            return true
        }
        if isNews { wake.yield() }
    }

    func add(_ dataset: String) {
        state.withLock { state in
            guard state.subscriptions != nil else {
                // What is being read may be older.
                _ = state.early.insert(dataset)
                return
            }
            _ = state.subscriptions?.insert(dataset)
        }
    }

    func remove(_ dataset: String) {
        state.withLock { state in
            _ = state.subscriptions?.remove(dataset)
            _ = state.early.remove(dataset)
            state.pending[dataset] = nil
        }
    }

    /// Has a sign of life be sent, by which both sides notice when the other one is gone.
    func beat() {
        state.withLock { $0.isBeatDue = true }
        wake.yield()
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wake.yield()
    }

    /// Whether it was closed some looks ago. That it is still there means that the other side does
    /// not read: what is being written to it would never come to an end.
    func isStuck() -> Bool {
        state.withLock { state in
            guard state.isClosed else { return false }
            state.looksSinceClosed += 1
            return state.looksSinceClosed > 1
        }
    }

    /// What there is to tell, once.
    func take() -> News {
        state.withLock { state in
            var news = News(isBeatDue: state.isBeatDue, isClosed: state.isClosed)
            state.isBeatDue = false
            guard state.subscriptions != nil else { return news }
            news.counts = state.pending.sorted { $0.key < $1.key }
                .map { News.Count(dataset: $0.key, count: $0.value) }
            state.pending.removeAll(keepingCapacity: true)
            return news
        }
    }
}

/// All devices that listen at this moment. Nothing of it is on disk: a device that comes again is
/// told all counts anew.
final class ConnectedDevices: Sendable {
    private struct State {
        var connections: [IdentityID: [DeviceConnection]] = [:]
        var count = 0
        var isClosed = false
    }

    private let connectionsMax: Int
    private let connectionsPerIdentityMax: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - connectionsMax: more are refused.
    ///   - connectionsPerIdentityMax: likewise. Those that are closed count until they are gone.
    init(connectionsMax: Int, connectionsPerIdentityMax: Int = .max) {
        self.connectionsMax = connectionsMax
        self.connectionsPerIdentityMax = connectionsPerIdentityMax
    }

    /// For metrics.
    var count: Int { state.withLock { $0.count } }

    /// Whether any device of an identity listens.
    func isListening(_ identity: IdentityID) -> Bool {
        state.withLock { $0.connections[identity] != nil }
    }

    var hasRoom: Bool {
        state.withLock { !$0.isClosed && $0.count < connectionsMax }
    }

    /// Lists a connection. One that the same device has already is closed: it is mostly dead.
    ///
    /// - Returns: false if there are too many, or the hub shuts down.
    func open(_ connection: DeviceConnection) -> Bool {
        let former: [DeviceConnection]? = state.withLock { state in
            guard !state.isClosed, state.count < connectionsMax else { return nil }
            var connections = state.connections[connection.identity] ?? []
            guard connections.count < connectionsPerIdentityMax else { return nil }
            let former = connections.filter { $0.device == connection.device }
            connections.append(connection)
            state.connections[connection.identity] = connections
            state.count += 1
            return former
        }
        for connection in former ?? [] { connection.close() }
        return former != nil
    }

    /// It is gone.
    func remove(_ connection: DeviceConnection) {
        state.withLock { state in
            guard var connections = state.connections[connection.identity],
                let index = connections.firstIndex(where: { $0 === connection })
            else { return }
            connections.remove(at: index)
            state.connections[connection.identity] = connections.isEmpty ? nil : connections
            state.count -= 1
        }
    }

    /// Tells the devices of an identity that listen, but for the one that made the change.
    func tell(
        _ identity: IdentityID, _ dataset: APIDatasetName, count: UInt64, except writer: DeviceID?
    ) {
        for connection in connections(of: identity) where connection.device != writer {
            connection.tell(dataset.text, count)
        }
    }

    func add(_ dataset: APIDatasetName, to device: DeviceID, of identity: IdentityID) {
        for connection in connections(of: identity) where connection.device == device {
            connection.add(dataset.text)
        }
    }

    /// Tells one device alone.
    func tell(
        _ device: DeviceID, of identity: IdentityID, _ dataset: APIDatasetName, count: UInt64
    ) {
        for connection in connections(of: identity) where connection.device == device {
            connection.tell(dataset.text, count)
        }
    }

    func remove(_ dataset: APIDatasetName, from device: DeviceID, of identity: IdentityID) {
        for connection in connections(of: identity) where connection.device == device {
            connection.remove(dataset.text)
        }
    }

    func close(_ device: DeviceID, of identity: IdentityID) {
        for connection in connections(of: identity) where connection.device == device {
            connection.close()
        }
    }

    /// Closes the connections of an identity that is no more, or was merged into another one.
    func closeAll(of identity: IdentityID) {
        for connection in connections(of: identity) { connection.close() }
    }

    /// Closes those whose time is over, breaks off those that were closed and do not end, and has a
    /// sign of life be sent to all others. O(all).
    func tick(now: UInt64, isBeat: Bool) {
        for connection in all() {
            if connection.isStuck() {
                connection.cut()
            } else if now >= connection.endsAt {
                connection.close()
            } else if isBeat {
                connection.beat()
            }
        }
    }

    /// For the end of the hub: no more are taken.
    func closeAll() {
        state.withLock { $0.isClosed = true }
        for connection in all() { connection.close() }
    }

    func connections(of identity: IdentityID) -> [DeviceConnection] {
        state.withLock { $0.connections[identity] ?? [] }
    }

    private func all() -> [DeviceConnection] {
        state.withLock { state in state.connections.values.flatMap { $0 } }
    }
}
