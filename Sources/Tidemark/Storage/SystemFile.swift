internal import CTidemark
internal import Glibc
internal import Synchronization

/// A file of the operating system, by descriptor.
@safe
final class SystemFile: StorageFile, @unchecked Sendable {
    // Unchecked: `mapping` is set by `map`, and `descriptor` given back, by calls that the owner
    // makes before sharing the file; the system calls on it are made for many threads.
    let path: String
    /// -1 if only the mapping is left.
    private var descriptor: Int32
    private var mapping: UnsafeMutableRawBufferPointer?
    private let calls: SystemCalls
    /// The `errno` of the first failure to write back that the system told of, or 0. It tells an
    /// open file of each only once, by whichever call asks first.
    private let failureOfWriting = Atomic<Int32>(0)

    init(path: String, mode: FileMode, calls: SystemCalls) throws(StoreError) {
        self.path = path
        self.calls = calls
        unsafe mapping = nil
        let flags: Int32 =
            switch mode {
            case .read: O_RDONLY
            case .create: O_RDWR | O_CREAT | O_TRUNC
            case .readWrite: O_RDWR
            }
        descriptor = calls.make(.open, path) { unsafe open(path, flags | O_CLOEXEC, 0o644) }
        guard descriptor >= 0 else { throw .system("cannot open the file", path: path) }
    }

    deinit {
        if let mapping = unsafe mapping {
            unsafe munmap(mapping.baseAddress!, mapping.count)
        }
        if descriptor >= 0 { close(descriptor) }
    }

    func size() throws(StoreError) -> UInt64 {
        if descriptor < 0, let mapping = unsafe mapping { return UInt64(mapping.count) }
        var status = stat()
        let result = calls.make(.fstat, path) { unsafe fstat(descriptor, &status) }
        guard result == 0 else {
            throw .system("cannot tell the size", path: path)
        }
        return UInt64(status.st_size)
    }

    func stands(at path: String) -> Bool { SystemFile.stands(descriptor, at: path) }

    /// Whether a path leads to what a descriptor has open. While it is open, no other file gets its
    /// number.
    static func stands(_ descriptor: Int32, at path: String) -> Bool {
        var (ours, found) = (stat(), stat())
        guard unsafe fstat(descriptor, &ours) == 0, unsafe stat(path, &found) == 0 else {
            return false
        }
        return ours.st_dev == found.st_dev && ours.st_ino == found.st_ino
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(StoreError) {
        if descriptor < 0 { return unsafe try readMapping(into: buffer, at: offset) }
        var done = 0
        while done < buffer.count {
            let wanted = calls.count(.pread, path, of: buffer.count - done)
            let count = calls.make(.pread, path) {
                unsafe pread(
                    descriptor, buffer.baseAddress! + done, wanted, off_t(offset) + off_t(done))
            }
            if count > 0 {
                done += count
            } else if count == 0 {
                throw StoreError(
                    .corruption,
                    "the file ends \(buffer.count - done) bytes too early; restore it or repair",
                    location: StoreError.Location(path: path, offset: offset + UInt64(done)))
            } else {
                throw StoreError.system(
                    "cannot read", path: path, offset: offset + UInt64(done)
                ).ofReading()
            }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(StoreError) {
        var done = 0
        while done < bytes.count {
            let wanted = calls.count(.pwrite, path, of: bytes.count - done)
            let count = calls.make(.pwrite, path) {
                unsafe pwrite(
                    descriptor, bytes.baseAddress! + done, wanted, off_t(offset) + off_t(done))
            }
            if count > 0 {
                done += count
            } else if count == 0 {
                // Never seen; taking it for progress would be to try for ever.
                errno = ENOSPC
                throw .system("cannot write", path: path, offset: offset + UInt64(done))
            } else {
                throw .system("cannot write", path: path, offset: offset + UInt64(done))
            }
        }
    }

    func sync() throws(StoreError) {
        let result = calls.make(.fdatasync, path) { fdatasync(descriptor) }
        if result != 0 { noteFailureOfWriting() }
        let failure = failureOfWriting.load(ordering: .acquiring)
        guard failure == 0 else {
            errno = failure
            throw .system("cannot sync", path: path)
        }
    }

    func writeBack(_ range: Range<UInt64>, isWaiting: Bool) throws(StoreError) -> Bool {
        // Waiting: for what is on its way already, then for what is begun now.
        let flags: UInt32 = isWaiting ? 1 | 2 | 4 : 2
        switch syncFileRange(range, flags) {
        case .done: return true
        case .unsupported: return false
        case .failed: throw .system("cannot write back", path: path, offset: range.lowerBound)
        }
    }

    /// A page that the kernel could not write stays in memory until its write has ended, and by
    /// then the failure is on record for all who have the file open. So what was looked at before a
    /// question that is answered with no was there.
    func mayHaveLostWrites() -> Bool {
        guard descriptor >= 0 else { return true }
        // To wait for the first byte is enough to be told of all that failed, and waits for nothing
        // else that is on its way.
        guard syncFileRange(0..<1, 1) == .done, tidemark_keeps_pages_itself(descriptor) != 0
        else { return true }
        return failureOfWriting.load(ordering: .acquiring) != 0
    }

    private enum RangeSync {
        case done, failed, unsupported
    }

    private func syncFileRange(_ range: Range<UInt64>, _ flags: UInt32) -> RangeSync {
        let result = calls.make(.syncFileRange, path) {
            sync_file_range(descriptor, off_t(range.lowerBound), off_t(range.count), flags)
        }
        guard result != 0 else { return .done }
        // Of the call, or of what a sandbox makes of it, and not of the disk.
        let refusals = [ENOSYS, EINVAL, EOPNOTSUPP, ESPIPE, EPERM]
        guard !refusals.contains(errno) else { return .unsupported }
        noteFailureOfWriting()
        return .failed
    }

    private func noteFailureOfWriting() {
        _ = failureOfWriting.compareExchange(
            expected: 0, desired: errno, ordering: .acquiringAndReleasing)
    }

    func truncate(to size: UInt64) throws(StoreError) {
        let result = calls.make(.ftruncate, path) { ftruncate(descriptor, off_t(size)) }
        guard result == 0 else { throw .system("cannot set the size", path: path) }
    }

    func map(size: Int, reserving: Int) throws(StoreError) -> UnsafeMutableRawBufferPointer {
        try reserve(reserving)
        let region = unsafe try map(size, PROT_READ | PROT_WRITE)
        return unsafe region
    }

    func reserve(_ size: Int) throws(StoreError) {
        let result = calls.make(.fallocate, path) { () -> Int32 in
            // It gives the number in place of setting it.
            let failure = posix_fallocate(descriptor, 0, off_t(size))
            guard failure != 0 else { return 0 }
            errno = failure
            return -1
        }
        guard result == 0 else { throw .system("cannot reserve \(size) bytes", path: path) }
    }

    func mapForReading() throws(StoreError) -> UnsafeRawBufferPointer {
        // Whoever tries again after it failed to read something does not map once more.
        if let mapping = unsafe mapping { return UnsafeRawBufferPointer(mapping) }
        let size = Int(try size())
        guard size > 0 else { return unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
        return unsafe UnsafeRawBufferPointer(try map(size, PROT_READ))
    }

    /// `MADV_POPULATE_READ`, which older headers do not have.
    private static let populateForReading: Int32 = 22

    func populate(offset: Int, count: Int) throws(StoreError) {
        guard let region = unsafe mapping, count > 0 else { return }
        let start = offset & ~4_095
        let end = min(offset + count, region.count)
        let result = calls.make(.madvise, path) {
            unsafe madvise(region.baseAddress! + start, end - start, Self.populateForReading)
        }
        guard result != 0 else { return }
        guard errno == EINVAL else {
            throw StoreError.system("cannot read", path: path, offset: UInt64(start)).ofReading()
        }
        // A kernel older than 5.14: reading the same pages says the same.
        let scratch = UnsafeMutableRawBufferPointer.allocate(
            byteCount: end - start, alignment: 16)
        defer { unsafe scratch.deallocate() }
        try unsafe read(into: scratch, at: UInt64(start))
    }

    func populateForWriting(offset: Int, count: Int) {
        guard let region = unsafe mapping else { return }
        let start = offset & ~4_095
        let end = min(offset + count, region.count)
        guard start < end else { return }
        unsafe Pages.populate(region.baseAddress! + start, byteCount: end - start)
    }

    func release(offset: Int, count: Int) {
        guard let region = unsafe mapping else { return }
        // Whole pages only. What cannot be let go stays, and that is all.
        let start = Pages.roundedUp(offset)
        let end = min(offset + count, region.count) & ~4_095
        guard start < end else { return }
        _ = unsafe madvise(region.baseAddress! + start, end - start, MADV_DONTNEED)
    }

    func releaseDescriptor() throws(StoreError) {
        guard let region = unsafe mapping, descriptor >= 0 else { return }
        // A kernel that cannot populate leaves that to reads, for which the descriptor is needed.
        // One that can says of a page that the disk cannot read something else than EINVAL.
        let result = unsafe madvise(region.baseAddress!, 1, Self.populateForReading)
        guard result == 0 || errno != EINVAL else { return }
        close(descriptor)
        descriptor = -1
    }

    private func readMapping(
        into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(StoreError) {
        guard let region = unsafe mapping, offset <= UInt64(region.count),
            buffer.count <= region.count - Int(offset)
        else {
            throw StoreError(
                .corruption, "the file ends too early; restore it or repair",
                location: StoreError.Location(path: path, offset: offset))
        }
        try populate(offset: Int(offset), count: buffer.count)
        let range = Int(offset)..<(Int(offset) + buffer.count)
        unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: region[range]))
    }

    private func map(
        _ size: Int, _ protection: Int32
    ) throws(StoreError) -> UnsafeMutableRawBufferPointer {
        let address = unsafe mmap(nil, size, protection, MAP_SHARED, descriptor, 0)
        guard let address = unsafe address, unsafe address != MAP_FAILED else {
            throw .system("cannot map \(size) bytes", path: path)
        }
        let region = unsafe UnsafeMutableRawBufferPointer(start: address, count: size)
        unsafe mapping = region
        return unsafe region
    }

    func detachMapping(count: Int) throws(StoreError) {
        guard let region = unsafe mapping, count > 0 else { return }
        // What the disk cannot read is an error here, and not a signal below.
        try populate(offset: 0, count: count)
        // The mapping has whole pages, too.
        let size = Pages.roundedUp(min(count, region.count))
        let copy = unsafe mmap(
            nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let copy = unsafe copy, unsafe copy != MAP_FAILED else {
            throw .system("cannot map \(size) bytes", path: path)
        }
        unsafe copy.copyMemory(from: region.baseAddress!, byteCount: min(count, region.count))
        guard unsafe tidemark_move_mapping(copy, size, region.baseAddress!) == 0 else {
            let failure = errno
            unsafe munmap(copy, size)
            errno = failure
            throw .system("cannot move a mapping", path: path)
        }
    }

    func syncMapping(offset: Int, count: Int) throws(StoreError) {
        // fdatasync writes back what was stored through a shared mapping, too, and reports what
        // an earlier writeback could not write, which msync of a range may miss.
        try sync()
    }
}
