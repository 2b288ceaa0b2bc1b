import FoundationEssentials

/// What an identity signs its requests with for a while.
struct TemporaryCredentials: Sendable {
    let accessKeyID, secretKey, sessionToken: String
    /// When they end, in seconds since 1970-01-01 UTC.
    let expiresSeconds: Int64
}

/// What a session token says: whose it is.
struct SessionClaim: Hashable, Sendable {
    /// 20 bytes.
    let accessKeyID: String
    let identity: IdentityID
    let pool: PoolID
    let isAuthenticated: Bool
    let expiresSeconds: Int64

    static let accessKeyPrefix = "ASIA"
    private static let accessKeyBytes = 20

    /// Access key, 8 bytes of big-endian seconds, a byte 0 or 1, and both ids with a byte of their
    /// count before each.
    var encoded: [UInt8] {
        var bytes = Array(accessKeyID.utf8)
        let seconds = UInt64(bitPattern: expiresSeconds)
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: seconds >> UInt64(shift)))
        }
        bytes.append(isAuthenticated ? 1 : 0)
        for text in [pool.text, identity.text] {
            // Ids have 55 bytes at most.
            bytes.append(UInt8(truncatingIfNeeded: text.utf8.count))
            bytes.append(contentsOf: text.utf8)
        }
        return bytes
    }

    init(
        accessKeyID: String, identity: IdentityID, pool: PoolID, isAuthenticated: Bool,
        expiresSeconds: Int64
    ) {
        self.accessKeyID = accessKeyID
        self.identity = identity
        self.pool = pool
        self.isAuthenticated = isAuthenticated
        self.expiresSeconds = expiresSeconds
    }

    /// nil for anything but what ``encoded`` gives.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func text(_ count: Int?) -> String? {
            count.flatMap(take).flatMap { String(validating: $0, as: UTF8.self) }
        }
        guard let accessKeyID = text(Self.accessKeyBytes), let seconds = take(8),
            let flag = take(1)?.first, flag <= 1,
            let pool = text(take(1)?.first.map { Int($0) }).flatMap({ PoolID($0) }),
            let identity = text(take(1)?.first.map { Int($0) }).flatMap({ IdentityID($0) }),
            rest.isEmpty
        else { return nil }
        self.accessKeyID = accessKeyID
        self.identity = identity
        self.pool = pool
        isAuthenticated = flag == 1
        expiresSeconds = Int64(
            bitPattern: seconds.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}

/// A new name for a set of credentials: `ASIA` and 16 of the digits of base32, 80 random bits. It
/// is no secret.
enum AccessKeyName {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    static func drawn() -> String {
        let random = Digests.sha256(Array(UUID().uuidString.utf8))
        let name = random.prefix(16).map { digits[Int($0 & 31)] }
        return SessionClaim.accessKeyPrefix + String(decoding: name, as: UTF8.self)
    }
}
