import Glibc

/// What happens at Ctrl-C: the command ends at once with 130, and leaves no half-written file.
///
/// The store needs no warning, since every write to it is whole or not there after a crash. A
/// command that waits for its own end, as `serve` does, takes the signal over when it starts.
enum Interruption {
    /// As a shell says it of a command that SIGINT ended.
    static let status: Int32 = 130

    // Only a signal handler reads it, which interrupts the one thread that a command writes its
    // file on; that sets it before the file is there and clears it when the file is whole.
    nonisolated(unsafe) private static var partialPath: UnsafeMutablePointer<CChar>?

    /// Called once, when the command starts.
    static func handle() {
        signal(SIGINT) { _ in
            // What may be called here is what POSIX lists as safe in a handler.
            if let path = unsafe Interruption.partialPath { _ = unsafe unlink(path) }
            if isatty(2) == 1 {
                // Where a progress bar may stand.
                let wipe: StaticString = "\r\u{1B}[K"
                _ = unsafe write(2, wipe.utf8Start, wipe.utf8CodeUnitCount)
            }
            _exit(Interruption.status)
        }
    }

    /// Runs what makes a file; the file goes if the command is interrupted meanwhile, or it throws.
    static func removing<Result>(_ path: String, _ body: () throws -> Result) throws -> Result {
        let copy = unsafe strdup(path)
        unsafe partialPath = unsafe copy
        defer {
            unsafe partialPath = nil
            unsafe free(copy)
        }
        do {
            return try body()
        } catch {
            _ = unsafe unlink(path)
            throw error
        }
    }
}
