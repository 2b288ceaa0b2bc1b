import Foundation
import Glibc

/// Listens on loopback, answers a connection with the beginning of an answer, and then says nothing
/// more until the other side has had enough.
final class SilentServer: Sendable {
    let port: Int
    private let listener: Int32

    struct CannotListen: Error {}

    init(_ beginning: [UInt8]) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The pointers live for the calls and the sizes are those of the structure.
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, length) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, generic, &length) == 0
            }
        }
        guard listener >= 0, result else { throw CannotListen() }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { Self.serve(listener, beginning) }
    }

    var url: String { "http://127.0.0.1:\(port)" }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func serve(_ listener: Int32, _ beginning: [UInt8]) {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { return }
            _ = receive(from: connection)
            _ = unsafe beginning.withUnsafeBytes {
                unsafe send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            while receive(from: connection) > 0 {}
            close(connection)
        }
    }

    /// How many bytes came; 0 or less at the end.
    private static func receive(from connection: Int32) -> Int {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        return unsafe bytes.withUnsafeMutableBytes {
            unsafe recv(connection, $0.baseAddress, $0.count, 0)
        }
    }
}
