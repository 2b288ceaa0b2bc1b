import Foundation
import Glibc
import TestSupport

/// How a run of the command ended, and what it printed.
struct Outcome {
    let status: Int32
    let output: [UInt8]
    let errors: String

    /// What it printed, as text.
    var text: String { String(decoding: output, as: UTF8.self) }

    var lines: [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// The lines as JSON objects; throws if one is none.
    func objects() throws -> [[String: Any]] {
        try lines.map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            guard let members = object as? [String: Any] else {
                throw UnexpectedOutput(description: "no object: \(line)")
            }
            return members
        }
    }
}

struct UnexpectedOutput: Error, CustomStringConvertible {
    let description: String
}

/// The built command, run as a user or a script would run it.
///
/// The tests look at the real binary because exit statuses, closed pipes and what goes to which
/// descriptor exist nowhere else.
struct CommandLineTool {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// The path of something in the test's own directory.
    func path(_ name: String) -> String { directory[name] }

    /// Writes a file into the test's own directory; returns its path.
    func file(_ name: String, _ content: String) throws -> String {
        try file(name, Array(content.utf8))
    }

    func file(_ name: String, _ content: [UInt8]) throws -> String {
        try Files.write(content, to: path(name))
        return path(name)
    }

    /// Beside the test bundle, where the build puts it.
    static func binary() throws -> String {
        let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let directory = URL(fileURLWithPath: bundle).deletingLastPathComponent()
        let binary = directory.appendingPathComponent("tidemark").path
        guard FileManager.default.isExecutableFile(atPath: binary) else {
            throw UnexpectedOutput(description: "no command at \(binary); build it first")
        }
        return binary
    }

    /// Runs the command to its end.
    @discardableResult
    func run(_ arguments: String..., input: [UInt8] = []) async throws -> Outcome {
        try await run(Self.binary(), arguments, input: input)
    }

    /// Runs the command, and throws unless it exits with 0 and says nothing on standard error.
    @discardableResult
    func succeed(_ arguments: String..., input: [UInt8] = []) async throws -> Outcome {
        let outcome = try await run(Self.binary(), arguments, input: input)
        guard outcome.status == 0, outcome.errors.isEmpty else {
            throw UnexpectedOutput(
                description: "\(arguments) ended with \(outcome.status): \(outcome.errors)")
        }
        return outcome
    }

    /// Runs a script of bash, in which `$tidemark` is the command and the current directory the
    /// test's own.
    func shell(_ script: String) async throws -> Outcome {
        let preamble = "tidemark=\(try Self.binary()); cd \(directory.path)\n"
        return try await run("/bin/bash", ["-c", preamble + script])
    }

    /// Standard output and error go to files, not pipes, so that no output is too long to be read.
    private func run(
        _ executable: String, _ arguments: [String], input: [UInt8] = []
    ) async throws -> Outcome {
        let running = try RunningCommand(executable, arguments, input: input, in: directory)
        return try await running.outcome()
    }
}

/// A command that was started and may still run.
final class RunningCommand {
    private let identifier: pid_t
    private let files: (output: String, errors: String)
    private var status: Int32?

    init(
        _ executable: String, _ arguments: [String], input: [UInt8] = [],
        in directory: TemporaryDirectory
    ) throws {
        let name = UUID().uuidString
        let inputPath = directory["\(name).in"]
        files = (directory["\(name).out"], directory["\(name).err"])
        try Files.write(input, to: inputPath)
        try Files.write([], to: files.output)
        try Files.write([], to: files.errors)
        identifier = try Self.start(
            [executable] + arguments,
            descriptors: [
                (inputPath, O_RDONLY), (files.output, O_WRONLY), (files.errors, O_WRONLY),
            ])
    }

    /// Starts a process with the given files as its standard descriptors, in their order.
    private static func start(
        _ words: [String], descriptors: [(path: String, flags: Int32)]
    ) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            unsafe posix_spawn_file_actions_addopen(
                &actions, Int32(number), descriptor.path, descriptor.flags, 0)
        }
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { unsafe arguments.forEach { unsafe free($0) } }
        var child = pid_t()
        let failure = unsafe posix_spawn(&child, words[0], &actions, nil, &arguments, environ)
        guard failure == 0 else {
            throw UnexpectedOutput(description: "\(words[0]) does not start: error \(failure)")
        }
        return child
    }

    deinit {
        if !hasEnded {
            kill(identifier, SIGKILL)
            while !hasEnded { usleep(1_000) }
        }
    }

    /// Looks, without waiting, whether it has ended.
    private var hasEnded: Bool {
        if status != nil { return true }
        var word: Int32 = 0
        guard unsafe waitpid(identifier, &word, WNOHANG) == identifier else { return false }
        status = word
        return true
    }

    var isRunning: Bool { !hasEnded }

    /// What was printed so far.
    func output() throws -> String {
        String(decoding: try Files.read(files.output), as: UTF8.self)
    }

    func errors() throws -> String {
        String(decoding: try Files.read(files.errors), as: UTF8.self)
    }

    /// Asks it to end, as a service manager does.
    func terminate() {
        kill(identifier, SIGTERM)
    }

    /// Interrupts it, as Ctrl-C does.
    func interrupt() {
        kill(identifier, SIGINT)
    }

    /// Waits for its end. A command ended by a signal counts as 128 and the signal's number.
    func outcome() async throws -> Outcome {
        while !hasEnded {
            try await Task.sleep(for: .milliseconds(2))
        }
        let word = status ?? 0
        let signal = word & 0x7F
        return Outcome(
            status: signal != 0 ? 128 + signal : word >> 8 & 0xFF,
            output: try Files.read(files.output), errors: try errors())
    }
}
