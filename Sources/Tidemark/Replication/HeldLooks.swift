internal import Synchronization

/// When all that the sync module holds in a store because of its date is to be looked through
/// again: once something in the list has changed, or a date has come. In between nothing can be let
/// in but by what changes a dataset, which is looked at then.
///
/// In memory only, and with the store rather than with whoever answers for it, since a server may
/// make a responder for each request.
///
/// Thread rule: all under one lock, which is held for moments only.
package final class HeldLooks: Sendable {
    private struct State {
        var count = 0
        /// Of the list, before it was looked through last.
        var syncCount: SyncCount?
        /// The first date of what was there.
        var next: HybridTime?
    }

    private let state = Mutex(State())

    package init() {}

    /// How often it was looked through.
    package var count: Int { state.withLock { $0.count } }

    /// - Parameters:
    ///   - syncCount: of the list.
    ///   - believed: the latest date that is.
    package func isDue(at syncCount: SyncCount, by believed: HybridTime) -> Bool {
        state.withLock { state in
            guard state.syncCount == syncCount else { return true }
            return state.next.map { $0 <= believed } ?? false
        }
    }

    /// Notes that it was looked through.
    ///
    /// - Parameters:
    ///   - syncCount: of the list, before that.
    ///   - next: the first date of what was there. If any of that was let in the list has changed,
    ///     and is looked through again.
    package func note(at syncCount: SyncCount, next: HybridTime?) {
        state.withLock { state in
            state.count += 1
            (state.syncCount, state.next) = (syncCount, next)
        }
    }
}

extension Store {
    /// Of all datasets.
    package var heldLooks: HeldLooks { engine.heldLooks }
}
