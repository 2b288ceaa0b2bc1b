import Glibc
import Tidemark

/// How a directory that was made under another name comes to where it belongs.
///
/// Whenever the process is killed, what stands under the target's name is what stood there before
/// or all of the new directory, or it is a directory that nobody takes for a store.
enum Publication: Hashable {
    /// The target is missing. The new directory is made beside it, and renamed.
    case renames
    /// The target is an empty directory and stays the same one: a mount point, the current
    /// directory, what a symbolic link leads to, or one whose parent belongs to somebody else. The
    /// new directory is made within, and its files move out, the manifest last.
    case fills
    /// The target is a store, which is kept under another name. The new directory is made beside
    /// it.
    ///
    /// The new store first takes the name under which the damaged one is to be kept; then the two
    /// exchange their names in one step, and nothing is left to do. A kill between the two steps
    /// leaves the damaged store in its place, as it was, and a whole repaired one under the other
    /// name. With the exchange first, the damaged store would stand under the name of what is
    /// unfinished, and go when somebody removes that.
    ///
    /// Where names cannot be exchanged, it takes two renames. A kill between those leaves no store
    /// in the place, and none is begun there while the damaged one stands beside it.
    case exchanges(keeping: String)

    private static let manifest = "MANIFEST"

    /// Chooses by what the target is.
    ///
    /// - Throws: `usage` if it is there and no empty directory. This is before anything is done,
    ///   so that nobody waits for a failure that was certain.
    init(to target: String) throws {
        guard !target.isEmpty else {
            throw CommandFailure(.usage, "the target has no name; name a directory")
        }
        var status = stat()
        guard unsafe lstat(target, &status) == 0 else {
            // Should it be for another reason, making the new directory says which.
            self = .renames
            return
        }
        guard unsafe stat(target, &status) == 0 else {
            throw CommandFailure(
                .usage,
                "\(target) is a symbolic link that leads nowhere; name a missing or empty "
                    + "directory")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw CommandFailure(
                .usage, "\(target) is no directory; name a missing or empty directory")
        }
        let names = try SystemStorage().listDirectory(target)
        guard !Self.isUnfinished(names) else { throw Self.unfinished(target) }
        guard names.isEmpty else {
            throw CommandFailure(
                .usage, "\(target) is there and not empty; name a missing or empty directory")
        }
        self = .fills
    }

    /// Whether a command makes something of the directory that holds these names, or was killed
    /// while it did.
    static func isUnfinished(_ names: [String]) -> Bool {
        names.contains(StagingName.within) && !names.contains(manifest)
    }

    static func unfinished(_ target: String) -> CommandFailure {
        CommandFailure(
            .usage,
            "\(target) holds \(StagingName.within), which another command makes or a killed one "
                + "left unfinished; let it end, or empty the directory and try again")
    }

    /// Where the new directory is made.
    func staging(for target: String) -> String {
        switch self {
        case .renames, .exchanges: StagingName.beside(target, process: getpid())
        case .fills: "\(target)/\(StagingName.within)"
        }
    }

    /// Brings a new directory, all of which is durable, to where it belongs. After a failure the
    /// target is as it was, and the new directory where it was made, as far as it is there.
    ///
    /// - Returns: the directory whose sync makes this durable.
    func place(_ made: String, at target: String, _ storage: any Storage) throws -> String {
        switch self {
        case .renames:
            try storage.rename(made, to: target)
            return StagedDirectory.parent(of: target)
        case .fills:
            try fill(target, from: made, storage)
            return target
        case .exchanges(let kept):
            try exchange(target, with: made, keeping: kept, storage)
            return StagedDirectory.parent(of: target)
        }
    }

    private func fill(_ target: String, from made: String, _ storage: any Storage) throws {
        guard try storage.listDirectory(target) == [StagingName.within] else {
            throw CommandFailure(
                .usage, "\(target) is not empty any more; name a missing or empty directory")
        }
        var moved: [String] = []
        do {
            for name in try storage.listDirectory(made) where name != Self.manifest {
                try storage.rename("\(made)/\(name)", to: "\(target)/\(name)")
                moved.append(name)
            }
            // All names are durable before the one that gives them their meaning.
            try storage.syncDirectory(target)
            try storage.rename("\(made)/\(Self.manifest)", to: "\(target)/\(Self.manifest)")
        } catch {
            for name in moved { try? storage.remove("\(target)/\(name)") }
            throw error
        }
        // Should this fail, an empty directory stays, which nobody minds.
        _ = unsafe rmdir(made)
    }

    private func exchange(
        _ target: String, with made: String, keeping kept: String, _ storage: any Storage
    ) throws {
        try storage.rename(made, to: kept)
        do throws(StoreError) {
            if try storage.exchange(kept, with: target) { return }
        } catch {
            // Should this fail, too, the first message names both.
            try? storage.rename(kept, to: made)
            guard error.systemError != EBUSY else { throw Self.mountPoint(target) }
            throw error
        }
        try storage.rename(kept, to: made)
        try storage.rename(target, to: kept)
        do {
            try storage.rename(made, to: target)
        } catch {
            // What was moved away goes back.
            try? storage.rename(kept, to: target)
            throw error
        }
    }

    /// The name by which a store can be exchanged: where it is given as a symbolic link, as `.` or
    /// as `..`, the one that it has in its parent.
    ///
    /// - Throws: `usage` if it is a mount point, which no rename moves.
    static func exchangeableName(of store: String) throws -> String {
        var name = StagedDirectory.withoutSlash(store)
        var status = stat()
        let isLink = unsafe lstat(name, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
        let last = name.split(separator: "/").last ?? ""
        if isLink || last == "." || last == ".." { name = try resolved(name) }
        var above = stat()
        guard unsafe stat(name, &status) == 0,
            unsafe stat(StagedDirectory.parent(of: name), &above) == 0
        else {
            throw CommandFailure(
                .noInput, "cannot find \(name): \(systemMessage(errno)); check the path")
        }
        // The parent of the root is the root.
        guard status.st_dev == above.st_dev, status.st_ino != above.st_ino else {
            throw mountPoint(store)
        }
        return name
    }

    private static func resolved(_ path: String) throws -> String {
        guard let found = unsafe realpath(path, nil) else {
            throw CommandFailure(
                .noInput, "cannot find \(path): \(systemMessage(errno)); check the path")
        }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }

    private static func mountPoint(_ store: String) -> CommandFailure {
        CommandFailure(
            .usage,
            "\(store) is a mount point or a volume of its own, which cannot change its name; "
                + "repair it with --to another directory")
    }
}
