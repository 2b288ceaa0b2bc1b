import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Stores that never meet, and files between them.
struct BundleTests {
    let directory = TemporaryDirectory()
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    let file: String

    init() throws {
        a = try TestReplica("a", in: directory)
        b = try TestReplica("b", in: directory)
        c = try TestReplica("c", in: directory)
        file = "\(directory.path)/notes.bundle"
    }

    private func carry(
        from sender: TestReplica, to receiver: TestReplica, since: SyncCount = .zero,
        options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        try sender.store.exportBundle(
            of: "notes", to: file, since: since,
            limits: SyncResponder.Limits(pageRecordsMax: 4))
        return try await receiver.store.importBundle(from: file, options: options)
    }

    private func expectRefused(
        _ replica: TestReplica, _ code: SyncError.Code, _ words: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let before = try Contents(replica.dataset())
        let count = try replica.dataset().syncCount
        let vector = try replica.dataset().vector
        let error = await #expect(throws: SyncError.self, sourceLocation: sourceLocation) {
            try await replica.store.importBundle(from: file)
        }
        #expect(error?.code == code, "\(error as Any)", sourceLocation: sourceLocation)
        for word in words {
            #expect(error?.message.contains(word) == true, sourceLocation: sourceLocation)
        }
        #expect(try Contents(replica.dataset()) == before, sourceLocation: sourceLocation)
        #expect(try replica.dataset().syncCount == count, sourceLocation: sourceLocation)
        #expect(try replica.dataset().vector == vector, sourceLocation: sourceLocation)
    }

    // MARK: - Whole datasets and changes

    @Test func aWholeDatasetGoesIntoAnEmptyStore() async throws {
        try fill(a, 0..<30, "ours")
        try a.dataset().delete("key 3")
        let result = try await carry(from: a, to: b)
        #expect(result.pulled == 30)
        #expect(result.pagesReceived == 8)
        #expect(result.isComplete)
        #expect(result.remoteReplica == a.store.replicaID)
        try expectEqual([a, b])
        // It is what an exchange would have brought: that finds nothing left to do.
        let exchanged = try await b.dataset().synchronize(with: a.transport)
        #expect(exchanged.pulled + exchanged.pushed + exchanged.conflicts == 0)
    }

    @Test func importingTwiceChangesNothing() async throws {
        try fill(a, 0..<10, "ours")
        _ = try await carry(from: a, to: b)
        let count = try b.dataset().syncCount
        let again = try await b.store.importBundle(from: file)
        #expect(again.pulled == 0 && again.pagesReceived == 0 && again.isComplete)
        #expect(try b.dataset().syncCount == count)
        // Nor does an older one, once there is more.
        let old = try Files.read(file)
        try fill(a, 5..<15, "later")
        _ = try await carry(from: a, to: b, since: 10)
        try Files.write(old, to: file)
        #expect(try await b.store.importBundle(from: file).pulled == 0)
        try expectEqual([a, b])
        let position = try b.dataset().syncFacts(with: a.store.replicaID).lastSyncCount
        #expect(position == 20)
    }

    @Test func theSameStateGivesTheSameBytes() throws {
        try fill(a, 0..<20, "ours")
        let first = try a.store.exportBundle(of: "notes", to: file)
        let bytes = try Files.read(file)
        let second = try a.store.exportBundle(of: "notes", to: file)
        #expect(try Files.read(file) == bytes)
        #expect(first == second)
        #expect(try BundleSummary(ofFileAt: file) == second)
        #expect(second.byteCount == UInt64(bytes.count))
        #expect(try Files.list(directory.path).filter { $0.hasSuffix(".new") } == [])
    }

    @Test func changesAreCarriedOneAfterTheOther() async throws {
        try fill(a, 0..<10, "first")
        _ = try await carry(from: a, to: b)
        try fill(a, 5..<15, "second")
        try a.dataset().delete("key 0")
        let result = try await carry(from: a, to: b, since: 10)
        #expect(result.pulled == 11)
        try expectEqual([a, b])
    }

    @Test func aBundleThatBeginsTooLateIsRefused() async throws {
        try fill(a, 0..<4, "first")
        _ = try await carry(from: a, to: b)
        try fill(a, 4..<8, "second")
        try a.store.exportBundle(of: "notes", to: file, since: 6)
        try await expectRefused(
            b, .wrongBundle, "begins after change 6", "up to 4", "since 4",
            a.store.replicaID.description)
        // And by a store that has nothing at all.
        _ = try c.dataset()
        try await expectRefused(c, .wrongBundle, "a bundle of the whole dataset", "since 0")
        // One that reaches further back than it must will do.
        let result = try await carry(from: a, to: b, since: 2)
        #expect(result.pulled == 4)
        try expectEqual([a, b])
    }

    @Test func aRefusedBundleMakesNoDataset() async throws {
        try fill(a, 0..<4, "first")
        try a.store.exportBundle(of: "notes", to: file, since: 2)
        await #expect(throws: SyncError.self) { try await b.store.importBundle(from: file) }
        #expect(try b.store.datasetNamesForSync().isEmpty)
    }

    // MARK: - For one receiver

    @Test func whatTheReceiverHasIsLeftOut() async throws {
        try fill(a, 0..<10, "first")
        try await b.dataset().synchronize(with: a.transport)
        try fill(a, 8..<12, "second")
        let made = try a.store.exportBundle(of: "notes", to: file, for: b.store.replicaID)
        #expect(made.recordCount == 4)
        #expect(made.receiver == b.store.replicaID)
        #expect(!made.isWholeDataset)
        // Somebody else lacks what was left out.
        _ = try c.dataset()
        try await expectRefused(c, .wrongBundle, "since 0")
        #expect(try await b.store.importBundle(from: file).pulled == 4)
        try expectEqual([a, b])
    }

    /// It begins with changes that are here by another way, and leaves out others that are not.
    @Test func whatIsLeftOutMustBeHere() async throws {
        try fill(b, 0..<5, "theirs")
        try await a.dataset().synchronize(with: b.transport)
        // Of b's writes c knows nothing; a leaves them out for b.
        try a.dataset().put("ours", for: "other")
        let known = try a.dataset().checkpoint(for: b.store.replicaID)
        let export = try BundleExport(store: a.store, dataset: "notes", limits: .init())
        _ = try export.write(
            to: file, since: .zero, leavingOut: known.vector, for: b.store.replicaID)
        _ = try c.dataset()
        try await expectRefused(c, .wrongBundle, "leaves out", b.store.replicaID.description)
        #expect(try await b.store.importBundle(from: file).pulled == 1)
        try expectEqual([a, b])
    }

    /// That a bundle was made proves nothing: until something comes back, it is all in the next.
    @Test func aBundleThatIsLostIsMadeAgain() async throws {
        try fill(a, 0..<6, "ours")
        let first = try a.store.exportBundle(of: "notes", to: file, for: b.store.replicaID)
        let second = try a.store.exportBundle(of: "notes", to: file, for: b.store.replicaID)
        #expect(first.recordCount == 6 && second.recordCount == 6)
        _ = try await b.store.importBundle(from: file)
        // What comes back says what b has.
        try fill(b, 6..<8, "theirs")
        let back = try b.store.exportBundle(of: "notes", to: file, for: a.store.replicaID)
        #expect(back.recordCount == 2)
        _ = try await a.store.importBundle(from: file)
        try fill(a, 8..<9, "ours")
        let third = try a.store.exportBundle(of: "notes", to: file, for: b.store.replicaID)
        #expect(third.recordCount == 1)
        _ = try await b.store.importBundle(from: file)
        try expectEqual([a, b])
    }

    // MARK: - Merging

    private static let policies: [(policy: MergePolicy, value: String)] = [
        (.lastWriterWins, "theirs"), (.keepLocal, "ours"), (.keepRemote, "theirs"),
        (.custom { _ in .value(Array("both".utf8)) }, "both"),
    ]

    @Test(arguments: policies.indices)
    func conflictsAreSettledByThePolicy(_ number: Int) async throws {
        let (policy, value) = Self.policies[number]
        try a.dataset().put("base", for: "key")
        _ = try await carry(from: a, to: b)
        try a.dataset().put("ours", for: "key")
        b.clock.putForward(bySeconds: 10)
        try b.dataset().put("theirs", for: "key")
        try fill(b, 0..<9, "theirs")
        let result = try await carry(from: b, to: a, options: SyncOptions(policy: policy))
        #expect(result.conflicts == 1)
        #expect(result.settled.map(\.key) == [Array("key".utf8)])
        #expect(try a.dataset().text("key") == value)
        // What came of it descends from both, and goes back without a question.
        let stop = SyncOptions(policy: .custom { _ in .stop })
        let back = try await carry(from: a, to: b, options: stop)
        #expect(back.conflicts == 0)
        try expectEqual([a, b])
    }

    @Test func aConflictThatIsLeftIsToldAgain() async throws {
        try a.dataset().put("ours", for: "key")
        try b.dataset().put("theirs", for: "key")
        try fill(b, 0..<3, "theirs")
        let pending = Mutex<[Conflict]>([])
        let options = SyncOptions(
            policy: .leavePending,
            onPending: { conflict in pending.withLock { $0.append(conflict) } })
        for round in 1...2 {
            let error = await #expect(throws: SyncError.self) {
                try await carry(from: b, to: a, options: options)
            }
            #expect(error?.code == .conflictPending)
            #expect(pending.withLock { $0.count } == round)
            #expect(try a.dataset().count() == 4)
        }
        let waiting = try #require(try b.dataset().record(for: "key")?.version.dot)
        #expect(try a.dataset().pendingConflicts().count == 1)
        #expect(try !a.dataset().vector.contains(waiting))
        let conflict = try #require(pending.withLock { $0.first })
        try a.dataset().settle(conflict, as: .value(Array("both".utf8)))
        #expect(try await carry(from: b, to: a, options: options).isComplete)
        _ = try await carry(from: a, to: b)
        try expectEqual([a, b])
    }

    /// A file cannot be asked for one record: what is to be tried again stays due.
    @Test func whatIsRefusedIsLeftOutAndNotAskedOfAFile() async throws {
        try fill(b, 0..<9, "theirs")
        let isOpen = Mutex(false)
        var refusing = SyncOptions()
        refusing.validate = { record in
            guard isOpen.withLock({ $0 }) || record.keyText != "key 3" else { throw Refusal() }
        }
        let options = refusing
        let error = await #expect(throws: SyncError.self) {
            try await carry(from: b, to: a, options: options)
        }
        #expect(error?.code == .recordRefused)
        let refused = try #require(try b.dataset().record(for: "key 3")?.version.dot)
        #expect(try a.dataset().count() == 8)
        #expect(try !a.dataset().vector.contains(refused))
        let failed = try #require(try a.dataset().failedRecords().first)
        #expect(failed.keyText == "key 3" && failed.peer == b.store.replicaID)
        isOpen.withLock { $0 = true }
        #expect(try a.dataset().retry(failed))
        #expect(try await !carry(from: b, to: a, options: options).isComplete)
        #expect(try a.dataset().failedRecords().first?.state == .due)
        // What comes after it is taken in all the same.
        try fill(b, 9..<10, "theirs")
        let reached = try a.dataset().checkpoint(for: b.store.replicaID).pulledThrough
        #expect(try await !carry(from: b, to: a, since: reached, options: options).isComplete)
        #expect(try a.dataset().text("key 9") == "theirs 9")
        try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try await carry(from: b, to: a, options: options).isComplete)
        try expectEqual([a, b])
    }

    private struct Refusal: Error {}

    @Test func whatIsImportedIsTold() async throws {
        try fill(a, 0..<3, "ours")
        let events = Mutex<[SyncEvent]>([])
        var options = SyncOptions()
        options.observer = { event in events.withLock { $0.append(event) } }
        _ = try await carry(from: a, to: b, options: options)
        let told = events.withLock { $0 }
        let keys = told.compactMap { event -> [[UInt8]]? in
            guard case .localChanged(_, let keys) = event else { return nil }
            return keys
        }
        #expect(told.count == 1)
        #expect(keys == [(0..<3).map { Array("key \($0)".utf8) }])
    }

    // MARK: - Deletions

    /// Of a dataset that nobody else has, a store forgets deletions. Once a bundle was made of it,
    /// somebody may have what is deleted.
    @Test func aDeletionAfterTheFirstBundleIsCarried() async throws {
        try fill(a, 0..<5, "ours")
        _ = try await carry(from: a, to: b)
        try a.dataset().delete("key 2")
        try a.store.compact()
        try a.reopen()
        try a.store.compact()
        let result = try await carry(from: a, to: b, since: 5)
        #expect(result.pulled == 1)
        #expect(try b.dataset().text("key 2") == nil)
        try expectEqual([a, b])
    }

    @Test(arguments: [DatasetDeletedAction.keepAndStop, .discardLocal, .keepAndRecreate])
    func aDeletedDatasetCarriesItsDeletion(_ action: DatasetDeletedAction) async throws {
        try fill(a, 0..<5, "ours")
        _ = try await carry(from: a, to: b)
        try a.store.deleteDataset("notes")
        let made = try a.store.exportBundle(of: "notes", to: file)
        #expect(made.isDeleted)
        let options = SyncOptions(onDatasetDeleted: action)
        switch action {
        case .keepAndStop:
            let error = await #expect(throws: SyncError.self) {
                try await b.store.importBundle(from: file, options: options)
            }
            #expect(error?.code == .datasetDeleted)
            #expect(try b.dataset().count() == 5)
        case .discardLocal:
            _ = try await b.store.importBundle(from: file, options: options)
            #expect(try b.store.existingDataset("notes") == nil)
        case .keepAndRecreate:
            _ = try await b.store.importBundle(from: file, options: options)
            #expect(try b.dataset().count() == 5)
            _ = try await carry(from: b, to: a)
            #expect(try a.dataset().count() == 5)
        }
    }

    // MARK: - Stores that went back in time

    @Test func aStoresOwnBundleIsRefused() async throws {
        try fill(a, 0..<3, "ours")
        try a.store.exportBundle(of: "notes", to: file)
        try await expectRefused(a, .sameReplica, "itself")
    }

    /// Its maker wrote again under dots that name other writes here. Nothing of it may be taken for
    /// known, nor its vector believed.
    @Test func aMakerThatWentBackIsRefused() async throws {
        try fill(a, 0..<3, "first")
        _ = try await carry(from: a, to: c)
        try a.backUp()
        try fill(a, 3..<6, "lost")
        _ = try await carry(from: a, to: c, since: 3)
        try a.restore()
        try fill(a, 6..<12, "again")
        for since in [0, 3, 6] as [SyncCount] {
            try a.store.exportBundle(of: "notes", to: file, since: since)
            try await expectRefused(c, .wrongBundle, "went back in time")
        }
        // It finds out by a bundle of c's; from then on its own are good.
        let id = a.store.replicaID
        _ = try await carry(from: c, to: a)
        #expect(a.store.replicaID != id)
        _ = try await carry(from: a, to: c)
        try expectEqual([a, c])
        #expect(try a.dataset().count() == 12)
    }

    /// What it wrote since then is under dots that the bundle's maker has seen otherwise.
    @Test func aReceiverThatWentBackLosesNothing() async throws {
        try fill(b, 0..<3, "first")
        _ = try await carry(from: b, to: a)
        try b.backUp()
        try fill(b, 3..<6, "lost")
        _ = try await carry(from: b, to: a, since: 3)
        try b.restore()
        try fill(b, 6..<9, "again")
        let id = b.store.replicaID
        try a.store.exportBundle(of: "notes", to: file, for: id)
        await #expect(throws: SyncError.self) { try await b.store.importBundle(from: file) }
        // Until it has compared all that it has, it gives nothing away, either.
        let error = #expect(throws: SyncError.self) {
            try b.store.exportBundle(of: "notes", to: "\(file).2")
        }
        #expect(error?.code == .peerChanged)
        _ = try await carry(from: a, to: b)
        #expect(b.store.replicaID != id)
        for number in 0..<9 {
            let text = number < 3 ? "first" : number < 6 ? "lost" : "again"
            #expect(try b.dataset().text("key \(number)") == "\(text) \(number)")
        }
        _ = try await carry(from: b, to: a)
        try expectEqual([a, b])
    }

    // MARK: - What cannot be exported

    @Test func whatCannotBeExported() throws {
        try fill(a, 0..<3, "ours")
        let none = #expect(throws: SyncError.self) {
            try a.store.exportBundle(of: "none", to: file)
        }
        #expect(none?.storeError?.code == .datasetNotFound)
        let ahead = #expect(throws: SyncError.self) {
            try a.store.exportBundle(of: "notes", to: file, since: 4)
        }
        #expect(ahead?.storeError?.code == .invalidArgument)
        let own = #expect(throws: SyncError.self) {
            try a.store.exportBundle(of: "notes", to: file, for: a.store.replicaID)
        }
        #expect(own?.storeError?.code == .invalidArgument)
        let nowhere = #expect(throws: SyncError.self) {
            try a.store.exportBundle(of: "notes", to: "\(directory.path)/none/file")
        }
        #expect(nowhere?.storeError?.code == .notAStore)
        #expect(!Files.exists(file))
    }
}
