import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Bundles beside partial replicas, and beside the search for what differs.
struct BundlePartTests {
    let directory = TemporaryDirectory()
    let hub: TestReplica
    let part: TestReplica
    let other: TestReplica
    let file: String

    init() throws {
        hub = try TestReplica("hub", in: directory)
        part = try TestReplica("part", in: directory)
        other = try TestReplica("other", in: directory)
        file = "\(directory.path)/notes.bundle"
        for key in ["a/1", "a/2", "b/1", "b/2", "c/1"] {
            try hub.dataset().put("1 \(key)", for: key)
        }
    }

    private func text(_ replica: TestReplica, _ key: String) throws -> String? {
        try replica.dataset().text(key)
    }

    @Test func aPartMakesNoBundle() async throws {
        try part.dataset().setSyncScope(.prefix("a/"))
        try await part.dataset().synchronize(with: hub.transport)
        try part.dataset().put("mine", for: "a/3")
        let whole = #expect(throws: SyncError.self) {
            try part.store.exportBundle(of: "notes", to: file)
        }
        #expect(whole?.code == .partialReplica && whole?.dataset == "notes")
        let forOne = #expect(throws: SyncError.self) {
            try part.store.exportBundle(of: "notes", to: file, for: hub.store.replicaID)
        }
        #expect(forOne?.code == .partialReplica)
        #expect(!Files.exists(file))
        #expect(try Files.list(part.directory.path).filter { $0.hasSuffix(".new") } == [])
        // While it becomes whole again it is none yet.
        try part.dataset().setSyncScope(nil)
        let ending = #expect(throws: SyncError.self) {
            try part.store.exportBundle(of: "notes", to: file)
        }
        #expect(ending?.code == .partialReplica)
        try await part.dataset().synchronize(with: hub.transport)
        try part.store.exportBundle(of: "notes", to: file)
        let result = try await other.store.importBundle(from: file)
        #expect(result.pulled == 6 && result.isComplete)
        try expectEqual([hub, part, other])
    }

    @Test func aPartTakesNoBundle() async throws {
        try part.dataset().setSyncScope(.prefix("a/"))
        try await part.dataset().synchronize(with: hub.transport)
        try hub.dataset().put("2 a/1", for: "a/1")
        try hub.dataset().delete("a/2")
        try hub.store.exportBundle(of: "notes", to: file)
        let before = try Contents(part.dataset())
        let (count, vector) = (try part.dataset().syncCount, try part.dataset().vector)
        let error = await #expect(throws: SyncError.self) {
            try await part.store.importBundle(from: file)
        }
        #expect(error?.code == .partialReplica && error?.dataset == "notes")
        #expect(try Contents(part.dataset()) == before)
        #expect(try part.dataset().syncCount == count)
        #expect(try part.dataset().vector == vector)
        // What was refused comes with an exchange, and a whole dataset takes bundles again.
        try await part.dataset().synchronize(with: hub.transport)
        #expect(try text(part, "a/1") == "2 a/1")
        #expect(try text(part, "a/2") == nil)
        try part.dataset().setSyncScope(nil)
        try await part.dataset().synchronize(with: hub.transport)
        try hub.dataset().put("2 c/1", for: "c/1")
        try hub.store.exportBundle(of: "notes", to: file)
        #expect(try await part.store.importBundle(from: file).pulled == 1)
        try expectEqual([hub, part])
    }

    /// A position that came with a bundle is one that the peer may not know of.
    @Test func whatCameInABundleBecomesAPart() async throws {
        try hub.store.exportBundle(of: "notes", to: file)
        _ = try await part.store.importBundle(from: file)
        #expect(try part.dataset().setSyncScope(.prefix("a/")) == 0)
        try hub.dataset().put("2 a/1", for: "a/1")
        try hub.dataset().put("2 b/1", for: "b/1")
        try await part.dataset().synchronize(with: hub.transport)
        #expect(try part.dataset().count() == 2)
        #expect(try text(part, "a/1") == "2 a/1")
        #expect(try hub.dataset().count() == 5)
        try part.dataset().setSyncScope(nil)
        try await part.dataset().synchronize(with: hub.transport)
        try expectEqual([hub, part])
    }

    /// The search for what differs counts what a bundle brought as it counts everything else.
    @Test func whatABundleBroughtDiffersInNothing() async throws {
        try hub.store.exportBundle(of: "notes", to: file)
        _ = try await other.store.importBundle(from: file)
        try expectEqual([hub, other])
        try other.dataset().put("theirs", for: "d/1")
        try hub.dataset().put("2 a/1", for: "a/1")
        var options = SyncOptions()
        options.comparesFrom = 0
        let result = try await other.dataset().synchronize(with: hub.transport, options: options)
        #expect(result.pulled == 1 && result.pushed == 1 && result.conflicts == 0)
        try expectEqual([hub, other])
    }
}
