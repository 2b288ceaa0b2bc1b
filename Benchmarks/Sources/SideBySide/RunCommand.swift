import ArgumentParser
import BenchmarkRows
import Foundation

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs all workloads on all engines and prints a table.")

    @Option(help: "Write all rows as JSON.")
    var json: String?

    @Option(help: "Only workloads whose whole names match this regular expression.")
    var only: String?

    @Option(help: "Only these engines: names as in 'list', or without the make; by commas.")
    var engines: String?

    @Option(help: "Rounds, of which medians are taken; at least 5 for figures to be trusted.")
    var rounds: Int?

    @Flag(help: "Tiny sizes and one round: shows only that everything runs.")
    var quick = false

    @Flag(help: "Five million records.")
    var large = false

    @Option(name: .customLong("n"), help: "Records in a store.")
    var records: Int?

    @Option(help: "Sizes of values in bytes, by commas.")
    var valueBytes = "100,1024"

    @Option(help: "Where the stores are made and removed again.")
    var directory: String?

    func validate() throws {
        guard (rounds ?? 1) >= 1 else { throw ValidationError("--rounds must be at least 1") }
        guard !(quick && large) else {
            throw ValidationError("--quick and --large exclude each other")
        }
        guard (records ?? 1000) >= 1000 else { throw ValidationError("--n must be at least 1000") }
        _ = try sizes()
        _ = try selectedEngines()
        _ = try selectedWorkloads()
    }

    func run() throws {
        var scale = quick ? Scale.quick : large ? .large : .normal
        if let records { scale.records = records }
        let parent = directory ?? NSTemporaryDirectory()
        let place = "\(parent)/side-by-side-\(ProcessInfo.processInfo.processIdentifier)"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: place) }
        let rounds = rounds ?? (quick ? 1 : 5)
        let runner = Runner(
            engines: try selectedEngines(), workloads: try selectedWorkloads(),
            valueBytes: try sizes(), scale: scale, rounds: rounds, directory: place)
        let rows = try runner.run()
        if let json { try Row.write(rows, to: json) }
        print(Table(rows).text())
    }

    private func sizes() throws -> [Int] {
        try valueBytes.split(separator: ",").map {
            guard let size = Int($0), (8...(16 << 20)).contains(size) else {
                throw ValidationError("--value-bytes takes sizes of 8 B to 16 MiB, not '\($0)'")
            }
            return size
        }
    }

    private func selectedEngines() throws -> [AnyEngine] {
        guard let engines else { return AnyEngine.all }
        return try engines.split(separator: ",").flatMap { wanted in
            let found = AnyEngine.all.filter {
                wanted == $0.name.engine || wanted == "\($0.name.engine):\($0.name.config)"
            }
            guard !found.isEmpty else {
                throw ValidationError("no engine '\(wanted)'; 'side-by-side list' names them")
            }
            return found
        }
    }

    private func selectedWorkloads() throws -> Set<String> {
        let all = ChainStep.allCases.flatMap(\.workloads)
        guard let only else { return Set(all) }
        let pattern = try Regex(only)
        let chosen = all.filter { (try? pattern.wholeMatch(in: $0)) ?? nil != nil }
        guard !chosen.isEmpty else {
            throw ValidationError("no workload matches '\(only)'; 'side-by-side list' names them")
        }
        return Set(chosen)
    }
}
