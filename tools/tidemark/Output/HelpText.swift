/// The help of commands as it is shown: in 80 columns.
enum HelpText {
    static let columnsMax = 80

    /// Help with the command's examples in front of its usage, and with every line that is too long
    /// cut at a blank, the rest going on under it. Anything else, as a script for completions,
    /// stays as it is.
    static func fitted(_ text: String) -> String {
        guard text.hasPrefix("OVERVIEW:") || text.hasPrefix("USAGE:") else { return text }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        moveStatusDown(&lines)
        let hasExamples = lines.contains { $0.hasPrefix(examplesLabel) }
        if !hasExamples, let usage = lines.firstIndex(where: { $0.hasPrefix(usageLabel) }) {
            lines.insert(contentsOf: examples(of: lines[usage]), at: usage)
        }
        return lines.flatMap { wrapped($0) }.joined(separator: "\n")
    }

    /// Scripts need the table of exit statuses, and newcomers the commands: those come first.
    private static func moveStatusDown(_ lines: inout [String]) {
        guard let start = lines.firstIndex(of: statusLabel) else { return }
        let end = lines[start...].firstIndex(of: "") ?? lines.endIndex
        let table = lines[start..<end]
        lines.removeSubrange(start..<min(end + 1, lines.endIndex))
        lines += [""] + table
    }

    private static let statusLabel = "Exit status:"
    private static let usageLabel = "USAGE: "
    private static let examplesLabel = "EXAMPLES:"

    private static func examples(of usage: String) -> [String] {
        // What is no option and no value: the command's name, and those of the groups it is in.
        let words = usage.dropFirst(usageLabel.count).split(separator: " ").dropFirst()
        let path = words.prefix { $0.first.map { $0 != "<" && $0 != "[" && $0 != "-" } ?? false }
        guard let lines = Examples.lines[path.joined(separator: " ")] else { return [] }
        return [examplesLabel] + lines.map { "  \($0)" } + [""]
    }

    private static func wrapped(_ line: String) -> [String] {
        guard TerminalText.width(of: line) > columnsMax else { return [line] }
        let indentation = String(repeating: " ", count: hang(of: line))
        var lines: [String] = []
        var current = ""
        for word in words(of: line) {
            let joined = current.isEmpty ? word : "\(current) \(word)"
            let isBlank = current.allSatisfy { $0 == " " }
            if TerminalText.width(of: joined) > columnsMax, !isBlank {
                lines.append(current)
                current = indentation + word
            } else {
                current = joined
            }
        }
        return lines + [current]
    }

    /// Under what is the first word of a usage line, or behind the line's own indentation.
    private static func hang(of line: String) -> Int {
        if line.hasPrefix(usageLabel) { return usageLabel.count + 2 }
        return line.prefix { $0 == " " }.count + 2
    }

    /// Words with what belongs to them: `[--key <key>]` is not torn apart. The first one keeps the
    /// line's indentation.
    private static func words(of line: String) -> [String] {
        var words: [String] = []
        var depth = 0
        let start = line.prefix { $0 == " " }
        for word in line.dropFirst(start.count).split(separator: " ") {
            if depth > 0, let last = words.popLast() {
                words.append("\(last) \(word)")
            } else {
                words.append(words.isEmpty ? "\(start)\(word)" : String(word))
            }
            depth += word.filter { $0 == "[" }.count - word.filter { $0 == "]" }.count
        }
        return words
    }
}
