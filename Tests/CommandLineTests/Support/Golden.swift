import Glibc
import TestSupport
import Testing

/// Outputs that are kept as files in `Tests/CommandLineTests/Golden`, and compared to the byte.
///
/// A missing file is written, and the test fails all the same, so that nobody commits what nobody
/// has read. With `TIDEMARK_WRITE_GOLDEN=1` all are written, and none fails.
enum Golden {
    /// Whether the files are to be written anew.
    static var isWriting: Bool {
        unsafe getenv("TIDEMARK_WRITE_GOLDEN").map { unsafe String(cString: $0) } == "1"
    }

    /// The folder of the golden files, found from this source file.
    static let directory = folder(of: #filePath, stepsUp: 2) + "/Golden"

    /// Expects an output to be the golden one of that name.
    ///
    /// - Parameters:
    ///   - name: of the file, without `.txt`.
    ///   - replacing: what differs from run to run, and what stands for it in the file. The longest
    ///     spelling is replaced first, so that one may be a part of another.
    static func expect(
        _ output: String, is name: String, replacing: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let text = replaced(output, replacing)
        let path = "\(directory)/\(name).txt"
        if isWriting || !Files.exists(path) {
            try Files.write(Array(text.utf8), to: path)
            if !isWriting {
                Issue.record(
                    "there was no golden output \(name); it was written: read it",
                    sourceLocation: sourceLocation)
            }
            return
        }
        let golden = String(decoding: try Files.read(path), as: UTF8.self)
        guard golden != text else { return }
        Issue.record(
            "not the golden output \(name):\n\(difference(from: golden, to: text))",
            sourceLocation: sourceLocation)
    }

    /// The text with each spelling replaced, the longest first.
    static func replaced(_ text: String, _ pairs: [String: String]) -> String {
        var text = text
        let longestFirst = pairs.sorted {
            ($0.key.utf8.count, $1.key) > ($1.key.utf8.count, $0.key)
        }
        for (spelling, name) in longestFirst where !spelling.isEmpty {
            text = text.replacing(spelling, with: name)
        }
        return text
    }

    /// The lines between the common beginning and the common end, those that are gone with `-` and
    /// those that came with `+`, and up to two lines around them.
    static func difference(from old: String, to new: String) -> String {
        let (old, new) = (lines(of: old), lines(of: new))
        let start = zip(old, new).prefix { $0 == $1 }.count
        let ending = zip(old.dropFirst(start).reversed(), new.dropFirst(start).reversed())
            .prefix { $0 == $1 }.count
        let before = old[max(0, start - 2)..<start].map { "  \($0)" }
        let gone = old[start..<(old.count - ending)].map { "- \($0)" }
        let came = new[start..<(new.count - ending)].map { "+ \($0)" }
        let after = old.suffix(ending).prefix(2).map { "  \($0)" }
        return (["line \(start + 1):"] + before + gone + came + after).joined(separator: "\n")
    }

    private static func lines(of text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The folder so many steps above a file.
    static func folder(of path: String, stepsUp: Int) -> String {
        path.split(separator: "/", omittingEmptySubsequences: false).dropLast(stepsUp)
            .joined(separator: "/")
    }
}
