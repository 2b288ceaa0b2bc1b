import Foundation
import Glibc

/// A process started here, and ended by its own standard input coming to an end: that happens
/// also when this process dies, however it does, so no server is ever left behind.
///
/// Not `Foundation.Process`, which looks for the end of a child every 50 ms.
final class ChildProcess {
    let identifier: pid_t
    private var input: FileHandle?
    private let output: FileHandle
    private var unread = Data()

    /// - Parameter program: a path.
    init(_ program: String, _ arguments: [String]) throws {
        var toChild: [Int32] = [0, 0]
        var fromChild: [Int32] = [0, 0]
        try require(
            pipe(&toChild) == 0 && pipe(&fromChild) == 0, "no pipe: system error \(errno)")
        // Closed in every other child, or their lives would keep this one's input open.
        for end in toChild + fromChild { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        input = FileHandle(fileDescriptor: toChild[1], closeOnDealloc: true)
        output = FileHandle(fileDescriptor: fromChild[0], closeOnDealloc: true)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Threads of the Swift runtime block signals, and a child would inherit that: a shell then
        // waits for ever for the end of its own children.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        posix_spawn_file_actions_adddup2(&actions, toChild[0], STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, fromChild[1], STDOUT_FILENO)
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { words.forEach { free($0) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, program, &actions, &attributes, &words, environ)
        close(toChild[0])
        close(fromChild[1])
        try require(failure == 0, "\(program) does not start: system error \(failure)")
        identifier = child
    }

    func send(_ line: String) throws {
        try input?.write(contentsOf: Data((line + "\n").utf8))
    }

    /// The next line of its standard output.
    func nextLine() throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread = Data(unread[(end + 1)...])
                return line
            }
            let more = output.availableData
            try require(!more.isEmpty, "a child process ended early; see its errors above")
            unread += more
        }
    }

    /// Ends its standard input and waits for it to end.
    /// - Returns: whether it ended with status 0.
    @discardableResult
    func finish() -> Bool {
        try? input?.close()
        input = nil
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        return status == 0
    }

    /// Runs a program to its end.
    /// - Returns: its standard output.
    @discardableResult
    static func run(_ program: String, _ arguments: [String]) throws -> String {
        let child = try ChildProcess(program, arguments)
        let text = child.output.readDataToEndOfFile()
        try require(
            child.finish(), "\(program) \(arguments.joined(separator: " ")) failed")
        return String(decoding: text, as: UTF8.self)
    }

    /// Where a program is, by PATH; nil if it is not installed.
    static func find(_ program: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// A program that is part of every system.
    static func path(of program: String) throws -> String {
        guard let path = find(program) else {
            throw BenchmarkFailure("\(program) is not installed")
        }
        return path
    }
}
