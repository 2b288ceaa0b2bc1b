internal import Synchronization

// How states come into memory: looked up under the lock, read from the sealed segments without it,
// and added under it unless a log was sealed meanwhile (``DatasetCatalog``, invariant 4). So nobody
// waits for a disk while holding the lock.

extension EngineParts {
    /// The store's own records, as of now.
    var records: StoreRecords { StoreRecords(currentView, of: path) }
}

extension Engine {
    /// The state if it is in memory. O(1).
    func knownState(named name: String) throws(StoreError) -> DatasetState? {
        try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return held.catalog.state(named: name)
        }
    }

    /// The state of a dataset of which anything is known; nil if there is none. O(1).
    func existingState(named name: String) throws(StoreError) -> DatasetState? {
        try findState(named: name) { nil }
    }

    /// The state of a dataset, an empty one if nothing is known of it.
    func state(named name: String) throws(StoreError) -> DatasetState {
        guard let state = try findState(named: name, orElse: { DatasetState(name: name) }) else {
            preconditionFailure("a new state is a state")
        }
        return state
    }

    private func findState(
        named name: String, orElse makeNew: () -> DatasetState?
    ) throws(StoreError) -> DatasetState? {
        while true {
            let (known, sealCount) = try withLock { (held) throws(StoreError) in
                try held.checkOpen()
                return (held.catalog.state(named: name), held.catalog.sealCount)
            }
            if let known { return known }
            // If there is none in the records there was none when the lock was held.
            guard let state = try records.state(named: name) ?? makeNew() else { return nil }
            let found = withLock { held -> DatasetState? in
                if let known = held.catalog.state(named: name) { return known }
                guard held.catalog.sealCount == sealCount else { return nil }
                held.catalog.add(state)
                return state
            }
            if let found { return found }
        }
    }

    /// Hands out, under the lock, the state of the dataset whose records have that number; nil if
    /// none has. For a look: the state may be one that nobody else knows, and is not to be changed.
    func withState<Result>(
        numbered id: DatasetID, _ body: (EngineState, DatasetState?) -> sending Result
    ) throws(StoreError) -> Result {
        while true {
            var sealCount: UInt64 = 0
            let known = withLock { held -> Result? in
                sealCount = held.catalog.sealCount
                guard let known = held.catalog.state(numbered: id) else { return nil }
                return body(held, known)
            }
            if let known { return known }
            let stored = try records.state(numbered: id)
            let found = withLock { held -> Result? in
                if let known = held.catalog.state(numbered: id) { return body(held, known) }
                // If the state is in memory nevertheless, its records have another number by now.
                guard let stored, held.catalog.state(named: stored.name) == nil else {
                    return body(held, nil)
                }
                guard held.catalog.sealCount == sealCount else { return nil }
                return body(held, stored.recordsID == id ? stored : nil)
            }
            if let found { return found }
        }
    }
}

extension EngineState {
    /// For recovery: the state to which an entry of a log belongs. nil if the dataset has got
    /// another number since, in what is sealed or in the log before the entry.
    func stateForReplay(numbered id: DatasetID) throws(StoreError) -> DatasetState? {
        if let known = catalog.state(numbered: id) { return known }
        guard let name = try records.name(ofNumber: id) else { return nil }
        let state = try storedStateForReplay(named: name)
        return state?.recordsID == id ? state : nil
    }

    /// For recovery: the state of a dataset, an empty one if nothing is known of it.
    func stateForReplay(named name: String) throws(StoreError) -> DatasetState {
        if let known = try storedStateForReplay(named: name) { return known }
        let state = DatasetState(name: name)
        catalog.add(state)
        return state
    }

    /// nil if nothing is known of the dataset.
    private func storedStateForReplay(
        named name: String
    ) throws(StoreError) -> DatasetState? {
        if let known = catalog.state(named: name) { return known }
        guard let state = try records.state(named: name) else { return nil }
        catalog.add(state)
        return state
    }
}

extension EngineParts {
    /// For a merge. Asks the present view each time, so as not to hold on to one for as long as a
    /// merge may take.
    func isNeeded(_ storeRecord: Entry) throws(StoreError) -> Bool {
        try records.isNeeded(storeRecord)
    }
}

extension Engine {
    /// Lets go, a few at a time, of the states that nobody holds. For the sealing thread, after
    /// a log was sealed: only then can those that changed in it go.
    func letGoOfStates() {
        // Twice around: the first time only notes what was not asked for since.
        var rest = 2 * withLock { held in held.catalog.slotCount }
        while rest > 0, withLock({ held in held.catalog.letGo(examining: Self.letGoStep) }) {
            rest -= Self.letGoStep
        }
    }

    /// How many states are looked at while the lock is held: well below a millisecond's worth.
    private static let letGoStep = 1_024
}

extension Store {
    /// For tests.
    package var datasetStatesInMemory: Int { engine.withLock { held in held.catalog.count } }
}

// MARK: - All datasets

/// Which datasets are asked for.
enum DatasetScope {
    /// Those that exist for users.
    case visible
    /// Those of users of which anything is known, deleted ones included.
    case known
}

extension Engine {
    /// The names of datasets of one moment, in their order. O(answer), and a look at each state in
    /// memory.
    ///
    /// - Parameters:
    ///   - names: which of them.
    ///   - limit: how many at most.
    func datasetNames(
        where scope: DatasetScope, _ names: DatasetNameRange = .all, limit: Int = .max
    ) throws(StoreError) -> [String] {
        guard limit > 0 else { return [] }
        var walk = try DatasetWalk(self, scope, names)
        var found: [String] = []
        while found.count < limit, let next = try walk.next() { found.append(next.name) }
        return found
    }

    /// The states of all datasets that were visible at one moment, in the order of their names.
    func visibleStates() throws(StoreError) -> [DatasetState] {
        var walk = try DatasetWalk(self, .visible)
        var states: [DatasetState] = []
        var read: [Int] = []
        while let found = try walk.next() {
            if let known = found.state {
                states.append(known)
                continue
            }
            read.append(states.count)
            states.append(try walk.decode(named: found.name))
            if read.count >= Self.addStep {
                try add(&states, at: read, readAt: walk.sealCount)
                read.removeAll(keepingCapacity: true)
            }
        }
        try add(&states, at: read, readAt: walk.sealCount)
        return states
    }

    private static let addStep = 256

    /// Adds states that were read to the catalog, or puts those in their place that are there.
    private func add(
        _ states: inout [DatasetState], at indices: [Int], readAt sealCount: UInt64
    ) throws(StoreError) {
        var outdated: [Int] = []
        withLock { held in
            for index in indices {
                if let known = held.catalog.state(named: states[index].name) {
                    states[index] = known
                } else if held.catalog.sealCount == sealCount {
                    held.catalog.add(states[index])
                } else {
                    outdated.append(index)
                }
            }
        }
        for index in outdated { states[index] = try state(named: states[index].name) }
    }
}

/// Walks over datasets of users of one moment in the order of their names: those in memory merged
/// with the store's own records. The store's own datasets are not among them.
///
/// Of the records only those are looked at whose names are wanted.
struct DatasetWalk {
    /// How many logs were sealed at the moment.
    let sealCount: UInt64
    private let path: String
    private let scope: DatasetScope
    private let names: DatasetNameRange
    private var inMemory: ArraySlice<(state: DatasetState, isWanted: Bool)>
    private var cursor: MergeCursor
    private var hasGivenEntry = false

    init(
        _ engine: Engine, _ scope: DatasetScope, _ names: DatasetNameRange = .all
    ) throws(StoreError) {
        let (states, view, sealCount) = try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            let states = held.catalog.states { names.contains($0) }.map {
                state -> (state: DatasetState, isWanted: Bool) in
                let isThere = scope == .visible ? state.isVisible : !state.isBlank
                return (state: state, isWanted: isThere && !DatasetName.isSystem(state.name))
            }
            return (states, engine.currentView, held.catalog.sealCount)
        }
        self.sealCount = sealCount
        self.scope = scope
        self.names = names
        path = engine.path
        inMemory = states.sorted { $0.state.name < $1.state.name }[...]
        var runs: [RunCursor] = []
        for run in view.runs { runs.append(try RunCursor(run)) }
        cursor = MergeCursor(memtables: [], runs: runs, order: .forward)
        try names.firstKey.withBytes { (key) throws(StoreError) in
            try cursor.seek(EntryPosition(before: key, in: 0))
        }
    }

    /// The next dataset: with its state if that is in memory; else the walk stands at its record.
    mutating func next() throws(StoreError) -> (name: String, state: DatasetState?)? {
        while true {
            if hasGivenEntry {
                hasGivenEntry = false
                try cursor.advancePastKey()
            }
            let name = try storedName()
            if let known = inMemory.first, name.map({ known.state.name <= $0 }) ?? true {
                inMemory.removeFirst()
                if known.state.name == name { hasGivenEntry = true }
                if known.isWanted { return (known.state.name, known.state) }
                continue
            }
            guard let name, let entry = cursor.entry else { return nil }
            hasGivenEntry = true
            guard !DatasetName.isSystem(name) else { continue }
            let isWanted = scope == .visible ? try isVisible(entry) : true
            if isWanted { return (name, nil) }
        }
    }

    private func storedName() throws(StoreError) -> String? {
        guard let entry = cursor.entry, entry.dataset == 0 else { return nil }
        let name = try decoding { () throws(Malformed) in try StoreRecords.name(entry.key) }
        // In their order, so that the first one behind the range ends it.
        return names.contains(name) ? name : nil
    }

    private func isVisible(_ entry: Entry) throws(StoreError) -> Bool {
        try decoding { () throws(Malformed) in try DatasetState.isVisible(in: entry.valueField) }
    }

    /// The state that was found, for a look: one that was read is nobody else's.
    func state(
        of found: (name: String, state: DatasetState?)
    ) throws(StoreError) -> DatasetState {
        if let known = found.state { return known }
        return try decode(named: found.name)
    }

    /// A state of the record at which the walk stands.
    func decode(named name: String) throws(StoreError) -> DatasetState {
        guard let entry = cursor.entry else { preconditionFailure("the walk stands at no record") }
        return try decoding { () throws(Malformed) in
            try DatasetState(name: name, decoding: entry.valueField)
        }
    }

    private func decoding<Result>(
        _ body: () throws(Malformed) -> Result
    ) throws(StoreError) -> Result {
        do throws(Malformed) {
            return try body()
        } catch {
            throw error.error(in: path, at: nil)
        }
    }
}
