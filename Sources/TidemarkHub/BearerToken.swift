/// The token that callers must present.
struct BearerToken: Sendable {
    private let token: [UInt8]

    init(_ token: String) {
        self.token = Array(token.utf8)
    }

    /// Whether the value of an `Authorization` header carries the token. Looks at every byte of it
    /// whatever the first ones are, so that the time it takes tells nothing about the token but
    /// its length.
    func matches(_ header: String?) -> Bool {
        let scheme = "bearer "
        guard let header, header.prefix(scheme.count).lowercased() == scheme else { return false }
        let presented = Array(header.utf8.dropFirst(scheme.utf8.count))
        var difference = presented.count ^ token.count
        for (index, byte) in presented.enumerated() {
            difference |= Int(byte ^ token[index % token.count])
        }
        return difference == 0
    }
}
