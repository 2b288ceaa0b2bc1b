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

    /// How many rounds fill the larger stores anew and compact them.
    private static let roundsBeforeKeeping = 3

    func run() throws -> [Row] {
        var results = Results()
        var limits = Limits()
        var kept = KeptStores(in: directory)
        let values = Values(bytes: valueBytes.first ?? 100)
        var progress = Progress(rounds: rounds, turns: engines.count * valueBytes.count)
        for round in 0..<rounds {
            say("round \(round + 1) of \(rounds): physical limits")
            try limits.measure(in: directory, seconds: scale.limitSeconds, values: values)
            for sizeIndex in valueBytes.indices {
                for place in engines.indices {
                    let engineIndex = (place + round) % engines.count
                    let turn = Turn(
                        engine: engines[engineIndex], round: round,
                        valueBytes: valueBytes[sizeIndex], isFirstSize: sizeIndex == 0)
                    say(
                        "round \(round + 1) of \(rounds), \(turn.valueBytes) B,"
                            + " \(turn.engine.name) (\(progress.text))")
                    progress.begin()
                    for chain in ChainStep.chains {
                        try run(chain, in: turn, &kept, into: &results)
                    }
                    progress.end(sizeIndex * engines.count + engineIndex)
                }
            }
        }
        let limitRows = limits.rows()
        return [Environment.row(directory: directory, scale: scale, rounds: rounds)]
            + settingsRows() + limitRows + results.rows(limits: limitRows)
    }

    /// One engine in one round, with values of one size.
    private struct Turn {
        let engine: AnyEngine
        let round: Int
        let valueBytes: Int
        let isFirstSize: Bool

        var storeName: String {
            "\(engine.name.engine)-\(engine.name.config)-\(valueBytes)"
        }
    }

    private func run(
        _ chain: [ChainStep], in turn: Turn, _ kept: inout KeptStores,
        into results: inout Results
    ) throws {
        let wanted = Set(chain.flatMap(\.workloads)).intersection(workloads)
        guard !wanted.isEmpty, turn.round < chain[0].roundsMax, chain[0].suits(turn.engine.name)
        else { return }
        if chain[0].isOncePerEngine {
            guard turn.isFirstSize, isFirstMake(turn.engine) else { return }
        }
        let place = "\(directory)/store"
        defer { try? FileManager.default.removeItem(atPath: place) }
        // A step without a workload of its own runs only for what comes after it.
        let last = chain.lastIndex { !wanted.isDisjoint(with: $0.workloads) } ?? 0
        for (index, step) in chain[...last].enumerated() {
            if index == 0 {
                try FileManager.default.createDirectory(
                    atPath: place, withIntermediateDirectories: true)
            }
            var request = ChainRequest(
                engine: turn.engine.name, step: step, directory: place,
                valueBytes: step.valueBytes ?? turn.valueBytes, scale: scale, workloads: wanted,
                fillsStore: true, endsChain: index == last)
            guard step == .random else {
                try run(request, into: &results)
                continue
            }
            let others = step.workloads.filter { $0 != ChainStep.fillWorkload }
            let isNeeded = index < last || !wanted.isDisjoint(with: others)
            request.fillsStore = isNeeded && !kept.has(turn.storeName)
            request.endsChain = index == last || !request.fillsStore
            if request.fillsStore || wanted.contains(ChainStep.fillWorkload) {
                try run(request, into: &results)
            }
            guard index < last else { continue }
            if request.fillsStore {
                try keep(place, turn, in: &kept)
            } else {
                try FileManager.default.removeItem(atPath: place)
                try kept.restore(turn.storeName, to: place)
            }
        }
    }

    private func run(_ request: ChainRequest, into results: inout Results) throws {
        let start = ContinuousClock.now
        for sample in try ChildProcess.run(request) {
            results.add(sample, of: request.engine)
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        say("    " + request.step.rawValue + String(format: "  %.1f s", seconds))
    }

    /// Keeps a copy of a full store for later rounds, once there have been enough for a median
    /// and a spread. Values of the first size are so quick to fill in that each round does it anew.
    private func keep(_ place: String, _ turn: Turn, in kept: inout KeptStores) throws {
        guard !turn.isFirstSize, turn.round + 1 >= Self.roundsBeforeKeeping,
            turn.round + 1 < rounds
        else { return }
        // Overwriting may leave a store several times as large as its records.
        let logicalBytes = scale.records * (Keys.bytes + turn.valueBytes)
        let start = ContinuousClock.now
        let isKept = try kept.keep(
            place, as: turn.storeName, roomBytes: 8 * logicalBytes + 2 << 30)
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        say(
            isKept
                ? String(format: "    kept for later rounds  %.1f s", seconds)
                : "    no room to keep the store: each round fills it anew")
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
