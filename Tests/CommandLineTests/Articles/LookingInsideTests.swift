import TestSupport
import Testing

@testable import tidemark

/// The article runs: every command in it prints what stands under it.
struct LookingInsideTests {
    private static let path =
        Golden.folder(of: #filePath, stepsUp: 4)
        + "/Sources/Tidemark/Tidemark.docc/LookingInside.md"

    let tool: CommandLineTool

    init() throws { tool = try CommandLineTool() }

    /// What `TIDEMARK_WRITE_GOLDEN=1` does is to write the outputs into the article.
    @Test func everyCommandPrintsWhatIsShown() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        let text = String(decoding: try Files.read(Self.path), as: UTF8.self)
        let article = ConsoleArticle(text)
        #expect(article.commands.count >= 8)
        var outputs: [[String]] = []
        try await expectUnchanged(names.store) {
            for command in article.commands {
                let outcome = try await tool.shell(
                    "tidemark() { \"$tidemark\" \"$@\"; }; \(command.line)")
                #expect(outcome.status == 0, "\(command.line): \(outcome.errors)")
                expectSafeForTerminal(outcome.text)
                outputs.append(outcome.lines)
            }
        }
        if Golden.isWriting {
            try Files.write(Array(article.with(outputs).utf8), to: Self.path)
            return
        }
        for (command, output) in zip(article.commands, outputs) where command.output != output {
            let difference = Golden.difference(
                from: command.output.joined(separator: "\n"), to: output.joined(separator: "\n"))
            Issue.record("'\(command.line)' prints something else:\n\(difference)")
        }
    }

    @Test func blocksAreFoundAndFilled() {
        let text = "# A\n\n```console\n$ one\nold\n```\n\ntext\n\n```console\n$ two\n```\n"
        let article = ConsoleArticle(text)
        #expect(article.commands.map(\.line) == ["one", "two"])
        #expect(article.commands.map(\.output) == [["old"], []])
        #expect(article.with([["old"], []]) == text)
        #expect(
            article.with([["new", "er"], ["x"]])
                == "# A\n\n```console\n$ one\nnew\ner\n```\n\ntext\n\n```console\n$ two\nx\n```\n")
    }
}

/// A text with blocks that show a command and what it prints.
struct ConsoleArticle {
    struct Command {
        let line: String
        let output: [String]
        /// Of the output in the lines of the text.
        fileprivate let range: Range<Int>
    }

    private let lines: [String]
    private(set) var commands: [Command] = []

    init(_ text: String) {
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var index = 0
        while index < lines.count {
            defer { index += 1 }
            guard lines[index] == "```console", index + 1 < lines.count,
                lines[index + 1].hasPrefix("$ "),
                let end = lines[(index + 2)...].firstIndex(of: "```")
            else { continue }
            commands.append(
                Command(
                    line: String(lines[index + 1].dropFirst(2)),
                    output: Array(lines[(index + 2)..<end]), range: (index + 2)..<end))
            index = end
        }
    }

    /// The text with other outputs, one for each command.
    func with(_ outputs: [[String]]) -> String {
        var lines = lines
        for (command, output) in zip(commands, outputs).reversed() {
            lines.replaceSubrange(command.range, with: output)
        }
        return lines.joined(separator: "\n")
    }
}
