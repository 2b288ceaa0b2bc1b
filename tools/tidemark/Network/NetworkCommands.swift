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
        throw missing("top' of a hub")
        #endif
    }

    #if !Networking
    fileprivate static func missing(_ name: String) -> CommandFailure {
        CommandFailure(
            .usage,
            "'tidemark \(name) needs a network, and this command was built without; take a "
                + "release, or build with 'swift build -c release --product tidemark'")
    }
    #endif
}

#if !Networking
/// Stands in for a command that was left out.
private protocol MissingCommand: ParsableCommand {}

extension MissingCommand {
    mutating func run() throws {
        throw NetworkCommands.missing("\(Self.configuration.commandName ?? "")'")
    }

    fileprivate static func absent(_ name: String, _ abstract: String) -> CommandConfiguration {
        CommandConfiguration(commandName: name, abstract: "\(abstract) (not in this build)")
    }
}

private struct MissingSyncCommand: MissingCommand {
    static let configuration = absent("sync", "Exchange changes with a hub.")
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}

private struct MissingHealCommand: MissingCommand {
    static let configuration = absent("heal", "Repair damaged blocks from a hub.")
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}

private struct MissingServeCommand: MissingCommand {
    static let configuration = absent("serve", "Serve a store as a hub.")
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}

private struct MissingImportCommand: MissingCommand {
    static let configuration = absent("cognito", "Store the records of a service of Cognito Sync.")
    @Argument(parsing: .captureForPassthrough, help: .hidden) var arguments: [String] = []
}
#endif
