import Foundation
import Glibc
import Synchronization

/// Listens on loopback, takes all connections at once, and never says a word.
final class HangingServer: Sendable {
    let port: Int
    private let listener: Int32
    private let connections: Connections

    struct CannotListen: Error {}

    private final class Connections: Sendable {
        let descriptors = Mutex<[Int32]>([])
    }

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The pointers live for the calls and the sizes are those of the structure.
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, generic, &length) == 0
            }
        }
        guard listener >= 0, result else { throw CannotListen() }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        let connections = Connections()
        self.connections = connections
        Thread.detachNewThread {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                connections.descriptors.withLock { $0.append(connection) }
            }
        }
    }

    var url: String { "http://127.0.0.1:\(port)" }

    var connectionCount: Int { connections.descriptors.withLock { $0.count } }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        connections.descriptors.withLock { descriptors in
            for descriptor in descriptors { close(descriptor) }
            descriptors.removeAll()
        }
    }
}
