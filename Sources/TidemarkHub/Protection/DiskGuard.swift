import Glibc
import Logging
import Synchronization
import Tidemark
import TidemarkSync

/// Watches whether the store can write. After a failure of the disk, a full one above all, a store
/// writes nothing until it is opened anew: this sees it, refuses what would write with an answer
/// that says so, waits until there is room, and opens the store again. Reads go on all the while.
final class DiskGuard: Sendable {
    private struct State {
        /// Since when nothing can be written, in milliseconds; nil while all is well.
        var stoppedAt: UInt64?
        /// Not opened anew before.
        var triesAt: UInt64 = 0
        /// How long the next try waits after one that did not help.
        var pauseMilliseconds = DiskGuard.firstPauseMilliseconds
        var openedAt: UInt64?
        /// The one that was closed and could not be opened again yet.
        var unopened: ObjectIdentifier?
    }

    private let threads: HubThreads
    private let environment: any SyncEnvironment
    private let logger: Logger
    private let freeBytes: @Sendable (_ path: String) -> UInt64?
    private let state = Mutex(State())

    /// What a store needs to go on: two log segments, and as much for what merges them.
    static let roomBytes: UInt64 = 128 << 20
    static let firstPauseMilliseconds: UInt64 = 5_000
    static let pauseMillisecondsMax: UInt64 = 300_000
    static let period = Duration.seconds(1)

    /// - Parameter freeBytes: of the disk that a path is on, to those who are not its
    ///   administrator; nil if that cannot be known.
    init(
        threads: HubThreads, environment: any SyncEnvironment, logger: Logger,
        freeBytes: @escaping @Sendable (_ path: String) -> UInt64? = DiskGuard.freeBytes(of:)
    ) {
        self.threads = threads
        self.environment = environment
        self.logger = logger
        self.freeBytes = freeBytes
    }

    var isStopped: Bool { state.withLock { $0.stoppedAt != nil } }

    /// - Throws: `serviceUnavailable` while nothing can be written.
    func checkWriting() throws(APIFailure) {
        guard isStopped else { return }
        throw APIFailure(
            .serviceUnavailable,
            "the hub's disk is full or broken: it answers reads and takes no writes",
            retryAfterSeconds: 30)
    }

    /// Looks each second until it is cancelled.
    func run() async {
        while !Task.isCancelled {
            do {
                try await environment.sleep(for: Self.period)
            } catch {
                return
            }
            await look()
        }
    }

    /// Looks once.
    func look() async {
        let found: (store: Store, isStopped: Bool)
        do throws(APIFailure) {
            found = try await threads.read { store in
                (store: store, isStopped: store.counters().isWriterStopped)
            }
        } catch {
            // Too busy or shutting down: the next look tells.
            return
        }
        let now = environment.now()
        let isUnopened = state.withLock { $0.unopened == ObjectIdentifier(found.store) }
        guard found.isStopped || isUnopened else {
            noteWorking(now)
            return
        }
        guard noteStopped(now), threads.stores.mayReopen, hasRoom(found.store) else { return }
        await reopen(found.store)
    }

    private func noteWorking(_ now: UInt64) {
        let wasStopped = state.withLock { state -> Bool in
            let wasStopped = state.stoppedAt != nil
            state.stoppedAt = nil
            // Only a store that has worked for a while takes the next failure as a first one.
            if let openedAt = state.openedAt, now >= openedAt + Self.pauseMillisecondsMax {
                state.pauseMilliseconds = Self.firstPauseMilliseconds
                state.openedAt = nil
            }
            return wasStopped
        }
        if wasStopped { logger.notice("the store writes again") }
    }

    /// - Returns: whether it may be opened anew by now.
    private func noteStopped(_ now: UInt64) -> Bool {
        let (isNew, mayTry) = state.withLock { state in
            let isNew = state.stoppedAt == nil
            if isNew {
                state.stoppedAt = now
                state.triesAt = now + (state.openedAt == nil ? 0 : state.pauseMilliseconds)
            }
            return (isNew, now >= state.triesAt)
        }
        if isNew { logger.critical("the store has stopped writing; reads go on") }
        return mayTry
    }

    private func hasRoom(_ store: Store) -> Bool {
        guard let free = freeBytes(store.path) else { return true }
        return free >= Self.roomBytes
    }

    private func reopen(_ store: Store) async {
        let stores = threads.stores
        do throws(APIFailure) {
            guard try await threads.write({ _ in try stores.reopen(after: store) }) else { return }
            state.withLock { state in
                state.stoppedAt = nil
                state.openedAt = environment.now()
                state.unopened = nil
            }
            logger.notice("the store was opened anew after a failure of the disk")
        } catch {
            // HubThreads has logged what it was.
            state.withLock { state in
                state.unopened = ObjectIdentifier(store)
                state.triesAt = environment.now() + state.pauseMilliseconds
                state.pauseMilliseconds = min(
                    state.pauseMilliseconds * 2, Self.pauseMillisecondsMax)
            }
        }
    }

    static func freeBytes(of path: String) -> UInt64? {
        var facts = statvfs()
        // The structure outlives the call, which fills it.
        guard unsafe statvfs(path, &facts) == 0 else { return nil }
        let (bytes, isTooMany) = UInt64(facts.f_bavail).multipliedReportingOverflow(
            by: UInt64(facts.f_frsize))
        return isTooMany ? .max : bytes
    }
}
