import Glibc
import Tidemark

/// What is at a key after a write to it: that write, or one that won over it.
struct Standing: Hashable, Sendable, CustomStringConvertible {
    let key: TortureKey
    /// nil if nothing is there, not even the mark of a deletion.
    let stamp: Stamp?
    let isDeleted: Bool

    init(key: TortureKey, stamp: Stamp?, isDeleted: Bool) {
        self.key = key
        self.stamp = stamp
        self.isDeleted = isDeleted
    }

    /// Reads what ``description`` says.
    init?(_ description: Substring) {
        guard let equals = description.firstIndex(of: "="),
            let key = TortureKey(description[..<equals])
        else { return nil }
        let rest = description[description.index(after: equals)...]
        guard let sign = rest.first else {
            self.init(key: key, stamp: nil, isDeleted: true)
            return
        }
        guard sign == "+" || sign == "-", let stamp = Stamp(rest.dropFirst()) else { return nil }
        self.init(key: key, stamp: stamp, isDeleted: sign == "-")
    }

    /// Key, then + and the stamp of a value, - and that of a deletion, or nothing.
    var description: String {
        "\(key)=" + (stamp.map { "\(isDeleted ? "-" : "+")\($0)" } ?? "")
    }
}

/// What a child tells the driver on its standard output, one line each.
enum Telling: Hashable, Sendable {
    /// The store is open under this id.
    case opened(ReplicaID)
    /// The hub takes connections.
    case listening(port: Int)
    /// An operation is acknowledged, and this is what then stood at its keys.
    case wrote(UInt64, [Standing])
    /// An exchange came to its end.
    case exchanged(pulled: Int, pushed: Int)
    /// An exchange ended with an error of this code, as it may while there is trouble.
    case failed(String)
    /// Nothing is left to be exchanged; before that, so many records were.
    case rested(moved: Int)
    /// Something that may never be.
    case fault(String)

    /// Reads what ``line`` says.
    init?(_ line: Substring) {
        let words = line.split(separator: " ")
        guard let kind = words.first else { return nil }
        let first = words.count > 1 ? Int(words[1]) : nil
        let second = words.count > 2 ? Int(words[2]) : nil
        switch (kind, first, second) {
        case ("opened", _, _):
            guard words.count == 2, let id = ReplicaID(String(words[1])) else { return nil }
            self = .opened(id)
        case ("listening", let port?, _):
            self = .listening(port: port)
        case ("wrote", let number?, _):
            let standings = words.dropFirst(2).map { Standing($0) }
            let known = standings.compactMap { $0 }
            guard number > 0, known.count == standings.count else { return nil }
            self = .wrote(UInt64(number), known)
        case ("exchanged", let pulled?, let pushed?):
            self = .exchanged(pulled: pulled, pushed: pushed)
        case ("failed", _, _):
            guard words.count == 2 else { return nil }
            self = .failed(String(words[1]))
        case ("rested", let moved?, _):
            self = .rested(moved: moved)
        case ("fault", _, _):
            self = .fault(String(line.dropFirst("fault ".count)))
        default:
            return nil
        }
    }

    var line: String {
        switch self {
        case .opened(let id): "opened \(id)"
        case .listening(let port): "listening \(port)"
        case .wrote(let number, let standings):
            (["wrote \(number)"] + standings.map(\.description)).joined(separator: " ")
        case .exchanged(let pulled, let pushed): "exchanged \(pulled) \(pushed)"
        case .failed(let code): "failed \(code)"
        case .rested(let moved): "rested \(moved)"
        case .fault(let text): "fault \(Self.inOneLine(text))"
        }
    }

    private static func inOneLine(_ text: String) -> String {
        String(text.split(whereSeparator: \.isNewline).joined(separator: "; ").prefix(1_000))
    }
}

/// Tells the driver, in one call: lines of two threads do not mix, since they are shorter than what
/// a pipe takes at once, and nothing that was told is lost with a process that is killed.
func tell(_ telling: Telling) {
    say(telling.line)
}

/// Straight to the descriptor, so that it is seen at once in a file, too.
func say(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = unsafe line.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}
