import Foundation
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

    public struct CannotListen: Error {}

    private final class Socket: Sendable {
        /// nil once it is closed.
        let descriptor: Mutex<Int32?>

        init(_ descriptor: Int32) {
            self.descriptor = Mutex(descriptor)
        }
    }

    /// - Parameter serve: owns the connection that it is given, and has to close it.
    public init(_ serve: @escaping @Sendable (_ connection: Int32) -> Void) throws {
        let listener = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard listener >= 0 else { throw CannotListen() }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The pointers live for the calls and the sizes are those of the structure.
        let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, generic, &length) == 0
            }
        }
        guard isListening else {
            close(listener)
            throw CannotListen()
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        let socket = Socket(listener)
        self.socket = socket
        Thread.detachNewThread {
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

    /// How many bytes came, after waiting for some; 0 or less at the end of the connection.
    public static func receive(from connection: Int32) -> Int {
        receiveBytes(from: connection).count
    }

    /// What came, after waiting for some; nothing at the end of the connection.
    public static func receiveBytes(from connection: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe bytes.withUnsafeMutableBytes {
            unsafe recv(connection, $0.baseAddress, $0.count, 0)
        }
        return Array(bytes.prefix(max(0, count)))
    }

    public static func send(_ bytes: [UInt8], to connection: Int32) {
        _ = unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }
}
