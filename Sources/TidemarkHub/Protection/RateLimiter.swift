import Synchronization

/// Lets everybody ask so often on average, and in a burst of so many at once: a token bucket for
/// each, as in "Token bucket" of RFC 2697 and many before it.
///
/// Whom it remembers is bounded. Names are kept in two generations: when the younger one is full it
/// becomes the older, and what was in that and asked for nothing since is forgotten. Who is
/// forgotten has a full bucket again, so it must take as many other names as are kept to gain by
/// it.
final class RateLimiter: Sendable {
    struct Rate: Hashable, Sendable {
        var perSecond: Int
        var burst: Int
    }

    /// In thousandths of a request, so that a millisecond adds a whole number of them.
    private struct Bucket {
        var thousandths: Int
        var filledAt: UInt64
    }

    private struct Generations {
        var young: [String: Bucket] = [:]
        var old: [String: Bucket] = [:]
    }

    private let rate: Rate
    private let namesOfGenerationMax: Int
    /// Callers of different names seldom wait for each other.
    private let stripes: [Stripe]

    private final class Stripe: Sendable {
        let generations = Mutex(Generations())
    }

    private static let stripeCount = 16
    private static let thousand = 1_000

    /// - Parameters:
    ///   - rate: both numbers 1...1,000,000,000.
    ///   - namesMax: that are remembered, about.
    init(_ rate: Rate, namesMax: Int) {
        self.rate = rate
        namesOfGenerationMax = max(1, namesMax / Self.stripeCount / 2)
        stripes = (0..<Self.stripeCount).map { _ in Stripe() }
    }

    /// Takes one request's worth.
    ///
    /// - Parameter now: milliseconds, of a clock that may be set back: then nothing is added.
    /// - Returns: nil if it may go on; else in how many seconds one may.
    func take(_ name: String, now: UInt64) -> Int? {
        let stripe = stripes[Int(name.hashValue.magnitude % UInt(Self.stripeCount))]
        return stripe.generations.withLock { generations in
            let known = generations.young[name] ?? generations.old[name]
            var bucket =
                known ?? Bucket(thousandths: rate.burst * Self.thousand, filledAt: now)
            fill(&bucket, now: now)
            let isGranted = bucket.thousandths >= Self.thousand
            if isGranted { bucket.thousandths -= Self.thousand }
            if generations.young.count >= namesOfGenerationMax, generations.young[name] == nil {
                generations.old = generations.young
                generations.young = [:]
            }
            generations.old[name] = nil
            generations.young[name] = bucket
            guard !isGranted else { return nil }
            let missing = Self.thousand - bucket.thousandths
            // A request a second is a thousandth a millisecond.
            return max(1, (missing / rate.perSecond + Self.thousand - 1) / Self.thousand)
        }
    }

    /// How many names are remembered. For tests.
    var nameCount: Int {
        stripes.reduce(0) { sum, stripe in
            sum + stripe.generations.withLock { $0.young.count + $0.old.count }
        }
    }

    private func fill(_ bucket: inout Bucket, now: UInt64) {
        guard now > bucket.filledAt else { return }
        let full = rate.burst * Self.thousand
        let missing = full - bucket.thousandths
        let elapsed = now - bucket.filledAt
        // So long that it is full for certain: the product below cannot overflow then.
        let toFull = missing / rate.perSecond + 1
        if elapsed >= UInt64(toFull) {
            bucket.thousandths = full
        } else {
            bucket.thousandths = min(full, bucket.thousandths + Int(elapsed) * rate.perSecond)
        }
        bucket.filledAt = now
    }
}
