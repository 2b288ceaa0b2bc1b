import CAllocations
import Glibc

/// What was found out about one case.
struct Measurement {
    let name: String
    let isWriting: Bool
    let operationCount: Int
    let allocationsPerOperation: Double
    /// Of each round.
    var nanosecondsPerOperation: [Double]
    var instructionsPerOperation: Double?
    /// By which the instructions were counted.
    var instructionSource: String?

    var medianNanoseconds: Double {
        let sorted = nanosecondsPerOperation.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2)
            ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// Between the slowest and the fastest round, as a part of the median.
    var spread: Double {
        let times = nanosecondsPerOperation
        return ((times.max() ?? 0) - (times.min() ?? 0)) / medianNanoseconds
    }
}

extension MicroCase {
    /// Records in a fixture. As many as keep the blocks of a sealed segment in the processor's
    /// caches in part only, as it is in life.
    static let recordCount = 50_000

    /// Counts in one round after a first one that leaves everything as it will be, and times all.
    func measure(rounds: Int) throws -> Measurement {
        let fixture = try prepare(Self.recordCount)
        try run(fixture, operationCount)
        var allocations: [UInt64] = []
        var times: [Double] = []
        for _ in 0..<rounds {
            let countBefore = allocationCount()
            let timeBefore = Self.nanoseconds()
            try run(fixture, operationCount)
            let time = Self.nanoseconds() - timeBefore
            allocations.append(allocationCount() - countBefore)
            times.append(Double(time) / Double(operationCount))
        }
        // The worst round, so that a bound holds for every one.
        return Measurement(
            name: name, isWriting: isWriting, operationCount: operationCount,
            allocationsPerOperation: Double(allocations.max() ?? 0) / Double(operationCount),
            nanosecondsPerOperation: times)
    }

    private func allocationCount() -> UInt64 {
        countsAllThreads ? allocations_of_process() : allocations_of_thread()
    }

    private static func nanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// That the counter counts: each array is one request. Without this a counter that was not
    /// linked in would let every case pass.
    static func checkCounter() throws {
        let before = allocations_of_thread()
        var sum = 0
        for number in 1...100 {
            sum += probe(number).count
        }
        let count = allocations_of_thread() - before
        guard count == 100, sum == 5_050 else {
            throw MicroFailure("the allocation counter counted \(count) instead of 100")
        }
    }

    /// Out of line, so that nobody can see that the array is not needed.
    @inline(never)
    private static func probe(_ count: Int) -> [UInt8] {
        [UInt8](repeating: 1, count: count)
    }
}
