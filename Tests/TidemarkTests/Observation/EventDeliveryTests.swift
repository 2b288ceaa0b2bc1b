import Synchronization
import TestSupport
import Testing
import Tidemark

/// What an observer may do, and what a slow one brings about.
@Suite("Delivery of events", .timeLimit(.minutes(Patience.minutes)))
struct EventDeliveryTests {
    @Test("An observer may call the store, and writers do not wait for it")
    func observerCallsTheStore() throws {
        let storage = SimulatedStorage(seed: Seed(3))
        let held = Mutex<Store?>(nil)
        let calls = Mutex(0)
        let observer = RecordingObserver(slowness: .zero) { event in
            guard case .syncWasSlow = event, let store = held.withLock({ $0 }) else { return }
            let dataset = try? store.existingDataset("main")
            _ = try? dataset?.put("1", for: "of the observer", durability: .memory)
            if store.counters().syncs > 0 { calls.withLock { $0 += 1 } }
        }
        let options = StoreOptions(durability: .disk, segmentBytes: 1 << 20)
        let store = try Store.open(
            at: simulatedPath, options: options, storage: storage, observer: observer)
        held.withLock { $0 = store }
        let dataset = try store.dataset("main")
        let bodies = (0..<4).map { thread -> @Sendable () throws -> Void in
            {
                for index in 0..<200 {
                    let value = [UInt8](repeating: 1, count: 4_000)
                    try dataset.put(value, for: [UInt8(thread), UInt8(index)])
                }
            }
        }
        try runOnThreads(bodies)
        try store.compact()
        try store.close()
        held.withLock { $0 = nil }
        #expect(calls.withLock { $0 } > 0)
        #expect(observer.events.last == .closed(nil))
    }

    @Test("An observer may close the store, and be the last to hold it")
    func observerCloses() throws {
        let storage = SimulatedStorage(seed: Seed(4))
        let held = Mutex<Store?>(nil)
        let hasClosed = Mutex(false)
        let observer = RecordingObserver(slowness: .zero) { event in
            switch event {
            case .syncWasSlow:
                let store = held.withLock { held in
                    defer { held = nil }
                    return held
                }
                do { try store?.close() } catch { Issue.record("\(error)") }
            case .closed: hasClosed.withLock { $0 = true }
            default: break
            }
        }
        held.withLock { held in
            held = try? Store.open(
                at: simulatedPath, options: StoreOptions(segmentBytes: 1 << 20),
                storage: storage, observer: observer)
        }
        try held.withLock { held in _ = try held?.dataset("main").put("1", for: "a") }
        waitUntil { hasClosed.withLock { $0 } }
        let store = try openSimulated(storage, StoreOptions(segmentBytes: 1 << 20))
        #expect(try store.dataset("main").text("a") == "1")
        try store.close()
    }

    ///     observer   opened (held) ............................ 1,024 told, eventsLost, closed
    ///     writer          1,100 slow syncs, and many more to wait; release
    @Test("A slow observer costs bounded memory, and is told how much it missed")
    func slowObserver() throws {
        let storage = SimulatedStorage(seed: Seed(5))
        let isReleased = Mutex(false)
        let observer = RecordingObserver(slowness: .zero) { _ in
            waitUntil { isReleased.withLock { $0 } }
        }
        let store = try Store.open(
            at: simulatedPath, options: StoreOptions(segmentBytes: 1 << 20), storage: storage,
            observer: observer)
        let dataset = try store.dataset("main")
        for index in 0..<(Limits.waitingEventsMax + 500) {
            try dataset.put([1], for: bytes("\(index)"))
        }
        let lost = store.counters().eventsLost
        let syncs = store.counters().syncs
        #expect(lost >= 400 && syncs >= Limits.waitingEventsMax + 500)
        isReleased.withLock { $0 = true }
        try store.close()
        let told = observer.events
        let missed = told.compactMap { event -> Int? in
            if case .eventsLost(let count) = event { count } else { nil }
        }
        let slowCount = told.count { if case .syncWasSlow = $0 { true } else { false } }
        #expect(told.openings.count == 1 && told.last == .closed(nil))
        #expect(missed.reduce(0, +) == store.counters().eventsLost)
        #expect(slowCount + missed.reduce(0, +) == store.counters().syncs)
    }

    ///     sealing   sync of a segment (held) ................ done
    ///     writer    fills three logs, waits ................. goes on
    ///     test                        sees it wait, releases
    @Test("A writer that waits for sealing is told of and counted")
    func waits() throws {
        let observed = try ObservedStore(slowness: .milliseconds(100))
        let (store, storage) = (observed.store, observed.storage)
        let isReleased = Mutex(false)
        storage.observe(
            before: { call in
                guard call.kind == .sync, call.path.hasSuffix(".seg") else { return }
                waitUntil { isReleased.withLock { $0 } }
            }, after: { _ in })
        let threads = ThreadGroup()
        threads.start {
            for index in 0..<60 {
                let value = [UInt8](repeating: 1, count: 64 << 10)
                do {
                    try observed.dataset.put(value, for: [UInt8(index)])
                } catch {
                    Issue.record("\(error)")
                }
            }
        }
        waitUntil { store.counters().writerWaits == 1 }
        #expect(store.counters().logCount == 3)
        storage.clockMilliseconds += 5_000
        isReleased.withLock { $0 = true }
        threads.join()
        #expect(store.counters().writerWaitTime >= .milliseconds(5_000))
        let events = try observed.closedEvents()
        storage.observe(nil)
        #expect(events.contains(.writerWaited(.milliseconds(5_000))))
    }

    @Test("Counters are of what was done, and never go back")
    func counters() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let observed = try ObservedStore(SimulatedStorage(seed: Seed(random.next())))
            let (store, dataset) = (observed.store, observed.dataset)
            var last = store.counters()
            var (puts, deletes, commits) = (last.puts, last.deletes, last.commits)
            for _ in 0..<400 {
                let key = bytes("\(random.below(100))")
                switch random.below(6) {
                case 0:
                    try dataset.delete(key)
                    (deletes, commits) = (deletes + 1, commits + 1)
                case 1:
                    var batch = WriteBatch()
                    for _ in 0..<3 { batch.put(random.bytes(100), for: key, in: dataset) }
                    batch.delete(key, in: dataset)
                    try store.write(batch)
                    (puts, deletes, commits) = (puts + 3, deletes + 1, commits + 1)
                case 2 where random.oneIn(10): try store.compact()
                default:
                    try dataset.put(random.bytes(9_000), for: key)
                    (puts, commits) = (puts + 1, commits + 1)
                }
                let now = store.counters()
                try require(
                    now.puts == puts && now.deletes == deletes && now.commits == commits,
                    "\(now), not \(puts), \(deletes), \(commits)")
                try require(
                    now.bytesLogged >= last.bytesLogged && now.logsSealed >= last.logsSealed
                        && now.merges >= last.merges && now.syncs >= last.syncs,
                    "\(now) after \(last)")
                last = now
            }
            // What went into logs is what lies in logs now and what was sealed of them.
            let sealed = try observed.closedEvents().sealings.reduce(0) { $0 + $1.bytesIn }
            let after = store.counters()
            try require(
                after.bytesLogged <= sealed + after.logBytes
                    && after.bytesLogged + 80 >= sealed + after.logBytes,
                "\(after.bytesLogged) logged, \(sealed) sealed, \(after.logBytes) not")
        }
    }
}
