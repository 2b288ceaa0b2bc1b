import Synchronization

/// Keys of session tokens that were opened lately, so that what was verified of a token once is not
/// verified again with each request. At most 16,384.
///
/// A token's text stands for what it says as long as the hub's secrets are the same, which they are
/// while the process runs. Whether it has ended is for the caller to see.
final class CallerKeyCache: Sendable {
    /// An opened token: the access key that it is of, and what that is.
    struct Entry: Sendable {
        let accessKeyID: String
        let key: CallerKey
    }

    private final class Stripe: Sendable {
        let entries = Mutex<[String: Entry]>([:])
    }

    private let stripes: [Stripe]

    private static let stripeCount = 16
    private static let entriesPerStripeMax = 1_024

    init() {
        stripes = (0..<Self.stripeCount).map { _ in Stripe() }
    }

    func entry(of token: String) -> Entry? {
        stripe(of: token).entries.withLock { $0[token] }
    }

    /// Where there is no room, others of the stripe give way: they are opened again when they come.
    func keep(_ entry: Entry, of token: String) {
        stripe(of: token).entries.withLock { entries in
            if entries.count >= Self.entriesPerStripeMax { entries.removeAll() }
            entries[token] = entry
        }
    }

    private func stripe(of token: String) -> Stripe {
        stripes[abs(token.hashValue % Self.stripeCount)]
    }
}
