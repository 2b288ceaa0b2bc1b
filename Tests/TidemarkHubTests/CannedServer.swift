import Glibc
import Synchronization
import TestSupport

/// Listens on loopback and answers every connection with the same bytes, whatever is asked: for
/// all that is no hub.
final class CannedServer: Sendable {
    private let listener: LoopbackListener
    private let heard: Heard

    private final class Heard: Sendable {
        let texts = Mutex<[String]>([])
    }

    /// - Parameters:
    ///   - answer: nil to close each connection without a word.
    ///   - hangUps: connections that are closed so before one is answered.
    convenience init(_ answer: [UInt8]?, hangUps: Int = 0) throws {
        let hangUpsLeft = Mutex(hangUps)
        try self.init { () -> [UInt8]? in
            let hangsUp = hangUpsLeft.withLock { left in
                defer { left -= 1 }
                return left > 0
            }
            return hangsUp ? nil : answer
        }
    }

    /// Answers one connection after another, and all behind the last answer with that.
    convenience init(inTurn answers: [[UInt8]]) throws {
        let left = Mutex(answers)
        try self.init { () -> [UInt8]? in
            left.withLock { $0.count > 1 ? $0.removeFirst() : $0.first }
        }
    }

    private init(next: @escaping @Sendable () -> [UInt8]?) throws {
        let heard = Heard()
        self.heard = heard
        listener = try LoopbackListener { connection in
            // One read is enough of a small request to be answered.
            let begin = Loopback.receive(from: connection)
            heard.texts.withLock { $0.append(String(decoding: begin, as: UTF8.self)) }
            if let answer = next() { Loopback.send(answer, to: connection) }
            shutdown(connection, Int32(SHUT_WR))
            // A request may come in parts. A connection that is closed with bytes unread is reset,
            // by which the answer can be lost: so all is read, until the other side closes it.
            while !Loopback.receive(from: connection).isEmpty {}
            close(connection)
        }
    }

    var port: Int { listener.port }

    var url: String { listener.url }

    /// The begin of each connection's request, with its head.
    var requests: [String] { heard.texts.withLock { $0 } }

    func stop() {
        listener.stop()
    }
}

/// The bytes of an HTTP answer.
///
/// - Parameter fields: further lines of its head, each with its end.
func canned(
    status: String = "200 OK", type: String, body: String, fields: String = ""
) -> [UInt8] {
    let head =
        "HTTP/1.1 \(status)\r\ncontent-type: \(type)\r\ncontent-length: \(body.utf8.count)\r\n"
        + "\(fields)connection: close\r\n\r\n"
    return Array((head + body).utf8)
}
