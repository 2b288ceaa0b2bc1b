/// Walks over the changes of one dataset since a sync count, in the order of change: for each key
/// its newest version only. Costs in proportion to the changes, not to the dataset.
///
/// Of one dataset everything in an older source has smaller sync counts than everything in a
/// newer one, so the sources are simply walked one after the other, oldest first.
struct ChangeSteps {
    private enum Source {
        case segment(SealedSegment)
        case memtable([Place])
    }

    /// An entry of a memtable, which holds it; the pointer is valid as long as the moment is.
    @safe
    private struct Place {
        let node: NodePointer
        var entry: Entry { unsafe node.pointee.entry }
    }

    private let moment: Moment
    private let dataset: DatasetID
    private var sources: [Source]
    private var since: UInt64
    private var sourceIndex = 0
    /// Of the current source, when it is a segment.
    private var changeBlocks: ArraySlice<SealedSegment.ChangeBlock> = []
    private var places: ArraySlice<ChangePlace> = []
    private var memtablePlaces: ArraySlice<Place> = []
    private var isInSource = false

    /// - Parameter tails: for each memtable of the moment, in its order, the node of the newest
    ///   change of the dataset, as read under the writer lock together with the moment.
    init(
        _ moment: Moment, dataset: DatasetID, since: UInt64, tails: [UInt]
    ) {
        self.moment = moment
        self.dataset = dataset
        self.since = since
        sources = moment.view.segments.reversed().map { .segment($0) }
        for tail in tails.reversed() {
            var found: [Place] = []
            var node = unsafe NodePointer(bitPattern: tail)
            while let current = unsafe node, unsafe current.pointee.syncCount > since {
                if unsafe current.pointee.sequence <= moment.sequenceMax {
                    unsafe found.append(Place(node: current))
                }
                unsafe node = current.pointee.previousChange
            }
            sources.append(.memtable(found.reversed()))
        }
    }

    /// Hands the next change to the body; nil at the end. The entry is valid during the call.
    mutating func next<Result>(
        _ body: (Entry, VersionTables) -> Result
    ) throws(StoreError) -> Result? {
        while sourceIndex < sources.count {
            switch sources[sourceIndex] {
            case .segment(let segment):
                if let result = try next(in: segment, body) { return result }
            case .memtable(let all):
                if let result = try next(in: all, memtable(at: sourceIndex), body) {
                    return result
                }
            }
            sourceIndex += 1
            isInSource = false
        }
        return nil
    }

    private func memtable(at index: Int) -> Memtable {
        moment.view.memtables[sources.count - 1 - index]
    }

    private mutating func next<Result>(
        in all: [Place], _ memtable: Memtable, _ body: (Entry, VersionTables) -> Result
    ) throws(StoreError) -> Result? {
        if !isInSource {
            memtablePlaces = all[...]
            isInSource = true
        }
        while let place = memtablePlaces.popFirst() {
            let entry = place.entry
            if try isWanted(entry) { return body(entry, memtable.tables) }
        }
        return nil
    }

    private mutating func next<Result>(
        in segment: SealedSegment, _ body: (Entry, VersionTables) -> Result
    ) throws(StoreError) -> Result? {
        let parts = try segment.loadedParts()
        if !isInSource {
            changeBlocks = Self.blocks(parts.changes, dataset: dataset, since: since)
            places = []
            isInSource = true
        }
        while true {
            while let place = places.popFirst() {
                if place.dataset > dataset { return nil }
                guard place.dataset == dataset, place.syncCount > since else { continue }
                let (entry, block) = try segment.entry(of: place, parts)
                if try isWanted(entry) {
                    let result = body(entry, parts.tables)
                    withExtendedLifetime(block) {}
                    return result
                }
            }
            guard let block = changeBlocks.popFirst() else { return nil }
            places = try segment.changeBlock(block)[...]
        }
    }

    /// The blocks of a change index that can hold changes of the dataset after the count.
    private static func blocks(
        _ all: [SealedSegment.ChangeBlock], dataset: DatasetID, since: UInt64
    ) -> ArraySlice<SealedSegment.ChangeBlock> {
        var low = 0
        var high = all.count
        while low < high {
            let middle = (low + high) / 2
            if (all[middle].dataset, all[middle].syncCount) <= (dataset, since) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        let start = max(0, low - 1)
        var end = start
        while end < all.count, all[end].dataset <= dataset {
            end += 1
        }
        return all[start..<end]
    }

    /// Whether the entry is the newest version of its key at the moment.
    private func isWanted(_ entry: Entry) throws(StoreError) -> Bool {
        try moment.view.withNewest(
            of: entry.key, in: dataset, sequenceMax: moment.sequenceMax
        ) { (newest, _) throws(StoreError) in
            newest?.syncCount == entry.syncCount
        }
    }
}

extension Engine {
    /// The changes of a dataset since a count, with the knowledge of the same moment.
    ///
    /// - Parameter isExchange: whether they are for a peer. A peer is also given what a deleted
    ///   dataset still holds, the tombstones that its deletion had not seen; and no deletion that
    ///   it lacks can be forgotten, since of a dataset with peers none ever is.
    /// - Throws: `changesExpired` if tombstones after that count are gone.
    func changes(
        of state: DatasetState, since: SyncCount, at given: Moment? = nil,
        isExchange: Bool = false
    ) throws(StoreError) -> (
        steps: ChangeSteps, dirtiness: Dirtiness, knowledge: DatasetKnowledge
    ) {
        let (moment, id, tails, dirtiness, knowledge, expired) = try monitor.withLock {
            () throws(StoreError) in
            try checkOpen()
            let moment = given ?? Moment(view: currentView, sequenceMax: sequence)
            let id =
                isExchange
                ? state.recordsID : state.id(atSequence: moment.sequenceMax)
            guard id != 0 || isExchange else { throw .datasetNotFound(state.name) }
            let tails = moment.view.memtables.map { memtable in
                UInt(bitPattern: unsafe memtable.tail(of: id))
            }
            return (
                moment, id, tails, state.dirtiness(ownIDs: ownIDs), state.knowledge,
                id == state.recordsID ? state.expiredThrough : 0
            )
        }
        if !isExchange, since.rawValue > 0 {
            try checkNotExpired(since, of: state, id: id, at: moment, expiredThrough: expired)
        }
        let steps = ChangeSteps(
            moment, dataset: id, since: since.rawValue, tails: tails)
        return (steps, dirtiness, knowledge)
    }

    private func checkNotExpired(
        _ since: SyncCount, of state: DatasetState, id: DatasetID, at moment: Moment,
        expiredThrough: UInt64
    ) throws(StoreError) {
        var through = expiredThrough
        for segment in moment.view.segments {
            through = max(
                through, try segment.loadedParts().datasets.rows[id]?.collectedThrough ?? 0)
        }
        guard since.rawValue < through else { return }
        throw StoreError(
            .changesExpired,
            "changes of \(state.name) since \(since) can no longer be told: deletions up to "
                + "\(through) are forgotten. Read the whole dataset, then go on from its present "
                + "sync count")
    }
}
