import TestSupport
import Testing

@testable import TidemarkHub

/// So often on average, and so many at once.
struct RateLimiterTests {
    private static let rate = RateLimiter.Rate(perSecond: 10, burst: 5)

    @Test("a burst, then one as often as the rate says")
    func burst() {
        let limiter = RateLimiter(Self.rate, namesMax: 1_000)
        for _ in 0..<5 { #expect(limiter.take("a", now: 1_000) == nil) }
        #expect(limiter.take("a", now: 1_000) == 1)
        #expect(limiter.take("a", now: 1_099) == 1)
        #expect(limiter.take("a", now: 1_100) == nil)
        #expect(limiter.take("a", now: 1_100) == 1)
        // Another one has its own.
        #expect(limiter.take("b", now: 1_100) == nil)
        // Never more than a burst, however long nobody came; and no overflow.
        for _ in 0..<5 { #expect(limiter.take("a", now: .max) == nil) }
        #expect(limiter.take("a", now: .max) == 1)
    }

    @Test("when to come again is said in seconds")
    func retry() {
        let slow = RateLimiter(RateLimiter.Rate(perSecond: 1, burst: 1), namesMax: 1_000)
        #expect(slow.take("a", now: 0) == nil)
        #expect(slow.take("a", now: 0) == 1)
        #expect(slow.take("a", now: 999) == 1)
        #expect(slow.take("a", now: 1_000) == nil)
    }

    @Test("a clock that is set back gives nothing")
    func clockSetBack() {
        let limiter = RateLimiter(Self.rate, namesMax: 1_000)
        for _ in 0..<5 { #expect(limiter.take("a", now: 10_000) == nil) }
        #expect(limiter.take("a", now: 0) != nil)
        #expect(limiter.take("a", now: 10_000) != nil)
    }

    @Test("against a model: a burst and what the time gives, no more and no less")
    func model() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<50 {
            let rate = RateLimiter.Rate(
                perSecond: 1 + generator.below(2_000), burst: 1 + generator.below(50))
            let limiter = RateLimiter(rate, namesMax: 1_000)
            var now: UInt64 = 1_000_000
            // In thousandths.
            var tokens = rate.burst * 1_000
            for _ in 0..<400 {
                let step = generator.oneIn(10) ? generator.below(60_000) : generator.below(5)
                now += UInt64(step)
                tokens = min(rate.burst * 1_000, tokens + step * rate.perSecond)
                let isGranted = limiter.take("name", now: now) == nil
                #expect(isGranted == (tokens >= 1_000))
                if isGranted { tokens -= 1_000 }
            }
        }
    }

    @Test("many names cost bounded memory, and the one that asks on is remembered")
    func names() {
        let limiter = RateLimiter(RateLimiter.Rate(perSecond: 1, burst: 1), namesMax: 320)
        for number in 0..<20_000 {
            _ = limiter.take("stranger \(number)", now: 5)
            // Refused each time but the first: nobody makes it be forgotten.
            #expect((limiter.take("known", now: 5) == nil) == (number == 0))
        }
        #expect(limiter.nameCount <= 320 + 32)
    }
}
