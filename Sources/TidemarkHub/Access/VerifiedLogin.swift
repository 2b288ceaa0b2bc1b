/// That somebody has signed in: with whom, and who that says it is.
struct VerifiedLogin: Hashable, Sendable, Codable {
    /// As clients name it in `Logins`.
    let provider: String
    /// Unique with the provider.
    let subject: String

    /// 1...128 bytes and 1...1,024 characters, neither with a zero byte.
    var isWithinBounds: Bool {
        (1...128).contains(provider.utf8.count) && !subject.isEmpty
            && subject.unicodeScalars.count <= 1_024
            && !provider.utf8.contains(0) && !subject.utf8.contains(0)
    }
}
