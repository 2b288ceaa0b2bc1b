import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// Dates that the store prints are read as the moments they stand for.
@Suite struct TimestampTests {
    private func milliseconds(_ text: String) -> UInt64? {
        Timestamp.milliseconds(Array(text.utf8))
    }

    @Test func whatIsPrintedIsReadAgain() {
        var random = SeededGenerator(.drawn())
        let moments =
            [0, 1, 68_169_599_999, 68_169_600_000, 951_782_400_000, Limits.expiryMax]
            + (0..<2_000).map { _ in random.next() >> UInt64(16 + random.below(40)) }
        for moment in moments {
            let text = HybridTime(milliseconds: moment, counter: 0).description
            #expect(milliseconds(text) == moment, "\(text)")
        }
    }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:01.5Z", 1_500),
        ("1970-01-01T00:00:00.25Z", 250), ("1970-01-01T23:59:59.999Z", 86_399_999),
        ("2000-02-29T00:00:00Z", 951_782_400_000), ("10000-01-01T00:00:00Z", 253_402_300_800_000),
    ])
    func moments(text: String, moment: UInt64) {
        #expect(milliseconds(text) == moment)
    }

    @Test(arguments: [
        "", "Z", "1970", "1970-01-01", "1970-01-01T00:00Z", "1970-01-01T00:00:00",
        "1970-01-01T00:00:00+00:00", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00.1234Z",
        "1970-01-01 00:00:00Z", "1970-01-01T00:00:00Z ", " 1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "970-01-01T00:00:00Z",
        "100000-01-01T00:00:00Z", "1970-1-01T00:00:00Z", "1970-00-01T00:00:00Z",
        "1970-13-01T00:00:00Z", "1970-01-00T00:00:00Z", "1970-01-32T00:00:00Z",
        "1970-04-31T00:00:00Z", "1970-02-29T00:00:00Z", "2100-02-29T00:00:00Z",
        "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:60Z",
        "1970-01-01T00:00:00z", "+1970-01-01T00:00:00Z", "1970-01-01T-1:00:00Z",
    ])
    func refused(text: String) {
        #expect(milliseconds(text) == nil)
    }
}
