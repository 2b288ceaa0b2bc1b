import Glibc
import TestSupport
import Tidemark

/// Records with a time to live are there until it is over, and not after it.
struct SoakSessions: Sendable {
    /// What the clocks of the test and the store may be apart, in milliseconds, with time for a
    /// thread to be held up between two looks.
    private static let tolerance: UInt64 = 200

    private let store: Store
    private let seed: SeededGenerator
    private let counts: SoakCounts

    init(_ store: Store, _ seed: SeededGenerator, _ counts: SoakCounts) {
        self.store = store
        self.seed = seed
        self.counts = counts
    }

    private static func wallMilliseconds() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
    }

    func run(until stop: Double) throws {
        var random = seed
        let sessions = try store.dataset("sessions")
        // Until when each record lives that was written here.
        var ends: [[UInt8]: UInt64] = [:]
        while SoakRun.now() < stop {
            let key = Array("session \(random.below(300))".utf8)
            if random.oneIn(3) {
                let length = random.oneIn(4) ? 3_600_000 : 1 + random.below(1_500)
                let end = Self.wallMilliseconds() + UInt64(length)
                try sessions.put(key, for: key, expiresAt: end)
                ends[key] = end
            } else if let end = ends[key] {
                let before = Self.wallMilliseconds()
                let found = try sessions.get(key)
                let after = Self.wallMilliseconds()
                if end > after + Self.tolerance {
                    try require(found == key, "a session is gone \(end - after) ms too early")
                }
                if end + Self.tolerance < before {
                    try require(found == nil, "a session is there \(before - end) ms too long")
                }
            }
            counts.note(operations: 1)
        }
    }
}
