/// What the new store is to know of each dataset, put together from what is left.
///
/// If nothing is lost it is what the damaged store knew. Otherwise a dataset does not claim to
/// have seen what may be gone: its records stand as in the middle of an exchange, so that the
/// next one with any peer brings what the peer has, and positions in the order of change that
/// somebody noted before count as expired. Only of a dataset that no other replica ever had a
/// part in is everything claimed, since nobody could bring it.
struct SalvagedStates {
    private struct Known {
        let state: DatasetState
        /// The log up to which a sealed segment tells the state; 0 if none does.
        let log: UInt64
    }

    /// What was found in the entries of one dataset.
    struct Findings {
        var entryCount = 0
        var syncCountMax: UInt64 = 0
        var seen = VersionVector()
        var dots = VersionVector()
        var versionsLost: UInt64 = 0
        /// When the first of the records expires, in milliseconds since 1970; `.max` if none does.
        var expiresFrom = UInt64.max
    }

    private var known: [String: Known] = [:]
    /// Numbers that any state gives to a name.
    private var named: Set<DatasetID> = []
    /// Names that the store's own records give to numbers.
    private var recordedNames: [DatasetID: String] = [:]
    private(set) var findings: [DatasetID: Findings] = [:]
    private(set) var renamed: [ReplicaID] = []
    private(set) var timeMax: UInt64 = 0
    private(set) var madeUp: Set<String> = []
    /// Numbers that no name belongs to any more: their dataset was deleted.
    private(set) var retired: Set<DatasetID> = []
    /// Of datasets that were deleted or made anew in the logs: the numbers they gave up there.
    private var formerIDs: [String: [DatasetID]] = [:]
    private let hasLoss: Bool

    init(_ salvage: Salvage) {
        hasLoss = !salvage.losses.isEmpty
        readSealedStates(salvage)
        readEvents(salvage)
        for cursor in salvage.cursors { readEntries(cursor) }
        sortOutNumbers()
    }

    private mutating func readSealedStates(_ salvage: Salvage) {
        for segment in salvage.segments {
            let cursor = SalvagedSegmentCursor(segment)
            while let entry = cursor.entry, entry.dataset == 0 {
                if let number = StoreRecords.number(inKey: entry.key) {
                    // The states say the same of those that count, unless they are lost.
                    named.insert(number)
                    do {
                        recordedNames[number] = try StoreRecords.name(entry.valueField)
                    } catch {}
                    cursor.advance()
                    continue
                }
                let name = String(decoding: entry.key.array, as: UTF8.self)
                do {
                    let state = try DatasetState(name: name, decoding: entry.valueField)
                    named.insert(state.recordsID)
                    if entry.syncCount > known[name]?.log ?? 0 {
                        known[name] = Known(state: state, log: entry.syncCount)
                    }
                } catch {}
                cursor.advance()
            }
        }
    }

    private mutating func readEvents(_ salvage: Salvage) {
        for log in salvage.logs {
            for event in log.events {
                switch event {
                case .dataset(let id, let isVisible, let name, let lifecycle):
                    named.insert(id)
                    guard let state = state(name, in: log) else { continue }
                    if state.recordsID != 0, state.recordsID != id {
                        formerIDs[name, default: []].append(state.recordsID)
                    }
                    timeMax = max(timeMax, lifecycle.time.rawValue)
                    state.place(
                        records: id, isVisible: isVisible, lastSequence: 0, time: lifecycle.time)
                    if id == 0 { state.forgetUnfinishedExchanges() }
                    state.lifecycle = lifecycle
                case .checkpoint(let name, let peer, let checkpoint):
                    state(name, in: log)?.register(peer, at: checkpoint)
                case .seen(let name, let vector):
                    state(name, in: log)?.see(vector)
                case .renamed(let id):
                    renamed.append(id)
                case .adopted(let name, let adopted):
                    named.insert(adopted.records)
                    timeMax = max(timeMax, adopted.lifecycle.time.rawValue)
                    state(name, in: log)?.adopt(adopted, lastSequence: 0)
                case .disowned(let name, let id, let isSettled):
                    // A repaired store writes under a new id and claims nothing of its old ones
                    // but what lies here; what others wrote under them comes with an exchange.
                    state(name, in: log)?.disown(id, isSettled: isSettled)
                case .forgotten(let name, let deletions):
                    timeMax = max(timeMax, deletions.time.rawValue)
                    state(name, in: log)?.forget(deletions)
                case .retired(let name, let peer):
                    state(name, in: log)?.retire(peer)
                }
            }
        }
    }

    /// nil if a sealed segment tells the state as of a later log.
    private mutating func state(_ name: String, in log: SalvagedLog) -> DatasetState? {
        if let known = known[name] { return log.file.number > known.log ? known.state : nil }
        let state = DatasetState(name: name)
        known[name] = Known(state: state, log: 0)
        return state
    }

    /// One vector for all entries of a dataset that share an origin.
    private mutating func readEntries(_ cursor: any SalvageCursor) {
        struct Group: Hashable {
            let dataset: DatasetID
            let origin: UInt32
        }
        var last: [Group: Stamp] = [:]
        while let entry = cursor.entry {
            defer { cursor.advance() }
            guard entry.dataset != 0 else { continue }
            let stamp = entry.stamp
            findings[entry.dataset, default: Findings()].entryCount += 1
            findings[entry.dataset]!.syncCountMax = max(
                findings[entry.dataset]!.syncCountMax, stamp.syncCount)
            if entry.kind == .put, stamp.expiresAt > 0 {
                findings[entry.dataset]!.expiresFrom = min(
                    findings[entry.dataset]!.expiresFrom, stamp.expiresAt)
            }
            guard cursor.version(of: stamp) != nil else {
                // A mark says the same whoever set it.
                if !stamp.isMark(of: entry.kind) { findings[entry.dataset]!.versionsLost += 1 }
                continue
            }
            timeMax = max(timeMax, stamp.time)
            let group = Group(dataset: entry.dataset, origin: stamp.origin)
            if stamp.counter > last[group]?.counter ?? 0 { last[group] = stamp }
        }
        for (group, stamp) in last {
            guard let version = cursor.version(of: stamp) else { continue }
            findings[group.dataset]!.seen.formUnion(version.vector)
            findings[group.dataset]!.dots.insert(version.dot)
        }
    }

    private mutating func sortOutNumbers() {
        let current = Set(known.values.map(\.state.recordsID))
        for id in findings.keys.sorted() where !current.contains(id) {
            // Without any loss all states are there: then no dataset has this number any more. With
            // some, a number may have a name of which the state is lost.
            let recordedName = recordedNames[id].flatMap { known[$0] == nil ? $0 : nil }
            guard hasLoss, !named.contains(id) || recordedName != nil else {
                retired.insert(id)
                continue
            }
            var name = recordedName ?? "recovered-\(id)"
            if Limits.systemDatasetNumbers.contains(id) {
                // The store's own datasets need no record to say whose number it is.
                guard let which = SystemDataset(number: id), known[which.storedName] == nil else {
                    retired.insert(id)
                    continue
                }
                name = which.storedName
            }
            while known[name] != nil { name += "-" }
            let state = DatasetState(name: name)
            state.place(
                records: id, isVisible: true, lastSequence: 0,
                time: HybridTime(rawValue: timeMax))
            state.lifecycle.isDeleted = false
            state.lifecycle.time = HybridTime(rawValue: timeMax)
            known[name] = Known(state: state, log: 0)
            if recordedName == nil { madeUp.insert(name) }
        }
    }

    // MARK: - What comes of it

    /// The names of the datasets with the given numbers.
    func names(_ range: ClosedRange<DatasetID>) -> [String] {
        known.values.filter {
            $0.state.recordsID != 0 && range.contains($0.state.recordsID)
        }.map(\.state.name).sorted()
    }

    /// The only replica that ever wrote, if there was but one.
    var onlyWriter: ReplicaID? {
        var all = VersionVector()
        for state in known.values.map(\.state) {
            all.formUnion(state.vector)
            all.formUnion(state.outstanding)
        }
        for finding in findings.values { all.formUnion(finding.seen) }
        return all.count == 1 ? all.dots[0].replica : nil
    }

    /// Datasets in the order of their names, as the new store will find them.
    ///
    /// - Parameters:
    ///   - own: all ids of the damaged store.
    ///   - replica: the id of the new one.
    ///   - lostMax: no more entries can have been lost than this.
    func finished(
        own: [ReplicaID], replica: ReplicaID, lostMax: UInt64
    ) -> [DatasetState] {
        var states: [DatasetState] = []
        for (_, entry) in known.sorted(by: { $0.key < $1.key }) {
            let state = entry.state
            let found = findings[state.recordsID] ?? Findings()
            let all = state.vector.union(state.outstanding).union(found.seen)
            state.syncCount = max(state.syncCount, found.syncCountMax)
            if let former = formerIDs[state.name] {
                // Each time its records went counted as a change that came after theirs.
                let last = former.reduce(0) { max($0, findings[$1]?.syncCountMax ?? 0) }
                state.expire(through: last + UInt64(former.count))
            }
            if found.expiresFrom < .max { state.noteExpiry(of: .put, found.expiresFrom) }
            if hasLoss {
                let isAlone =
                    entry.log > 0 && state.peers.isEmpty
                    && all.dots.allSatisfy { own.contains($0.replica) }
                state.vector = isAlone ? all : VersionVector()
                state.outstanding = isAlone ? VersionVector() : all
                state.forgetPositions()
                state.expire(through: state.syncCount + lostMax)
            } else {
                for dot in found.dots.dots where own.contains(dot.replica) {
                    state.vector.insert(dot)
                }
                state.outstanding.formUnion(found.seen)
                if state.vector.covers(state.outstanding) { state.outstanding = VersionVector() }
            }
            state.vector.insert(Dot(replica: replica, counter: found.versionsLost))
            states.append(state)
        }
        return states
    }
}
