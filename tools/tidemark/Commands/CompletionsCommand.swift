import ArgumentParser

struct CompletionsCommand: StoreCommand {
    enum Shell: String, ExpressibleByArgument, CaseIterable {
        case bash
        case zsh
        case fish

        var kind: CompletionShell {
            switch self {
            case .bash: .bash
            case .zsh: .zsh
            case .fish: .fish
            }
        }
    }

    static let configuration = CommandConfiguration(
        commandName: "completions",
        abstract: "Print the script by which a shell completes this command.")

    @Argument(help: "The shell.") var shell: Shell

    mutating func run(_ output: OutputStream) async throws {
        try output.writeLine(TidemarkCommand.completionScript(for: shell.kind))
    }
}
