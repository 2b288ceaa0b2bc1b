import Synchronization
import Tidemark

/// The store that the hub serves: possibly another object after a failure, since a store that a
/// failure keeps from writing must be opened anew before it writes again.
///
/// Nobody keeps a store or a dataset of it beyond one call; `HubThreads` hands it to each. Calls
/// that are under way while it is opened anew fail with `closed`, and clients repeat them.
final class StoreHolder: Sendable {
    private let held: Mutex<Store>
    private let open: (@Sendable () throws(StoreError) -> Store)?

    /// - Parameter open: opens the store again after it was closed; nil if it belongs to somebody
    ///   else, and stays as it is.
    init(_ store: Store, open: (@Sendable () throws(StoreError) -> Store)? = nil) {
        held = Mutex(store)
        self.open = open
    }

    var current: Store { held.withLock { $0 } }

    var mayReopen: Bool { open != nil }

    /// Closes the store and opens it again, if it is still the one that failed. Blocks on the disk;
    /// others wait for it.
    ///
    /// - Returns: false if it may not be opened anew, or somebody has done so already.
    /// - Throws: what opening throws; the store is closed then, and the next call tries again.
    func reopen(after failed: Store) throws(StoreError) -> Bool {
        guard let open else { return false }
        let outcome: Result<Bool, StoreError> = held.withLock { store in
            guard store === failed else { return .success(false) }
            // What it says was said by the failure.
            try? store.close()
            do throws(StoreError) {
                store = try open()
                return .success(true)
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
