/// The states of datasets that are in memory, each once; all others lie in the sealed segments.
///
/// A store may have a million datasets of which few are used at a time. So a state is read when
/// it is asked for (``StoreRecords``), stays as long as anybody holds it, and may be let go when
/// nobody but the catalog does.
///
/// Invariants:
///
/// 1. Of one name there is never more than one state that anybody can change. A state is let go
///    only when the catalog's is the last reference to it, and one is added only under the lock
///    under which its name was not found here.
/// 2. What is not here is whole in the sealed segments of the present view, and durable there. A
///    state that has changed is held by `touched` until its log ends, and from then by the log's
///    ``SealJob``, which goes when the sealed segment is part of the view. So neither a change
///    that is only in a log, nor one whose segment is not yet in the manifest, can be forgotten.
/// 3. What a state knows only in memory is not missed: its former ids are needed by snapshots from
///    before a change of id, and the ``Era`` of such a snapshot holds the state; the rest is found
///    again.
/// 4. A state that was read from the records of a view is still true if no log has been sealed
///    since (`sealCount`) and none of its name came here meanwhile: by 2, only a sealing can make
///    the records of a newer view say something else.
///
/// Thread rule: everything under the store's writer lock. A crash leaves nothing behind, since
/// nothing of this is on disk.
struct DatasetCatalog {
    /// How many are looked at to let some go, for each that comes: more than one, so that memory
    /// shrinks to the bound after many were held at once.
    private static let examinedEach = 4

    private let keptMax: Int
    /// A place for each state; nil where one was let go.
    private var slots: [DatasetState?] = []
    private var freeSlots: [Int32] = []
    private var slotsByName: [String: Int32] = [:]
    private var slotsByNumber: [DatasetID: Int32] = [:]
    /// Where to look for the next state to let go: the hand of the clock (Corbató, 1969).
    private var hand = 0
    /// Datasets whose state changed since the active log began, each once.
    private var touched: [DatasetState] = []
    /// Which datasets changed when, for exchanges.
    private(set) var roster = ChangeRoster()
    /// How many logs have been sealed since opening.
    private(set) var sealCount: UInt64 = 0
    private var era = Era()

    init(keptMax: Int) {
        self.keptMax = keptMax
    }

    /// How many states are in memory.
    var count: Int { slotsByName.count }

    /// How many places there are for states, those that are free included.
    var slotCount: Int { slots.count }

    // MARK: - Finding

    mutating func state(named name: String) -> DatasetState? {
        guard let slot = slotsByName[name], let state = slots[Int(slot)] else { return nil }
        state.wasUsed = true
        // Also when none comes, so that memory shrinks wherever datasets are used at all.
        if count > keptMax { letGo(examining: 1) }
        return state
    }

    /// The state of the dataset whose records have that number at present.
    func state(numbered id: DatasetID) -> DatasetState? {
        slotsByNumber[id].flatMap { slots[Int($0)] }
    }

    /// All of them, in no order.
    var all: [DatasetState] { slots.compactMap { $0 } }

    /// Those whose names are wanted, in no order. O(states in memory).
    func states(named isWanted: (String) -> Bool) -> [DatasetState] {
        var found: [DatasetState] = []
        for case let state? in slots where isWanted(state.name) { found.append(state) }
        return found
    }

    // MARK: - Coming and changing

    /// Adds a state of a name that is not here.
    mutating func add(_ state: DatasetState) {
        letGo(examining: Self.examinedEach)
        let slot: Int32
        if let free = freeSlots.popLast() {
            slot = free
            slots[Int(free)] = state
        } else {
            slot = Int32(slots.count)
            slots.append(state)
        }
        let former = slotsByName.updateValue(slot, forKey: state.name)
        precondition(former == nil, "a dataset has one state")
        state.wasUsed = true
        if state.recordsID != 0 { slotsByNumber[state.recordsID] = slot }
    }

    /// Takes note that the records of a dataset have another number than before.
    mutating func renumber(_ state: DatasetState, from former: DatasetID) {
        if former != 0 { slotsByNumber[former] = nil }
        if state.recordsID != 0 { slotsByNumber[state.recordsID] = slotsByName[state.name] }
    }

    /// Keeps a state for as long as there are snapshots from before now.
    mutating func keepForSnapshots(_ state: DatasetState) {
        era.keep(state)
    }

    /// What is kept from now on is for snapshots that hold this era or one before.
    mutating func begin(_ next: Era) {
        guard next !== era else { return }
        era.end(before: next)
        era = next
    }

    // MARK: - Logs

    /// Notes that a state changed in the active log, in what concerns peers. The store's own
    /// datasets concern none.
    mutating func noteChange(of state: DatasetState) {
        touch(state)
        if !DatasetName.isSystem(state.name) { roster.note(state.name) }
        state.isNoted = true
    }

    /// The present moment of the roster. O(datasets changed in the active log) if anything was
    /// noted since the last one, else O(1).
    mutating func mark(drawing random: () -> UInt64) -> StoreMark {
        let epoch = roster.epoch
        let mark = roster.mark(drawing: random)
        if roster.epoch != epoch {
            // What is noted is among these, since both are forgotten when a log ends.
            for state in touched { state.isNoted = false }
        }
        return mark
    }

    /// Goes on with the roster of an earlier opening, of which this store is in the last state.
    mutating func resume(_ former: ChangeRoster) {
        roster = former
        // They were touched by reading the log, which is no change.
        for state in touched { state.isNoted = false }
    }

    /// Notes that a state changed in the active log.
    mutating func touch(_ state: DatasetState) {
        guard !state.isTouched else { return }
        state.isTouched = true
        touched.append(state)
    }

    var hasTouched: Bool { !touched.isEmpty }

    /// The states that changed in the log that ends now. The caller holds them until it is sealed.
    mutating func takeTouched() -> [DatasetState] {
        for state in touched {
            state.isTouched = false
            state.isNoted = false
        }
        defer { touched = [] }
        return touched
    }

    /// Takes note that a log was sealed, at the moment at which its segment becomes visible.
    mutating func noteSealed() {
        sealCount += 1
    }

    // MARK: - Letting go

    /// Looks at some states, and lets go of those that nobody holds and that were not asked for
    /// since they were last looked at, while there are more than the bound. Returns whether there
    /// still are.
    @discardableResult
    mutating func letGo(examining countMax: Int) -> Bool {
        var rest = countMax
        while count > keptMax, rest > 0 {
            rest -= 1
            hand = hand + 1 < slots.count ? hand + 1 : 0
            // Nobody can come to hold it meanwhile: it is given out only under the lock.
            guard isKnownUniquelyReferenced(&slots[hand]), let state = slots[hand] else { continue }
            if state.wasUsed {
                state.wasUsed = false
                continue
            }
            precondition(!state.isTouched, "a change that is only in a log would be forgotten")
            slotsByName[state.name] = nil
            if state.recordsID != 0 { slotsByNumber[state.recordsID] = nil }
            slots[hand] = nil
            freeSlots.append(Int32(hand))
        }
        if slots.count > 64, slots.count / 8 > count { shrink() }
        return count > keptMax
    }

    /// Gives back the memory of tables that have become far too large. O(states in memory), after
    /// seven times as many were let go.
    private mutating func shrink() {
        let remaining = all
        slots = remaining
        freeSlots = []
        hand = 0
        slotsByName = Dictionary(minimumCapacity: remaining.count)
        slotsByNumber = Dictionary(minimumCapacity: remaining.count)
        for (slot, state) in remaining.enumerated() {
            slotsByName[state.name] = Int32(slot)
            if state.recordsID != 0 { slotsByNumber[state.recordsID] = Int32(slot) }
        }
    }

    /// Traps unless each place is a state's or free, each state is found by its name and by its
    /// number, and what has changed in the active log is here. O(states in memory).
    func checkInvariants() {
        let known = all
        precondition(known.count == slotsByName.count, "a name leads to no state")
        precondition(known.count + freeSlots.count == slots.count, "a place is lost")
        precondition(freeSlots.allSatisfy { slots[Int($0)] == nil }, "a place is free and taken")
        precondition(
            known.allSatisfy { find($0.name) === $0 }, "a state is not found by its name")
        let numbered = known.filter { $0.recordsID != 0 }
        precondition(
            numbered.allSatisfy { state(numbered: $0.recordsID) === $0 },
            "a state is not found by its number")
        precondition(numbered.count == slotsByNumber.count, "a number leads to another state")
        precondition(
            touched.allSatisfy { $0.isTouched && find($0.name) === $0 },
            "a state has changed and is not here")
        precondition(
            known.count { $0.isTouched } == touched.count, "a change is not listed")
    }

    private func find(_ name: String) -> DatasetState? {
        slotsByName[name].flatMap { slots[Int($0)] }
    }
}
