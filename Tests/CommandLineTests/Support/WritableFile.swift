import Glibc
import TestSupport

/// A file that is open for writing as long as this object lives.
final class WritableFile {
    let descriptor: Int32

    init(_ path: String) throws {
        descriptor = unsafe open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw UnexpectedOutput(description: "cannot open \(path)") }
    }

    deinit {
        close(descriptor)
    }
}
