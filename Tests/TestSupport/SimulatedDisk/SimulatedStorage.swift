import Glibc
import Synchronization
package import Tidemark

/// A disk in memory that can lose its power.
///
/// It holds two images. The *live* one is what the running program sees: every write, rename and
/// store into a mapping at once. The *durable* one is what was synced. ``afterPowerLoss(_:using:)``
/// makes the disk that comes up again: of everything live but not durable, each page of 4 KiB and
/// each directory entry survives or does not, independently, because nothing promises their order.
///
/// What it promises about durability is what POSIX promises and no more:
/// - `sync` of a file covers its bytes and its size, not its name;
/// - `syncMapping` covers the pages of the range, and the size up to their end;
/// - a creation, rename or removal is durable after `syncDirectory` of its directory;
/// - anything may become durable earlier than asked (see ``writebackOneIn``).
///
/// It also fails calls on request (``faults``), has bad sectors (``spoil(_:of:)``), knows a
/// capacity, keeps a trace, and has a clock and randomness that a test sets. Several threads may
/// use it; each call is atomic.
package final class SimulatedStorage: Storage {
    struct State {
        var image = DiskImage()
        var lockedPaths: Set<String> = []
        var faults: [StorageFault] = []
        var callCount = 0
        var trace: [StorageCall] = []
        var isTracing = false
        var capacityBytes: Int?
        var clockMilliseconds: UInt64 = 1_790_000_000_000
        var random: SeededGenerator
        var writebackOneIn = 0
        var canLink = true
        var tellsPlaces = true
        var observer: (@Sendable (StorageCall) -> Void)?
        var observerBefore: (@Sendable (StorageCall) -> Void)?
        var observesReads = false
    }

    let state: Mutex<State>

    /// An empty disk with nothing but "/".
    package init(seed: Seed) {
        state = Mutex(State(random: SeededGenerator(seed)))
    }

    init(image: DiskImage, seed: Seed, like other: borrowing State) {
        var state = State(random: SeededGenerator(seed))
        state.image = image
        state.clockMilliseconds = other.clockMilliseconds
        state.tellsPlaces = other.tellsPlaces
        self.state = Mutex(state)
    }

    // MARK: The test's side

    /// The disk as it comes up after the power failed now. This one goes on as if nothing happened.
    package func afterPowerLoss(
        _ survival: Survival, using random: inout SeededGenerator
    ) -> SimulatedStorage {
        var choices = random.split()
        let seed = Seed(random.next())
        return state.withLock { state in
            SimulatedStorage(
                image: state.image.afterPowerLoss(survival, using: &choices), seed: seed,
                like: state)
        }
    }

    /// The disk as the next process finds it after this one was killed: with everything written.
    package func afterProcessEnd(using random: inout SeededGenerator) -> SimulatedStorage {
        afterPowerLoss(.everything, using: &random)
    }

    /// The disk as the next process finds it after this one was killed now, while the machine runs
    /// on: with everything written, and what was not durable still to be lost with the power.
    package func afterKill(using random: inout SeededGenerator) -> SimulatedStorage {
        let seed = Seed(random.next())
        return state.withLock { state in
            SimulatedStorage(
                image: state.image.copy(), seed: seed, like: state)
        }
    }

    /// Another disk, onto which all files of this one were copied, as by a program for backups:
    /// with everything that was written, and all of it durable.
    package func withCopiedFiles(using random: inout SeededGenerator) -> SimulatedStorage {
        let time = random.next()
        let whole = afterProcessEnd(using: &random)
        whole.state.withLock { $0.image = $0.image.copy(madeAt: time) }
        return whole
    }

    /// Faults still to come; each is looked for in this order.
    package var faults: [StorageFault] {
        get { state.withLock { $0.faults } }
        set { state.withLock { $0.faults = newValue } }
    }

    /// How many bytes all files may have together; nil: any number.
    package var capacityBytes: Int? {
        get { state.withLock { $0.capacityBytes } }
        set { state.withLock { $0.capacityBytes = newValue } }
    }

    /// Once in so many calls on average, half of all unsynced pages become durable by themselves,
    /// as writeback does at any time it likes. 0: never.
    package var writebackOneIn: Int {
        get { state.withLock { $0.writebackOneIn } }
        set { state.withLock { $0.writebackOneIn = newValue } }
    }

    /// Whether a file may have two names, as on most file systems.
    package var canLink: Bool {
        get { state.withLock { $0.canLink } }
        set { state.withLock { $0.canLink = newValue } }
    }

    /// Whether a file can be told from its copies.
    package var tellsPlaces: Bool {
        get { state.withLock { $0.tellsPlaces } }
        set { state.withLock { $0.tellsPlaces = newValue } }
    }

    package var clockMilliseconds: UInt64 {
        get { state.withLock { $0.clockMilliseconds } }
        set { state.withLock { $0.clockMilliseconds = newValue } }
    }

    /// Called after each call that may have changed the disk, on the thread of the call, when its
    /// effect is visible. Set it before the storage is used.
    ///
    /// - Parameter includingReads: whether to call it after all other calls, too.
    package func observe(
        includingReads: Bool = false, _ observer: (@Sendable (StorageCall) -> Void)?
    ) {
        state.withLock { state in
            state.observer = observer
            state.observerBefore = nil
            state.observesReads = includingReads
        }
    }

    /// Also before each such call: what was stored into a mapping since the call before is there,
    /// and what the call will do is not.
    package func observe(
        before: @escaping @Sendable (StorageCall) -> Void,
        after: @escaping @Sendable (StorageCall) -> Void
    ) {
        state.withLock { state in
            state.observer = after
            state.observerBefore = before
            state.observesReads = false
        }
    }

    /// The number of calls so far, failed ones included.
    package var callCount: Int { state.withLock { $0.callCount } }

    package func startTracing() {
        state.withLock { state in
            state.trace = []
            state.isTracing = true
        }
    }

    package var trace: [StorageCall] { state.withLock { $0.trace } }

    package var fileBytes: Int { state.withLock { $0.image.fileBytes } }

    /// The live bytes of a file; nil if there is none.
    package func contents(of path: String) -> [UInt8]? {
        state.withLock { $0.image.files[path]?.liveBytes }
    }

    /// Changes a file behind the store's back, durably.
    package func setContents(of path: String, to bytes: [UInt8]) {
        state.withLock { $0.image.setContents(of: path, to: bytes) }
    }

    /// From now on the disk cannot read the pages of 4 KiB in which these bytes of a file lie: an
    /// error for whoever asks for any of them, and garbage for whoever does not ask.
    package func spoil(_ range: Range<Int>, of path: String) {
        state.withLock { $0.image.files[path]?.spoil(range) }
    }

    /// Lets go of all pages of a file that are not durable, as a kernel may after it could not
    /// write them: from now on the file reads as it is on the disk.
    package func forgetUndurablePages(of path: String) {
        state.withLock { $0.image.files[path]?.forgetUndurablePages() }
    }

    // MARK: The store's side

    package func createDirectory(_ path: String) throws(StoreError) {
        try call(.createDirectory, path) { state throws(StoreError) in
            guard !state.image.directories.contains(path) else { return }
            try state.image.requireDirectory(DiskImage.parent(of: path), .createDirectory)
            state.image.change(.createDirectory(path))
        }
    }

    package func listDirectory(_ path: String) throws(StoreError) -> [String] {
        try call(.listDirectory, path) { state throws(StoreError) in
            try state.image.requireDirectory(path, .listDirectory)
            return state.image.names(in: path)
        }
    }

    package func openFile(
        _ path: String, _ mode: FileMode
    ) throws(StoreError) -> any StorageFile {
        try call(.openFile, path) { state throws(StoreError) in
            try state.image.requireDirectory(DiskImage.parent(of: path), .openFile)
            if state.image.directories.contains(path) {
                throw StorageCall.failure(.openFile, path, EISDIR)
            }
            if mode == .create { state.image.createFile(path) }
            guard let file = state.image.files[path] else {
                throw StorageCall.failure(.openFile, path, ENOENT)
            }
            return SimulatedFile(path: path, inode: file, storage: self)
        }
    }

    package func rename(_ source: String, to target: String) throws(StoreError) {
        try call(.rename, source) { state throws(StoreError) in
            guard let file = state.image.files[source] else {
                throw StorageCall.failure(.rename, source, ENOENT)
            }
            state.image.change(.rename(source, to: target, file))
        }
    }

    package func link(_ source: String, to target: String) throws(StoreError) -> Bool {
        try call(.link, source) { state throws(StoreError) in
            try state.image.requireDirectory(DiskImage.parent(of: target), .link)
            guard state.canLink, let file = state.image.files[source] else { return false }
            guard state.image.files[target] == nil else {
                throw StorageCall.failure(.link, target, EEXIST)
            }
            state.image.change(.link(target, file))
            return true
        }
    }

    package func remove(_ path: String) throws(StoreError) {
        try call(.remove, path) { state throws(StoreError) in
            if state.image.files[path] != nil { state.image.change(.unlink(path)) }
        }
    }

    package func place(of path: String) -> FilePlace? {
        state.withLock { $0.tellsPlaces ? $0.image.files[path]?.place : nil }
    }

    package func syncDirectory(_ path: String) throws(StoreError) {
        try call(.syncDirectory, path) { state throws(StoreError) in
            try state.image.requireDirectory(path, .syncDirectory)
            state.image.syncDirectory(path)
        }
    }

    package func lock(_ directory: String) throws(StoreError) -> any StorageLock {
        let path = directory == "/" ? "/LOCK" : "\(directory)/LOCK"
        return try call(.lock, path) { state throws(StoreError) in
            try state.image.requireDirectory(directory, .lock)
            guard state.lockedPaths.insert(directory).inserted else {
                throw StoreError(
                    .locked, "the store is in use by process \(getpid()); close it there",
                    location: StoreError.Location(path: directory))
            }
            if state.image.files[path] == nil { state.image.createFile(path) }
            return SimulatedLock(path: directory, storage: self)
        }
    }

    package func wallClockMilliseconds() -> UInt64 {
        clockMilliseconds
    }

    package func randomUInt64() -> UInt64 {
        state.withLock { $0.random.next() }
    }

    /// Counts the call, lets it fail if a fault says so, and tells the observer of its effect.
    func call<Result>(
        _ kind: StorageCall.Kind, _ path: String, offset: UInt64 = 0, count: Int = 0,
        short: (inout State) -> Void = { _ in },
        _ body: (inout State) throws(StoreError) -> sending Result
    ) throws(StoreError) -> sending Result {
        if kind.changesDisk, let before = state.withLock({ $0.observerBefore }) {
            let number = callCount + 1
            before(
                StorageCall(number: number, kind: kind, path: path, offset: offset, count: count))
        }
        let outcome = state.withLock { state -> CallOutcome<Result> in
            state.callCount += 1
            let call = StorageCall(
                number: state.callCount, kind: kind, path: path, offset: offset, count: count)
            if state.isTracing { state.trace.append(call) }
            state.writeBackByChance()
            if let failure = state.failure(of: call) {
                if failure == .short { short(&state) }
                if failure == .late, kind.canFailLate { _ = try? body(&state) }
                return .failed(failure.error(of: call))
            }
            do throws(StoreError) {
                let isObserved = kind.changesDisk || state.observesReads
                return .done(try body(&state), call, isObserved ? state.observer : nil)
            } catch {
                return .failed(error)
            }
        }
        switch outcome {
        case .failed(let error): throw error
        case .done(let result, let call, let observer):
            observer?(call)
            return result
        }
    }
}

private enum CallOutcome<Result> {
    case done(Result, StorageCall, (@Sendable (StorageCall) -> Void)?)
    case failed(StoreError)
}

/// The store's lock, until it is let go.
private final class SimulatedLock: StorageLock {
    let path: String
    let storage: SimulatedStorage

    init(path: String, storage: SimulatedStorage) {
        self.path = path
        self.storage = storage
    }

    deinit {
        _ = storage.state.withLock { $0.lockedPaths.remove(path) }
    }
}
