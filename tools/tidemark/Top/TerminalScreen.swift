import Glibc

/// The whole terminal, for a view that is drawn again and again; what stood there before comes
/// back at the end.
final class TerminalScreen {
    private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
    private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

    private let output: OutputStream
    private var isEntered = false

    init(_ output: OutputStream) {
        self.output = output
    }

    /// The safety net of ``leave()``.
    deinit {
        leave()
    }

    /// Draws lines over what was drawn before; those that do not fit the height are left out.
    ///
    /// - Parameter lines: escaped, and no wider than the terminal.
    func draw(_ lines: [String]) throws {
        var text = isEntered ? "" : Self.enter
        isEntered = true
        text += "\u{1B}[H"
        for (index, line) in lines.prefix(rows).enumerated() {
            text += (index == 0 ? "" : "\r\n") + line + "\u{1B}[K"
        }
        try output.write(text + "\u{1B}[J")
        try output.flush()
    }

    /// Gives the terminal back as it was. Twice is fine.
    func leave() {
        guard isEntered else { return }
        isEntered = false
        // Nobody is left to tell if the terminal is gone.
        try? output.write(Self.leave)
        try? output.flush()
    }

    private var rows: Int {
        var size = winsize()
        guard unsafe ioctl(OutputStream.standard, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0
        else { return 24 }
        return Int(size.ws_row)
    }
}
