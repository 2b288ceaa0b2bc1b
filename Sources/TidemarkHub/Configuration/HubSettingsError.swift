/// A setting of the hub that it cannot start with: which one, what stands there, and what may.
///
/// Never says a secret: what stands in a secret's place is described, not shown.
public struct HubSettingsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// By its name in the configuration file, such as `limits.datasetsPerIdentityMax`. Of what
    /// comes more than once it may lack whose it is (`pool.id`); then `value` tells.
    public let key: String
    /// What stands there; nil if nothing does, or if it is a secret.
    public let value: String?
    /// What may stand there, as in `1...65535`, with the remedy where that is not plain.
    public let allowed: String

    /// - Parameter value: nil for what must not be shown, or is not there. Only so much of it is
    ///   kept as a line of a log takes.
    public init(_ key: String, value: String? = nil, allowed: String) {
        self.key = key
        self.value = value.map { String($0.prefix(Self.shownCharactersMax)) }
        self.allowed = allowed
    }

    private static let shownCharactersMax = 200

    /// One line.
    public var description: String {
        guard let value else { return "\(key) is missing or not usable; allowed: \(allowed)" }
        return "\(key) cannot be \(value.debugDescription); allowed: \(allowed)"
    }
}
