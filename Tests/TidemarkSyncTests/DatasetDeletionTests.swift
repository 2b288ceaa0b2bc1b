import Synchronization
import Testing
import Tidemark
import TidemarkSync

/// Deleting whole datasets on one side while the other goes on with them.
struct DatasetDeletionTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    /// Both have "shared"; b then deletes the dataset, and a writes "unseen" before it hears of it.
    private func deleteThere() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        #expect(try b.dataset().text("shared") == "shared")
        try a.dataset().put("unseen", for: "unseen")
        try b.store.deleteDataset("notes")
    }

    private func synchronize(_ action: DatasetDeletedAction) async throws -> [SyncResult] {
        try await a.store.synchronize(
            with: b.transport, options: SyncOptions(onDatasetDeleted: action))
    }

    @Test func keepAndStopChangesNothing() async throws {
        try await deleteThere()
        let before = try Contents(a.dataset())
        let error = await #expect(throws: SyncError.self) { try await synchronize(.keepAndStop) }
        #expect(error?.code == .datasetDeleted)
        #expect(error?.dataset == "notes")
        #expect(try Contents(a.dataset()) == before)
        #expect(try b.store.existingDataset("notes") == nil)
    }

    @Test func discardLocalDeletesItHereToo() async throws {
        try await deleteThere()
        _ = try await synchronize(.discardLocal)
        #expect(try a.store.existingDataset("notes") == nil)
        #expect(try b.store.existingDataset("notes") == nil)
        // And it stays so, also for whoever hears of it later.
        _ = try await synchronize(.keepAndStop)
        try await c.store.synchronize(with: a.transport)
        #expect(try c.store.existingDataset("notes") == nil)
        #expect(try a.store.existingDataset("notes") == nil)
    }

    @Test func keepAndRecreateBringsItBackOnBothSides() async throws {
        try await deleteThere()
        _ = try await synchronize(.keepAndRecreate)
        #expect(try b.store.existingDataset("notes") != nil)
        #expect(try b.dataset().text("shared") == "shared")
        #expect(try b.dataset().text("unseen") == "unseen")
        try expectEqual([a, b])
        try await c.store.synchronize(with: b.transport)
        try expectEqual([a, b, c])
        _ = try await synchronize(.keepAndStop)
        try expectEqual([a, b])
    }

    /// b settled the conflict of a's write with its own, and a, which never heard of that, knows of
    /// a deletion that covers b's write alone.
    ///
    ///     a  writes A --------------------- hears of the deletion, keeps A ---- synchronizes
    ///     b  writes B, to c, pulls A, settles for B                             |
    ///     c              deletes what it knows, B -------^                      both have B
    @Test func whatWasSettledBeforeADeletionReachesWhoOutlivedItWithoutThat() async throws {
        try put("A", a)
        b.clock.putForward(bySeconds: 1)
        try put("B", b)
        try await c.store.synchronize(with: b.transport)
        await #expect(throws: SyncError.self) {
            try await b.store.synchronize(
                with: FaultyTransport(a.responder, .losesRequest, after: 2))
        }
        #expect(try b.dataset().text("key") == "B")
        #expect(try b.dataset().record(for: "key")?.version.vector.dots.count == 2)
        try c.store.deleteDataset("notes")
        try await a.store.synchronize(
            with: c.transport, options: SyncOptions(onDatasetDeleted: .keepAndRecreate))
        #expect(try a.dataset().text("key") == "A")
        let result = try await a.store.synchronize(with: b.transport)
        #expect(result.map(\.isComplete) == [true])
        try expectEqual([a, b])
        #expect(try a.dataset().text("key") == "B")
    }

    /// A clock that was ahead when the dataset was made dates that after any deletion. Nobody has
    /// made it anew for all that, and what was seen there would go unasked.
    @Test(arguments: [
        DatasetDeletedAction.discardLocal, .keepAndRecreate, .keepAndStop,
    ])
    func aStampThatIsNotBelievedIsNoAnswer(_ action: DatasetDeletedAction) async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        c.clock.putForward(bySeconds: 3_600)
        _ = try c.dataset()
        try await c.store.synchronize(with: a.transport)
        try b.store.deleteDataset("notes")
        guard action != .keepAndStop else {
            let error = await #expect(throws: SyncError.self) { try await synchronize(action) }
            #expect(error?.code == .datasetDeleted)
            #expect(try a.dataset().text("shared") == "shared")
            return
        }
        // Once: then the other side knows, too.
        for answer in [action, .keepAndStop] { _ = try await synchronize(answer) }
        let isKept = action == .keepAndRecreate
        for store in [a.store, b.store] {
            let dataset = try store.existingDataset("notes")
            #expect(try dataset?.text("shared") == (isKept ? "shared" : nil))
            #expect((dataset != nil) == isKept)
        }
    }

    /// Whoever deletes what a peer has just made must stamp it later, even within one tick of the
    /// clocks and with the smaller replica id.
    @Test func aDeletionIsLaterThanTheCreationItHasSeen() async throws {
        for round in 0..<50 {
            let name = "made-\(round)"
            _ = try a.dataset(name)
            try await a.store.synchronize(with: b.transport, datasets: [name])
            let created = try #require(try b.store.existingDataset(name)).knowledge().lifecycle
            try b.store.deleteDataset(name)
            let deleted = try #require(try b.store.datasetForSync(name, creating: false))
            #expect(try deleted.knowledge().lifecycle.time > created.time)
        }
    }

    @Test func keepAndRecreateKeepsAnEmptyDatasetToo() async throws {
        _ = try a.dataset("empty")
        try await a.store.synchronize(with: b.transport)
        try b.store.deleteDataset("empty")
        _ = try await synchronize(.keepAndRecreate)
        #expect(try a.store.existingDataset("empty") != nil)
        #expect(try b.store.existingDataset("empty") != nil)
    }

    @Test func deletingHereDeletesThere() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        try a.store.deleteDataset("notes")
        try await a.store.synchronize(with: b.transport)
        #expect(try a.store.existingDataset("notes") == nil)
        #expect(try b.store.existingDataset("notes") == nil)
    }

    /// A deletion takes only what its maker had seen.
    @Test func whatTheDeleterNeverSawSurvives() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        try b.dataset().put("unseen", for: "unseen")
        try a.store.deleteDataset("notes")
        try await a.store.synchronize(with: b.transport)
        try expectEqual([a, b])
        #expect(try b.dataset().text("shared") == nil)
        #expect(try b.dataset().text("unseen") == "unseen")
        #expect(try a.dataset().text("unseen") == "unseen")
    }

    /// Whether it is there follows from what it holds: not from what was heard first, the deletion
    /// of the dataset or that of the record which outlived it.
    @Test func theEndOfTheLastSurvivorEndsTheDataset() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        try b.dataset().put("unseen", for: "unseen")
        try await c.store.synchronize(with: b.transport)
        try a.store.deleteDataset("notes")
        try await a.store.synchronize(with: b.transport)
        #expect(try a.dataset().text("unseen") == "unseen")
        // Who does this has not heard of the dataset's deletion.
        try c.dataset().delete("unseen")
        _ = try await c.store.synchronize(
            with: b.transport, options: SyncOptions(onDatasetDeleted: .discardLocal))
        _ = try await synchronize(.discardLocal)
        for replica in [a, b, c] { #expect(try replica.store.existingDataset("notes") == nil) }
    }

    /// Whoever deletes the last survivor goes on with the dataset, and that holds for all.
    @Test func whoDeletesASurvivorMakesTheDatasetAnew() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        try b.dataset().put("unseen", for: "unseen")
        try a.store.deleteDataset("notes")
        try await a.store.synchronize(with: b.transport)
        try b.dataset().delete("unseen")
        try await c.store.synchronize(with: b.transport)
        try await a.store.synchronize(with: b.transport)
        for replica in [a, b, c] { #expect(try replica.store.existingDataset("notes") != nil) }
        try expectEqual([a, b, c])
    }

    @Test func aDatasetMadeAnewAfterItsDeletionIsNotAskedAbout() async throws {
        try a.dataset().put("old", for: "old")
        try await a.store.synchronize(with: b.transport)
        try b.store.deleteDataset("notes")
        try b.dataset().put("new", for: "new")
        _ = try await synchronize(.keepAndStop)
        try expectEqual([a, b])
        #expect(try a.dataset().text("old") == nil)
        #expect(try a.dataset().text("new") == "new")
    }

    @Test func aDeletionTravelsThroughOneWhoNeverHadTheDataset() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: c.transport)
        try a.store.deleteDataset("notes")
        try await a.store.synchronize(with: b.transport)
        try await b.store.synchronize(with: c.transport)
        #expect(try c.store.existingDataset("notes") == nil)
    }
}

/// The handler that is asked when a dataset was deleted on the other side.
struct DeletedDatasetHandlerTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private func deleteThere() async throws {
        try a.dataset().put("shared", for: "shared")
        try await a.store.synchronize(with: b.transport)
        try a.dataset().put("unseen", for: "unseen")
        try b.store.deleteDataset("notes")
    }

    private func options(
        _ handler: @escaping @Sendable (DatasetDeletion) async -> DatasetDeletedAction
    ) -> SyncOptions {
        var options = SyncOptions()
        options.deletedDatasetHandler = handler
        return options
    }

    @Test(arguments: [
        DatasetDeletedAction.discardLocal, .keepAndRecreate, .keepAndStop,
    ])
    func theAnswerIsDone(_ action: DatasetDeletedAction) async throws {
        try await deleteThere()
        let asked = Mutex<[DatasetDeletion]>([])
        let report = await a.store.synchronizeEach(
            with: b.transport,
            options: options { deletion in
                asked.withLock { $0.append(deletion) }
                return action
            })
        #expect(asked.withLock { $0.map(\.dataset) } == ["notes"])
        #expect(asked.withLock { $0.first?.peer } == b.store.replicaID)
        switch action {
        case .discardLocal:
            #expect(report.isComplete)
            #expect(try a.store.existingDataset("notes") == nil)
        case .keepAndRecreate:
            #expect(report.isComplete)
            #expect(try b.dataset().text("unseen") == "unseen")
            #expect(try b.dataset().text("shared") == "shared")
        case .keepAndStop:
            #expect(report["notes"]?.error?.code == .datasetDeleted)
            #expect(try a.dataset().text("unseen") == "unseen")
            #expect(try b.store.existingDataset("notes") == nil)
        }
    }

    /// What the handler itself does to the dataset counts, and its answer is then about nothing.
    @Test func aHandlerMayDeleteTheDatasetItself() async throws {
        try await deleteThere()
        let store = a.store
        let report = await a.store.synchronizeEach(
            with: b.transport,
            options: options { _ in
                _ = try? store.deleteDataset("notes")
                return .keepAndRecreate
            })
        #expect(report.isComplete)
        #expect(try a.store.existingDataset("notes") == nil)
        #expect(try b.store.existingDataset("notes") == nil)
    }
}
