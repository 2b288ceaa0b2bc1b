import Foundation
import Glibc
import Synchronization

/// Listens on loopback and answers every connection with the same bytes, whatever is asked: for
/// all that is no hub.
final class CannedServer: Sendable {
    let port: Int
    private let listener: Int32

    struct CannotListen: Error {}

    /// - Parameters:
    ///   - answer: nil to close each connection without a word.
    ///   - hangUps: connections that are closed so before one is answered.
    init(_ answer: [UInt8]?, hangUps: Int = 0) throws {
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
        Thread.detachNewThread { Self.serve(listener, answer, hangUps: hangUps) }
    }

    var url: String { "http://127.0.0.1:\(port)" }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func serve(_ listener: Int32, _ answer: [UInt8]?, hangUps: Int) {
        var hangUpsLeft = hangUps
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { return }
            // One read is enough of a small request to be answered.
            _ = receive(from: connection)
            if hangUpsLeft > 0 {
                hangUpsLeft -= 1
            } else if let answer {
                _ = unsafe answer.withUnsafeBytes {
                    unsafe send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
            }
            shutdown(connection, Int32(SHUT_WR))
            // A request may come in parts. A connection that is closed with bytes unread is reset,
            // by which the answer can be lost: so all is read, until the other side closes it.
            while receive(from: connection) > 0 {}
            close(connection)
        }
    }

    /// How many bytes came; 0 or less at the end.
    private static func receive(from connection: Int32) -> Int {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        return unsafe bytes.withUnsafeMutableBytes {
            unsafe recv(connection, $0.baseAddress, $0.count, 0)
        }
    }
}

/// The bytes of an HTTP answer.
func canned(status: String = "200 OK", type: String, body: String) -> [UInt8] {
    let head =
        "HTTP/1.1 \(status)\r\ncontent-type: \(type)\r\ncontent-length: \(body.utf8.count)\r\n"
        + "connection: close\r\n\r\n"
    return Array((head + body).utf8)
}
