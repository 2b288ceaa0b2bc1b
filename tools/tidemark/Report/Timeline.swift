import Tidemark

/// How much happened when: moments with a weight, in equal stretches of time.
struct Timeline {
    static let binCount = 60

    let start: UInt64
    /// Behind the last stretch.
    let end: UInt64
    /// For each series the weights of the stretches.
    let series: [(name: String, bins: [Double])]
    /// What is dated after the time of looking, and left out.
    let futureWeight: Double

    /// - Parameters:
    ///   - series: moments in milliseconds since 1970.
    ///   - now: nothing later is shown: a clock that was ahead would squeeze all else together.
    init(_ series: [(name: String, moments: [(at: UInt64, weight: Double)])], now: UInt64) {
        let shown = series.map { entry in
            (name: entry.name, moments: entry.moments.filter { $0.at <= now })
        }
        let times = shown.flatMap { $0.moments.map(\.at) }
        let (first, last) = (times.min() ?? now, times.max() ?? now)
        // A millisecond a stretch at least.
        let length = max(UInt64(Self.binCount), last - first + 1)
        let binCount = UInt64(Self.binCount)
        let step = (length + binCount - 1) / binCount
        start = first
        end = first + step * binCount
        self.series = shown.map { entry in
            var bins = [Double](repeating: 0, count: Self.binCount)
            for moment in entry.moments { bins[Int((moment.at - first) / step)] += moment.weight }
            return (name: entry.name, bins: bins)
        }
        futureWeight = series.reduce(0) { sum, entry in
            entry.moments.reduce(sum) { $0 + ($1.at > now ? $1.weight : 0) }
        }
    }

    var isEmpty: Bool { series.allSatisfy { $0.bins.allSatisfy { $0 == 0 } } }

    /// How long a stretch is.
    var stepMilliseconds: UInt64 { (end - start) / UInt64(Self.binCount) }

    /// `2026-11-21 06:30`
    static func label(_ milliseconds: UInt64) -> String {
        let time = HybridTime(milliseconds: milliseconds, counter: 0).description
        return String(time.map { $0 == "T" ? " " : $0 }.prefix(16))
    }
}
