import CoreMetrics
import Synchronization

// What the registry's handlers count in. Each is one series of the text.

/// Only grows.
final class CounterCell: CounterHandler {
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) {
        value.wrappingAdd(amount, ordering: .relaxed)
    }

    func reset() {
        value.store(0, ordering: .relaxed)
    }

    var current: Int64 { value.load(ordering: .relaxed) }
}

/// Only grows, by parts of one.
final class FloatingPointCounterCell: FloatingPointCounterHandler {
    private let value = Mutex(0.0)

    func increment(by amount: Double) {
        value.withLock { $0 += amount }
    }

    func reset() {
        value.withLock { $0 = 0 }
    }

    var current: Double { value.withLock { $0 } }
}

/// Stands at some value.
final class GaugeCell: MeterHandler, RecorderHandler {
    private let value = Mutex(0.0)

    func set(_ value: Int64) {
        set(Double(value))
    }

    func set(_ value: Double) {
        self.value.withLock { $0 = value }
    }

    func increment(by amount: Double) {
        value.withLock { $0 += amount }
    }

    func decrement(by amount: Double) {
        value.withLock { $0 -= amount }
    }

    func record(_ value: Int64) {
        set(Double(value))
    }

    func record(_ value: Double) {
        set(value)
    }

    var current: Double { value.withLock { $0 } }
}

/// How often values of which size came.
final class HistogramCell: TimerHandler, RecorderHandler {
    struct State: Equatable {
        /// Of values up to each bound, and above all of them at the end. Not cumulative.
        var counts: [UInt64]
        var sum = 0.0
    }

    /// Upper bounds, rising.
    let bounds: [Double]
    private let state: Mutex<State>

    /// From a tenth of a millisecond to half a minute: in seconds.
    static let seconds = [
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
        10, 30,
    ]
    /// Of counts and sizes.
    static let powersOfTwo = (0..<21).map { Double(1 << ($0 * 2)) }

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) {
        record(Double(value))
    }

    func record(_ value: Double) {
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[index] &+= 1
            state.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) {
        record(Double(duration) / 1_000_000_000)
    }

    func preferDisplayUnit(_ unit: TimeUnit) {}

    var current: State { state.withLock { $0 } }
}
