import TestSupport

/// One of the processes as the driver sees it, over all its lives.
final class TortureChild {
    let name: String
    let directory: String
    /// When it is killed, if it runs, or else started: in seconds of the monotonic clock.
    var due = 0.0
    /// How often it was started.
    private(set) var lives: UInt64 = 0
    private var process: ChildProcess?
    /// The beginning of a line.
    private var unread: [UInt8] = []

    init(_ name: String, directory: String) {
        self.name = name
        self.directory = directory
    }

    var isRunning: Bool { process != nil }

    func start(_ order: ChildOrder) throws {
        unread = []
        lives += 1
        process = try ChildProcess("Torture", order.arguments)
    }

    /// What it has told since it was last asked; nil once it tells no more.
    func tellings(waitingMilliseconds: Int32) throws -> [Telling]? {
        guard let more = try process?.read(waitingMilliseconds: waitingMilliseconds) else {
            return nil
        }
        return try taken(more)
    }

    /// Kills it, if it has not ended by itself, and waits for its end.
    ///
    /// - Returns: what it had told until then, and whether it ended by itself.
    func end() throws -> (tellings: [Telling], byItself: Bool) {
        guard let process else { return ([], false) }
        self.process = nil
        process.kill()
        let tellings = try taken(try process.readToEnd())
        return (tellings, !process.wait())
    }

    private func taken(_ bytes: [UInt8]) throws -> [Telling] {
        unread += bytes
        guard let end = unread.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        let lines = String(decoding: unread[..<end], as: UTF8.self).split(separator: "\n")
        unread.removeSubrange(...end)
        return try lines.map { line in
            guard let telling = Telling(line) else {
                throw Mismatch("\(name) tells what means nothing: \(line)")
            }
            return telling
        }
    }
}
