import Logging
import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// A store that a full disk has stopped goes on once there is room, without a restart.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct DiskGuardTests {
    private let storage = SimulatedStorage(seed: Seed(1))
    private let clock = VirtualEnvironment()
    private let free = FreeBytes()

    private final class FreeBytes: Sendable {
        private let bytes = Mutex<UInt64>(0)

        func set(_ count: UInt64) {
            bytes.withLock { $0 = count }
        }

        var current: UInt64 { bytes.withLock { $0 } }
    }

    private static func open(_ storage: SimulatedStorage) throws(StoreError) -> Store {
        try Store.open(
            at: "/store", options: StoreOptions(durability: .disk, segmentBytes: 1 << 20),
            storage: storage)
    }

    private func threads(mayReopen: Bool) throws -> HubThreads {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let storage = storage
        let store = try Self.open(storage)
        let stores: StoreHolder
        if mayReopen {
            stores = StoreHolder(
                store, open: { () throws(StoreError) in try Self.open(storage) })
        } else {
            stores = StoreHolder(store)
        }
        let threads = HubThreads(
            stores: stores, readers: 1, writers: 1, callsMax: 8, logger: logger)
        threads.start()
        return threads
    }

    private func diskGuard(_ threads: HubThreads) -> DiskGuard {
        // What it says of the store is no failure of the test.
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let free = free
        return DiskGuard(
            threads: threads, environment: clock, logger: logger,
            freeBytes: { _ in free.current })
    }

    private static func put(
        _ value: String, _ threads: HubThreads
    ) async -> APIFailure.Kind? {
        do throws(APIFailure) {
            try await threads.write { store -> Void in
                _ = try store.dataset("d").put(value, for: "key")
            }
            return nil
        } catch {
            return error.kind
        }
    }

    private func fill(_ threads: HubThreads) async {
        storage.faults = [
            StorageFault(
                .diskFull, of: [.write, .sync, .truncate, .syncMapping, .syncDirectory],
                isLasting: true)
        ]
        // The first one fails by itself; from then on the store writes nothing.
        for _ in 0..<2 { #expect(await Self.put("lost", threads) == .serviceUnavailable) }
    }

    @Test("reads go on, writes are refused with a reason, and both work once there is room")
    func fullAndFree() async throws {
        let threads = try threads(mayReopen: true)
        let disk = diskGuard(threads)
        #expect(await Self.put("kept", threads) == nil)
        await disk.look()
        #expect(!disk.isStopped)
        try disk.checkWriting()
        await fill(threads)
        await disk.look()
        #expect(disk.isStopped)
        let refusal = #expect(throws: APIFailure.self) { try disk.checkWriting() }
        #expect(refusal?.kind == .serviceUnavailable && refusal?.retryAfterSeconds != nil)
        let read = try await threads.read { store in
            try store.existingDataset("d")?.get("key") == Array("kept".utf8)
        }
        #expect(read)
        // Without room nothing is tried.
        let stopped = threads.stores.current
        clock.advance(by: .seconds(60))
        await disk.look()
        #expect(threads.stores.current === stopped)
        storage.faults = []
        free.set(DiskGuard.roomBytes)
        await disk.look()
        #expect(threads.stores.current !== stopped)
        await disk.look()
        #expect(!disk.isStopped)
        try disk.checkWriting()
        #expect(await Self.put("new", threads) == nil)
        try await threads.shutdown()
        try threads.stores.current.close()
    }

    @Test("one that cannot be opened yet is tried again, and seldom")
    func triedAgain() async throws {
        let threads = try threads(mayReopen: true)
        let disk = diskGuard(threads)
        #expect(await Self.put("kept", threads) == nil)
        await fill(threads)
        storage.faults = [StorageFault(.inputOutput, isLasting: true)]
        free.set(.max)
        await disk.look()
        let calls = storage.callCount
        #expect(disk.isStopped)
        // Not again before its time.
        await disk.look()
        #expect(storage.callCount == calls)
        storage.faults = []
        clock.advance(by: .milliseconds(DiskGuard.pauseMillisecondsMax))
        await disk.look()
        #expect(!disk.isStopped)
        #expect(await Self.put("new", threads) == nil)
        try await threads.shutdown()
        try threads.stores.current.close()
    }

    @Test("a store of somebody else stays as it is")
    func notOurs() async throws {
        let threads = try threads(mayReopen: false)
        let disk = diskGuard(threads)
        #expect(await Self.put("kept", threads) == nil)
        await fill(threads)
        storage.faults = []
        free.set(.max)
        let store = threads.stores.current
        await disk.look()
        #expect(disk.isStopped && threads.stores.current === store)
        try await threads.shutdown()
        try? store.close()
    }

    @Test("the room of a disk is known, and that of no disk is not")
    func room() {
        #expect((DiskGuard.freeBytes(of: "/") ?? 0) > 0)
        #expect(DiskGuard.freeBytes(of: "/no/such/directory") == nil)
    }
}
