import Glibc

/// How long a test waits for what is sure to come: so long that nothing but a hang takes it, on a
/// machine that is many times slower than others and busy with all the other tests.
///
/// It is the outer limit that turns a hang into a failure. No test goes by it: what passes, passes
/// as soon as what it waits for is there. A task that waits may get its thread back only when all
/// tests that block one are over, so the limit is longer than the whole suite takes.
package enum Patience {
    /// For one condition.
    package static let limit = Duration.seconds(1_800)
    /// For a whole test, in the unit of `.timeLimit`.
    package static let minutes = 60
}

/// Returns when something is so. It looks again and again, and gives its thread up in between.
///
/// - Parameter condition: completes the sentence "it is not ...".
/// - Throws: ``Mismatch`` at the end of all patience; what the condition throws.
package func eventually(_ condition: String, _ isSo: () throws -> Bool) async throws {
    let begin = ContinuousClock.now
    while try !isSo() {
        try require(ContinuousClock.now - begin < Patience.limit, "it is not \(condition) in time")
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// Never returns, but throws when the task is cancelled.
package func sleepUntilCancelled() async throws {
    while true { try await Task.sleep(for: .seconds(3_600)) }
}

/// Returns when something is so. For threads: it looks again and again, and gives its turn up in
/// between, but not its thread.
///
/// A thread cannot be made to end from outside, so at the end of all patience the process does, at
/// the caller's line.
package func waitUntil(
    file: StaticString = #file, line: UInt = #line, _ condition: () throws -> Bool
) rethrows {
    let begin = ContinuousClock.now
    while try !condition() {
        precondition(
            ContinuousClock.now - begin < Patience.limit, "a test waited in vain", file: file,
            line: line)
        sched_yield()
    }
}
