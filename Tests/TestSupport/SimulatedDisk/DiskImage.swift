import Glibc
import Tidemark

/// What becomes of everything that was written but not synced when the power fails.
package enum Survival: Hashable, Sendable {
    case nothing
    case everything
    /// Each page, size and directory entry by itself, with this probability in percent.
    case chance(percent: Int)

    /// One of the three, chosen evenly; a chance of any height.
    package static func drawn(using random: inout SeededGenerator) -> Survival {
        switch random.below(4) {
        case 0: .nothing
        case 1: .everything
        default: .chance(percent: 1 + random.below(99))
        }
    }
}

/// The names on a simulated disk, live and durable, and what lies between the two.
struct DiskImage {
    enum Change {
        case createDirectory(String)
        case link(String, SimulatedInode)
        case unlink(String)
        case rename(String, to: String, SimulatedInode)

        /// The directory whose sync makes the change durable. A rename stays within one.
        var directory: String {
            switch self {
            case .createDirectory(let path), .link(let path, _), .unlink(let path),
                .rename(_, to: let path, _):
                DiskImage.parent(of: path)
            }
        }
    }

    struct Names {
        var directories: Set<String> = ["/"]
        var files: [String: SimulatedInode] = [:]

        mutating func apply(_ change: Change) {
            switch change {
            case .createDirectory(let path): directories.insert(path)
            case .link(let path, let inode): files[path] = inode
            case .unlink(let path): files[path] = nil
            case .rename(let source, to: let target, let inode):
                // Of a rename that survived without the creation before it, the source is missing.
                files[source] = nil
                files[target] = inode
            }
        }
    }

    private var live = Names()
    private var durable = Names()
    /// Changes of names that are live and not yet durable, in their order.
    private var pending: [Change] = []
    /// Of the file that is made next.
    private var nextPlace = FilePlace(number: 1, made: 0)

    var directories: Set<String> { live.directories }
    var files: [String: SimulatedInode] { live.files }

    /// A file with several names counts once.
    var fileBytes: Int {
        var seen: Set<ObjectIdentifier> = []
        return live.files.values.reduce(0) { sum, file in
            seen.insert(ObjectIdentifier(file)).inserted ? sum + file.size : sum
        }
    }

    static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    func names(in directory: String) -> [String] {
        let prefix = directory == "/" ? "/" : directory + "/"
        let paths = live.directories.filter { $0 != "/" } + Array(live.files.keys)
        return paths.filter { Self.parent(of: $0) == directory }
            .map { String($0.dropFirst(prefix.count)) }
    }

    func requireDirectory(_ path: String, _ kind: StorageCall.Kind) throws(StoreError) {
        if live.directories.contains(path) { return }
        throw StorageCall.failure(kind, path, live.files[path] == nil ? ENOENT : ENOTDIR)
    }

    mutating func change(_ change: Change) {
        live.apply(change)
        pending.append(change)
    }

    /// A new file, or the one that is there, cut to nothing.
    mutating func createFile(_ path: String) {
        if let file = live.files[path] {
            file.truncate(to: 0)
        } else {
            change(.link(path, SimulatedInode(at: drawPlace())))
        }
    }

    private mutating func drawPlace() -> FilePlace {
        defer { nextPlace = FilePlace(number: nextPlace.number + 1, made: nextPlace.made) }
        return nextPlace
    }

    mutating func setContents(of path: String, to bytes: [UInt8]) {
        let inode = SimulatedInode(bytes, at: drawPlace())
        live.files[path] = inode
        durable.files[path] = inode
        durable.directories.formUnion(live.directories)
    }

    mutating func syncDirectory(_ directory: String) {
        for change in pending where change.directory == directory { durable.apply(change) }
        pending.removeAll { $0.directory == directory }
    }

    /// The same disk once more, with as much of it durable.
    ///
    /// - Parameter time: when all of its files were copied, if they were; no other copy has it.
    func copy(madeAt time: UInt64? = nil) -> DiskImage {
        var copies: [ObjectIdentifier: SimulatedInode] = [:]
        func copied(_ inode: SimulatedInode) -> SimulatedInode {
            if let known = copies[ObjectIdentifier(inode)] { return known }
            let made = inode.copy(at: time.map { inode.place.copied(at: $0) })
            copies[ObjectIdentifier(inode)] = made
            return made
        }
        var copy = self
        copy.nextPlace = time.map { nextPlace.copied(at: $0) } ?? nextPlace
        copy.live.files = live.files.mapValues(copied)
        copy.durable.files = durable.files.mapValues(copied)
        copy.pending = pending.map { change in
            switch change {
            case .createDirectory, .unlink: change
            case .link(let path, let inode): .link(path, copied(inode))
            case .rename(let source, let target, let inode):
                .rename(source, to: target, copied(inode))
            }
        }
        return copy
    }

    func afterPowerLoss(_ survival: Survival, using random: inout SeededGenerator) -> DiskImage {
        var names = durable
        for change in pending {
            let survives =
                switch survival {
                case .nothing: false
                case .everything: true
                case .chance(let percent): random.below(100) < percent
                }
            if survives { names.apply(change) }
        }
        var after = DiskImage()
        after.nextPlace = nextPlace
        after.live.directories = names.directories.filter { names.reaches($0) }
        for path in names.files.keys.sorted() where names.reaches(Self.parent(of: path)) {
            after.live.files[path] = names.files[path]?.afterPowerLoss(survival, using: &random)
        }
        after.durable = after.live
        return after
    }
}

extension DiskImage.Names {
    /// Whether the directory and all above it are there.
    fileprivate func reaches(_ directory: String) -> Bool {
        guard directories.contains(directory) else { return false }
        return directory == "/" || reaches(DiskImage.parent(of: directory))
    }
}

extension FilePlace {
    /// Of a copy that was made at a time.
    fileprivate func copied(at time: UInt64) -> FilePlace { FilePlace(number: number, made: time) }
}
