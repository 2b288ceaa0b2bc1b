/// Reads dates as the command prints them: `2026-11-21T06:30:00.125Z`.
enum Timestamp {
    /// Milliseconds since 1970-01-01 UTC; nil if the text is no such date.
    ///
    /// It is a date and time of day as RFC 3339 has them, in UTC, from 1970 on. The seconds may
    /// have a fraction of up to three digits, and years have five where four are too few: the
    /// latest expiry is in the year 10889.
    static func milliseconds(_ text: [UInt8]) -> UInt64? {
        var rest = text[...]
        guard let year = number(4...5, &rest), take("-", &rest),
            let month = number(2...2, &rest), take("-", &rest),
            let day = number(2...2, &rest), take("T", &rest),
            let hour = number(2...2, &rest), take(":", &rest),
            let minute = number(2...2, &rest), take(":", &rest),
            let second = number(2...2, &rest), let millisecond = fraction(&rest),
            take("Z", &rest), rest.isEmpty
        else { return nil }
        guard year >= 1_970, (1...12).contains(month),
            (1...dayCount(month, year)).contains(day), hour < 24, minute < 60, second < 60
        else { return nil }
        let days =
            daysBefore(year: year) - daysBefore(year: 1_970)
            + (1..<month).reduce(0) { $0 + dayCount($1, year) } + day - 1
        return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + millisecond
    }

    private static func take(_ character: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    /// As many digits as there are, if they are as many as allowed.
    private static func number(
        _ digitCounts: ClosedRange<Int>, _ rest: inout ArraySlice<UInt8>
    ) -> UInt64? {
        let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digitCounts.contains(digits.count) else { return nil }
        rest = rest[digits.endIndex...]
        return digits.reduce(0) { $0 * 10 + UInt64($1 - UInt8(ascii: "0")) }
    }

    /// The milliseconds behind a point; 0 if there is no point.
    private static func fraction(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        guard take(".", &rest) else { return 0 }
        let countBefore = rest.count
        guard let digits = number(1...3, &rest) else { return nil }
        return digits * [100, 10, 1][countBefore - rest.count - 1]
    }

    /// Days of a month, both counted from 1.
    private static func dayCount(_ month: UInt64, _ year: UInt64) -> UInt64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days from 0001-01-01 to a year's first, by the calendar's rule for leap years.
    private static func daysBefore(year: UInt64) -> UInt64 {
        let years = year - 1
        return 365 * years + years / 4 - years / 100 + years / 400
    }
}
