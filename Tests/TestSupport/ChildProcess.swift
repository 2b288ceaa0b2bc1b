import Glibc
import Synchronization

/// A process of its own whose standard output the test reads while it runs, and which the test may
/// kill at any moment. Standard error is the test's.
///
/// Its standard input is a pipe into which nobody writes and which closes when this process ends,
/// however it does: a program that waits for that is never left behind.
package final class ChildProcess {
    private let identifier: pid_t
    private let output: Int32
    /// The writing end of its standard input; nil once it is closed.
    private var input: Int32?
    private var status: Int32?

    /// Starts a program that was built beside the tests.
    package init(_ name: String, _ arguments: [String]) throws {
        let path = try Self.directoryOfProducts() + "/" + name
        (identifier, output, input) = try Self.starting.withLock { _ in
            try Self.start(path, arguments)
        }
    }

    /// Only one process starts at a time, so that none inherits the pipes of another.
    private static let starting = Mutex(())

    /// The new process, the reading end of the pipe that is its standard output, and the writing
    /// end of its standard input.
    private static func start(
        _ path: String, _ arguments: [String]
    ) throws -> (pid_t, Int32, Int32?) {
        let output = try pipeEnds(path)
        defer { close(output.writing) }
        let input: (reading: Int32, writing: Int32)
        do {
            input = try pipeEnds(path)
        } catch {
            close(output.reading)
            throw error
        }
        defer { close(input.reading) }

        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, output.writing, STDOUT_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, input.reading, STDIN_FILENO)

        var words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var child = pid_t()
        let result = unsafe posix_spawn(&child, path, &actions, nil, &words, environ)
        guard result == 0 else {
            close(output.reading)
            close(input.writing)
            errno = result
            throw FileFailure("posix_spawn", path)
        }
        return (child, output.reading, input.writing)
    }

    /// A pipe that no other process inherits.
    private static func pipeEnds(_ path: String) throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw FileFailure("pipe", path) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    deinit {
        if status == nil {
            kill()
            _ = wait()
        }
        closeInput()
        close(output)
    }

    /// Ends its standard input, as the end of this process would.
    package func closeInput() {
        if let input { close(input) }
        input = nil
    }

    /// What is there to be read now, after waiting for it no longer than that; nil at the end.
    package func read(waitingMilliseconds: Int32) throws -> [UInt8]? {
        var request = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&request, 1, waitingMilliseconds) > 0 else { return [] }
        return try readChunk()
    }

    /// Everything up to the end of the output.
    package func readToEnd() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try readChunk() { bytes += chunk }
        return bytes
    }

    package func kill() {
        Glibc.kill(identifier, SIGKILL)
    }

    /// Waits for the end; true if a signal ended it rather than the process itself.
    package func wait() -> Bool {
        if let status { return status & 0x7F != 0 }
        var word: Int32 = 0
        while unsafe waitpid(identifier, &word, 0) < 0, errno == EINTR {}
        status = word
        return word & 0x7F != 0
    }

    private func readChunk() throws -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe Glibc.read(output, bytes.baseAddress, bytes.count)
        }
        guard count >= 0 else { throw FileFailure("read", "the output of process \(identifier)") }
        return count == 0 ? nil : Array(buffer.prefix(count))
    }

    /// The directory of this process's own executable, where the build puts the others too.
    private static func directoryOfProducts() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return -1 }
            return unsafe readlink(
                "/proc/self/exe", start.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        guard count > 0 else { throw FileFailure("readlink", "/proc/self/exe") }
        let path = String(decoding: buffer.prefix(count), as: UTF8.self)
        return String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex))
    }
}
