/// One frame of the live view: what has happened between two samples.
struct TopFrame {
    struct Row {
        let label: String
        /// In JSON.
        let name: String
        /// nil if the source does not tell it.
        let value: Double?
        let unit: TopFigure.Unit
    }

    struct Section {
        let title: String
        let rows: [Row]
    }

    private static let cellColumns = 38
    private static let datasetsMax = 10
    private static let peersMax = 5

    let source: String
    /// When, as a date.
    let time: String
    private let before: TopSample
    private let after: TopSample
    private let seconds: Double

    /// - Parameters:
    ///   - source: what is looked at, as the user named it.
    ///   - seconds: between the two samples: more than 0.
    init(
        source: String, time: String, from before: TopSample, to after: TopSample,
        seconds: Double
    ) {
        self.source = source
        self.time = time
        self.before = before
        self.after = after
        self.seconds = max(0.001, seconds)
    }

    // MARK: - Figures

    /// The sections with those of their rows that the source tells.
    var sections: [Section] {
        [
            Section(title: "OPERATIONS", rows: operations), Section(title: "SYNC", rows: sync),
            Section(title: "COMPACTION", rows: compaction),
            Section(title: "LATENCY", rows: latency),
        ].compactMap { section in
            let rows = section.rows.filter { $0.value != nil }
            return rows.isEmpty ? nil : Section(title: section.title, rows: rows)
        }
    }

    private var operations: [Row] {
        [
            rate("operations", .operations), rate("requests", .requests),
            rate("refusals", .refusals), rate("puts", .puts), rate("deletes", .deletes),
            rate("commits", .commits), gauge("in flight", .inFlight),
            gauge("calls of the store", .waiting), gauge("connections", .connections),
        ]
    }

    private var sync: [Row] {
        [
            rate("messages", .messages), rate("failures", .failures),
            rate("received", .bytesReceived, .bytesPerSecond),
            rate("sent", .bytesSent, .bytesPerSecond), gauge("devices", .devices),
            gauge("waiting for streams", .waitingForStreams), gauge("peers", .peers),
            gauge("largest lag", .largestLag), gauge("deletions held", .deletionsHeld),
        ]
    }

    private var compaction: [Row] {
        [
            rate("merging", .merging, .share), rate("merge reads", .mergedIn, .bytesPerSecond),
            rate("merge writes", .mergedOut, .bytesPerSecond), rate("logs sealed", .seals),
            rate("segments made", .segmentsMade), rate("segments gone", .segmentsGone),
            rate("made in bytes", .bytesMade, .bytesPerSecond),
            rate("writers waiting", .writerWaiting, .share),
            rate("logged", .bytesLogged, .bytesPerSecond), gauge("on disk", .fileBytes, .bytes),
            gauge("in logs", .logBytes, .bytes), gauge("segments", .segments),
            gauge("runs", .runs),
        ]
    }

    private var latency: [Row] {
        [
            quantile("requests, median", .requestTime, 0.5),
            quantile("requests, 99 in 100", .requestTime, 0.99),
            quantile("messages, median", .messageTime, 0.5),
            quantile("messages, 99 in 100", .messageTime, 0.99),
            Row(label: "disk sync, mean", name: "syncTimeMean", value: syncMean, unit: .seconds),
        ]
    }

    private func rate(
        _ label: String, _ figure: TopFigure, _ unit: TopFigure.Unit = .perSecond
    ) -> Row {
        Row(
            label: label, name: figure.rawValue, value: growth(figure).map { $0 / seconds },
            unit: unit)
    }

    private func gauge(
        _ label: String, _ figure: TopFigure, _ unit: TopFigure.Unit = .count
    ) -> Row {
        Row(label: label, name: figure.rawValue, value: after.gauges[figure], unit: unit)
    }

    /// nil if it is not told. What counts from 0 again, because the hub was started anew, has grown
    /// by all that it is.
    private func growth(_ figure: TopFigure) -> Double? {
        guard let now = after.counters[figure] else { return nil }
        let then = before.counters[figure] ?? 0
        return now >= then ? now - then : now
    }

    private var syncMean: Double? {
        guard let time = growth(.syncTime), let count = growth(.syncs) else { return nil }
        return count > 0 ? time / count : 0
    }

    /// The upper bound of the bucket in which so many of those that came in between lie; 0 if none
    /// came.
    private func quantile(_ label: String, _ figure: TopFigure, _ share: Double) -> Row {
        let name = "\(figure.rawValue)\(share == 0.5 ? "Median" : "P99")"
        guard let now = after.durations[figure], !now.isEmpty else {
            return Row(label: label, name: name, value: nil, unit: .seconds)
        }
        let then = Dictionary(
            (before.durations[figure] ?? []).map { ($0.bound, $0.count) },
            uniquingKeysWith: { $1 })
        let isSame = (now.last?.count ?? 0) >= (then[.infinity] ?? 0)
        let counts = now.map { ($0.bound, $0.count - (isSame ? then[$0.bound] ?? 0 : 0)) }
        let total = counts.last?.1 ?? 0
        let reached = counts.first(where: { $0.1 >= total * share })?.0 ?? 0
        let bound = total > 0 ? reached : 0
        // Above the last bound nobody knows how far.
        let largest = counts.last(where: { $0.0 < .infinity })?.0 ?? 0
        return Row(label: label, name: name, value: min(bound, largest), unit: .seconds)
    }

    /// The datasets that changed most, and how many changes a second.
    private var busiest: [(name: String, rate: Double, count: UInt64)] {
        let rates = after.datasets.compactMap { name, count -> (String, Double, UInt64)? in
            let growth = count - min(count, before.datasets[name] ?? 0)
            return growth == 0 ? nil : (name, Double(growth) / seconds, count)
        }
        return rates.sorted { ($1.1, $0.0) < ($0.1, $1.0) }.prefix(Self.datasetsMax).map {
            (name: $0.0, rate: $0.1, count: $0.2)
        }
    }

    // MARK: - Text

    /// Lines of at most so many columns: at least 80.
    func lines(columns: Int) -> [String] {
        let head = TerminalText.escaped(source, columnsMax: max(20, columns - time.count - 2))
        let gap = max(2, columns - TerminalText.width(of: head) - time.count)
        var lines = [head + String(repeating: " ", count: gap) + time]
        for section in sections {
            lines += ["", section.title]
            let cells = section.rows.map(Self.cell)
            for first in stride(from: 0, to: cells.count, by: 2) {
                let pair = cells[first..<min(first + 2, cells.count)]
                lines.append(pair.joined(separator: "    "))
            }
        }
        let busiest = busiest
        if !busiest.isEmpty {
            lines += ["", "DATASETS"]
            lines += busiest.map { name, rate, count in
                let name = Self.padded(TerminalText.escaped(name, columnsMax: 33), 34)
                let total = "\(Quantities.grouped(count)) changes"
                return name + "    " + Self.right(Self.text(rate, .perSecond), 19)
                    + Self.right(TerminalText.truncated(total, to: 22), 23)
            }
        }
        if !after.peerLags.isEmpty {
            lines += ["", "PEERS"]
            lines += after.peerLags.prefix(Self.peersMax).map { peer, lag in
                Self.padded(peer, 38) + "    "
                    + TerminalText.truncated(
                        "lacks \(Quantities.counted(lag, "change"))", to: 38)
            }
        }
        return lines
    }

    private static func cell(_ row: Row) -> String {
        let value = row.value.map { text($0, row.unit) } ?? "-"
        return padded(row.label, cellColumns - value.count) + value
    }

    private static func padded(_ text: String, _ columns: Int) -> String {
        text + String(repeating: " ", count: max(1, columns - TerminalText.width(of: text)))
    }

    private static func right(_ text: String, _ columns: Int) -> String {
        String(repeating: " ", count: max(1, columns - text.count)) + text
    }

    /// What has room beside the longest label.
    private static let countMax = 999_999_999_999.0

    static func text(_ value: Double, _ unit: TopFigure.Unit) -> String {
        // Nothing that is measured is beyond; a damaged page may say anything.
        let bounded = min(max(value.isNaN ? 0 : value, 0), 1e15)
        switch unit {
        case .count: return Quantities.grouped(Int(min(bounded, countMax)))
        case .perSecond:
            let count = min(bounded, countMax)
            return (count < 100 ? Quantities.ratio(count) : Quantities.grouped(Int(count))) + " /s"
        case .bytes: return Quantities.bytes(UInt64(bounded))
        case .bytesPerSecond: return Quantities.bytes(UInt64(bounded)) + "/s"
        case .share: return "\(Int((min(bounded, 10) * 100).rounded())) %"
        case .seconds:
            return bounded < 1
                ? Quantities.ratio(bounded * 1_000) + " ms" : Quantities.ratio(bounded) + " s"
        }
    }

    // MARK: - JSON

    var line: JSONLine {
        var line = JSONLine()
        line.add("source", source)
        line.add("time", time)
        line.add("seconds", ratio: seconds)
        for section in sections {
            for row in section.rows { line.add(row.name, ratio: row.value) }
        }
        if !after.datasets.isEmpty {
            var datasets = JSONLine()
            for (name, rate, _) in busiest { datasets.add(name, ratio: rate) }
            line.add("datasets", datasets)
        }
        if !after.peerLags.isEmpty {
            var peers = JSONLine()
            for (peer, lag) in after.peerLags { peers.add(peer, lag) }
            line.add("lags", peers)
        }
        return line
    }
}
