import Foundation

/// Figures for people: three digits and a unit, so that columns stay narrow.
public enum Wording {
    public static func ratio(_ value: Double) -> String {
        switch value {
        case ..<10: String(format: "%.2f", value)
        case ..<100: String(format: "%.1f", value)
        case ..<100_000: String(format: "%.0f", value)
        default: String(format: "%.0e", value)
        }
    }

    /// What a row is compared by, with its unit.
    public static func figure(_ row: Row) -> String {
        if let rate = row.opsPerS { return "\(number(rate))/s" }
        guard let value = row.extra.value else { return "-" }
        return switch row.extra.unit {
        case "s": seconds(value)
        case "bytes": bytes(value)
        default: String(format: "%.2fx", value)
        }
    }

    /// Words in lines of at most so many columns behind a margin of four; a word that is longer
    /// stands alone.
    public static func wrapped(_ text: String, columns: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= columns {
                lines[lines.count - 1] += " \(word)"
            } else {
                lines.append("    \(word)")
            }
        }
        return lines
    }

    public static func seconds(_ value: Double) -> String {
        switch value {
        case ..<1e-3: String(format: "%.0f us", value * 1e6)
        case ..<1: String(format: "%.1f ms", value * 1e3)
        default: String(format: "%.2f s", value)
        }
    }

    public static func number(_ value: Double) -> String {
        switch value {
        case ..<1000: String(format: "%.0f", value)
        case ..<10_000: String(format: "%.2fk", value / 1e3)
        case ..<1_000_000: String(format: "%.0fk", value / 1e3)
        default: String(format: "%.2fM", value / 1e6)
        }
    }

    public static func bytes(_ value: Double) -> String {
        switch abs(value) {
        case ..<1024: String(format: "%.0f B", value)
        case ..<1_048_576: String(format: "%.0f KiB", value / 1024)
        case ..<1_073_741_824: String(format: "%.0f MiB", value / 1_048_576)
        default: String(format: "%.1f GiB", value / 1_073_741_824)
        }
    }
}
