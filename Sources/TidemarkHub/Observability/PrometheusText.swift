/// The text format of Prometheus 0.0.4: "Exposition formats" in its documentation.
enum PrometheusText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Letters, digits, `_` and `:`, and no digit first. All else becomes `_`.
    static func name(_ label: String) -> String {
        var name = ""
        for byte in label.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "_"), UInt8(ascii: ":"):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: "0")...UInt8(ascii: "9") where !name.isEmpty:
                name.unicodeScalars.append(Unicode.Scalar(byte))
            default: name += "_"
            }
        }
        return name.isEmpty ? "_" : name
    }

    /// Sorted by name, in braces; nothing for none.
    static func labels(_ dimensions: [(String, String)]) -> String {
        guard !dimensions.isEmpty else { return "" }
        let pairs = dimensions.sorted { $0.0 < $1.0 }.map { key, value in
            "\(name(key).replacing(":", with: "_"))=\"\(escaped(value))\""
        }
        return "{" + pairs.joined(separator: ",") + "}"
    }

    static func lines(
        of series: PrometheusRegistry.Series, _ cell: PrometheusRegistry.Cell
    ) -> String {
        let start = series.name + series.labels
        return switch cell {
        case .counter(let counter): "\(start) \(counter.current)\n"
        case .floatingPointCounter(let counter): "\(start) \(number(counter.current))\n"
        case .gauge(let gauge): "\(start) \(number(gauge.current))\n"
        case .histogram(let histogram): lines(of: series, histogram)
        }
    }

    private static func lines(
        of series: PrometheusRegistry.Series, _ histogram: HistogramCell
    ) -> String {
        let state = histogram.current
        var lines = ""
        var count: UInt64 = 0
        for (index, own) in state.counts.enumerated() {
            count += own
            let bound = index < histogram.bounds.count ? number(histogram.bounds[index]) : "+Inf"
            lines += "\(series.name)_bucket\(with(bound: bound, series.labels)) \(count)\n"
        }
        lines += "\(series.name)_sum\(series.labels) \(number(state.sum))\n"
        return lines + "\(series.name)_count\(series.labels) \(count)\n"
    }

    private static func with(bound: String, _ labels: String) -> String {
        labels.isEmpty ? "{le=\"\(bound)\"}" : "\(labels.dropLast()),le=\"\(bound)\"}"
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        // Without a point where there need be none: 1 rather than 1.0.
        if value.magnitude < 1e15, value == value.rounded() { return String(Int64(value)) }
        return "\(value)"
    }

    private static func escaped(_ value: String) -> String {
        var escaped = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
