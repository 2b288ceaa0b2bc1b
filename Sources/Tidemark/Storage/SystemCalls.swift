internal import Glibc

/// A call that the door makes of the operating system, and that may fail.
package enum SystemCall: String, Hashable, Sendable, CaseIterable {
    case open, opendir, fstat, pread, pwrite, fdatasync, fsync, syncFileRange, ftruncate, fallocate
    case madvise
    case mkdir, unlink, rename, link, flock

    /// Whether to make it twice is the same as to make it once. A file system that gave up the
    /// change of a name half-way, as one behind a network may, does not say whether the name was
    /// changed.
    package var isRepeatable: Bool { self != .rename && self != .link }

    /// Whether it finds the file by its name.
    fileprivate var takesName: Bool {
        switch self {
        case .open, .opendir, .mkdir, .unlink, .rename, .link: true
        default: false
        }
    }
}

/// What a test has the operating system do to the calls of ``SystemStorage``. Real disks do the
/// same, but not when they are asked to.
package protocol SystemCallFaults: AnyObject, Sendable {
    /// The `errno` with which the call fails in place of being made; 0 to have it made.
    func failure(of call: SystemCall, path: String) -> Int32

    /// How many bytes of so many one read or write moves: at least 1, at most all.
    func count(of call: SystemCall, path: String, wanted: Int) -> Int
}

/// Makes the calls, again and again where it is a signal that keeps one from being carried out.
///
/// Signals are no failures: a service that embeds the store has timers, profilers and children of
/// its own. A handler that was set without `SA_RESTART` makes calls end with `EINTR`, and some file
/// systems do so in any case. Even a sync is called again: one that was interrupted has given no
/// verdict on what was written, unlike one that failed, which is final. (InnoDB does the same, in
/// `os_file_fsync_posix`.) `close` is the exception: Linux has let go of the descriptor by then.
struct SystemCalls: Sendable {
    /// nil outside of tests.
    var faults: (any SystemCallFaults)?

    /// Makes a call that gives -1 and `errno` when it fails.
    @inline(__always)
    func make<Result: SignedInteger>(
        _ call: SystemCall, _ path: String, _ body: () -> Result
    ) -> Result {
        while true {
            let result = isRefused(call, path) ? -1 : body()
            guard result == -1, errno == EINTR, call.isRepeatable else { return result }
        }
    }

    /// Whether a test has the call fail, or it would be about another file than it says, since a
    /// name ends at a byte 0; with `errno` set to what it fails with.
    @inline(__always)
    func isRefused(_ call: SystemCall, _ path: String) -> Bool {
        if call.takesName, path.utf8.contains(0) {
            errno = EINVAL
            return true
        }
        guard let faults else { return false }
        let failure = faults.failure(of: call, path: path)
        if failure != 0 { errno = failure }
        return failure != 0
    }

    /// How many bytes to ask a read or write for, of so many that are wanted.
    @inline(__always)
    func count(_ call: SystemCall, _ path: String, of wanted: Int) -> Int {
        guard let faults else { return wanted }
        return min(max(1, faults.count(of: call, path: path, wanted: wanted)), wanted)
    }
}
