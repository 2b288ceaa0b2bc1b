import ArgumentParser
import BenchmarkRows
import Foundation

@main
struct SyncBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync-bench",
        abstract: "Measure the exchange between replicas, beside cp, rsync and Redis.",
        subcommands: [
            RunCommand.self, ListCommand.self, HubCommand.self, ReplicaCommand.self,
            BareCommand.self, PopulationCommand.self,
        ],
        defaultSubcommand: RunCommand.self)
}

/// Prints the names that `--only` takes.
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "The names of all workloads.")

    func run() {
        print("workloads")
        for workload in Suite.workloads { print("  \(workload)") }
    }
}

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run the workloads; prints a table.",
        discussion: """
            Two processes over the loopback interface: the hub serves a store that holds all \
            records and is compacted, and the replica is in this process. Each round checks that \
            the sides are equal. The page cache is warm.
            """)

    private static let quickRecords = 20_000

    @Option(name: .customLong("n"), help: "How many records.")
    var recordCount = 1_000_000
    @Option(help: "Sizes of values in bytes, by commas.")
    var valueBytes = "100,1024"
    @Flag(help: "20,000 records and one round: to see that everything runs.")
    var quick = false
    @Flag(help: "Also with both sides in this process, without HTTP: config memory.")
    var memory = false
    @Option(help: "Rounds of each row; the medians are told.")
    var rounds = 5
    @Option(help: "Seconds after which a row gets no further round.")
    var rowSeconds = 2.5
    @Option(help: "Only workloads whose whole names match this regular expression.")
    var only: String?
    @Option(help: "Where to write the rows as JSON.", completion: .file())
    var json: String?
    @Option(help: "Where to put the stores; what is made there is removed again.")
    var directory = NSTemporaryDirectory()

    func validate() throws {
        guard recordCount >= 16, recordCount <= 100_000_000 else {
            throw ValidationError("--n is out of bounds; give 16...100,000,000.")
        }
        _ = try sizes()
        guard rounds >= 1 else {
            throw ValidationError("--rounds is out of bounds; give 1 or more.")
        }
        guard try !selected().isEmpty else {
            throw ValidationError("no workload matches --only; 'sync-bench list' names them.")
        }
    }

    private func sizes() throws -> [Int] {
        try valueBytes.split(separator: ",").map {
            guard let size = Int($0), (1...1 << 20).contains(size) else {
                throw ValidationError("--value-bytes takes sizes of 1...1,048,576, not '\($0)'.")
            }
            return size
        }
    }

    private func selected() throws -> Set<String> {
        guard let only else { return Set(Suite.workloads) }
        do {
            let pattern = try Regex(only)
            return try Set(Suite.workloads.filter { try pattern.wholeMatch(in: $0) != nil })
        } catch {
            throw ValidationError("--only is no regular expression.")
        }
    }

    func run() async throws {
        let scratch = "\(directory)/sync-bench-\(ProcessInfo.processInfo.processIdentifier)"
        try makeDirectory(scratch)
        defer { try? removeFile(scratch) }
        let wanted = try selected()
        let ways: [TidemarkSession.Way] = memory ? [.http, .memory] : [.http]
        let settings = try Settings.all(ways: ways)
        let limits = try LoopbackLimits(in: scratch)
        var outcomes: [Outcome] = []
        for (index, bytes) in try sizes().enumerated() {
            let workingSet = WorkingSet(
                recordCount: quick ? Self.quickRecords : recordCount, valueBytes: bytes)
            let suite = Suite(
                workingSet, ways, isFirstSize: index == 0, in: "\(scratch)/\(bytes)")
            let workloads = index == 0 ? Suite.workloads : Suite.laterWorkloads
            guard !wanted.isDisjoint(with: workloads) else { continue }
            var runner = Runner(
                workingSet: workingSet, roundCount: quick ? 1 : rounds, rowSeconds: rowSeconds,
                workloadCount: wanted.intersection(workloads).count
            ) { wanted.contains($0.workload) }
            do {
                try await suite.run(&runner)
            } catch {
                try? await suite.stop()
                throw error
            }
            try await suite.stop()
            print(Table(runner.outcomes, workingSet, limits).text)
            outcomes += runner.outcomes
        }
        for setting in settings { print(setting.text) }
        guard let json else { return }
        let rows = outcomes.map { limits.row(of: $0) }
        try Row.write(settings.map(\.row) + limits.rows + rows, to: json)
    }
}
