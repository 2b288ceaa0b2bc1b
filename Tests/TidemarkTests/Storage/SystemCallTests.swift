import Glibc
import Synchronization
import TestSupport
import Testing
import Tidemark

/// The real door to the operating system when calls are interrupted by signals, move less than they
/// were asked to, or fail: at each kind of call by itself.
@Suite("System calls")
struct SystemCallTests {
    @Test("A call that a signal interrupts is made again", arguments: SystemCall.allCases)
    func interrupted(call: SystemCall) throws {
        let door = try Door()
        door.faults.fail([call], with: EINTR, times: 3)
        if call.isRepeatable {
            try door.make(call)
            #expect(door.faults.failuresLeft == 0)
        } else {
            let error = expectError(.inputOutput) { try door.make(call) }
            #expect(error?.systemError == EINTR)
            #expect(door.faults.failuresLeft == 2, "it was made again")
            #expect(try Files.list(door.directory.path) == ["file"])
        }
    }

    @Test(
        "A call that fails is a typed error that names what it was made of",
        arguments: SystemCall.allCases, [EIO, ENOSPC])
    func failing(call: SystemCall, number: Int32) throws {
        let door = try Door()
        door.faults.fail([call], with: number)
        let error = expectError(number == ENOSPC ? .diskFull : .inputOutput) {
            try door.make(call)
        }
        #expect(error?.systemError == number)
        #expect(error?.location?.path.hasPrefix(door.directory.path) == true)
        #expect(door.faults.failuresLeft == 0)
        // It is not for the door to try what has failed once more.
        #expect(door.faults.count(of: call) == (call == .open ? 2 : 1))
    }

    @Test("What a read or write does not move at once it moves in parts")
    func parts() throws {
        let door = try Door()
        door.faults.interruptAndShorten()
        try door.make(.pread)
        try door.make(.pwrite)
        // 10,000 bytes by halves, each interrupted.
        #expect(door.faults.count(of: .pread) > 20 && door.faults.count(of: .pwrite) > 20)
        door.faults.rest()
        // A failure in the middle counts, too.
        door.faults.interruptAndShorten()
        door.faults.fail([.pwrite], with: EIO, after: 5)
        expectError(.inputOutput) { try door.make(.pwrite) }
    }

    @Test("The process id gets into the lock whole, in parts if it must")
    func lockInParts() throws {
        let door = try Door()
        let path = door.directory["LOCK"]
        door.faults.interruptAndShorten()
        let lock = try door.storage.lock(door.directory.path)
        defer { withExtendedLifetime(lock) {} }
        let text = bytes(String(getpid()))
        #expect(try Files.read(path) == text)
        // Each part is interrupted once.
        #expect(door.faults.count(of: .pwrite) >= (text.count > 1 ? 4 : 2))
    }

    /// The system tells an open file only once that something could not be written, by whichever
    /// call asks first (errseq, Linux 4.13).
    @Test(
        "After one call that tells of a failure to write, no sync succeeds",
        arguments: [EIO, ENOSPC])
    func failureToldOnce(number: Int32) throws {
        let ways: [(SystemCall, (any StorageFile) throws -> Void)] = [
            (.fdatasync, { try $0.sync() }),
            (.syncFileRange, { _ = try $0.writeBack(0..<10_000, isWaiting: true) }),
            (.syncFileRange, { try require($0.mayHaveLostWrites(), "nothing is doubted") }),
        ]
        for (call, ask) in ways {
            let door = try Door()
            door.faults.fail([call], with: number)
            try? ask(door.file)
            #expect(door.faults.failuresLeft == 0)
            for _ in 0..<2 {
                let error = expectError(number == ENOSPC ? .diskFull : .inputOutput) {
                    try door.file.sync()
                }
                #expect(error?.systemError == number)
                #expect(door.file.mayHaveLostWrites())
            }
        }
    }

    @Test("Where the system knows of no writing ahead, nothing is taken for a failure of the disk")
    func noWritingAhead() throws {
        let door = try Door()
        door.faults.fail([.syncFileRange], with: ENOSYS, times: 2)
        #expect(try !door.file.writeBack(0..<10_000, isWaiting: true))
        #expect(door.file.mayHaveLostWrites(), "nobody can tell")
        try door.file.sync()
    }

    @Test("Where the kernel cannot populate a mapping, the same pages are read")
    func olderKernel() throws {
        let door = try Door()
        _ = try unsafe door.file.mapForReading()
        door.faults.fail([.madvise], with: EINVAL)
        try door.file.populate(offset: 5_000, count: 5_000)
        #expect(door.faults.failuresLeft == 0 && door.faults.count(of: .pread) == 1)
        door.faults.fail([.madvise, .pread], with: EINVAL, times: 2)
        let error = expectError(.inputOutput) {
            try door.file.populate(offset: 5_000, count: 5_000)
        }
        #expect(error?.systemError == EINVAL)
    }

    /// Property: an open that waits is not ended by a signal.
    ///
    ///     reader      open (waits for a writer) ------ EINTR -- open again ---------- done
    ///     signaller            signal, signal, ...              opens for writing
    @Test("A real signal ends no open that waits")
    func realSignal() throws {
        let directory = try TemporaryDirectory()
        let path = directory["fifo"]
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let faults = PlannedFaults()
        let storage = SystemStorage(faults: faults)
        let reader = Mutex<pthread_t?>(nil)
        let isOver = Atomic<Bool>(false)
        try runOnThreads([
            {
                defer { isOver.store(true, ordering: .releasing) }
                // The threads that run tests block signals, and a thread begins as its maker is.
                var signals = sigset_t()
                unsafe sigemptyset(&signals)
                unsafe sigaddset(&signals, SIGURG)
                #expect(unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil) == 0)
                reader.withLock { $0 = pthread_self() }
                _ = try storage.openFile(path, .read)
            },
            {
                for _ in 0..<5_000
                where !isOver.load(ordering: .acquiring) && faults.count(of: .open) < 2 {
                    // A handler for one time, and without SA_RESTART; after that, and in all other
                    // processes, this signal is ignored.
                    _ = __sysv_signal(SIGURG) { _ in }
                    if let thread = reader.withLock({ $0 }) { pthread_kill(thread, SIGURG) }
                    usleep(1_000)
                }
                // A writer is let in only while the reader waits, not between two of its opens.
                var writer: Int32 = -1
                for _ in 0..<5_000 where writer < 0 && !isOver.load(ordering: .acquiring) {
                    writer = unsafe open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
                    if writer < 0 { usleep(1_000) }
                }
                while writer >= 0, !isOver.load(ordering: .acquiring) { usleep(1_000) }
                if writer >= 0 { close(writer) }
            },
        ])
        #expect(faults.count(of: .open) > 1, "no signal came while the open waited")
    }
}

/// A file of some pages behind the real door.
private struct Door {
    let directory: TemporaryDirectory
    let faults = PlannedFaults()
    let storage: SystemStorage
    let file: any StorageFile
    private let content: [UInt8]

    init() throws {
        var random = SeededGenerator(Seed(4))
        content = random.bytes(10_000)
        directory = try TemporaryDirectory()
        storage = SystemStorage(faults: faults)
        try Files.write(content, to: directory["file"])
        file = try storage.openFile(directory["file"], .readWrite)
    }

    /// Does what needs a call of that kind, and checks that it was done.
    func make(_ call: SystemCall) throws {
        let path = directory["file"]
        switch call {
        case .open: _ = try storage.openFile(path, .read)
        case .opendir: try check(try storage.listDirectory(directory.path) == ["file"], call)
        case .fstat: try check(try file.size() == UInt64(content.count), call)
        case .pread: try check(try read() == content, call)
        case .pwrite:
            let reversed = Array(content.reversed())
            try unsafe reversed.withUnsafeBytes { try unsafe file.write($0, at: 0) }
            try check(try Files.read(path) == reversed, call)
        case .fdatasync: try file.sync()
        case .syncFileRange:
            try check(try file.writeBack(0..<10_000, isWaiting: true), call)
        case .fsync: try storage.syncDirectory(directory.path)
        case .ftruncate:
            try file.truncate(to: 10)
            try check(try Files.read(path).count == 10, call)
        case .fallocate:
            try file.reserve(20_000)
            try check(try Files.read(path).count == 20_000, call)
        case .madvise:
            _ = try unsafe file.mapForReading()
            try file.populate(offset: 0, count: content.count)
        case .mkdir:
            try storage.createDirectory(directory["new"])
            try check(Files.exists(directory["new"]), call)
        case .unlink:
            try storage.remove(path)
            try check(!Files.exists(path), call)
        case .rename:
            try storage.rename(path, to: directory["other"])
            try check(try Files.list(directory.path) == ["other"], call)
        case .link:
            try check(try storage.link(path, to: directory["other"]), call)
            try check(try Files.list(directory.path) == ["file", "other"], call)
        case .flock: _ = try storage.lock(directory.path)
        }
    }

    private func read() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: content.count)
        try unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(into: $0, at: 0) }
        return bytes
    }

    private func check(_ condition: Bool, _ call: SystemCall) throws {
        try require(condition, "\(call.rawValue) was not done")
    }
}
