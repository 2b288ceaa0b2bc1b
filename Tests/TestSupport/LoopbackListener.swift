import Glibc
import Synchronization

/// Listens on loopback, and hands what connects to it to a closure, one connection after another.
///
/// The thread that waits for connections alone closes the listening socket: a descriptor that
/// another thread closed could be that of another test's listener by the next `accept`, which would
/// then be answered by this one.
public final class LoopbackListener: Sendable {
    public let port: Int
    private let socket: Socket

    private final class Socket: Sendable {
        /// nil once it is closed.
        let descriptor: Mutex<Int32?>

        init(_ descriptor: Int32) {
            self.descriptor = Mutex(descriptor)
        }
    }

    /// - Parameter serve: owns the connection that it is given, and has to close it.
    public init(_ serve: @escaping @Sendable (_ connection: Int32) -> Void) throws {
        let listener: Int32
        (listener, port) = try Loopback.listen()
        let socket = Socket(listener)
        self.socket = socket
        ThreadGroup.startDetached {
            while true {
                let connection = accept(listener, nil, nil)
                if connection >= 0 {
                    serve(connection)
                } else if errno != EINTR && errno != ECONNABORTED {
                    break
                }
            }
            socket.descriptor.withLock { descriptor in
                close(listener)
                descriptor = nil
            }
        }
    }

    public var url: String { "http://127.0.0.1:\(port)" }

    /// Nobody is served any more who connects from now on.
    public func stop() {
        socket.descriptor.withLock { descriptor in
            if let descriptor { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }
}
