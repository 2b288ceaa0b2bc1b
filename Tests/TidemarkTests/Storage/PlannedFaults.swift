import Glibc
import Synchronization
import Tidemark

/// What a test has the operating system do to the calls of the real door.
final class PlannedFaults: SystemCallFaults {
    private struct State {
        var counts: [SystemCall: Int] = [:]
        var failing: Set<SystemCall> = []
        var number: Int32 = 0
        /// Calls that are made before the first of these fails.
        var passes = 0
        /// Only those on paths that end so.
        var ending = ""
        /// How many are still to fail.
        var failures = 0
        var interruptsEach = false
        var isInterrupted = false
        var shortens = false
    }

    private let state = Mutex(State())

    /// Calls of these kinds, on paths with that ending, fail with that `errno`, so many in a row,
    /// after so many were made.
    func fail(
        _ calls: Set<SystemCall>, of ending: String = "", with number: Int32, times: Int = 1,
        after passes: Int = 0
    ) {
        state.withLock { state in
            state.ending = ending
            state.failing = calls
            state.number = number
            state.failures = times
            state.passes = passes
        }
    }

    /// From now on a signal interrupts every call that may be repeated before it is made, and a
    /// read or write moves half of what it is asked for, and so at last a single byte.
    func interruptAndShorten() {
        state.withLock { state in
            state.interruptsEach = true
            state.shortens = true
        }
    }

    /// Every call is made as a whole again.
    func rest() {
        state.withLock { state in
            state.failures = 0
            state.interruptsEach = false
            state.shortens = false
        }
    }

    /// Failures that have not come about yet.
    var failuresLeft: Int { state.withLock { $0.failures } }

    /// How often a call was made or was to be made.
    func count(of call: SystemCall) -> Int {
        state.withLock { $0.counts[call] ?? 0 }
    }

    /// Of all kinds.
    var callCount: Int {
        state.withLock { $0.counts.values.reduce(0, +) }
    }

    func failure(of call: SystemCall, path: String) -> Int32 {
        state.withLock { state -> Int32 in
            state.counts[call, default: 0] += 1
            if state.interruptsEach, call.isRepeatable {
                state.isInterrupted.toggle()
                if state.isInterrupted { return EINTR }
            }
            guard state.failures > 0, state.failing.contains(call), path.hasSuffix(state.ending)
            else { return 0 }
            guard state.passes == 0 else {
                state.passes -= 1
                return 0
            }
            state.failures -= 1
            return state.number
        }
    }

    func count(of call: SystemCall, path: String, wanted: Int) -> Int {
        state.withLock { $0.shortens ? (wanted + 1) / 2 : wanted }
    }
}

/// Calls of one kind on paths with one ending fail, each time.
final class LastingFault: SystemCallFaults {
    private let call: SystemCall
    private let ending: String
    private let number: Int32

    init(_ call: SystemCall, of ending: String, with number: Int32) {
        self.call = call
        self.ending = ending
        self.number = number
    }

    func failure(of call: SystemCall, path: String) -> Int32 {
        call == self.call && path.hasSuffix(ending) ? number : 0
    }

    func count(of call: SystemCall, path: String, wanted: Int) -> Int { wanted }
}
