import ArgumentParser
import Foundation

/// Runs Tidemark and its peers on the same work.
@main
struct SideBySide: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "side-by-side",
        abstract: "Tidemark beside RocksDB, LevelDB, LMDB and SQLite on the same work.",
        subcommands: [RunCommand.self, ListCommand.self, ChainCommand.self],
        defaultSubcommand: RunCommand.self)
}

/// Prints the names that `--only` and `--engines` take.
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "The names of all workloads and engines.")

    func run() {
        print("workloads")
        for step in ChainStep.allCases {
            for workload in step.workloads { print("  \(workload)") }
        }
        print("engines")
        for name in AnyEngine.all.map(\.name) {
            print("  \(name.engine):\(name.config)")
        }
    }
}

/// The child process of one step.
struct ChainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chain", abstract: "One step on one engine.", shouldDisplay: false)

    @Argument var request: String

    func run() throws {
        let request = try JSONDecoder().decode(ChainRequest.self, from: Data(request.utf8))
        guard let engine = AnyEngine.all.first(where: { $0.name == request.engine }) else {
            throw ValidationError("no engine \(request.engine)")
        }
        let encoder = JSONEncoder()
        try engine.run(request) { sample in
            guard var line = try? encoder.encode(sample) else { return }
            line.append(0x0A)
            FileHandle.standardOutput.write(line)
        }
    }
}
