import ArgumentParser
import Glibc

/// Commands that are scripts of a checkout of the sources, so that everything is found in one
/// place. They take over the process: their output, status and signals are the script's own.
protocol ForwardedCommand: ParsableCommand {
    var arguments: [String] { get }
}

extension ForwardedCommand {
    mutating func run() throws {
        try Checkout.run(Self.configuration.commandName ?? "", arguments)
    }
}

struct BenchCommand: ForwardedCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure this engine beside others (tools/bench of a checkout).",
        discussion: "All arguments go to the script; 'tidemark bench --help' shows its own help.")

    @Argument(parsing: .captureForPassthrough, help: "What the script gets.")
    var arguments: [String] = []
}

struct SimulateCommand: ForwardedCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Simulate replicas in trouble (tools/simulate of a checkout).",
        discussion: "All arguments go to the script.")

    @Argument(parsing: .captureForPassthrough, help: "What the script gets.")
    var arguments: [String] = []
}

struct SoakCommand: ForwardedCommand {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "Do everything to one store for minutes (tools/soak of a checkout).",
        discussion: "All arguments go to the script.")

    @Argument(parsing: .captureForPassthrough, help: "What the script gets.")
    var arguments: [String] = []
}

/// The checkout of the sources that the running command was built in.
enum Checkout {
    /// Folders between a checkout and what is built in it, at most.
    private static let depthMax = 8

    /// The script of that name, found from the folder of the running command upwards; nil if it is
    /// not run from a checkout.
    static func script(_ name: String, above program: String) -> String? {
        var folders = program.split(separator: "/").dropLast()
        for _ in 0..<depthMax {
            let folder = "/" + folders.joined(separator: "/")
            let script = "\(folder)/tools/\(name)"
            if unsafe access(script, X_OK) == 0,
                unsafe access("\(folder)/Package.swift", R_OK) == 0
            {
                return script
            }
            guard folders.popLast() != nil else { return nil }
        }
        return nil
    }

    /// Becomes the script.
    /// - Throws: if there is none, or it cannot be started.
    static func run(_ name: String, _ arguments: [String]) throws {
        let program = programPath()
        guard let script = script(name, above: program) else {
            throw CommandFailure(
                .noInput,
                "'tidemark \(name)' is the script tools/\(name) of a checkout, and \(program) lies "
                    + "in none; build the command in a checkout and run it from there")
        }
        // The script is to end by a closed pipe as any other.
        signal(SIGPIPE, SIG_DFL)
        var words = unsafe ([script] + arguments).map { unsafe strdup($0) } + [nil]
        _ = unsafe execv(script, &words)
        let problem = systemMessage(errno)
        unsafe words.forEach { unsafe free($0) }
        throw CommandFailure(.inputOutput, "cannot run \(script): \(problem)")
    }

    /// Of the running command, by whatever name it was called.
    private static func programPath() -> String {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe readlink(
                "/proc/self/exe", buffer.assumingMemoryBound(to: CChar.self).baseAddress!,
                buffer.count)
        }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
