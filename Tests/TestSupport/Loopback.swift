import Glibc

/// Blocking sockets that nobody but this machine can reach.
package enum Loopback {
    /// A socket that takes connections on a port of the system's choice.
    package static func listen() throws -> (descriptor: Int32, port: Int) {
        let listener = try madeSocket()
        var name = address(ofPort: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The pointers live for the calls and the sizes are those of the structure.
        let isListening = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, length) == 0 && Glibc.listen(listener, 128) == 0
                    && getsockname(listener, generic, &length) == 0
            }
        }
        guard isListening else {
            close(listener)
            throw Mismatch("cannot listen on loopback")
        }
        return (listener, Int(UInt16(bigEndian: name.sin_port)))
    }

    /// Waits for the next connection; nil if there is none, as when the listener was shut down.
    package static func accept(from listener: Int32) -> Int32? {
        let descriptor = Glibc.accept(listener, nil, nil)
        guard descriptor >= 0 else { return nil }
        prepare(descriptor)
        return descriptor
    }

    /// nil if nobody listens there.
    package static func connect(to port: Int) throws -> Int32? {
        let descriptor = try madeSocket()
        var name = address(ofPort: port)
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe Glibc.connect(descriptor, generic, length) == 0
            }
        }
        guard isConnected else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// What has come, after waiting for something; empty at the end of the connection.
    package static func receive(from descriptor: Int32) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe recv(descriptor, bytes.baseAddress, bytes.count, 0)
        }
        return Array(buffer.prefix(max(0, count)))
    }

    /// - Returns: whether all of it was taken.
    @discardableResult
    package static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                // The address is that of the bytes that are left, which lie within the array.
                unsafe Glibc.send(
                    descriptor, buffer.baseAddress.map { unsafe $0 + sent }, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Ends a connection or a listener; who waits for it goes on at once.
    package static func end(_ descriptor: Int32) {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    private static func madeSocket() throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Mismatch("no socket: system error \(errno)") }
        prepare(descriptor)
        return descriptor
    }

    /// Closed in children, and sent on without waiting for more.
    private static func prepare(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var one: Int32 = 1
        _ = unsafe setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one,
            socklen_t(MemoryLayout<Int32>.size))
    }

    private static func address(ofPort port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(truncatingIfNeeded: port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
