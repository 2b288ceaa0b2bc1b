/// How long something takes or is ago, as people say it.
enum Age {
    private static let units: [(milliseconds: UInt64, name: String)] = [
        (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"),
    ]

    /// `3 d`, `14 h`, `5 min`, `12 s`, rounded down; `0 s` below a second.
    static func text(milliseconds: UInt64) -> String {
        let unit = units.first { milliseconds >= $0.milliseconds } ?? (1_000, "s")
        return "\(Quantities.grouped(milliseconds / unit.milliseconds)) \(unit.name)"
    }

    /// How long ago a moment was; `0 s` for one that has not come by our clock.
    static func text(since start: UInt64, now: UInt64) -> String {
        text(milliseconds: now - min(now, start))
    }
}
