/// A time as the API has it: seconds since 1970-01-01 UTC as a JSON number, with a fraction.
///
/// Whole milliseconds are kept of it. Clients differ in what they send: some send milliseconds as
/// a fraction, others cut them off.
struct APIDate: Hashable, Sendable {
    /// Since 1970-01-01 UTC, 0...``millisecondsMax``.
    let milliseconds: Int64

    /// The end of the year 9999, behind which clients know no dates.
    static let millisecondsMax: Int64 = 253_402_300_799_999

    /// Times out of bounds become the nearest one within, so that no client is told one that it
    /// cannot read: those of replicas are checked by nobody else.
    init(clampingMilliseconds milliseconds: Int64) {
        self.milliseconds = min(max(milliseconds, 0), Self.millisecondsMax)
    }

    init(clampingMilliseconds milliseconds: UInt64) {
        self.init(clampingMilliseconds: Int64(clamping: milliseconds))
    }

    /// nil if it is out of bounds, or no number.
    init?(seconds: Double) {
        let milliseconds = (seconds * 1_000).rounded()
        guard milliseconds >= 0, milliseconds <= Double(Self.millisecondsMax) else { return nil }
        self.milliseconds = Int64(milliseconds)
    }

    /// As JSON: without a fraction if it is a whole second.
    var text: String {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1_000)
        guard rest > 0 else { return String(seconds) }
        var fraction = String(rest)
        while fraction.utf8.count < 3 { fraction = "0" + fraction }
        while fraction.utf8.last == UInt8(ascii: "0") { fraction.removeLast() }
        return "\(seconds).\(fraction)"
    }
}
