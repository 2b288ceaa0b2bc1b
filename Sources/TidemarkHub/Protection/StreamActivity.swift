import NIOCore
import Synchronization

/// Which connections of HTTP/2 have streams open, and since when the others have none.
///
/// The server tells a client whose connection was idle for long to go, and closes the connection
/// once the client has acknowledged that. One that acknowledges nothing would keep it for ever, so
/// ``LimitedChannel`` closes those by what is known here.
final class StreamActivity: Sendable {
    private struct Entry {
        var openCount = 0
        /// Means nothing while streams are open.
        var quietSince: NIODeadline
    }

    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    func began(on connection: ObjectIdentifier, at now: NIODeadline) {
        entries.withLock { entries in
            var entry = entries[connection] ?? Entry(quietSince: now)
            entry.openCount += 1
            entries[connection] = entry
        }
    }

    /// Once for each ``began(on:at:)``. Nothing happens if the connection is gone already.
    func ended(on connection: ObjectIdentifier, at now: NIODeadline) {
        entries.withLock { entries in
            guard var entry = entries[connection] else { return }
            entry.openCount -= 1
            entry.quietSince = now
            entries[connection] = entry
        }
    }

    func forget(_ connection: ObjectIdentifier) {
        entries.withLock { _ = $0.removeValue(forKey: connection) }
    }

    /// nil while streams are open, and for a connection that has had none: then it is not one of
    /// HTTP/2, or has brought no request yet.
    func quietSince(_ connection: ObjectIdentifier) -> NIODeadline? {
        entries.withLock { entries in
            guard let entry = entries[connection], entry.openCount <= 0 else { return nil }
            return entry.quietSince
        }
    }
}
