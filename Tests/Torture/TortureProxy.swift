import Glibc
import Synchronization
import TestSupport

/// Stands between replicas and the hub: passes on what either says, and cuts, delays and damages
/// some of it. It knows nothing of HTTP.
///
/// A thread waits for connections, and two serve each connection, one for each direction.
final class TortureProxy: Sendable {
    /// What was done to what passed.
    struct Counts: Hashable, Sendable {
        var connections = 0
        var bytes = 0
        var cuts = 0
        var delays = 0
        var damagedBits = 0
    }

    private struct State {
        var random: SeededGenerator
        var hubPort: Int?
        var faults = ProxyFaults.quiet
        var isStopped = false
        var counts = Counts()
        /// By their numbers.
        var connections: [Int: ProxyConnection] = [:]
    }

    let port: Int
    private let listener: Int32
    private let state: Mutex<State>

    init(_ random: SeededGenerator) throws {
        (listener, port) = try Loopback.listen()
        state = Mutex(State(random: random))
        ThreadGroup.startDetached { self.serve() }
    }

    var url: String { "http://127.0.0.1:\(port)" }

    var counts: Counts { state.withLock { $0.counts } }

    /// Where the hub is from now on; nil to refuse connections.
    func lead(to hubPort: Int?) {
        state.withLock { $0.hubPort = hubPort }
    }

    func trouble(with faults: ProxyFaults) {
        state.withLock { $0.faults = faults }
    }

    /// All trouble ends, and so do all connections: what was done to them is not over otherwise.
    func heal() {
        let connections = state.withLock { state in
            state.faults = .quiet
            return Array(state.connections.values)
        }
        for connection in connections { connection.cut() }
    }

    /// Takes no more connections and ends those that there are.
    func stop() {
        state.withLock { $0.isStopped = true }
        heal()
        Loopback.end(listener)
    }

    // MARK: - Connections

    private func serve() {
        while true {
            let client = Loopback.accept(from: listener)
            let (isStopped, hubPort) = state.withLock { ($0.isStopped, $0.hubPort) }
            if isStopped {
                if let client { close(client) }
                close(listener)
                return
            }
            guard let client else {
                usleep(10_000)
                continue
            }
            if let hubPort, let hub = try? Loopback.connect(to: hubPort) {
                begin(ProxyConnection(client: client, hub: hub))
            } else {
                close(client)
            }
        }
    }

    private func begin(_ connection: ProxyConnection) {
        let (number, toHub, toClient) = state.withLock { state in
            state.counts.connections += 1
            let number = state.counts.connections
            state.connections[number] = connection
            return (number, state.random.split(), state.random.split())
        }
        ThreadGroup.startDetached {
            self.pass(from: connection.client, to: connection.hub, toHub)
            self.endDirection(of: connection, number)
        }
        ThreadGroup.startDetached {
            self.pass(from: connection.hub, to: connection.client, toClient)
            self.endDirection(of: connection, number)
        }
    }

    private func endDirection(of connection: ProxyConnection, _ number: Int) {
        guard connection.endDirection() else { return }
        state.withLock { $0.connections[number] = nil }
    }

    // MARK: - What passes

    private func pass(from source: Int32, to target: Int32, _ seed: SeededGenerator) {
        var random = seed
        while true {
            let piece = Loopback.receive(from: source)
            guard !piece.isEmpty else { return }
            let faults = state.withLock { $0.faults }
            let fate = faults.fate(ofPieceOf: piece.count, &random)
            wait(milliseconds: fate.delayMilliseconds)
            let (bytes, damagedBits) = fate.applied(to: piece)
            state.withLock { state in
                state.counts.bytes += bytes.count
                state.counts.damagedBits += damagedBits
                state.counts.cuts += fate.cutAfter == nil ? 0 : 1
                state.counts.delays += fate.delayMilliseconds == 0 ? 0 : 1
            }
            guard Loopback.send(bytes, to: target), fate.cutAfter == nil else { return }
        }
    }

    /// Less if all trouble ends before.
    private func wait(milliseconds: Int) {
        var left = milliseconds
        while left > 0, state.withLock({ $0.faults != .quiet }) {
            usleep(UInt32(min(left, 20)) * 1_000)
            left -= 20
        }
    }
}

/// The two sockets of a connection through the proxy.
final class ProxyConnection: Sendable {
    let client: Int32
    let hub: Int32
    /// How many directions are still served. With the last one the sockets are closed; before, no
    /// other socket can have their numbers.
    private let directions = Mutex(2)

    init(client: Int32, hub: Int32) {
        self.client = client
        self.hub = hub
    }

    /// Ends both directions; whoever serves them finds out at once.
    func cut() {
        directions.withLock { left in
            guard left > 0 else { return }
            Loopback.end(client)
            Loopback.end(hub)
        }
    }

    /// To be called once for each direction, at its end; ends the other one, too.
    ///
    /// - Returns: whether it was the last one.
    func endDirection() -> Bool {
        cut()
        return directions.withLock { left in
            left -= 1
            guard left == 0 else { return false }
            close(client)
            close(hub)
            return true
        }
    }
}
