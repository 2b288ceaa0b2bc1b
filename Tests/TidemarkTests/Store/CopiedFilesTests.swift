import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Tidemark

/// Whether a store finds out that its files are copies, and what it does then.
@Suite("Copied files")
struct CopiedFilesTests {
    private let path = "/store"

    private func open(_ disk: SimulatedStorage) throws -> Store {
        try Store.open(at: path, options: quickOptions(), storage: disk)
    }

    private func closed(_ disk: SimulatedStorage) throws -> ReplicaID {
        let store = try open(disk)
        let dot = try store.dataset("main").put("first", for: "key")
        try store.close()
        return dot.replica
    }

    @Test("Copies write under ids of their own, and the first store under its own as before")
    func eachItsOwn() throws {
        let disk = SimulatedStorage(seed: Seed(1))
        let id = try closed(disk)
        var random = SeededGenerator(Seed(2))
        var ids: Set<ReplicaID> = [id]
        for _ in 0..<3 {
            let copy = disk.withCopiedFiles(using: &random)
            let store = try open(copy)
            #expect(ids.insert(store.replicaID).inserted)
            #expect(store.formerReplicaIDs == [id] && store.closedReplicaIDs == [id])
            let dot = try store.dataset("main").put("second", for: "key")
            #expect(dot == Dot(replica: store.replicaID, counter: 1))
            #expect(try store.dataset("main").vector[id] == 1)
            try store.close()
        }
        let store = try open(disk)
        #expect(store.replicaID == id && store.closedReplicaIDs.isEmpty)
    }

    @Test("A copy finds it out once, whether it was closed or killed", arguments: [true, false])
    func onceOnly(isClosed: Bool) throws {
        let disk = SimulatedStorage(seed: Seed(3))
        _ = try closed(disk)
        var random = SeededGenerator(Seed(4))
        var copy = disk.withCopiedFiles(using: &random)
        let store = try open(copy)
        let id = store.replicaID
        try store.dataset("main").put("second", for: "key")
        try store.sync()
        if isClosed { try store.close() }
        copy = copy.afterKill(using: &random)
        let again = try open(copy)
        #expect(again.replicaID == id && again.closedReplicaIDs.count == 1)
        #expect(try again.dataset("main").text("key") == "second")
        #expect(try again.verify().damages.isEmpty)
    }

    /// At each call that changes the disk, with each thing that may be left of it.
    @Test("A copy that is killed while it finds out writes nothing under the id of before")
    func killed() throws {
        let disk = SimulatedStorage(seed: Seed(5))
        let id = try closed(disk)
        var random = SeededGenerator(Seed(6))
        let copy = disk.withCopiedFiles(using: &random)
        let left = Mutex<[SimulatedStorage]>([])
        let whole = copy.afterProcessEnd(using: &random)
        whole.observe { _ in
            left.withLock { left in
                var random = SeededGenerator(Seed(UInt64(left.count)))
                for survival in [Survival.nothing, .everything, .chance(percent: 50)] {
                    left.append(whole.afterPowerLoss(survival, using: &random))
                }
            }
        }
        let store = try open(whole)
        whole.observe(nil)
        try store.close()
        let disks = left.withLock { $0 }
        try #require(disks.count > 20)
        for disk in disks {
            let store = try open(disk)
            let dot = try store.dataset("main").put("second", for: "key")
            #expect(dot.replica != id && store.replicaID == dot.replica)
            #expect(try store.dataset("main").vector[id] == 1)
            try store.close()
        }
    }

    @Test("Whoever only reads a copy reads what was copied, and writes nothing")
    func reading() throws {
        let disk = SimulatedStorage(seed: Seed(7))
        let id = try closed(disk)
        var random = SeededGenerator(Seed(8))
        let copy = disk.withCopiedFiles(using: &random)
        var options = quickOptions()
        options.isReadOnly = true
        let store = try Store.open(at: path, options: options, storage: copy)
        #expect(store.replicaID == id)
        #expect(try store.dataset("main").text("key") == "first")
    }

    @Test("On the real disk a copy is told from what was moved or goes on")
    func realDisk() throws {
        let fixture = try StoreFixture()
        let log = try #require(
            try Files.list(fixture.path).first { $0.hasSuffix(".log") })
        // Without it no file system tells, and there is nothing to be tested.
        guard SystemStorage().place(of: "\(fixture.path)/\(log)") != nil else { return }
        let id = fixture.store.replicaID
        try fixture.dataset.put("first", for: "key")
        try fixture.store.close()
        let (copy, moved) = (fixture.directory["copy"], fixture.directory["moved"])
        try Files.copyDirectory(fixture.path, to: copy)
        let result = unsafe rename(fixture.path, moved)
        #expect(result == 0)
        for (path, isSame) in [(copy, false), (moved, true), (copy, false), (moved, true)] {
            let store = try Store.open(at: path, options: quickOptions())
            #expect((store.replicaID == id) == isSame)
            #expect(store.closedReplicaIDs == (isSame ? [] : [id]))
            try store.close()
        }
    }
}
