internal import CTidemark
internal import Glibc

/// The real operating system behind the door.
package struct SystemStorage: Storage {
    private let calls: SystemCalls

    /// - Parameter faults: what a test has the operating system do; nil outside of tests.
    package init(faults: (any SystemCallFaults)? = nil) {
        calls = SystemCalls(faults: faults)
    }

    package func createDirectory(_ path: String) throws(StoreError) {
        let result = calls.make(.mkdir, path) { unsafe mkdir(path, 0o755) }
        guard result != 0, errno != EEXIST else { return }
        throw .system("cannot create the directory", path: path)
    }

    package func listDirectory(_ path: String) throws(StoreError) -> [String] {
        guard let directory = unsafe openDirectory(path) else {
            throw .system("cannot list the directory", path: path)
        }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        errno = 0
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(
                    to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)
                ) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." {
                names.append(name)
            }
            errno = 0
        }
        guard errno == 0 else { throw .system("cannot list the directory", path: path) }
        return names
    }

    private func openDirectory(_ path: String) -> OpaquePointer? {
        while true {
            if !calls.isRefused(.opendir, path), let directory = unsafe opendir(path) {
                return unsafe directory
            }
            guard errno == EINTR else { return nil }
        }
    }

    package func openFile(_ path: String, _ mode: FileMode) throws(StoreError) -> any StorageFile {
        try SystemFile(path: path, mode: mode, calls: calls)
    }

    package func rename(_ source: String, to target: String) throws(StoreError) {
        let result = calls.make(.rename, source) { unsafe Glibc.rename(source, target) }
        guard result == 0 else {
            throw .system("cannot rename to \(target)", path: source)
        }
    }

    /// Counts as a ``SystemCall/rename`` to a test.
    package func exchange(
        _ first: String, with second: String
    ) throws(StoreError) -> Bool {
        let exchanging: UInt32 = 1 << 1  // RENAME_EXCHANGE
        let result = calls.make(.rename, first) {
            unsafe renameat2(AT_FDCWD, first, AT_FDCWD, second, exchanging)
        }
        guard result != 0 else { return true }
        switch errno {
        case ENOSYS, EINVAL, EOPNOTSUPP: return false
        default: throw .system("cannot exchange names with \(second)", path: first)
        }
    }

    package func link(_ source: String, to target: String) throws(StoreError) -> Bool {
        let result = calls.make(.link, source) { unsafe Glibc.link(source, target) }
        guard result != 0 else { return true }
        switch errno {
        // EPERM also stands for a file system without hard links and for a file that the kernel
        // lets only its owner link.
        case EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOENT: return false
        default: throw .system("cannot link to \(target)", path: source)
        }
    }

    package func remove(_ path: String) throws(StoreError) {
        let result = calls.make(.unlink, path) { unsafe unlink(path) }
        guard result == 0 || errno == ENOENT else {
            throw .system("cannot remove", path: path)
        }
    }

    package func place(of path: String) -> FilePlace? {
        var (number, made): (CUnsignedLongLong, CUnsignedLongLong) = (0, 0)
        guard unsafe tidemark_place(path, &number, &made) == 0 else { return nil }
        return FilePlace(number: number, made: made)
    }

    package func syncDirectory(_ path: String) throws(StoreError) {
        let descriptor = calls.make(.open, path) {
            unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard descriptor >= 0 else { throw .system("cannot open the directory", path: path) }
        defer { close(descriptor) }
        let result = calls.make(.fsync, path) { fsync(descriptor) }
        guard result == 0 else { throw .system("cannot sync the directory", path: path) }
    }

    package func lock(_ directory: String) throws(StoreError) -> any StorageLock {
        try SystemLock.take(directory, calls)
    }

    /// Whether a process has the lock of a directory. Touches no byte.
    /// - Throws: `inputOutput` if nobody can tell now.
    package func isLocked(_ directory: String) throws(StoreError) -> Bool {
        try SystemLock.isTaken(directory)
    }

    package func wallClockMilliseconds() -> UInt64 {
        var time = timespec()
        // The coarse clock ticks every few milliseconds and costs no system call; the counter of
        // the hybrid clock tells the writes of one tick apart.
        unsafe clock_gettime(CLOCK_REALTIME_COARSE, &time)
        return UInt64(max(0, time.tv_sec)) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
    }

    package func monotonicNanoseconds() -> UInt64 { MonotonicClock.nanoseconds() }

    package func randomUInt64() -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}

/// The writer's lock: `flock` on the directory itself, which no cleaner can remove and leave the
/// store in place. The file `LOCK` in it tells others the process id of the holder, as text.
///
/// Some file systems behind a network lend such locks only for files that are open for writing,
/// which a directory never is. There the file is what is locked, and ``isHeld`` looks whether it is
/// still the one that others would lock.
private final class SystemLock: StorageLock {
    private let path: String
    private let holderPath: String
    private let descriptor: Int32
    private let isOfFile: Bool

    private init(_ directory: String, descriptor: Int32, isOfFile: Bool) {
        path = isOfFile ? Self.holderPath(directory) : directory
        holderPath = Self.holderPath(directory)
        self.descriptor = descriptor
        self.isOfFile = isOfFile
    }

    deinit {
        if SystemFile.stands(descriptor, at: path) { unsafe truncate(holderPath, 0) }
        // Closing alone would leave it to a child that was forked and has not called exec yet.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    var isHeld: Bool { !isOfFile || SystemFile.stands(descriptor, at: path) }

    private static func holderPath(_ directory: String) -> String { "\(directory)/LOCK" }

    static func take(_ directory: String, _ calls: SystemCalls) throws(StoreError) -> SystemLock {
        var lock = try take(directory, O_RDONLY | O_DIRECTORY, calls, isOfFile: false)
        if lock == nil {
            lock = try take(directory, O_RDWR | O_CREAT, calls, isOfFile: true)
        }
        guard let lock else { throw .system("cannot lock", path: directory) }
        try noteHolder(holderPath(directory), calls)
        return lock
    }

    /// nil, with `errno` set, if the file system lends no locks for such a thing.
    private static func take(
        _ directory: String, _ flags: Int32, _ calls: SystemCalls, isOfFile: Bool
    ) throws(StoreError) -> SystemLock? {
        let path = isOfFile ? holderPath(directory) : directory
        let descriptor = calls.make(.open, path) { unsafe open(path, flags | O_CLOEXEC, 0o644) }
        guard descriptor >= 0 else { throw .system("cannot open for locking", path: path) }
        let result = calls.make(.flock, path) { flock(descriptor, LOCK_EX | LOCK_NB) }
        if result == 0 {
            return SystemLock(directory, descriptor: descriptor, isOfFile: isOfFile)
        }
        let failure = errno
        close(descriptor)
        errno = failure
        switch failure {
        case EWOULDBLOCK:
            throw StoreError(
                .locked,
                "the store is being written by \(holder(holderPath(directory))); close it there, "
                    + "or open read-only",
                location: StoreError.Location(path: directory))
        case EBADF, EINVAL, ENOSYS, EOPNOTSUPP:
            return nil
        default:
            throw .system("cannot lock", path: path)
        }
    }

    static func isTaken(_ directory: String) throws(StoreError) -> Bool {
        if try isTaken(directory, O_RDONLY | O_DIRECTORY) { return true }
        return try isTaken(holderPath(directory), O_RDONLY)
    }

    private static func isTaken(_ path: String, _ flags: Int32) throws(StoreError) -> Bool {
        let descriptor = unsafe open(path, flags | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno != ENOENT, errno != ENOTDIR else { return false }
            throw .system("cannot open to look at the lock", path: path)
        }
        // The lock is let go with the descriptor.
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    private static func noteHolder(_ path: String, _ calls: SystemCalls) throws(StoreError) {
        let descriptor = calls.make(.open, path) {
            unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        }
        guard descriptor >= 0 else { throw .system("cannot open the lock file", path: path) }
        defer { close(descriptor) }
        let text = Array(String(getpid()).utf8)
        let truncated = calls.make(.ftruncate, path) { ftruncate(descriptor, 0) }
        guard truncated == 0 else { throw .system("cannot empty the lock file", path: path) }
        var done = 0
        while done < text.count {
            let rest = Array(text[done...])
            let wanted = calls.count(.pwrite, path, of: rest.count)
            let written = calls.make(.pwrite, path) {
                unsafe pwrite(descriptor, rest, wanted, off_t(done))
            }
            guard written > 0 else {
                // Never seen; taking it for progress would be to try for ever.
                if written == 0 { errno = ENOSPC }
                throw .system("cannot write the process id", path: path)
            }
            done += written
        }
    }

    private static func holder(_ path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "another process" }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 32)
        let count = unsafe pread(descriptor, &text, text.count, 0)
        return count > 0
            ? "process \(String(decoding: text.prefix(count), as: UTF8.self))"
            : "another process"
    }
}

extension StoreError {
    /// The failure that `errno` holds, as a typed error.
    static func system(_ what: String, path: String, offset: UInt64? = nil) -> StoreError {
        let number = errno
        let reason = unsafe String(cString: strerror(number))
        let location = Location(path: path, offset: offset)
        if path.utf8.contains(0) {
            return StoreError(
                .invalidArgument, "\(what): the path has a byte 0, and no file has such a name",
                location: location, systemError: number)
        }
        switch number {
        case ENOSPC, EDQUOT:
            return StoreError(
                .diskFull, "\(what): \(reason); make room and reopen the store",
                location: location, systemError: number)
        case ENOENT, ENOTDIR:
            return StoreError(
                .notAStore, "\(what): \(reason); check the path", location: location,
                systemError: number)
        default:
            return StoreError(
                .inputOutput, "\(what): \(reason); \(remedy(for: number))", location: location,
                systemError: number)
        }
    }

    private static func remedy(for number: Int32) -> String {
        switch number {
        case EACCES, EPERM: "check the permissions"
        case EMFILE, ENFILE: "allow more open files and try again"
        case ENOMEM, EAGAIN: "make memory available and try again"
        default: "check the disk and the permissions"
        }
    }

    /// Whether this attempt failed and the bytes are not in doubt: the process may not read the
    /// file, or there was no descriptor, no memory, no key or no server for it. Such a failure is
    /// thrown, and never taken for damage or loss: another attempt may find everything whole.
    ///
    /// What the disk itself could not read is damage: `EIO`, and `EFAULT` or `EHWPOISON` of a page
    /// that is mapped. So is `ENODEV`, by which a directory in the place of a file refuses to be
    /// mapped, and `ETIMEDOUT`, by which a failing disk may refuse a sector each time.
    package var isOfEnvironment: Bool {
        guard code == .inputOutput, let systemError else { return false }
        switch systemError {
        case EACCES, EPERM, ENOKEY, EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN, EBUSY, EINTR, ENOLCK,
            ESTALE, ENOTCONN, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH:
            return true
        default: return false
        }
    }
}
