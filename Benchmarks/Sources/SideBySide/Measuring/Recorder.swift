import CTicks
import Histogram

/// The clock of a loop: one reading of the counter an operation gives its latency, the timeline
/// and the end of the time allowed.
///
/// A reading costs about 8 ns, which every engine pays alike (the limit `driver` tells what).
struct Recorder {
    private static let slices = 10.0

    private(set) var histogram: Histogram<UInt32>
    private(set) var operations = 0
    private var last: UInt64 = 0
    private var start: UInt64 = 0
    private var sliceEnd: UInt64 = 0
    private var sliceStart = 0
    private var timeline: [Double] = []
    private let sliceTicks: UInt64
    private let end: UInt64
    private let rate: Double

    /// Starts the clock.
    /// - Parameter seconds: the time allowed; nil for all that it takes.
    init(seconds: Double?) {
        rate = ticks_per_second()
        // Up to 100 s, with two significant digits: 40 KiB, which stay in the cache.
        histogram = Histogram(
            highestTrackableValue: UInt64(rate * 100), numberOfSignificantValueDigits: .two)
        sliceTicks = UInt64(rate / Self.slices)
        start = ticks_now()
        last = start
        sliceEnd = start + sliceTicks
        if let seconds { end = start + UInt64(rate * seconds) } else { end = .max }
    }

    /// Notes that an operation has ended; false when the time is over.
    @inline(__always)
    mutating func tick() -> Bool {
        let now = ticks_now()
        histogram.record(now &- last)
        last = now
        operations &+= 1
        return now < sliceEnd || endSlice(now)
    }

    private mutating func endSlice(_ now: UInt64) -> Bool {
        while sliceEnd <= now {
            timeline.append(Double(operations - sliceStart) * Self.slices)
            sliceStart = operations
            sliceEnd += sliceTicks
        }
        return now < end
    }

    var seconds: Double { Double(last - start) / rate }

    var secondsEach: Double { seconds / Double(operations) }

    /// - Parameter wanted: operations that would have been done without the cap.
    func sample(_ workload: String, wanted: Int?, hasTimeline: Bool) -> Sample {
        Sample(
            workload: workload, valueBytes: 0, records: 0, operations: operations,
            seconds: seconds, isCapped: wanted.map { operations < $0 } ?? false,
            latency: Latency(histogram, ticksPerSecond: rate),
            timeline: hasTimeline ? timeline : nil)
    }

    /// One sample of several threads: their operations over the time from the first start to the
    /// last end.
    static func sample(_ workload: String, of recorders: [Recorder]) -> Sample {
        var all = recorders[0].histogram
        for recorder in recorders.dropFirst() { all.add(recorder.histogram) }
        let rate = recorders[0].rate
        let start = recorders.map(\.start).min() ?? 0
        let end = recorders.map(\.last).max() ?? 0
        return Sample(
            workload: workload, valueBytes: 0, records: 0, threads: recorders.count,
            operations: recorders.map(\.operations).reduce(0, +),
            seconds: Double(end - start) / rate, latency: Latency(all, ticksPerSecond: rate))
    }
}

extension Latency {
    init(_ histogram: Histogram<UInt32>, ticksPerSecond: Double) {
        func microseconds(_ percentile: Double) -> Double {
            let ticks = Double(histogram.valueAtPercentile(percentile))
            return ticks / ticksPerSecond * 1e6
        }
        p50 = microseconds(50)
        p99 = microseconds(99)
        p999 = microseconds(99.9)
        max = microseconds(100)
        let percentiles: [Double] = [
            1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92, 94, 95, 96, 97, 98, 98.5, 99,
            99.3, 99.5, 99.7, 99.8, 99.9, 99.95, 99.97, 99.99, 100,
        ]
        curve = percentiles.map { [$0, microseconds($0)] }
    }
}
