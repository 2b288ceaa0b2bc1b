import Glibc

/// A blocking connection to a Redis server on this machine.
final class RedisConnection {
    private let descriptor: Int32
    private var received: [UInt8] = []
    private var consumed = 0

    /// Waits until the server takes connections.
    init(port: Int) throws {
        let attemptsMax = 500
        for attempt in 1...attemptsMax {
            let candidate = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            try require(candidate >= 0, "no socket: system error \(errno)")
            if connect(candidate, toPort: port) {
                descriptor = candidate
                _ = fcntl(candidate, F_SETFD, FD_CLOEXEC)
                return
            }
            close(candidate)
            try require(attempt < attemptsMax, "redis-server does not answer on port \(port)")
            usleep(10_000)
        }
        throw BenchmarkFailure("redis-server does not answer on port \(port)")
    }

    deinit {
        close(descriptor)
    }

    /// The text of the answer; that of nil is empty.
    @discardableResult
    func command(_ words: String...) throws -> String {
        try send(Self.encoded(words.map { Array($0.utf8) }))
        return String(decoding: try reply(), as: UTF8.self)
    }

    func get(_ key: [UInt8]) throws -> [UInt8] {
        try send(Self.encoded([Array("GET".utf8), key]))
        return try reply()
    }

    /// Sets many keys without waiting for each answer.
    func set(_ records: some Sequence<(key: [UInt8], value: [UInt8])>) throws {
        let pipelineMax = 1_000
        var request: [UInt8] = []
        var count = 0
        for record in records {
            request += Self.encoded([Array("SET".utf8), record.key, record.value])
            count += 1
            guard count == pipelineMax else { continue }
            try send(request)
            try takeReplies(count)
            request.removeAll(keepingCapacity: true)
            count = 0
        }
        try send(request)
        try takeReplies(count)
    }

    /// A field of `INFO`; nil if there is none.
    func information(_ section: String, _ field: String) throws -> String? {
        Self.field(field, of: try command("INFO", section))
    }

    static func field(_ field: String, of information: String) -> String? {
        information.split(whereSeparator: \.isNewline).first { $0.hasPrefix(field + ":") }
            .map { String($0.dropFirst(field.count + 1)) }
    }

    func number(_ section: String, _ field: String) throws -> Int {
        guard let number = try information(section, field).flatMap({ Int($0) }) else {
            throw BenchmarkFailure("redis-server tells no \(field)")
        }
        return number
    }

    // MARK: - Bytes

    private static func encoded(_ words: [[UInt8]]) -> [UInt8] {
        var bytes = Array("*\(words.count)\r\n".utf8)
        for word in words {
            bytes += Array("$\(word.count)\r\n".utf8)
            bytes += word
            bytes += [13, 10]
        }
        return bytes
    }

    private func takeReplies(_ count: Int) throws {
        for _ in 0..<count { _ = try reply() }
    }

    private func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let written = bytes.withUnsafeBytes {
                write(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent)
            }
            try require(written > 0, "the connection to redis-server broke")
            sent += written
        }
    }

    /// A status, number or bulk string. Fails if the answer is an error.
    private func reply() throws -> [UInt8] {
        let line = try takeLine()
        let text = String(decoding: line.dropFirst(), as: UTF8.self)
        switch line.first {
        case UInt8(ascii: "+"), UInt8(ascii: ":"):
            return Array(line.dropFirst())
        case UInt8(ascii: "$"):
            guard let length = Int(text), length >= 0 else { return [] }
            return try take(length + 2).dropLast(2)
        default:
            throw BenchmarkFailure("redis-server answers \(text)")
        }
    }

    private func takeLine() throws -> [UInt8] {
        var end = consumed
        while true {
            while end < received.count, received[end] != UInt8(ascii: "\n") { end += 1 }
            if end < received.count { break }
            let scanned = end - consumed
            try receive()
            end = consumed + scanned
        }
        return try take(end + 1 - consumed).dropLast(2)
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while received.count - consumed < count { try receive() }
        defer { consumed += count }
        return Array(received[consumed..<consumed + count])
    }

    private func receive() throws {
        received.removeFirst(consumed)
        consumed = 0
        let chunkBytes = 1 << 16
        let chunk = [UInt8](unsafeUninitializedCapacity: chunkBytes) { buffer, count in
            count = max(0, read(descriptor, buffer.baseAddress, chunkBytes))
        }
        try require(!chunk.isEmpty, "the connection to redis-server broke")
        received += chunk
    }
}

private func connect(_ descriptor: Int32, toPort port: Int) -> Bool {
    withLoopback(port: port) { Glibc.connect(descriptor, $0, $1) == 0 }
}

private func withLoopback<Result>(
    port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}

/// A port that nobody listens on now.
func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    let isBound = withLoopback(port: 0) { bind(descriptor, $0, $1) == 0 }
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            getsockname(descriptor, $0, &length) == 0
        }
    }
    try require(isBound && isNamed, "no free port: system error \(errno)")
    return Int(UInt16(bigEndian: address.sin_port))
}
