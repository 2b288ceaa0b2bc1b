import BenchmarkRows
import Foundation

/// One way to do a workload. A round prepares, does the work on the clock, and checks that it was
/// done; only the work counts.
struct Contender {
    let name: RowName
    /// Makes what all rounds need, unless it is there.
    let prepare: () async throws -> Void
    let round: (Int) async throws -> Measurement
    /// Looks after the last round at what all of them have left, where each by itself would take
    /// much longer than its work.
    let check: () async throws -> Void

    init(
        _ name: RowName, prepare: @escaping () async throws -> Void = {},
        check: @escaping () async throws -> Void = {},
        round: @escaping (Int) async throws -> Measurement
    ) {
        self.name = name
        self.prepare = prepare
        self.check = check
        self.round = round
    }
}

/// The work was not done, or something that the benchmark stands on failed.
struct BenchmarkFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

func require(_ condition: Bool, _ failure: @autoclosure () -> String) throws {
    if !condition { throw BenchmarkFailure(failure()) }
}

extension Duration {
    var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) * 1e-18
    }
}

/// Seconds that something takes.
func timed(_ body: () throws -> Void) rethrows -> Double {
    try ContinuousClock().measure(body).seconds
}

/// Lines for whoever waits; the table alone goes to standard output.
func note(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}

/// Runs the contenders of a workload in rounds. Who begins changes from round to round, so that a
/// machine that gets slower meanwhile does not favour one of them.
struct Runner {
    let workingSet: WorkingSet
    let roundCount: Int
    /// A row gets no further round after this long, checks included.
    let rowSeconds: Double
    /// At most, for whoever waits.
    let workloadCount: Int
    let isWanted: (RowName) -> Bool
    private(set) var outcomes: [Outcome] = []
    private var workloadsDone = 0
    private let start = ContinuousClock.now

    init(
        workingSet: WorkingSet, roundCount: Int, rowSeconds: Double, workloadCount: Int,
        isWanted: @escaping (RowName) -> Bool
    ) {
        self.workingSet = workingSet
        self.roundCount = roundCount
        self.rowSeconds = rowSeconds
        self.workloadCount = workloadCount
        self.isWanted = isWanted
    }

    mutating func run(_ all: [Contender]) async throws {
        let contenders = all.filter { isWanted($0.name) }
        guard let first = contenders.first else { return }
        workloadsDone += 1
        let minutes = String(format: "%.1f", (ContinuousClock.now - start).seconds / 60)
        note(
            "\(workingSet.valueBytes) B, \(first.name.workload):"
                + " workload \(workloadsDone) of \(workloadCount), after \(minutes) min")
        var rounds = [[Measurement]](repeating: [], count: contenders.count)
        var spent = [Double](repeating: 0, count: contenders.count)
        for contender in contenders {
            try await contender.prepare()
        }
        for round in 0..<roundCount {
            for turn in contenders.indices {
                let place = (turn + round) % contenders.count
                guard rounds[place].isEmpty || spent[place] < rowSeconds else { continue }
                let start = ContinuousClock.now
                let measurement = try await contenders[place].round(round)
                spent[place] += (ContinuousClock.now - start).seconds
                rounds[place].append(measurement)
                note(progress(contenders[place].name, round, measurement, spent[place]))
            }
        }
        for contender in contenders {
            try await contender.check()
        }
        for (contender, rounds) in zip(contenders, rounds) {
            outcomes.append(
                Outcome(
                    name: contender.name, workingSet: workingSet, rounds: rounds,
                    isCapped: rounds.count < roundCount))
        }
    }

    private func progress(
        _ name: RowName, _ round: Int, _ measurement: Measurement, _ spent: Double
    ) -> String {
        let figures = String(
            format: "%.4f s on the clock, %.1f s in all", measurement.seconds, spent)
        return "\(workingSet.valueBytes) B \(name.description), round \(round + 1): \(figures)"
    }
}
