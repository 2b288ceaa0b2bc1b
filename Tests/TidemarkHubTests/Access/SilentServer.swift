import Glibc
import TestSupport

/// Listens on loopback, answers a connection with the beginning of an answer, and then says nothing
/// more until the other side has had enough.
final class SilentServer: Sendable {
    private let listener: LoopbackListener

    init(_ beginning: [UInt8]) throws {
        listener = try LoopbackListener { connection in
            _ = LoopbackListener.receive(from: connection)
            LoopbackListener.send(beginning, to: connection)
            while LoopbackListener.receive(from: connection) > 0 {}
            close(connection)
        }
    }

    var port: Int { listener.port }

    var url: String { listener.url }

    func stop() {
        listener.stop()
    }
}
