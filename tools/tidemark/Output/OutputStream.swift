import Glibc

/// The reader of our output has closed its end, as `head` does once it has seen enough.
///
/// Nobody is left to tell, so the command ends in silence and without blame.
struct OutputClosed: Error {}

/// Buffered writing to an open file descriptor.
///
/// One write(2) for each 64 KiB rather than each line, which is what makes `export` and `log` of
/// a large store fast. Whoever writes must ``flush()`` at the end; ``TidemarkCommand`` does so for
/// the standard output of every command.
final class OutputStream {
    static let standard = 1 as Int32
    private static let bufferBytesMax = 64 << 10

    let isTerminal: Bool
    /// Whether colours help: on a terminal that knows them, unless the user wants none
    /// (no-color.org).
    let isColored: Bool
    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(descriptor: Int32 = standard) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        isColored = isTerminal && Self.wantsColors(noColor: variable("NO_COLOR"), variable("TERM"))
        buffer.reserveCapacity(Self.bufferBytesMax)
    }

    func write(_ bytes: [UInt8]) throws {
        buffer += bytes
        if buffer.count >= Self.bufferBytesMax {
            try flush()
        }
    }

    func write(_ text: String) throws {
        buffer += text.utf8
        if buffer.count >= Self.bufferBytesMax {
            try flush()
        }
    }

    /// - Parameters:
    ///   - noColor: the variable `NO_COLOR`, which counts unless it is empty.
    ///   - terminal: the variable `TERM`.
    static func wantsColors(noColor: String?, _ terminal: String?) -> Bool {
        (noColor ?? "").isEmpty && terminal != nil && terminal != "dumb"
    }

    /// The text in a color, where there are any. It may not be measured any more afterwards.
    func colored(_ text: String, _ color: TextColor) -> String {
        isColored && !text.isEmpty ? "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m" : text
    }

    func writeLine(_ text: String = "") throws {
        try write(text + "\n")
    }

    /// Hands everything buffered to the operating system.
    func flush() throws {
        defer { buffer.removeAll(keepingCapacity: true) }
        var written = 0
        while written < buffer.count {
            // The pointer is used only during the call, and within the buffer's bounds.
            let count = unsafe buffer.withUnsafeBytes { bytes in
                unsafe Glibc.write(descriptor, bytes.baseAddress! + written, bytes.count - written)
            }
            if count >= 0 {
                written += count
            } else if errno == EPIPE {
                throw OutputClosed()
            } else if errno != EINTR {
                throw CommandFailure(
                    .inputOutput,
                    "cannot write the output: \(systemMessage(errno)); "
                        + "what was printed is incomplete")
            }
        }
    }

    /// The columns that a table may take: the terminal's width, and 80 for files and pipes.
    var columns: Int {
        var size = winsize()
        guard isTerminal, unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0,
            size.ws_col >= 40
        else { return 80 }
        return Int(size.ws_col)
    }
}

/// Colors by what they are for, as the terminal's own palette has them.
enum TextColor: Int {
    /// What matters in a line.
    case accent = 32
    /// What can be passed over.
    case faint = 2
}

/// A variable of the environment; nil if it is not set.
private func variable(_ name: String) -> String? {
    // getenv gives a string that nobody changes, since the command sets no variable.
    unsafe getenv(name).map { unsafe String(cString: $0) }
}

/// Writes one line to standard error; a closed standard error is nobody's concern.
func reportLine(_ text: String) {
    var line = Array("\(text)\n".utf8)
    while !line.isEmpty {
        // The pointer is used only during the call, and within the array's bounds.
        let count = unsafe line.withUnsafeBytes { unsafe Glibc.write(2, $0.baseAddress, $0.count) }
        guard count > 0 || errno == EINTR else { return }
        line.removeFirst(max(0, count))
    }
}

/// `No space left on device`
func systemMessage(_ number: Int32) -> String {
    // strerror returns a string that lives at least until the next call on this thread.
    unsafe String(cString: strerror(number))
}
