/// How far a run is, and about how long the rest will take: each turn as long as the last time, and
/// one that never came yet as long as the others on average.
struct Progress {
    private let rounds: Int
    private let turns: Int
    private let start = ContinuousClock.now
    private var turnStart = ContinuousClock.now
    /// By turn.
    private var seconds: [Int: Double] = [:]
    private var timesDone: [Int: Int] = [:]

    /// - Parameter turns: how many each round has.
    init(rounds: Int, turns: Int) {
        self.rounds = rounds
        self.turns = turns
    }

    mutating func begin() { turnStart = .now }

    /// - Parameter turn: 0..<turns, the same in each round.
    mutating func end(_ turn: Int) {
        seconds[turn] = (ContinuousClock.now - turnStart) / .seconds(1)
        timesDone[turn, default: 0] += 1
    }

    /// "37 %, 412 s, about 12 min left"
    var text: String {
        let done = timesDone.values.reduce(0, +)
        let elapsed = Int((ContinuousClock.now - start) / .seconds(1))
        let known = "\(done * 100 / max(1, rounds * turns)) %, \(elapsed) s"
        guard !seconds.isEmpty else { return known }
        let mean = seconds.values.reduce(0, +) / Double(seconds.count)
        let left = (0..<turns).reduce(0) { sum, turn in
            sum + Double(rounds - (timesDone[turn] ?? 0)) * (seconds[turn] ?? mean)
        }
        return known + ", about \(Int((left / 60).rounded(.up))) min left"
    }
}
