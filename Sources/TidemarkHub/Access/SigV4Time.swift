/// The time of a signature, as it stands there: `20150830T123600Z`, in UTC.
struct SigV4Time: Hashable, Sendable {
    /// As it was sent.
    let text: String
    /// Seconds since 1970-01-01 UTC, by the proleptic Gregorian calendar, without leap seconds.
    let epochSeconds: Int64

    /// nil for anything but 16 characters of that form that name a day and a time of the years
    /// 1970...9999.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 16, bytes[8] == UInt8(ascii: "T"), bytes[15] == UInt8(ascii: "Z"),
            let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[4..<6]),
            let day = Self.number(bytes[6..<8]), let hour = Self.number(bytes[9..<11]),
            let minute = Self.number(bytes[11..<13]), let second = Self.number(bytes[13..<15]),
            year >= 1970, (1...12).contains(month),
            (1...Self.dayCount(of: month, in: year)).contains(day), hour < 24, minute < 60,
            second < 60
        else { return nil }
        self.text = text
        let days = Self.days(year, month, day)
        epochSeconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    }

    /// The day, as in the scope of a credential: `20150830`.
    var day: Substring { text.prefix(8) }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var value: Int64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            value = value * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return value
    }

    private static func dayCount(of month: Int64, in year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days since 1970-01-01. Howard Hinnant: "chrono-Compatible Low-Level Date Algorithms",
    /// `days_from_civil`; the year begins in March there, so that a leap day is its last.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let monthFromMarch = month > 2 ? month - 3 : month + 9
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}
