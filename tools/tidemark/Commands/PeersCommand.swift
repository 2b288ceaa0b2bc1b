import ArgumentParser
import Tidemark

struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peers",
        abstract: "Tell how far the exchange with each peer has come, or give a peer up.",
        discussion: """
            Without a verb it is 'list'.
            """
                + Examples.section([
                    "tidemark peers notes.tidemark",
                    "tidemark peers list notes.tidemark --dataset notes --json",
                    "tidemark peers retire notes.tidemark 5e1f00aa",
                ]),
        subcommands: [PeersListCommand.self, PeersRetireCommand.self],
        defaultSubcommand: PeersListCommand.self)
}
