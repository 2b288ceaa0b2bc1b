import AsyncHTTPClient
import NIOHTTP1

/// When a hub that is busy wants to be asked again: `Retry-After`, RFC 9110, section 10.2.3.
enum RetryAfter {
    /// What is said beyond this is taken for it.
    private static let secondsMax = 86_400

    /// nil for answers that are not of a busy hub, and where it does not say. A date is not looked
    /// at: hubs give seconds, and the clocks of the two sides may differ.
    static func duration(of response: HTTPClientResponse) -> Duration? {
        guard response.status == .tooManyRequests || response.status == .serviceUnavailable,
            let text = response.headers.first(name: "retry-after")
        else { return nil }
        return duration(text)
    }

    /// - Parameter text: a number of seconds; nil for anything else.
    static func duration(_ text: String) -> Duration? {
        guard !text.isEmpty,
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        // Digits that are too many for a number are beyond the bound as well.
        return .seconds(min(Int(text) ?? secondsMax, secondsMax))
    }
}

/// How long one request may still wait because the hub says so.
struct RetryAllowance {
    private var left: Duration
    /// A hub that says "at once" is not asked without any pause.
    private static let pauseMin = Duration.milliseconds(500)

    init(_ whole: Duration) {
        left = whole
    }

    /// How long to wait for the next attempt; nil if the hub did not say, or it would take longer
    /// in all than may be.
    mutating func pause(_ asked: Duration?) -> Duration? {
        guard let asked else { return nil }
        let pause = max(asked, Self.pauseMin)
        guard pause <= left else { return nil }
        left -= pause
        return pause
    }
}
