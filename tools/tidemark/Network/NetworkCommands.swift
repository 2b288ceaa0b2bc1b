import ArgumentParser

/// The commands that need a network. A command that was built without the trait `Networking` has
/// others of the same names in their place, which say how to get them.
enum NetworkCommands {
    #if Networking
    static let sync: any ParsableCommand.Type = SyncCommand.self
    static let heal: any ParsableCommand.Type = HealCommand.self
    static let serve: any ParsableCommand.Type = ServeCommand.self
    static let importCognito: any ParsableCommand.Type = ImportCognitoCommand.self
    #else
    static let sync: any ParsableCommand.Type = MissingSyncCommand.self
    static let heal: any ParsableCommand.Type = MissingHealCommand.self
    static let serve: any ParsableCommand.Type = MissingServeCommand.self
    static let importCognito: any ParsableCommand.Type = MissingImportCommand.self
    #endif

    /// Where the figures of a hub come from.
    static func topSource(url: String, token: String?) throws -> any TopSource {
        #if Networking
        HubTopSource(url: url, token: token)
        #else
        throw missing("'tidemark top' of a hub")
        #endif
    }

    #if !Networking
    fileprivate static func missing(_ what: String) -> CommandFailure {
        CommandFailure(
            .usage,
            "\(what) needs a network, and this command was built without; take a "
                + "release, or build with 'swift build -c release --product tidemark'")
    }
    #endif
}

#if !Networking
/// Stands in for a command that was left out, and takes whatever that would have taken.
private protocol MissingCommand: ParsableCommand {
    /// What stands behind `tidemark`.
    static var words: String { get }
    static var purpose: String { get }
}

extension MissingCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: words.split(separator: " ").last.map(String.init),
            abstract: "\(purpose) (not in this build)")
    }

    mutating func run() throws {
        throw NetworkCommands.missing("'tidemark \(Self.words)'")
    }
}

private struct MissingSyncCommand: MissingCommand {
    static let words = "sync"
    static let purpose = "Exchange changes with a hub."
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}

private struct MissingHealCommand: MissingCommand {
    static let words = "heal"
    static let purpose = "Repair damaged blocks from a hub."
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}

private struct MissingServeCommand: MissingCommand {
    static let words = "serve"
    static let purpose = "Serve a store as a hub."
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}

private struct MissingImportCommand: MissingCommand {
    static let words = "import cognito"
    static let purpose = "Store the records of a service of Cognito Sync."
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}
#endif
