import Synchronization
import TestSupport
import Testing
import Tidemark

/// A store on a simulated disk and all that it tells.
struct ObservedStore {
    let storage: SimulatedStorage
    let observer: RecordingObserver
    let store: Store
    let dataset: Dataset

    init(
        _ storage: SimulatedStorage = SimulatedStorage(seed: Seed(11)),
        slowness: Duration = .seconds(1_000), durability: Durability = .memory,
        isReadOnly: Bool = false
    ) throws {
        self.storage = storage
        observer = RecordingObserver(slowness: slowness)
        var options = StoreOptions(
            durability: durability, segmentBytes: 1 << 20, compactsAutomatically: false)
        options.isReadOnly = isReadOnly
        store = try Store.open(
            at: simulatedPath, options: options, storage: storage, observer: observer)
        dataset = try store.dataset("main")
    }

    /// Puts so many records of 10 KiB.
    func fill(_ range: Range<Int>) throws {
        for index in range {
            try dataset.put([UInt8](repeating: 7, count: 10_240), for: bytes("\(1_000 + index)"))
        }
    }

    /// What was told, once all of it was.
    func closedEvents() throws -> [StoreEvent] {
        try store.close()
        return observer.events
    }
}

extension [StoreEvent] {
    var openings: [StoreEvent.Opening] {
        compactMap { if case .opened(let opening) = $0 { opening } else { nil } }
    }

    var merges: [StoreEvent.Merge] {
        compactMap { if case .mergeEnded(let merge) = $0 { merge } else { nil } }
    }

    var sealings: [StoreEvent.Sealing] {
        compactMap { if case .logSealed(let sealing) = $0 { sealing } else { nil } }
    }
}

@Suite("Events of a store")
struct StoreEventTests {
    @Test("Two openings are told apart by their counters, also by a clock that stands")
    func openingsOfOneMoment() throws {
        let first = try ObservedStore()
        let before = first.store.counters()
        try first.store.close()
        let second = try ObservedStore(first.storage)
        #expect(second.store.counters().opening != before.opening)
        #expect(first.store.counters().opening == before.opening)
    }

    @Test("How it was opened: made, closed before, not closed before, for reading alone")
    func openings() throws {
        let first = try ObservedStore()
        try first.dataset.put("1", for: "a")
        var random = SeededGenerator(Seed(1))
        let killed = first.storage.afterProcessEnd(using: &random)
        let made = try first.closedEvents()
        #expect(made.first == .opened(StoreEvent.Opening(.created, .zero)))
        #expect(made.last == .closed(nil))

        let closed = try ObservedStore(first.storage).closedEvents().openings
        #expect(closed.map(\.kind) == [.closed])
        #expect(closed[0].entriesReplayed == 1 && closed[0].logsReplayed == 1)
        #expect(closed[0].bytesReplayed > 0 && !closed[0].leavesOutBlocks)

        let recovered = try ObservedStore(killed).closedEvents().openings
        #expect(recovered.map(\.kind) == [.recovered])
        #expect(recovered[0].entriesReplayed == 1)

        let reader = try ObservedStore(first.storage, isReadOnly: true)
        #expect(try reader.closedEvents().openings.map(\.kind) == [.readOnly])

        let again = try ObservedStore(first.storage)
        try again.store.compact()
        #expect(try again.closedEvents().openings.map(\.kind) == [.closed])
        let sealed = try ObservedStore(first.storage).closedEvents().openings
        #expect(sealed[0].segmentCount == 1 && sealed[0].segmentBytes > 0)
        #expect(sealed[0].entriesReplayed == 0)
    }

    @Test("Sealing and merging, with the figures of the files")
    func background() throws {
        let observed = try ObservedStore()
        try observed.fill(0..<120)
        try observed.fill(0..<120)
        try observed.dataset.delete("1000")
        try observed.store.compact()
        let usage = try observed.store.usage()
        let counters = observed.store.counters()
        let events = try observed.closedEvents()
        let sealings = events.sealings
        #expect(sealings.count == 3)
        #expect(sealings.reduce(0) { $0 + $1.entryCount } == 241)
        #expect(sealings.allSatisfy { $0.bytesIn > 0 && $0.bytesOut > 0 })
        #expect(sealings.map(\.log) == sealings.map(\.log).sorted())
        let merge = try #require(events.merges.first)
        let sealed = usage.segments.filter(\.isSealed)
        #expect(events.merges.count == 1 && merge.runCount == 3)
        #expect(merge.bytesIn == sealings.reduce(0) { $0 + $1.bytesOut })
        #expect(merge.bytesOut == sealed.reduce(0) { $0 + $1.fileBytes })
        // The second value of each key stays, and of the one that was deleted nothing; so goes the
        // state of the dataset as of all logs but the last.
        #expect(merge.entriesDropped == 122 + 2)
        let start = StoreEvent.mergeStarted(.init(runCount: 3, bytesIn: merge.bytesIn))
        let begun = try #require(events.firstIndex(of: start))
        #expect(events[begun...].contains(.mergeEnded(merge)))
        #expect(counters.logsSealed == 3 && counters.merges == 1)
        #expect(counters.bytesMergedIn == merge.bytesIn)
        #expect(counters.bytesMergedOut == merge.bytesOut)
        #expect(counters.bytesSealed == merge.bytesIn)
        #expect(counters.entriesDropped == merge.entriesDropped)
        #expect(counters.runCount == 1 && counters.segmentBytes == merge.bytesOut)
    }

    @Test("A writer that stops says so once, with the cause")
    func writerStopped() throws {
        let observed = try ObservedStore(durability: .disk)
        try observed.dataset.put("1", for: "a")
        observed.storage.faults = [
            StorageFault(.inputOutput, of: [.sync, .syncMapping], isLasting: true)
        ]
        expectError(.inputOutput) { try observed.dataset.put("2", for: "a") }
        expectError(.writerStopped) { try observed.dataset.put("3", for: "a") }
        #expect(observed.store.counters().isWriterStopped)
        observed.storage.faults = []
        let closing = expectError(.writerStopped) { try observed.store.close() }
        let events = observed.observer.events
        let causes = events.compactMap { event -> StoreError.Code? in
            if case .writerStopped(let error) = event { error.code } else { nil }
        }
        #expect(causes == [.inputOutput])
        #expect(events.last == .closed(closing))
    }

    @Test("Damage is told once for each place, whoever meets it")
    func damage() throws {
        let first = try ObservedStore()
        var random = SeededGenerator(Seed(2))
        for index in 0..<100 { try first.dataset.put(random.bytes(2_048), for: [UInt8(index)]) }
        try first.store.compact()
        try first.store.close()
        let names = try first.storage.listDirectory(simulatedPath)
        let name = try #require(names.first { $0.hasSuffix(".seg") })
        let path = "\(simulatedPath)/\(name)"
        var file = try #require(first.storage.contents(of: path))
        // Amid the records; what is known of the dataset stands in front of them.
        file[80_000] ^= 1
        first.storage.setContents(of: path, to: file)

        let observed = try ObservedStore(first.storage)
        for _ in 0..<3 { expectError(.corruption) { try observed.dataset.count() } }
        let report = try observed.store.verify(threads: 1)
        expectError(.corruption) { try observed.store.compact() }
        let counted = observed.store.counters().damages
        let events = try observed.closedEvents()
        let told = events.compactMap { event -> StoreError.Location? in
            if case .damageFound(let error) = event { error.location } else { nil }
        }
        #expect(told.count == Set(told).count && told.count == counted && !told.isEmpty)
        #expect(told.contains { $0.path == path && (80..<80_000).contains($0.offset ?? 0) })
        #expect(report.damages.allSatisfy { damage in told.contains { $0 == damage.location } })
        #expect(
            events.contains { event in
                if case .mergeFailed(let error) = event { error.code == .corruption } else { false }
            })
    }

    @Test("Syncs that take long are told, others are counted")
    func slowSyncs() throws {
        let observed = try ObservedStore(slowness: .milliseconds(100), durability: .disk)
        let before = observed.store.counters()
        try observed.dataset.put("1", for: "a")
        let lasting = Mutex<UInt64>(99)
        observed.storage.observe { [storage = observed.storage] call in
            guard call.kind == .syncMapping else { return }
            storage.clockMilliseconds += lasting.withLock { $0 }
        }
        try observed.dataset.put("2", for: "a")
        lasting.withLock { $0 = 100 }
        try observed.dataset.put("3", for: "a")
        observed.storage.observe(nil)
        let after = observed.store.counters()
        #expect(after.syncs == before.syncs + 3)
        #expect(after.syncTime == before.syncTime + .milliseconds(199))
        #expect(after.longestSync == .milliseconds(100))
        let slow = try observed.closedEvents().filter {
            if case .syncWasSlow = $0 { true } else { false }
        }
        #expect(slow == [.syncWasSlow(.milliseconds(100))])
    }

    @Test("What a user has asked for is told at its end")
    func operations() throws {
        let directory = try TemporaryDirectory()
        let observer = RecordingObserver()
        let store = try Store.open(at: directory["store"], observer: observer)
        try store.dataset("main").put("1", for: "a")
        let backup = try store.backup(to: directory["backup"])
        let verification = try store.verify()
        try store.close()
        let others = RecordingObserver()
        let restored = try Store.restore(
            from: directory["backup"], to: directory["restored"], observer: others)
        let checked = try Store.verify(at: directory["restored"], observer: others)
        let repair = try Store.repair(
            at: directory["restored"], to: directory["repaired"], observer: others)
        #expect(
            observer.events.contains { event in
                if case .backupEnded(_, let report) = event { report == backup } else { false }
            })
        #expect(
            observer.events.contains { event in
                if case .verificationEnded(_, let report) = event {
                    report == verification
                } else {
                    false
                }
            })
        guard case .restoreEnded(_, let first) = others.events[0],
            case .verificationEnded(_, let second) = others.events[1],
            case .repairEnded(_, let third) = others.events[2]
        else {
            Issue.record("\(others.events)")
            return
        }
        #expect(first == restored && second == checked && third == repair)
    }

    @Test("A sweep of what has expired is told and counted")
    func sweeps() throws {
        let observed = try ObservedStore()
        let end = observed.storage.clockMilliseconds + 10
        for index in 0..<3 { try observed.dataset.put("1", for: "\(index)", expiresAt: end) }
        try observed.dataset.put("1", for: "stays")
        observed.storage.clockMilliseconds = end
        #expect(try observed.store.deleteExpired() == 3)
        let counters = observed.store.counters()
        #expect(counters.expirySweeps == 1 && counters.recordsExpired == 3)
        #expect(counters.puts == 4 && counters.deletes == 3)
        let sweeps = try observed.closedEvents().compactMap { event -> StoreEvent.Sweep? in
            if case .expirySwept(let sweep) = event { sweep } else { nil }
        }
        #expect(sweeps == [.init(duration: .zero, datasetCount: 1, recordCount: 3)])
    }
}
