import ArgumentParser
import Glibc

/// The command `tidemark`: a thin layer over the library that adds no behaviour of its own.
@main
struct TidemarkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tidemark",
        abstract: "Look into, change and synchronise Tidemark stores.",
        discussion: """
            The first argument of a command is the store's directory; a dataset and a key follow \
            where they apply. Commands that only read never change a byte of the store, and \
            work beside a process that writes it. With --json they print one JSON object on each \
            line; keys and values that are not UTF-8 appear as {"base64": "..."}.

            Exit status:
            \(CommandStatus.helpTable)
            """,
        version: "0.1.0",
        // First what newcomers need, in the order in which they need it.
        groupedSubcommands: [
            CommandGroup(
                name: "Store",
                subcommands: [
                    PutCommand.self, GetCommand.self, ScanCommand.self, ImportCommand.self,
                ]),
            CommandGroup(
                name: "Look inside", subcommands: [InspectCommand.self, LogCommand.self]),
            CommandGroup(name: "Synchronise", subcommands: [NetworkCommands.sync]),
            CommandGroup(name: "Serve", subcommands: [NetworkCommands.serve]),
            CommandGroup(name: "Repair", subcommands: [VerifyCommand.self, RepairCommand.self]),
            CommandGroup(name: "Other", subcommands: others),
        ])

    private static let others: [any ParsableCommand.Type] = [
        DeleteCommand.self, ExportCommand.self, DatasetsCommand.self, StatsCommand.self,
        HistoryCommand.self, WhyCommand.self, DiffCommand.self, DigestCommand.self,
        ReportCommand.self, TopCommand.self, BackupCommand.self, RestoreCommand.self,
        SalvageCommand.self, CompactCommand.self, NetworkCommands.heal, PeersCommand.self,
        PendingCommand.self, FailedCommand.self, ConflictsCommand.self, QuarantineCommand.self,
        BundleCommand.self, CheckBundleCommand.self, BenchCommand.self, SimulateCommand.self,
        SoakCommand.self, ManualCommand.self, CompletionsCommand.self,
    ]

    /// All commands, in the order of the help.
    private static let all = configuration.groupedSubcommands.flatMap(\.subcommands)

    /// What may stand behind `tidemark`.
    static let names = all.compactMap { $0.configuration.commandName }

    /// Those of them that are no groups of other commands.
    static let plainNames = all.filter {
        $0.configuration.subcommands.isEmpty
    }.compactMap { $0.configuration.commandName }

    /// The help of a command that stands behind `tidemark`, as it is shown; nil if there is none.
    static func help(of name: String) -> String? {
        all.first { $0.configuration.commandName == name }
            .map { HelpText.fitted(helpMessage(for: $0, columns: HelpText.columnsMax)) }
    }

    /// Whether words are a command line that is understood; nothing is run.
    static func understands(_ words: [String]) -> Bool {
        (try? parseAsRoot(words)) != nil
    }

    static func main() async {
        // A closed pipe is then an error of write(2), which OutputStream turns into a quiet end;
        // the signal would kill `serve` when a peer hangs up.
        signal(SIGPIPE, SIG_IGN)
        Interruption.handle()
        occupyStandardDescriptors()
        do {
            try checkArgumentsAreText()
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            Glibc.exit(report(error).rawValue)
        }
    }

    /// A shell may start us with standard output closed (`>&-`). The next file opened, a segment
    /// perhaps, would then become descriptor 1, and our output would be written into it.
    private static func occupyStandardDescriptors() {
        for descriptor in 0...2 as ClosedRange<Int32>
        where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number is taken, and all below are in use: it is this one.
            _ = unsafe open("/dev/null", O_RDWR)
        }
    }

    /// Says what went wrong in one line; returns the status to exit with.
    private static func report(_ error: any Error) -> CommandStatus {
        if error is OutputClosed { return .fine }
        switch error {
        case is CommandFailure, is any ReportableError:
            let failure = CommandFailure(error)
            reportLine(TerminalText.oneLine("tidemark: \(failure.message)"))
            return failure.status
        default:
            return reportFromParser(error)
        }
    }

    /// Help and version are errors to the parser, and so are wrong command lines.
    private static func reportFromParser(_ error: any Error) -> CommandStatus {
        if exitCode(for: error) == .success {
            let output = OutputStream()
            do {
                try output.writeLine(HelpText.fitted(fullMessage(for: error)))
                try output.flush()
                return .fine
            } catch {
                return report(error)
            }
        }
        let command = CommandLine.arguments.dropFirst().first.flatMap { name in
            names.contains(name) ? " \(name)" : nil
        }
        let message = message(for: error)
        let end = message.hasSuffix(".") ? "" : "."
        reportLine(
            TerminalText.oneLine(
                "tidemark: \(message)\(end) See 'tidemark\(command ?? "") --help'."))
        return .usage
    }

    /// Swift repairs arguments that are not UTF-8 in silence, which would address another key
    /// than the one that was given.
    private static func checkArgumentsAreText() throws {
        for index in 1..<max(1, Int(CommandLine.argc)) {
            // argv holds argc strings, each ended by a zero byte, for the life of the process.
            guard let argument = unsafe CommandLine.unsafeArgv[index],
                unsafe String(validatingCString: argument) == nil
            else { continue }
            throw CommandFailure(
                .usage,
                "argument \(index) is not UTF-8; give a key in base64 with --base64-key, "
                    + "and a value on standard input")
        }
    }
}
