import Glibc
import Synchronization
import Tidemark
import UnixSignals

/// A directory that is made under a name of its own, and comes to where it belongs when it is whole
/// and durable: see ``Publication``.
///
/// Whatever ends the work before, a failure, Ctrl-C, a service manager, the unfinished directory
/// goes with it; an empty directory that was to be filled is empty again. Only a kill that no
/// program can answer leaves something behind: a directory whose name ends in `.partial` and the
/// number of the process, or the directory `.partial` within the target. It may be removed by hand,
/// and no store is begun beside the one or around the other.
///
/// Thread rule: signals come on another thread than the work. What was published stays, and what
/// was given up is never published: `isPublished` is asked and set under its lock, and whoever
/// gives the work up keeps the lock until the process has ended.
final class StagedDirectory: Sendable {
    /// Where the work is done.
    let path: String
    private let target: String
    private let publication: Publication
    private let isPublished = Mutex(false)

    private init(_ target: String, _ publication: Publication) throws {
        self.target = target
        self.publication = publication
        path = publication.staging(for: target)
        // What another command has made is not to be shared with it.
        guard unsafe mkdir(path, 0o755) == 0 else { throw Self.cannotMake(path, errno) }
    }

    private static func cannotMake(_ path: String, _ number: Int32) -> CommandFailure {
        switch number {
        case EEXIST:
            CommandFailure(
                .usage,
                "\(path) is there, which another command makes or a killed one left unfinished; "
                    + "let it end, or remove it and try again")
        case ENOENT, ENOTDIR:
            CommandFailure(
                .noInput, "cannot make \(path): \(systemMessage(number)); check the path")
        default:
            CommandFailure(
                .inputOutput,
                "cannot make \(path): \(systemMessage(number)); check the disk and the "
                    + "permissions")
        }
    }

    /// Makes a directory.
    ///
    /// - Parameters:
    ///   - kept: the name for the store that has the target's name already; nil if the target is
    ///     missing or empty.
    ///   - work: makes it at the path that it is given, where an empty one is.
    /// - Throws: `usage` if the target is there, not empty and not to be kept; what the work
    ///   throws.
    static func make<Result>(
        _ target: String, keeping kept: String? = nil, _ work: (String) throws -> Result
    ) async throws -> Result {
        let target = withoutSlash(target)
        let publication =
            if let kept {
                Publication.exchanges(keeping: kept)
            } else {
                try Publication(to: target)
            }
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let staged = try StagedDirectory(target, publication)
        let watch = Task.detached {
            for await signal in signals { staged.giveUp(after: signal) }
        }
        defer { watch.cancel() }
        do {
            let result = try work(staged.path)
            try staged.publish()
            return result
        } catch {
            staged.remove()
            throw error
        }
    }

    private func publish() throws {
        let storage = SystemStorage()
        try isPublished.withLock { isPublished in
            let changed = try publication.place(path, at: target, storage)
            isPublished = true
            try storage.syncDirectory(changed)
        }
    }

    static func withoutSlash(_ path: String) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }

    static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// After a failure of the work.
    private func remove() {
        isPublished.withLock { isPublished in
            if !isPublished { removeFiles() }
        }
    }

    private func giveUp(after signal: UnixSignal) {
        isPublished.withLock { isPublished in
            // The work is done and about to say so.
            guard !isPublished else { return }
            // The work goes on meanwhile and may make another file or two, until it has none of
            // its directory any more.
            while !removeFiles() { usleep(1_000) }
            reportLine(
                (isatty(2) == 1 ? "\r\u{1B}[K" : "")
                    + "tidemark: stopped by a signal; nothing was left behind")
            _exit(128 + signal.rawValue)
        }
    }

    /// Returns whether nothing is left.
    @discardableResult
    private func removeFiles() -> Bool {
        let storage = SystemStorage()
        for name in (try? storage.listDirectory(path)) ?? [] {
            try? storage.remove("\(path)/\(name)")
        }
        return unsafe rmdir(path) == 0 || errno == ENOENT
    }
}

extension SystemStorage {
    /// The names in a directory; none if there is no such directory.
    ///
    /// - Throws: `inputOutput` if it cannot be looked at, which does not say that it is empty.
    func names(inExisting directory: String) throws(StoreError) -> [String] {
        do throws(StoreError) {
            return try listDirectory(directory)
        } catch {
            guard error.code == .notAStore else { throw error }
            return []
        }
    }
}
