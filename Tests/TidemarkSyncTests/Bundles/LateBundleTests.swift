import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

// Bundles of a maker that has forgotten deletions of which the receiver has never heard. A file
// cannot be asked what became of a record.
//
//     a   key 0 ... key 9, and two deletions that are forgotten ──▶ file ──▶ late
struct LateBundleTests {
    let directory = TemporaryDirectory()
    let a: TestReplica
    let late: TestReplica
    /// Has all that a deleted later.
    let gone: TestReplica
    let file: String
    let forgotten: VersionVector

    init() async throws {
        a = try TestReplica("a", in: directory)
        late = try TestReplica("late", in: directory)
        file = "\(directory.path)/notes.bundle"
        gone = try TestReplica("gone", in: directory)
        try fill(a, 0..<12, "ours")
        try await gone.dataset().synchronize(with: a.transport)
        for number in 10..<12 { try a.dataset().delete("key \(number)") }
        try a.store.retire(gone.store.replicaID)
        try a.store.compact()
        forgotten = try a.dataset().knowledge().forgotten.vector
        #expect(!forgotten.isEmpty)
        try a.store.exportBundle(
            of: "notes", to: file, limits: SyncResponder.Limits(pageRecordsMax: 4))
    }

    private func expectOutlived(_ keys: [String]) throws {
        for key in keys {
            let record = try #require(try late.dataset().record(for: key), "\(key)")
            #expect(record.version.vector.covers(forgotten), "\(key)")
        }
    }

    private func expectWhole() throws {
        let knowledge = try late.dataset().knowledge()
        #expect(knowledge.vector.covers(forgotten))
        #expect(knowledge.forgotten.vector.covers(forgotten))
    }

    @Test func anImportThatWasCutOffIsRepeated() async throws {
        let count = Mutex(0)
        var options = SyncOptions()
        options.validate = { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            // In the second page.
            guard number <= 6 else { throw CancellationError() }
        }
        let error = await #expect(throws: SyncError.self) {
            try await late.store.importBundle(from: file, options: options)
        }
        #expect(error?.code == .cancelled)
        #expect(try late.dataset().count() == 4)
        let result = try await late.store.importBundle(from: file)
        #expect(result.pulled == 6 && result.isComplete)
        try expectWhole()
        try expectEqual([a, late])
    }

    /// As long as a record is refused no vector is joined, so that the receiver stays late.
    @Test func anImportThatLeftSomethingOutIsRepeated() async throws {
        struct Refusal: Error {}
        var options = SyncOptions()
        options.validate = { record in
            guard record.keyText != "key 2" else { throw Refusal() }
        }
        let error = await #expect(throws: SyncError.self) {
            try await late.store.importBundle(from: file, options: options)
        }
        #expect(error?.code == .recordRefused)
        #expect(try late.dataset().count() == 9)
        #expect(try await !late.store.importBundle(from: file).isComplete)
        // Nor does what is written in between keep a bundle out.
        try put("mine", late, "other")
        try put("edited", late, "key 7")
        #expect(try await !late.store.importBundle(from: file).isComplete)
        try expectOutlived(["other"])
        let failed = try #require(try late.dataset().failedRecords().first)
        #expect(try late.dataset().retry(failed))
        try await late.dataset().synchronize(with: a.transport)
        #expect(try a.dataset().text("other") == "mine")
        #expect(try a.dataset().text("key 7") == "edited")
        #expect(try late.dataset().text("key 2") == "ours 2")
    }

    /// It may be dead, whatever else the bundle has.
    @Test func whatTheMakerHasSeenKeepsTheBundleOut() async throws {
        try put("mine", gone, "other")
        let error = await #expect(throws: SyncError.self) {
            try await gone.store.importBundle(from: file)
        }
        #expect(error?.code == .wrongBundle)
        #expect(try gone.dataset().text("key 10") == "ours 10")
    }

    @Test func whatIsWrittenDuringAnImportOutlives() async throws {
        let dataset = try late.dataset()
        var options = SyncOptions()
        options.validate = { record in
            try dataset.put("meanwhile", for: "beside \(record.keyText ?? "")")
        }
        let result = try await late.store.importBundle(from: file, options: options)
        #expect(result.pulled == 10 && result.isComplete)
        try expectWhole()
        try expectOutlived((0..<10).map { "beside key \($0)" })
        try await dataset.synchronize(with: a.transport)
        #expect(try a.dataset().count() == 20)
        try expectEqual([a, late])
    }
}
