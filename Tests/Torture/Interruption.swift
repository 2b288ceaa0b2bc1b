import Glibc
import Synchronization
import TestSupport

/// What ends a run before its time: SIGINT and SIGTERM in order, at its next step. A second one,
/// and the alarm of a run that is stuck, end it on the spot; its children go with it (`Leash`).
final class Interruption: Sendable {
    private let caught = Atomic<Int32>(0)

    /// The signal that asked for the end; nil if none has.
    var signalNumber: Int32? {
        let number = caught.load(ordering: .acquiring)
        return number == 0 ? nil : number
    }

    /// To be made before any other thread is, since they inherit which signals are blocked.
    ///
    /// - Parameter stuckSeconds: after which the run counts as stuck.
    init(stuckSeconds: UInt32) {
        var signals = Self.signals()
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        alarm(stuckSeconds)
        ThreadGroup.startDetached { self.wait() }
    }

    private func wait() {
        var signals = Self.signals()
        while true {
            var number: Int32 = 0
            guard unsafe sigwait(&signals, &number) == 0 else { continue }
            if number == SIGALRM {
                say("torture: stuck; see the last line for how far it came")
                _exit(1)
            }
            if signalNumber != nil { _exit(128 + number) }
            caught.store(number, ordering: .releasing)
        }
    }

    private static func signals() -> sigset_t {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        for number in [SIGINT, SIGTERM, SIGALRM] {
            unsafe sigaddset(&signals, number)
        }
        return signals
    }
}

/// Thrown where a run is to end because of a signal.
struct Interrupted: Error {}
