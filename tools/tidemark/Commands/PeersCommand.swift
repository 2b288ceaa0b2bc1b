import ArgumentParser
import Tidemark

struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peers",
        abstract: "Tell how far the exchange with each peer has come, or give a peer up.",
        discussion: """
            Without a verb it is 'list'.
            """,
        subcommands: [PeersListCommand.self, PeersRetireCommand.self],
        defaultSubcommand: PeersListCommand.self)
}
