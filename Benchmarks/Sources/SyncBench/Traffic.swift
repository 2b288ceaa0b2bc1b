import Glibc

/// Counts the payload bytes of this process's TCP connections to a port, as the kernel knows them:
/// headers of HTTP are in it, those of TCP are not.
enum Traffic {
    /// The offset of `tcpi_bytes_acked` in the kernel's `tcp_info`, behind eight bytes and 24
    /// words of 32 bits and two of 64 bits; `tcpi_bytes_received` follows. Glibc's own structure
    /// ends before them.
    private static let acknowledgedOffset = 8 + 24 * 4 + 2 * 8
    private static let infoBytes = acknowledgedOffset + 16
    /// More than the benchmark ever has open.
    private static let descriptorsMax: Int32 = 1_024

    /// Of all connections that are open now, both directions together.
    static func bytes(toPort port: Int) -> Int {
        (0..<descriptorsMax).filter { peerPort(of: $0) == port }
            .reduce(0) { $0 + bytes(of: $1) }
    }

    private static func peerPort(of descriptor: Int32) -> Int? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutableBytes(of: &address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                getpeername(descriptor, $0.baseAddress, &length)
            }
        }
        guard result == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    private static func bytes(of descriptor: Int32) -> Int {
        var info = [UInt8](repeating: 0, count: infoBytes)
        var length = socklen_t(infoBytes)
        let result = getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &length)
        guard result == 0, Int(length) == infoBytes else { return 0 }
        return info.withUnsafeBytes {
            Int($0.loadUnaligned(fromByteOffset: acknowledgedOffset, as: UInt64.self))
                + Int($0.loadUnaligned(fromByteOffset: acknowledgedOffset + 8, as: UInt64.self))
        }
    }
}
