import Tidemark

/// The lock by which a process writes a store.
enum StoreLock {
    /// Finds out, without touching a byte, whether a process writes the store: reading all files
    /// one after the other beside it would take for damage what it changes meanwhile.
    ///
    /// - Throws: `busy` if one does; `inputOutput` if the lock cannot be looked at now.
    static func checkIsFree(at store: String) throws {
        guard try SystemStorage().isLocked(store) else { return }
        throw CommandFailure(
            .busy, "a process writes \(store); stop it first, or look with 'tidemark verify'")
    }
}
