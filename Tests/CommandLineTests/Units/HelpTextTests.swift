import Testing

@testable import tidemark

struct HelpTextTests {
    @Test func longUsageGoesOnBelow() {
        let options = (1...8).map { "[--option-\($0) <value>]" }.joined(separator: " ")
        let text = HelpText.fitted("USAGE: tidemark nothing <store> \(options)\n\nOPTIONS:\n")
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(
            lines[0]
                == "USAGE: tidemark nothing <store> [--option-1 <value>] [--option-2 <value>]")
        #expect(lines[1].hasPrefix("         [--option-3 <value>] "))
        #expect(lines.allSatisfy { $0.count <= 80 })
        #expect(text.hasSuffix("\n\nOPTIONS:\n"))
    }

    @Test func whatIsNoHelpStays() {
        let script = "#compdef tidemark\n" + String(repeating: "word ", count: 40)
        #expect(HelpText.fitted(script) == script)
    }

    @Test(arguments: TidemarkCommand.names)
    func everyCommandsHelpFits(name: String) throws {
        let help = try #require(TidemarkCommand.help(of: name))
        for line in help.split(separator: "\n") {
            #expect(TerminalText.width(of: String(line)) <= 80, "\(line)")
        }
        #expect(help.contains("EXAMPLES:"), "\(name) shows no example")
    }
}
