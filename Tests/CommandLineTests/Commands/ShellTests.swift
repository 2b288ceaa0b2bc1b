import TestSupport
import Testing

@testable import tidemark

/// The command among others: completions, the manual, scripts, pipes, colors.
struct ShellTests {
    let tool: CommandLineTool

    init() throws { tool = try CommandLineTool() }

    @Test(arguments: CompletionsCommand.Shell.allCases)
    func completions(shell: CompletionsCommand.Shell) async throws {
        let script = try await tool.succeed("completions", shell.rawValue).text
        for name in TidemarkCommand.names { #expect(script.contains(name), "\(name)") }
        if shell == .bash {
            _ = try tool.file("script", script)
            #expect(try await tool.shell("bash -n script").status == 0)
        }
    }

    @Test func theManualHasEveryCommand() async throws {
        let lines = try await tool.succeed("manual").lines
        #expect(lines.first?.hasPrefix(".TH TIDEMARK 1 ") == true)
        for name in TidemarkCommand.names { #expect(lines.contains(".SS " + escaped(name))) }
        #expect(lines.contains(".SS quarantine release"))
        let macros: Set = [
            ".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".nf", ".fi", ".RS", ".RE",
        ]
        for line in lines where line.hasPrefix(".") {
            #expect(macros.contains(String(line.prefix { $0 != " " })), "\(line)")
        }
        #expect(lines.filter { $0 == ".nf" }.count == lines.filter { $0 == ".fi" }.count)
    }

    private func escaped(_ text: String) -> String { ManualPage.escaped(text) }

    @Test func nothingPassesForAMacro() {
        #expect(ManualPage.escapedLine(".so /etc/passwd") == "\\&.so /etc/passwd")
        #expect(ManualPage.escapedLine("a\\b-c") == "a\\eb\\-c")
    }

    /// Everything that the help shows is understood, apart from what the shell does with it.
    @Test(arguments: Examples.lines.keys.sorted())
    func examplesAreUnderstood(command: String) throws {
        let first = command.split(separator: " ").first.map(String.init)
        guard first.map({ TidemarkCommand.names.contains($0) }) ?? true else { return }
        for line in Examples.lines[command] ?? [] {
            let words = line.prefix { !"<>|".contains($0) }.split(separator: " ").map {
                $0.filter { $0 != "'" }
            }
            #expect(line.count <= 78, "\(line)")
            #expect(words.first == "tidemark")
            // A text in quotes is one word; as several it would be too many.
            guard !line.contains("'bought milk'"), !words.contains("--help") else { continue }
            #expect(TidemarkCommand.understands(Array(words.dropFirst())), "\(line)")
        }
    }

    @Test func scriptsAreFoundFromACheckoutAlone() async throws {
        let bin = tool.path("checkout/build/debug")
        let made = try await tool.shell(
            """
            mkdir -p checkout/tools checkout/build/debug
            touch checkout/Package.swift
            printf '#!/bin/sh\\necho "$@"; exit 3\\n' > checkout/tools/soak
            chmod +x checkout/tools/soak
            """)
        #expect(made.status == 0)
        let script = Checkout.script("soak", above: "\(bin)/tidemark")
        #expect(script == tool.path("checkout/tools/soak"))
        #expect(Checkout.script("bench", above: "\(bin)/tidemark") == nil)
        let copied = try await tool.shell(
            "cp \"$tidemark\" checkout/build/debug/ && checkout/build/debug/tidemark soak 0.5 --x")
        #expect(copied.status == 3 && copied.text == "0.5 --x\n")
        let outside = try await tool.shell("cp \"$tidemark\" ./alone && ./alone simulate")
        expectFailure(outside, .noInput, "tools/simulate", "checkout")
    }

    @Test func aClosedPipeEndsItQuietly() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        let segment = try #require(try Files.list(names.store).first { $0.hasSuffix(".seg") })
        for words in [
            "inspect store", "log store", "log store --hex --segment \(segment)",
            "why store flour", "history store stock flour", "manual",
        ] {
            let outcome = try await tool.shell(
                "\"$tidemark\" \(words) | true; echo ${PIPESTATUS[0]}")
            #expect(outcome.text == "0\n" && outcome.errors.isEmpty, "\(words)")
        }
    }

    @Test func colorsAreForThoseWhoWantThem() {
        #expect(OutputStream.wantsColors(noColor: nil, "xterm"))
        #expect(OutputStream.wantsColors(noColor: "", "xterm"))
        #expect(!OutputStream.wantsColors(noColor: "1", "xterm"))
        #expect(!OutputStream.wantsColors(noColor: nil, "dumb"))
        #expect(!OutputStream.wantsColors(noColor: nil, nil))
    }

    /// Nothing that the command prints is colored where nobody looks.
    @Test func filesAndPipesGetNoColors() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        for arguments in [["inspect"], ["log"], ["why", "flour"]] {
            let running = try RunningCommand(
                try CommandLineTool.binary(),
                [arguments[0], names.store] + arguments.dropFirst(), in: tool.directory)
            let text = try await running.outcome().text
            #expect(!text.isEmpty && !text.contains("\u{1B}"))
        }
    }
}
