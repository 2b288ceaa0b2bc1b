import Dispatch
import Synchronization
import TestSupport
import Testing
import Tidemark

/// The states of datasets come into memory when they are asked for and go when nobody holds them;
/// nobody can tell but by the memory it takes.
@Suite("States of datasets on demand")
struct DatasetCatalogTests {
    /// Keeps no state that nobody holds.
    private func forgetfulOptions(_ durability: Durability = .memory) -> StoreOptions {
        var options = quickOptions()
        options.durability = durability
        options.keptDatasetStatesMax = 0
        return options
    }

    private func name(_ number: Int) -> String { "dataset-\(number)" }

    private func makeDatasets(_ count: Int, in store: Store) throws {
        for number in 0..<count {
            try store.dataset(name(number)).put("\(number)", for: "key")
        }
        try store.compact()
    }

    /// Seals everything, and waits until what can be let go was let go.
    private func settle(_ store: Store) throws {
        try store.compact()
        try store.waitForBackgroundWork()
    }

    @Test("Opening brings no state into memory, and each dataset is found")
    func opening() throws {
        let fixture = try StoreFixture(forgetfulOptions())
        try makeDatasets(3_000, in: fixture.store)
        let (store, main) = try fixture.reopened(forgetfulOptions())
        #expect(store.datasetStatesInMemory == 1)
        #expect(main.name == "main")
        for number in stride(from: 0, to: 3_000, by: 7) {
            #expect(try store.existingDataset(name(number))?.text("key") == "\(number)")
        }
        #expect(store.datasetStatesInMemory < 10)
        #expect(try store.existingDataset("nowhere") == nil)
        #expect(try store.datasetNames().count == 3_001)
        try store.close()
    }

    @Test("A bound on the states that are kept, whatever was held")
    func bound() throws {
        var options = quickOptions()
        options.keptDatasetStatesMax = 50
        let fixture = try StoreFixture(options)
        try makeDatasets(1_000, in: fixture.store)
        var held: [Dataset]? = try fixture.store.datasets()
        #expect(held?.count == 1_001)
        #expect(fixture.store.datasetStatesInMemory == 1_001)
        // As long as they are held there is one state of each, also for new handles.
        try held?[7].put("new", for: "key")
        #expect(try fixture.store.dataset(held?[7].name ?? "").text("key") == "new")
        held = nil
        try settle(fixture.store)
        for number in 0..<1_000 { _ = try fixture.store.dataset(name(number)) }
        #expect(fixture.store.datasetStatesInMemory <= 52)
        try fixture.store.close()
    }

    @Test("Counters, lifecycle and sync count go on where they were")
    func goingOn() throws {
        let fixture = try StoreFixture(forgetfulOptions())
        let store = fixture.store
        for round in 1...6 {
            for number in 0..<20 {
                let dot = try store.dataset(name(number)).put("\(round)", for: "key")
                #expect(dot.counter == UInt64(round))
            }
            if round == 3 { #expect(try store.deleteDataset(name(3))) }
            try settle(store)
            #expect(store.datasetStatesInMemory <= 2)
        }
        // Six writes, and the deletion.
        #expect(try store.dataset(name(3)).syncCount.rawValue == 7)
        #expect(try store.deleteDataset(name(4)))
        try store.compact()
        #expect(try store.existingDataset(name(4)) == nil)
        #expect(try store.datasetNamesForSync().contains(name(4)))
        #expect(try !store.deleteDataset(name(4)))
        try store.close()
    }

    @Test("A snapshot sees the records of datasets that were deleted and made again since")
    func snapshots() throws {
        let fixture = try StoreFixture(forgetfulOptions())
        let store = fixture.store
        try makeDatasets(20, in: store)
        let snapshot = try store.snapshot()
        for number in 0..<10 { #expect(try store.deleteDataset(name(number))) }
        for number in 0..<5 { try store.dataset(name(number)).put("again", for: "key") }
        try store.dataset("later").put("later", for: "key")
        // The log that brought them about is sealed, and others after it.
        for number in 0..<3 {
            try store.dataset("filler").put("\(number)", for: "key")
            try settle(store)
        }
        for number in [0, 1, 2, 3, 4, 10, 11] {
            let dataset = try store.dataset(name(number))
            #expect(try snapshot.get(bytes("key"), in: dataset) == bytes("\(number)"))
        }
        let later = try store.dataset("later")
        expectError(.datasetNotFound) { try snapshot.get(bytes("key"), in: later) }
        snapshot.close()
        #expect(try store.dataset(name(0)).text("key") == "again")
        try store.close()
    }

    @Test("A state whose id changed goes when no snapshot from before is left")
    func snapshotsLetGo() throws {
        let fixture = try StoreFixture(forgetfulOptions())
        let store = fixture.store
        let snapshot = try store.snapshot()
        try makeDatasets(200, in: store)
        for _ in 0..<3 { try settle(store) }
        #expect(store.datasetStatesInMemory >= 200)
        snapshot.close()
        for number in 0..<3 {
            try store.dataset("filler").put("\(number)", for: "key")
            try settle(store)
        }
        #expect(store.datasetStatesInMemory < 10)
        try store.close()
    }

    @Test("Operations are told with the names of their datasets")
    func operations() throws {
        let fixture = try StoreFixture(forgetfulOptions())
        try makeDatasets(30, in: fixture.store)
        try fixture.store.dataset("last").put("1", for: "key")
        let cursor = try fixture.store.operations()
        var names: Set<String> = []
        while let operation = try cursor.next() {
            if operation.kind == .put { names.insert(operation.dataset) }
        }
        #expect(names == Set((0..<30).map { name($0) } + ["last"]))
        try fixture.store.close()
    }

    /// The number of a dataset's records is forgotten only when what is sealed no longer has it:
    ///
    ///     sealed:  a is 1 ----------------------------------------- merged while a is 2
    ///     log:               put a (in 1)   delete a   make a (2)                       crash
    ///
    /// Recovery must know whose the entries of 1 are, or their dots would be given out twice.
    @Test("A merge does not forget a number that an unsealed log names")
    func numbersOfUnsealedLogs() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        var options = forgetfulOptions(.disk)
        options.compactsAutomatically = false
        var store = try openSimulated(storage, options)
        try store.dataset("a").put("first", for: "key")
        // Enough runs for a merge once there is one more.
        for number in 0..<8 {
            try store.dataset("filler").put("\(number)", for: "key \(number)")
            try seal(store)
        }
        try store.close()
        options.compactsAutomatically = true
        store = try openSimulated(storage, options)

        // The second new segment is the one that the merge writes: it waits.
        let (began, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let paths = Mutex<Set<String>>([])
        storage.observe { call in
            guard call.kind == .openFile, call.path.hasSuffix(".seg"),
                paths.withLock({ $0.insert(call.path).inserted && $0.count == 2 })
            else { return }
            began.signal()
            goesOn.wait()
        }
        try seal(store)
        began.wait()
        for number in 2...9 {
            #expect(try store.dataset("a").put("\(number)", for: "key").counter == UInt64(number))
        }
        #expect(try store.deleteDataset("a"))
        #expect(try store.dataset("a").put("again", for: "key").counter == 10)
        goesOn.signal()
        try store.waitForBackgroundWork()
        storage.observe(nil)

        var random = SeededGenerator(Seed(2))
        let crashed = try openSimulated(storage.afterPowerLoss(.nothing, using: &random), options)
        let a = try crashed.dataset("a")
        #expect(try a.text("key") == "again")
        // Ten writes, and the deletion.
        #expect(try a.syncCount.rawValue == 11)
        #expect(try a.put("after", for: "key").counter == 11)
        try crashed.close()
        try store.close()
    }

    /// Writes until the log is full, so that it is sealed without a merge being asked for.
    private func seal(_ store: Store) throws {
        let filler = try store.dataset("filler")
        for number in 0..<12 {
            try filler.put([UInt8](repeating: 7, count: 100_000), for: bytes("\(number)"))
        }
    }
}
