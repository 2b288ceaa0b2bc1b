import Glibc

/// A file that is there whole or not at all.
enum ReplacedFile {
    /// Writes a file under another name in the same directory, and gives it its own once all of it
    /// is on disk, over a file that was there before. If anything fails, or the command is
    /// interrupted, that one is as it was and nothing else is left.
    static func write(_ path: String, _ body: (OutputStream) throws -> Void) throws {
        let temporaryPath = "\(path).tmp-\(getpid())"
        try Interruption.removing(temporaryPath) {
            let descriptor = unsafe open(
                temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
            guard descriptor >= 0 else {
                throw CommandFailure(
                    errno == ENOENT || errno == ENOTDIR ? .noInput : .inputOutput,
                    "cannot make \(TerminalText.escaped(temporaryPath)): "
                        + "\(systemMessage(errno)); check the directory")
            }
            defer { close(descriptor) }
            let output = OutputStream(descriptor: descriptor)
            try body(output)
            try output.flush()
            guard fsync(descriptor) == 0, unsafe rename(temporaryPath, path) == 0 else {
                throw CommandFailure(
                    .inputOutput,
                    "cannot write \(TerminalText.escaped(path)): \(systemMessage(errno)); what "
                        + "was there before is as it was")
            }
        }
    }
}
