import NIOCore

/// Whom a limit of addresses counts as one: an address of IPv4, or the first half of one of IPv6,
/// since that is what one customer of a provider has (RFC 6177).
enum ClientAddress {
    /// nil for sockets without addresses.
    static func name(of address: SocketAddress?) -> String? {
        guard let text = address?.ipAddress else { return nil }
        guard text.contains(":") else { return text }
        // One of IPv4, as a socket for both has it: RFC 4291, section 2.5.5.2.
        let mapped = "::ffff:"
        if text.hasPrefix(mapped), text.contains(".") {
            return String(text.dropFirst(mapped.count))
        }
        return groups(of: text).prefix(4).joined(separator: ":")
    }

    /// The eight of an address of IPv6, with the zeros that `::` stands for.
    private static func groups(of text: String) -> [String] {
        var before: [String] = []
        var behind: [String] = []
        var isBehind = false
        for part in text.split(separator: ":", omittingEmptySubsequences: false) {
            if part.isEmpty {
                isBehind = true
            } else if isBehind {
                behind.append(String(part))
            } else {
                before.append(String(part))
            }
        }
        let zeros = max(0, 8 - before.count - behind.count)
        return before + Array(repeating: "0", count: zeros) + behind
    }
}
