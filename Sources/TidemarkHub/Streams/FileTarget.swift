import Glibc
import NIOPosix
import Synchronization

/// A file that cannot be written to.
struct FileTargetFailure: Error, Hashable, CustomStringConvertible {
    let path: String
    let call: String
    let number: Int32

    var description: String {
        "\(call) of \(path) failed with errno \(number); make room, or see to its rights"
    }
}

/// Appends each document to a file, as a line, and waits until the disk has it.
///
/// The file is opened for each line, so that it can be moved away and a new one begun at any
/// moment. A crash in between leaves part of a line, behind which the next one begins: documents
/// begin with `{` and have no line breaks, so what does not end with `}` is no document.
final class FileTarget: StreamTarget {
    private let path: String
    private let threads: NIOThreadPool
    /// One line after the other. Whether the directory is known to have the file's name on disk.
    private let turn = Mutex(false)

    /// - Parameter threads: that may block.
    init(path: String, threads: NIOThreadPool = .singleton) {
        self.path = path
        self.threads = threads
    }

    func deliver(_ document: [UInt8], delivery: String) async throws {
        let failure = try await threads.runIfActive { self.append(document) }
        if let failure { throw failure }
    }

    private func append(_ document: [UInt8]) -> FileTargetFailure? {
        turn.withLock { isNamed in
            do throws(FileTargetFailure) {
                try write(document, &isNamed)
                return nil
            } catch {
                return error
            }
        }
    }

    private func write(_ document: [UInt8], _ isNamed: inout Bool) throws(FileTargetFailure) {
        let flags = O_RDWR | O_APPEND | O_CLOEXEC
        // The path's bytes live for the calls; open takes the mode when it creates the file.
        var descriptor = unsafe open(path, flags)
        if descriptor < 0, errno == ENOENT {
            isNamed = false
            descriptor = unsafe open(path, flags | O_CREAT, 0o600)
        }
        guard descriptor >= 0 else { throw failure("open") }
        defer { close(descriptor) }
        var line = document
        if try !endsWithLineBreak(descriptor) { line.insert(UInt8(ascii: "\n"), at: 0) }
        line.append(UInt8(ascii: "\n"))
        try line.writeAll(to: descriptor, path: path)
        guard fsync(descriptor) == 0 else { throw failure("fsync") }
        guard !isNamed else { return }
        // A new file is lost with its lines until its directory is on disk, too. So it may be if
        // the process that made it had no time for that.
        try syncDirectory()
        isNamed = true
    }

    private func syncDirectory() throws(FileTargetFailure) {
        let directory = Self.directory(of: path)
        // As above.
        let descriptor = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw FileTargetFailure(path: directory, call: "open", number: errno)
        }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw FileTargetFailure(path: directory, call: "fsync", number: errno)
        }
    }

    /// What the file of a path lies in.
    static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Whether the next line can begin where the file ends.
    private func endsWithLineBreak(_ descriptor: Int32) throws(FileTargetFailure) -> Bool {
        let size = lseek(descriptor, 0, SEEK_END)
        guard size >= 0 else { throw failure("lseek") }
        guard size > 0 else { return true }
        var last: UInt8 = 0
        // One byte is read into one byte.
        let count = unsafe withUnsafeMutableBytes(of: &last) { buffer in
            unsafe pread(descriptor, buffer.baseAddress, 1, size - 1)
        }
        guard count == 1 else { throw failure("pread") }
        return last == UInt8(ascii: "\n")
    }

    private func failure(_ call: String) -> FileTargetFailure {
        FileTargetFailure(path: path, call: call, number: errno)
    }
}

/// Writes each document to the standard output, as a line: for trying things out, and for hubs
/// whose output somebody collects. What was written counts as taken.
final class StandardOutputTarget: StreamTarget {
    private let threads: NIOThreadPool
    private let descriptor: Int32
    private let turn = Mutex(())

    /// - Parameters:
    ///   - descriptor: stays open, and its caller's.
    ///   - threads: that may block.
    init(descriptor: Int32 = STDOUT_FILENO, threads: NIOThreadPool = .singleton) {
        self.descriptor = descriptor
        self.threads = threads
    }

    func deliver(_ document: [UInt8], delivery: String) async throws {
        let failure = try await threads.runIfActive { () -> FileTargetFailure? in
            self.turn.withLock { _ in
                do throws(FileTargetFailure) {
                    let line = document + [UInt8(ascii: "\n")]
                    try line.writeAll(to: self.descriptor, path: "the standard output")
                    return nil
                } catch {
                    return error
                }
            }
        }
        if let failure { throw failure }
    }
}

extension [UInt8] {
    /// - Parameter path: of the file, for the failure.
    fileprivate func writeAll(to descriptor: Int32, path: String) throws(FileTargetFailure) {
        var written = 0
        while written < count {
            // The pointer lives for the call, and the count is what is left of the array.
            let wrote = unsafe withUnsafeBytes { buffer in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
                return unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
            }
            if wrote < 0, errno == EINTR { continue }
            guard wrote > 0 else {
                throw FileTargetFailure(path: path, call: "write", number: errno)
            }
            written += wrote
        }
    }
}
