import Glibc

/// A file that is there whole or not at all: it is written under another name in the same
/// directory, and takes its own when all of it is on disk.
final class ReplacedFile {
    let output: OutputStream
    private let path: String
    private let temporaryPath: String
    private let descriptor: Int32
    private var isDone = false

    init(path: String) throws {
        self.path = path
        temporaryPath = "\(path).tmp-\(getpid())"
        descriptor = unsafe open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw CommandFailure(
                errno == ENOENT || errno == ENOTDIR ? .noInput : .inputOutput,
                "cannot make \(TerminalText.escaped(temporaryPath)): \(systemMessage(errno)); "
                    + "check the directory")
        }
        output = OutputStream(descriptor: descriptor)
    }

    /// Without ``finish()`` nothing is left.
    deinit {
        guard !isDone else { return }
        close(descriptor)
        _ = unsafe unlink(temporaryPath)
    }

    /// Puts the file into its place, over one that was there before.
    func finish() throws {
        try output.flush()
        guard fsync(descriptor) == 0, unsafe rename(temporaryPath, path) == 0 else {
            throw CommandFailure(
                .inputOutput,
                "cannot write \(TerminalText.escaped(path)): \(systemMessage(errno)); what was "
                    + "there before is as it was")
        }
        isDone = true
        close(descriptor)
    }
}
