/// The series of a page in the text format of Prometheus 0.0.4, as far as they can be read: a line
/// that is no series is passed by.
struct MetricsPage {
    struct Series: Hashable {
        let name: String
        let labels: [String: String]
    }

    /// How often values came of which size: the count up to each bound, the bounds rising.
    typealias Histogram = [(bound: Double, count: Double)]

    private static let linesMax = 100_000

    private(set) var values: [Series: Double] = [:]

    init(_ text: String) {
        for line in text.split(separator: "\n").prefix(Self.linesMax) {
            guard !line.hasPrefix("#"), let (series, value) = Self.series(line) else { continue }
            values[series] = value
        }
    }

    /// The sum over all series of a name that have the given labels; nil if there are none.
    func sum(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        var sum: Double?
        for (series, value) in values where series.name == name && series.has(labels) {
            sum = (sum ?? 0) + value
        }
        return sum
    }

    /// All series of a name as one histogram; empty if there are none.
    func histogram(_ name: String) -> Histogram {
        var counts: [Double: Double] = [:]
        for (series, value) in values where series.name == name + "_bucket" {
            guard let text = series.labels["le"], let bound = Self.number(text[...]) else {
                continue
            }
            counts[bound, default: 0] += value
        }
        return counts.sorted { $0.key < $1.key }.map { (bound: $0.key, count: $0.value) }
    }

    // MARK: - Lines

    /// `name{label="value",...} number`
    private static func series(_ line: Substring) -> (Series, Double)? {
        let nameEnd = line.firstIndex { $0 == "{" || $0 == " " } ?? line.endIndex
        var rest = line[nameEnd...]
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest.removeFirst()
            guard let read = Self.labels(&rest) else { return nil }
            labels = read
        }
        let fields = rest.split(separator: " ")
        guard nameEnd > line.startIndex, let field = fields.first, let value = number(field)
        else { return nil }
        return (Series(name: String(line[..<nameEnd]), labels: labels), value)
    }

    /// Up to the closing brace, which is taken, too.
    private static func labels(_ rest: inout Substring) -> [String: String]? {
        var labels: [String: String] = [:]
        while let first = rest.first {
            if first == "}" {
                rest.removeFirst()
                return labels
            }
            if first == "," {
                rest.removeFirst()
                continue
            }
            guard let equals = rest.firstIndex(of: "=") else { return nil }
            let name = String(rest[..<equals])
            rest = rest[rest.index(after: equals)...]
            guard rest.first == "\"" else { return nil }
            rest.removeFirst()
            guard let value = quoted(&rest) else { return nil }
            labels[name] = value
        }
        return nil
    }

    /// Up to the closing quotation mark, which is taken, too.
    private static func quoted(_ rest: inout Substring) -> String? {
        var value = ""
        while let character = rest.popFirst() {
            switch character {
            case "\"": return value
            case "\\":
                guard let escaped = rest.popFirst() else { return nil }
                value.append(escaped == "n" ? "\n" : escaped)
            default: value.append(character)
            }
        }
        return nil
    }

    private static func number(_ text: Substring) -> Double? {
        switch text {
        case "+Inf": .infinity
        case "-Inf": -.infinity
        default: Double(text)
        }
    }
}

extension MetricsPage.Series {
    fileprivate func has(_ wanted: [String: String]) -> Bool {
        wanted.allSatisfy { labels[$0.key] == $0.value }
    }
}
