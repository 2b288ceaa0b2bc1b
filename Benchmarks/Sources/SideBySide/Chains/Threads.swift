import Foundation

/// Runs each body on a thread of its own; all begin together, when each has its session.
///
/// - Returns: what the bodies gave, in their order.
/// - Throws: the first failure, when all have ended.
func runTogether<E: Engine>(
    on engine: E, _ bodies: [@Sendable (E.EngineSession) throws -> Recorder]
) throws -> [Recorder] {
    let rendezvous = Rendezvous(bodies.count)
    for (index, body) in bodies.enumerated() {
        let thread = Thread {
            rendezvous.finish(
                index,
                Result {
                    let session = Result { try engine.session() }
                    rendezvous.waitForAll()
                    defer { try? session.get().close() }
                    return try body(session.get())
                })
        }
        thread.stackSize = 1 << 20
        thread.start()
    }
    return try rendezvous.results()
}

/// Where threads wait for one another, and leave what they did.
private final class Rendezvous: @unchecked Sendable {
    private let condition = NSCondition()
    // Guarded by `condition`.
    private var waiting = 0
    private var finished: [Int: Result<Recorder, any Error>] = [:]
    private let count: Int

    init(_ count: Int) { self.count = count }

    func waitForAll() {
        condition.lock()
        defer { condition.unlock() }
        waiting += 1
        condition.broadcast()
        while waiting < count { condition.wait() }
    }

    func finish(_ index: Int, _ result: Result<Recorder, any Error>) {
        condition.lock()
        defer { condition.unlock() }
        finished[index] = result
        condition.broadcast()
    }

    func results() throws -> [Recorder] {
        condition.lock()
        defer { condition.unlock() }
        while finished.count < count { condition.wait() }
        return try (0..<count).map { try finished[$0]!.get() }
    }
}
