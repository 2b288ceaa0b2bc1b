import Synchronization

/// Lets several tasks run one at a time. Whenever all of them wait for their turn, one is chosen
/// to go on until it waits again: at random by a seed, or along each possible path in turn.
///
///     a  ──▶|      |──▶|              |──▶
///     b     |──▶|                |──▶|
///     c            (never two arrows at the same time)
final class LockStep: Sendable {
    /// How the next one is chosen.
    enum Choice: Sendable {
        case random(SeededGenerator)
        case path(ChoicePath)
    }

    private struct State {
        var choice: Choice
        var runningCount: Int
        var waiting: [(party: Int, turn: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>

    /// - Parameter parties: how many there are. Each must call ``turn(of:)`` before anything else
    ///   and ``leave()`` in the end.
    init(parties: Int, _ choice: Choice) {
        state = Mutex(State(choice: choice, runningCount: parties))
    }

    /// Waits until it is the party's turn.
    func turn(of party: Int) async {
        await withCheckedContinuation { turn in
            let next = state.withLock { state in
                state.runningCount -= 1
                state.waiting.append((party, turn))
                return Self.next(&state)
            }
            next?.resume()
        }
    }

    func leave() {
        let next = state.withLock { state in
            state.runningCount -= 1
            return Self.next(&state)
        }
        next?.resume()
    }

    /// The path that was taken.
    var path: ChoicePath? {
        state.withLock { state in
            guard case .path(let path) = state.choice else { return nil }
            return path
        }
    }

    private static func next(_ state: inout State) -> CheckedContinuation<Void, Never>? {
        guard state.runningCount == 0, !state.waiting.isEmpty else { return nil }
        // The order in which they came to wait at first is nobody's choice.
        state.waiting.sort { $0.party < $1.party }
        let index: Int
        switch state.choice {
        case .random(var random):
            index = Int.random(in: 0..<state.waiting.count, using: &random)
            state.choice = .random(random)
        case .path(var path):
            index = path.next(of: state.waiting.count)
            state.choice = .path(path)
        }
        state.runningCount = 1
        return state.waiting.remove(at: index).turn
    }

    /// Runs all parties to their end.
    func run(_ parties: [@Sendable (_ party: Int) async throws -> Void]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, party) in parties.enumerated() {
                group.addTask {
                    await self.turn(of: number)
                    defer { self.leave() }
                    try await party(number)
                }
            }
            try await group.waitForAll()
        }
    }
}

/// One way through a tree of choices, and from it to the next one.
struct ChoicePath: Sendable {
    private var steps: [(chosen: Int, count: Int)] = []
    private var position = 0

    init() {}

    mutating func next(of count: Int) -> Int {
        if position == steps.count { steps.append((0, count)) }
        precondition(steps[position].count == count, "the same choices lead somewhere else")
        position += 1
        return steps[position - 1].chosen
    }

    /// The path after this one, which was gone to its end; nil after the last one.
    func following() -> ChoicePath? {
        var path = self
        path.position = 0
        while let last = path.steps.popLast() {
            guard last.chosen + 1 < last.count else { continue }
            path.steps.append((last.chosen + 1, last.count))
            return path
        }
        return nil
    }

    var description: String { steps.map { "\($0.chosen)" }.joined() }
}
