/// A moment as a date and time of day in UTC, for output only.
///
/// The core has no Foundation; the conversion is Howard Hinnant's `civil_from_days`
/// ("chrono-Compatible Low-Level Date Algorithms"), for days after 1970.
struct CalendarTime {
    let year: UInt64
    let month: UInt64
    let day: UInt64
    let millisecondOfDay: UInt64

    init(millisecondsSince1970: UInt64) {
        let millisecondsPerDay: UInt64 = 86_400_000
        millisecondOfDay = millisecondsSince1970 % millisecondsPerDay
        // Days are counted from 0000-03-01, so that a leap day is the last day of its year.
        let days = millisecondsSince1970 / millisecondsPerDay + 719_468
        let era = days / 146_097
        let dayOfEra = days % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// `2026-11-21T06:30:00.125Z`
    var iso8601: String {
        let seconds = millisecondOfDay / 1_000
        let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
        let hours = padded(seconds / 3_600, 2)
        let minutes = padded(seconds / 60 % 60, 2)
        let fraction = padded(millisecondOfDay % 1_000, 3)
        return "\(date)T\(hours):\(minutes):\(padded(seconds % 60, 2)).\(fraction)Z"
    }

    private func padded(_ number: UInt64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
