import Glibc
import Synchronization
import Tidemark
import UnixSignals

/// A directory that is made under a name of its own beside the target, and takes the target's name
/// when it is whole and durable, in one step.
///
/// Whatever ends the work before, a failure, Ctrl-C, a service manager, the unfinished directory
/// goes with it. Only a kill that no program can answer leaves it behind, under a name that ends in
/// `.partial` and the number of the process; it may be removed by hand.
///
/// Thread rule: signals come on another thread than the work. What was published stays, and what
/// was given up is never published: `isPublished` is asked and set under its lock, and whoever
/// gives the work up keeps the lock until the process has ended.
final class StagedDirectory: Sendable {
    /// Where the work is done.
    let path: String
    private let target: String
    private let isPublished = Mutex(false)

    private init(_ target: String) throws {
        self.target = target
        path = "\(target).partial-\(getpid())"
        try SystemStorage().createDirectory(path)
    }

    /// What becomes of a directory that has the target's name already.
    enum Former {
        /// There is none, or it is empty.
        case none
        /// It gets another name, durably, just before the new one takes its own.
        case movesTo(String)
    }

    /// Makes a directory.
    ///
    /// - Parameter work: makes it at the path that it is given, where an empty one is.
    /// - Throws: `usage` if the target is there and not to be moved away; what the work throws.
    static func make<Result>(
        _ target: String, replacing former: Former = .none, _ work: (String) throws -> Result
    ) async throws -> Result {
        let target = withoutSlash(target)
        if case .none = former { try checkIsFree(target) }
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let staged = try StagedDirectory(target)
        let watch = Task.detached {
            for await signal in signals { staged.giveUp(after: signal) }
        }
        defer { watch.cancel() }
        do {
            let result = try work(staged.path)
            try staged.publish(replacing: former)
            return result
        } catch {
            staged.remove()
            throw error
        }
    }

    private static func withoutSlash(_ path: String) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }

    /// Before anything is done, so that nobody waits for a failure that was certain.
    private static func checkIsFree(_ target: String) throws {
        guard unsafe access(target, F_OK) == 0 else { return }
        var isEmpty = false
        do throws(StoreError) {
            isEmpty = try SystemStorage().listDirectory(target).isEmpty
        } catch {
            // A file has the name. What kept us from looking says so itself.
            guard error.code == .notAStore else { throw error }
        }
        guard isEmpty else {
            throw CommandFailure(
                .usage, "\(target) is there and not empty; name a missing or empty directory")
        }
    }

    private func publish(replacing former: Former) throws {
        let storage = SystemStorage()
        try isPublished.withLock { isPublished in
            if case .movesTo(let kept) = former {
                try storage.rename(target, to: kept)
            }
            do {
                try storage.rename(path, to: target)
            } catch {
                // What was moved away goes back; should that fail, too, the message of the first
                // failure names both.
                if case .movesTo(let kept) = former { try? storage.rename(kept, to: target) }
                throw error
            }
            isPublished = true
            try storage.syncDirectory(Self.parent(of: target))
        }
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
