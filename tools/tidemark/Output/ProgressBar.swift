import Glibc

/// A line on standard error that tells how far a long command has come.
///
/// It appears only on a terminal, and only once the work has taken a second: short work needs no
/// bar, and logs must not fill with them. It is wiped before anything else is printed.
final class ProgressBar {
    private static let delay = Duration.seconds(1)
    private static let interval = Duration.milliseconds(100)

    /// What the command is doing.
    var label: String

    /// What is counted where the rate is not in bytes.
    private let unit: String
    private let isShown: Bool
    private let start = ContinuousClock.now
    private var lastDrawn: ContinuousClock.Instant?

    /// - Parameters:
    ///   - unit: of the items that ``update(bytes:of:items:)`` is told of.
    ///   - isTerminal: whether there is somebody to look; asked of standard error if nil.
    init(_ label: String, unit: String = "lines", isTerminal: Bool? = nil) {
        self.label = label
        self.unit = unit
        isShown = isTerminal ?? (isatty(2) == 1)
    }

    /// Redraws the bar if it is time to.
    /// - Parameters:
    ///   - bytes: done so far.
    ///   - total: of bytes; nil if nobody knows, as of a pipe. Asked for only when it is drawn.
    ///   - items: done so far, for the rate; nil to tell the rate in bytes.
    func update(bytes: UInt64, of total: @autoclosure () -> UInt64?, items: Int? = nil) {
        guard isShown else { return }
        let now = ContinuousClock.now
        guard now - start >= Self.delay, lastDrawn.map({ now - $0 >= Self.interval }) ?? true else {
            return
        }
        lastDrawn = now
        let line = Self.line(
            label, bytes: bytes, total: total(), items: items, unit: unit, elapsed: now - start)
        draw("\r\u{1B}[K" + line)
    }

    /// Wipes the bar.
    func finish() {
        if lastDrawn != nil {
            draw("\r\u{1B}[K")
            lastDrawn = nil
        }
    }

    /// `importing [=========>..........]  45%  212,345 lines/s  0:07 left`, at most 79 columns.
    ///
    /// - Parameter label: may have a name from anywhere in it; it is escaped and cut to what room
    ///   there is.
    static func line(
        _ label: String, bytes: UInt64, total: UInt64?, items: Int?, unit: String = "lines",
        elapsed: Duration
    ) -> String {
        let rest = Self.rest(
            bytes: bytes, total: total, items: items, unit: unit, elapsed: elapsed)
        let room = max(1, columnsMax - TerminalText.width(of: rest))
        return TerminalText.escaped(label, columnsMax: room) + rest
    }

    private static let columnsMax = 79

    /// What stands behind the label.
    private static func rest(
        bytes: UInt64, total: UInt64?, items: Int?, unit: String, elapsed: Duration
    ) -> String {
        let seconds = max(0.001, elapsed / .seconds(1))
        let rate =
            items.map { "\(Quantities.grouped(Int(Double($0) / seconds))) \(unit)/s" }
            ?? "\(Quantities.bytes(UInt64(Double(bytes) / seconds)))/s"
        guard let total, total > 0 else {
            return "  \(Quantities.bytes(bytes))  \(rate)"
        }
        let fraction = min(1, Double(bytes) / Double(total))
        // Bounded, because the first estimates of a slow start can be beyond any integer.
        let left = min(359_999, fraction > 0 ? seconds / fraction - seconds : 0)
        let cells = 24
        let filled = Int(fraction * Double(cells))
        let bar =
            String(repeating: "=", count: filled) + (filled < cells ? ">" : "")
            + String(repeating: ".", count: max(0, cells - filled - 1))
        let percent = String(Int(fraction * 100))
        let padding = String(repeating: " ", count: 3 - percent.count)
        return " [\(bar)] \(padding)\(percent)%  \(rate)  "
            + "\(Quantities.clock(seconds: Int(left.rounded(.up)))) left"
    }

    private func draw(_ text: String) {
        let bytes = Array(text.utf8)
        // The pointer is used only during the call. A bar that cannot be drawn is not missed.
        _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(2, $0.baseAddress, $0.count) }
    }
}
