import Glibc
import TestSupport

/// Listens on loopback, answers a connection with the beginning of an answer, and then says nothing
/// more until the other side has had enough.
final class SilentServer: Sendable {
    private let listener: LoopbackListener

    init(_ beginning: [UInt8]) throws {
        listener = try LoopbackListener { connection in
            _ = Loopback.receive(from: connection)
            Loopback.send(beginning, to: connection)
            while !Loopback.receive(from: connection).isEmpty {}
            close(connection)
        }
    }

    var port: Int { listener.port }

    var url: String { listener.url }

    func stop() {
        listener.stop()
    }
}
