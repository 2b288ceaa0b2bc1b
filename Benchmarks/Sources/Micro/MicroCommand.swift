import ArgumentParser
import BenchmarkRows
import Glibc

/// Micro benchmarks of the store's hot paths.
///
/// The times are taken by a loop of its own rather than by a benchmark framework: allocations must
/// be counted by the linked counter and instructions by callgrind in any case, and what is left for
/// a framework to do is a median of rounds.
@main
struct Micro: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "micro",
        abstract: "Counts allocations and instructions of the hot paths, and times them.",
        subcommands: [RunCommand.self, ListCommand.self], defaultSubcommand: RunCommand.self)
}

/// Prints the names that `--only` takes.
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "The names of all cases.")

    func run() {
        print("workloads")
        for known in MicroCase.all { print("  \(MicroCase.workload(known.name))") }
    }
}

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Measures all cases.",
        discussion: "Times are for looking at; only allocations have bounds.")

    @Option(help: "Only workloads whose whole names match this regular expression.")
    var only: String?

    @Option(help: "How many rounds are timed.")
    var rounds = 5

    @Flag(help: "Count instructions, too (by callgrind, where the processor's counter is closed).")
    var instructions = false

    @Flag(help: "Fail if a case allocates more than its bound.")
    var gate = false

    @Option(help: "A bound for this run, as NAME=NUMBER, to see that the gate can fail.")
    var boundOverride: [String] = []

    @Option(help: "Write the results as rows of JSON.")
    var json: String?

    @Option(help: .hidden)
    var runOnce: String?

    @Option(help: .hidden)
    var operations = 0

    mutating func validate() throws {
        guard rounds > 0 else { throw ValidationError("at least one round is needed") }
        for name in try bounds().keys where MicroCase.named(name) == nil {
            throw ValidationError("a bound for \(name), and there is no such case")
        }
    }

    mutating func run() throws {
        if let runOnce {
            return try InstructionCount.runOnce(runOnce, operationCount: operations)
        }
        try MicroCase.checkCounter()
        let cases = try chosenCases()
        print("case                   allocations/op      ns/op  spread   instructions/op")
        var measurements: [Measurement] = []
        for chosen in cases {
            var measurement = try chosen.measure(rounds: rounds)
            if instructions {
                let (count, source) = try InstructionCount.measure(chosen)
                measurement.instructionsPerOperation = count
                measurement.instructionSource = source
            }
            print(line(measurement))
            measurements.append(measurement)
        }
        if let json { try Row.write(measurements.map(\.row), to: json) }
        if gate { try judge(measurements) }
    }

    private func chosenCases() throws -> [MicroCase] {
        guard let only else { return MicroCase.all }
        let pattern: Regex<AnyRegexOutput>
        do {
            pattern = try Regex(only)
        } catch {
            throw ValidationError("\(only) is no regular expression: \(error)")
        }
        let chosen = MicroCase.all.filter {
            MicroCase.workload($0.name).wholeMatch(of: pattern) != nil
        }
        guard !chosen.isEmpty else {
            throw ValidationError("no workload matches \(only); 'micro list' names them")
        }
        return chosen
    }

    private func bounds() throws -> [String: Double] {
        var bounds = AllocationBounds.table
        for override in boundOverride {
            let parts = override.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, let bound = Double(parts[1]) else {
                throw ValidationError("\(override) does not read NAME=NUMBER")
            }
            bounds[String(parts[0])] = bound
        }
        return bounds
    }

    private func judge(_ measurements: [Measurement]) throws {
        let bounds = try bounds()
        let messages = measurements.compactMap { measurement -> String? in
            guard let bound = bounds[measurement.name] else {
                return "\(measurement.name): there is no bound for it in AllocationBounds.swift"
            }
            return AllocationBounds.excess(
                of: measurement.name, count: measurement.allocationsPerOperation, bound: bound)
        }
        for message in messages {
            complain(message)
        }
        guard messages.isEmpty else { throw ExitCode(1) }
        print("allocations: \(measurements.count) cases within their bounds")
    }

    private func line(_ measurement: Measurement) -> String {
        let instructions = measurement.instructionsPerOperation.map {
            "\(Int($0.rounded())) (\(measurement.instructionSource ?? "?"))"
        }
        return left(measurement.name, 20)
            + right(rounded(measurement.allocationsPerOperation, 10_000), 17)
            + right(rounded(measurement.medianNanoseconds, 10), 11)
            + right("\(Int((measurement.spread * 100).rounded())) %", 8)
            + "   " + (instructions ?? "-")
    }

    private func rounded(_ number: Double, _ parts: Double) -> String {
        String((number * parts).rounded() / parts)
    }

    private func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
