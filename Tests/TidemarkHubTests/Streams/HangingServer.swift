import Glibc
import Synchronization
import TestSupport

/// Listens on loopback, takes all connections at once, and never says a word.
final class HangingServer: Sendable {
    private let listener: LoopbackListener
    private let connections: Connections

    private final class Connections: Sendable {
        /// nil once the server has stopped.
        let descriptors = Mutex<[Int32]?>([])
    }

    init() throws {
        let connections = Connections()
        self.connections = connections
        listener = try LoopbackListener { connection in
            let isKept = connections.descriptors.withLock { descriptors in
                descriptors?.append(connection)
                return descriptors != nil
            }
            if !isKept { close(connection) }
        }
    }

    var port: Int { listener.port }

    var url: String { listener.url }

    var connectionCount: Int { connections.descriptors.withLock { $0?.count ?? 0 } }

    func stop() {
        listener.stop()
        connections.descriptors.withLock { descriptors in
            for descriptor in descriptors ?? [] { close(descriptor) }
            descriptors = nil
        }
    }
}
