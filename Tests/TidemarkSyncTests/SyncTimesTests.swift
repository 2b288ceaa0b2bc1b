import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// When which dataset was last exchanged, also in an earlier life of the process.
struct SyncTimesTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment(passesBySleeping: true)

    init() throws { (a, b) = try TestReplica.two() }

    private func synchronizer(
        _ exchange: SyncOptions = SyncOptions(), name: String = "b",
        schedule: SyncSchedule = SyncSchedule()
    ) -> Synchronizer {
        Synchronizer(
            store: a.store, transport: b.transport,
            options: SynchronizerOptions(name: name, exchange: exchange), schedule: schedule,
            environment: time)
    }

    private func pass() async throws {
        try await time.sleep(for: .seconds(100))
    }

    @Test func eachDatasetHasItsTime() async throws {
        let first = synchronizer()
        #expect(try first.lastSync(of: "notes") == nil)
        try a.dataset("notes").put("1", for: "key")
        try a.dataset("plans").put("1", for: "key")
        try await first.synchronize()
        let start = time.now()
        #expect(try first.lastSync(of: "notes") == start)
        #expect(try first.lastSync(of: "plans") == start)
        // Of one alone the other knows nothing.
        try await pass()
        try await first.synchronize(["notes"])
        let second = time.now()
        #expect(second > start)
        #expect(try first.lastSync(of: "notes") == second)
        #expect(try first.lastSync(of: "plans") == start)
        await first.shutdown()
        try a.reopen()
        let later = synchronizer()
        #expect(try later.lastSync(of: "notes") == second)
        #expect(try later.lastSync(of: "plans") == start)
        // An exchange of all in which nothing has changed looks at none, and counts for each.
        try await later.synchronize()
        try await pass()
        let report = try await later.synchronize()
        #expect(report.datasets.isEmpty)
        #expect(try later.lastSync(of: "notes") == time.now())
        #expect(try later.lastSync(of: "plans") == time.now())
        // Another peer is another name.
        #expect(try synchronizer(name: "c").lastSync(of: "notes") == nil)
        await later.shutdown()
    }

    @Test func whatDidNotEndWholeDoesNotCount() async throws {
        for name in ["notes", "plans"] { try a.dataset(name).put("1", for: "key") }
        let synchronizer = synchronizer(SyncOptions(policy: .custom { _ in .stop }))
        try await synchronizer.synchronize()
        let start = time.now()
        try a.dataset("notes").put("ours", for: "key")
        try b.dataset("notes").put("theirs", for: "key")
        try a.dataset("plans").put("2", for: "key")
        try await pass()
        let report = try await synchronizer.synchronizeEach()
        #expect(report["notes"]?.error?.code == .conflictPending)
        #expect(try synchronizer.lastSync(of: "notes") == start)
        #expect(try synchronizer.lastSync(of: "plans") == time.now())
        await synchronizer.shutdown()
    }

    /// The run failed, and what had come to its end in it before that did not.
    @Test func whatEndedWholeInARunThatFailedCounts() async throws {
        for name in ["notes", "plans"] { try a.dataset(name).put("1", for: "key") }
        let (responder, isBroken) = (b.responder, Box<Bool>())
        let transport = ScriptedTransport { request throws(SyncError) in
            if case .push(let push) = try SyncMessage(MessageFrame.decoded(request)),
                push.address.dataset == "plans"
            {
                isBroken.set(true)
            }
            guard isBroken.all.isEmpty else { throw SyncError(.unreachable, "no route") }
            return responder.respond(to: request)
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport,
            options: SynchronizerOptions(
                name: "b", exchange: SyncOptions(parallelDatasetsMax: 1)), environment: time)
        let start = time.now()
        let error = await #expect(throws: SyncError.self) { try await synchronizer.synchronize() }
        #expect(error?.code == .unreachable)
        // Not when the run gave up, which was some waits later.
        #expect(time.now() > start)
        #expect(try synchronizer.lastSync(of: "notes") == start)
        #expect(try synchronizer.lastSync(of: "plans") == nil)
        #expect(synchronizer.lastReport?["notes"]?.isComplete == true)
        await synchronizer.shutdown()
    }

    /// A dataset that is deleted, here or there, leaves no time of its own behind.
    @Test func aDeletedDatasetIsForgotten() async throws {
        for name in ["notes", "plans"] { try a.dataset(name).put("1", for: "key") }
        let synchronizer = synchronizer(SyncOptions(onDatasetDeleted: .discardLocal))
        try await synchronizer.synchronize(["notes", "plans"])
        try a.store.deleteDataset("notes")
        try b.store.deleteDataset("plans")
        try await synchronizer.synchronize(["notes", "plans"])
        #expect(try synchronizer.lastSync(of: "notes") == nil)
        #expect(try synchronizer.lastSync(of: "plans") == nil)
        await synchronizer.shutdown()
    }

    @Test func theLastFullExchangeIsKept() async throws {
        try a.dataset("notes").put("1", for: "key")
        let schedule = SyncSchedule(fullSyncAfter: .seconds(1_000))
        let first = synchronizer(schedule: schedule)
        #expect(first.lastFullSync == nil)
        try await first.synchronize()
        let start = time.now()
        #expect(first.lastFullSync == start)
        await first.shutdown()
        try a.reopen()
        try await pass()
        let second = synchronizer(schedule: schedule)
        #expect(second.lastFullSync == start)
        try await second.synchronize()
        #expect(second.lastFullSync == start)
        try await time.sleep(for: .seconds(1_000))
        try await second.synchronize()
        #expect(second.lastFullSync == time.now())
        await second.shutdown()
    }
}
