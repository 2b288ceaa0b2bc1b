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

    package func syncDirectory(_ path: String) throws(StoreError) {
        let descriptor = calls.make(.open, path) {
            unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard descriptor >= 0 else { throw .system("cannot open the directory", path: path) }
        defer { close(descriptor) }
        let result = calls.make(.fsync, path) { fsync(descriptor) }
        guard result == 0 else { throw .system("cannot sync the directory", path: path) }
    }

    package func lock(_ path: String) throws(StoreError) -> any AnyObject & Sendable {
        try SystemLock.take(path, calls)
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

/// The writer's lock: `flock` on a file that also holds the process id of its holder, as text.
private final class SystemLock: Sendable {
    private let descriptor: Int32

    private init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        ftruncate(descriptor, 0)
        // Closing alone would leave it to a child that was forked and has not called exec yet.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    static func take(_ path: String, _ calls: SystemCalls) throws(StoreError) -> SystemLock {
        let descriptor = calls.make(.open, path) {
            unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        }
        guard descriptor >= 0 else { throw .system("cannot open the lock file", path: path) }
        let result = calls.make(.flock, path) { flock(descriptor, LOCK_EX | LOCK_NB) }
        guard result == 0 else {
            let failure = errno
            let holder = holder(descriptor)
            close(descriptor)
            guard failure == EWOULDBLOCK else {
                errno = failure
                throw .system("cannot lock", path: path)
            }
            throw StoreError(
                .locked,
                "the store is being written by process \(holder); close it there, or open "
                    + "read-only",
                location: StoreError.Location(path: path))
        }
        let lock = SystemLock(descriptor: descriptor)
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
        return lock
    }

    private static func holder(_ descriptor: Int32) -> String {
        var text = [UInt8](repeating: 0, count: 32)
        let count = unsafe pread(descriptor, &text, text.count, 0)
        return count > 0 ? String(decoding: text.prefix(count), as: UTF8.self) : "unknown"
    }
}

extension StoreError {
    /// The failure that `errno` holds, as a typed error.
    static func system(_ what: String, path: String, offset: UInt64? = nil) -> StoreError {
        let number = errno
        let reason = unsafe String(cString: strerror(number))
        let location = Location(path: path, offset: offset)
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
                .inputOutput, "\(what): \(reason); check the disk and the permissions",
                location: location, systemError: number)
        }
    }
}
