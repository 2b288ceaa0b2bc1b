import Glibc

/// A connection of which each byte is the test's own.
public final class RawConnection: Sendable {
    private let descriptor: Int32

    public struct CannotConnect: Error {}

    public init(port: Int) throws {
        guard let descriptor = try Loopback.connect(to: port) else { throw CannotConnect() }
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// False once the other side has closed the connection.
    @discardableResult
    public func send(_ text: String) async throws -> Bool {
        var rest = Array(text.utf8)[...]
        let begin = ContinuousClock.now
        while !rest.isEmpty {
            guard ContinuousClock.now - begin < Patience.limit else { throw CannotConnect() }
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(
                    descriptor, $0.baseAddress, $0.count,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if Self.isToBeTriedAgain {
                try await Self.pause()
            } else {
                return false
            }
        }
        return true
    }

    /// What comes until the text does, or the connection is closed.
    public func receive(until end: String) async throws -> String {
        try await receive { !$0.contains(end) }
    }

    /// What comes for as long as that is not all, or until the connection is closed.
    public func receive(while isIncomplete: (String) -> Bool) async throws -> String {
        var text = ""
        while isIncomplete(text), let more = try await receiveSome() { text += more }
        return text
    }

    /// Returns once the other side has closed the connection.
    public func untilClosed() async throws {
        while try await receiveSome() != nil {}
    }

    /// nil at the end. Gives the thread up while nothing comes: the hub may need it.
    private func receiveSome() async throws -> String? {
        let begin = ContinuousClock.now
        while ContinuousClock.now - begin < Patience.limit {
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let count = unsafe bytes.withUnsafeMutableBytes {
                unsafe recv(
                    descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
            }
            if count > 0 { return String(decoding: bytes.prefix(count), as: UTF8.self) }
            guard count < 0, Self.isToBeTriedAgain else { return nil }
            try await Self.pause()
        }
        throw CannotConnect()
    }

    /// Whether the last call failed only because it would have had to wait.
    private static var isToBeTriedAgain: Bool { errno == EAGAIN || errno == EINTR }

    private static func pause() async throws {
        try await Task.sleep(for: .milliseconds(2))
    }
}
