import BenchmarkRows
import Foundation

/// Runs the rounds: engines take turns in an order that rotates, every step in a process and
/// every chain in a directory of its own.
struct Runner {
    let engines: [AnyEngine]
    let workloads: Set<String>
    let valueBytes: [Int]
    let scale: Scale
    let rounds: Int
    let directory: String

    func run() throws -> [Row] {
        var results = Results()
        var limits = Limits()
        let values = Values(bytes: valueBytes.first ?? 100)
        let start = ContinuousClock.now
        let total = rounds * engines.count * valueBytes.count
        var done = 0
        for round in 0..<rounds {
            say("round \(round + 1) of \(rounds): physical limits")
            try limits.measure(in: directory, seconds: scale.limitSeconds, values: values)
            for (sizeIndex, size) in valueBytes.enumerated() {
                for place in engines.indices {
                    let engine = engines[(place + round) % engines.count]
                    let seconds = Int((ContinuousClock.now - start) / .seconds(1))
                    say(
                        "round \(round + 1) of \(rounds), \(size) B, \(engine.name)"
                            + " (\(done * 100 / total)%, \(seconds) s)")
                    for chain in ChainStep.chains {
                        try run(
                            chain, on: engine, valueBytes: size, isFirstSize: sizeIndex == 0,
                            into: &results)
                    }
                    done += 1
                }
            }
        }
        let limitRows = limits.rows()
        return [Environment.row(directory: directory, scale: scale, rounds: rounds)]
            + settingsRows() + limitRows + results.rows(limits: limitRows)
    }

    private func run(
        _ chain: [ChainStep], on engine: AnyEngine, valueBytes size: Int, isFirstSize: Bool,
        into results: inout Results
    ) throws {
        let wanted = Set(chain.flatMap(\.workloads)).intersection(workloads)
        guard !wanted.isEmpty else { return }
        if chain[0].isOncePerEngine {
            guard isFirstSize, isFirstMake(engine) else { return }
        }
        let place = "\(directory)/store"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: place) }
        // A step without a workload of its own runs only for what comes after it.
        let last = chain.lastIndex { !wanted.isDisjoint(with: $0.workloads) } ?? 0
        for step in chain[...last] {
            let request = ChainRequest(
                engine: engine.name, step: step, directory: place,
                valueBytes: step.valueBytes ?? size, scale: scale, workloads: wanted)
            let start = ContinuousClock.now
            for sample in try ChildProcess.run(request) {
                results.add(sample, of: engine.name)
            }
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            say("    " + step.rawValue + String(format: "  %.1f s", seconds))
        }
    }

    private func isFirstMake(_ engine: AnyEngine) -> Bool {
        engines.first { $0.name.engine == engine.name.engine }?.name == engine.name
    }

    private func settingsRows() -> [Row] {
        engines.flatMap { engine in
            DurabilityClass.allCases.map { durability in
                var row = Row(
                    engine: engine.name.engine, config: engine.name.config,
                    workload: "settings")
                row.durability = durability
                row.extra.version = engine.version
                row.extra.settings = engine.settings(
                    EngineOptions(
                        directory: directory, durability: durability,
                        capacityBytes: scale.records * (Keys.bytes + (valueBytes.max() ?? 0))))
                return row
            }
        }
    }

    private func say(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }
}

/// This program again, for one step.
enum ChildProcess {
    static func run(_ request: ChainRequest) throws -> [Sample] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let text = String(decoding: try JSONEncoder().encode(request), as: UTF8.self)
        process.arguments = ["chain", text]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        // The step before a recovery ends by a signal that it sends itself.
        let isKilled =
            process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL
            && request.step == .reopenClean
        guard isKilled || (process.terminationReason == .exit && process.terminationStatus == 0)
        else {
            throw EngineFailure(
                "\(request.engine) ended with \(process.terminationStatus) in step"
                    + " \(request.step.rawValue) with values of \(request.valueBytes) B")
        }
        return try data.split(separator: 0x0A).map {
            try JSONDecoder().decode(Sample.self, from: Data($0))
        }
    }
}
