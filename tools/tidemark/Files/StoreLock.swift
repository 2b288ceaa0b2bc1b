import Glibc
import Tidemark

/// The lock by which a process writes a store.
enum StoreLock {
    /// Finds out, without touching a byte, whether a process writes the store: reading all files
    /// one after the other beside it would take for damage what it changes meanwhile.
    ///
    /// - Throws: `busy` if one does; `inputOutput` if the lock cannot be looked at now.
    static func checkIsFree(at store: String) throws {
        let descriptor = unsafe open("\(store)/LOCK", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard ![EACCES, EMFILE, ENFILE, ENOMEM].contains(errno) else {
                throw CommandFailure(
                    .inputOutput, "cannot open \(store)/LOCK: \(systemMessage(errno))")
            }
            // Without a lock file nobody ever opened it, or it went with other files.
            return
        }
        defer { close(descriptor) }
        // The lock is let go with the descriptor.
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return }
        throw CommandFailure(
            .busy, "a process writes \(store); stop it first, or look with 'tidemark verify'")
    }
}
