internal import Synchronization

/// Logs that were sealed and that no reader can see any more, waiting to be used again.
///
/// A memtable gives its log here when the last view or snapshot that holds it has let go, on
/// whatever thread that happens; the sealing thread takes it from here, and touches the file.
final class LogRecycler: Sendable {
    struct Spare: Sendable {
        let path: String
        let capacity: Int
    }

    private struct State {
        /// Sealed: no longer needed on disk, and not to be lost when memory lets go of it.
        var retired: Set<String> = []
        var spares: [Spare] = []
    }

    private let state = Mutex(State())

    /// Declares the file of a log needless once nobody reads it.
    func retire(_ log: LogSegment) {
        state.withLock { _ = $0.retired.insert(log.path) }
    }

    /// Called as the memtable of a log goes; does nothing unless the log was retired before.
    func take(_ log: LogSegment) {
        state.withLock { state in
            guard state.retired.remove(log.path) != nil else { return }
            state.spares.append(Spare(path: log.path, capacity: log.capacity))
        }
    }

    /// A file of that size, to be used again, and those that nobody will use.
    func claim(capacity: Int) -> (spare: Spare?, others: [Spare]) {
        state.withLock { state in
            let index = state.spares.firstIndex { $0.capacity == capacity }
            let spare = index.map { state.spares.remove(at: $0) }
            defer { state.spares.removeAll() }
            return (spare, state.spares)
        }
    }
}
