import CInstructions
import Glibc

/// Instructions per operation: by the processor's counter where there is one, else by running this
/// program again under callgrind. Either way twice with different numbers of operations on equal
/// fixtures, so that only what differs is counted.
enum InstructionCount {
    /// Callgrind takes some fifty times as long, so that fixture and counts are small.
    static let recordCount = 5_000

    /// What the program does when callgrind runs it.
    static func runOnce(_ name: String, operationCount: Int) throws {
        guard let chosen = MicroCase.named(name) else {
            throw MicroFailure("there is no case \(name)")
        }
        let fixture = try chosen.prepare(recordCount)
        try chosen.run(fixture, operationCount)
    }

    static func measure(_ chosen: MicroCase) throws -> (Double, source: String) {
        if let count = try byProcessor(chosen) { return (count, "perf_event_open") }
        return (try byCallgrind(chosen), "callgrind")
    }

    private static func byProcessor(_ chosen: MicroCase) throws -> Double? {
        let descriptor = instructions_open()
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let fixture = try chosen.prepare(MicroCase.recordCount)
        try chosen.run(fixture, chosen.operationCount)
        let before = instructions_read(descriptor)
        try chosen.run(fixture, chosen.operationCount)
        let after = instructions_read(descriptor)
        guard before >= 0, after > before else { return nil }
        return Double(after - before) / Double(chosen.operationCount)
    }

    private static func byCallgrind(_ chosen: MicroCase) throws -> Double {
        // Valgrind's reader of debug information gives up at what the Swift compiler writes, so
        // what it is given has none.
        let program = temporaryPath("program")
        try run(["strip", "--strip-debug", "-o", program, "/proc/\(getpid())/exe"])
        defer { unlink(program) }
        let difference = max(20, min(2_000, chosen.operationCount / 10))
        let low = try callgrind(chosen.name, difference / 10, program)
        let high = try callgrind(chosen.name, difference / 10 + difference, program)
        return Double(high - low) / Double(difference)
    }

    /// All instructions of one run.
    private static func callgrind(
        _ name: String, _ operationCount: Int, _ program: String
    ) throws -> Int {
        let output = temporaryPath("callgrind")
        defer { unlink(output) }
        try run([
            "valgrind", "--tool=callgrind", "--quiet", "--callgrind-out-file=\(output)", program,
            "--run-once", name, "--operations", String(operationCount),
        ])
        guard let total = try lines(of: output).last(where: { $0.hasPrefix("totals:") }),
            let count = Int(total.dropFirst("totals:".count).filter { $0 != " " })
        else { throw MicroFailure("callgrind left no total for \(name)") }
        return count
    }

    private static func temporaryPath(_ name: String) -> String {
        "\(Fixture.parentDirectory)/tidemark-micro-\(name)-\(getpid())"
    }

    private static func run(_ words: [String]) throws {
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        defer { arguments.forEach { free($0) } }
        var child = pid_t()
        let failure = posix_spawnp(&child, words[0], nil, nil, arguments, environ)
        guard failure == 0 else {
            throw MicroFailure("cannot run \(words[0]): \(String(cString: strerror(failure)))")
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { throw MicroFailure("cannot wait for \(words[0])") }
        }
        guard status == 0 else {
            throw MicroFailure("\(words.joined(separator: " ")) ended with status \(status)")
        }
    }

    private static func lines(of path: String) throws -> [Substring] {
        guard let file = fopen(path, "r") else { throw MicroFailure("cannot read \(path)") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            guard count > 0 else { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }
}
