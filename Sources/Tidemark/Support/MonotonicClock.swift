internal import Glibc

/// The clock of the machine that nobody sets.
enum MonotonicClock {
    /// Since some moment before the process began.
    static func nanoseconds() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(max(0, time.tv_sec)) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
