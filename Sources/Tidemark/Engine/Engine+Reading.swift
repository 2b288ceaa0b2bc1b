internal import Synchronization

typealias RecordsScope = (id: DatasetID, dirtiness: Dirtiness)

// Readers never wait for a writer: what they need to know of the present is published, and read
// without the lock that writers hold.

extension Engine {
    /// The present moment: every commit that was acknowledged, and no part of another.
    func moment() throws(StoreError) -> Moment {
        if published.refusesReaders.load(ordering: .acquiring) { try checkReadable() }
        return momentNow()
    }

    /// The id of a dataset's records at a moment, and what is dirty among them.
    func scope(
        of state: DatasetState, at moment: Moment
    ) throws(StoreError) -> RecordsScope {
        if published.refusesReaders.load(ordering: .acquiring) { try checkReadable() }
        let id = state.id(atSequence: moment.sequenceMax)
        guard id != 0 else { throw .datasetNotFound(state.name) }
        return (id, state.dirtiness(ownIDs: ownIDs))
    }

    /// Both at once.
    func momentAndScope(
        of state: DatasetState
    ) throws(StoreError) -> (moment: Moment, scope: RecordsScope) {
        let moment = try moment()
        return (moment, try scope(of: state, at: moment))
    }
}

extension EngineParts {
    /// The present moment, also of a store that is closed.
    func momentNow() -> Moment {
        var moment = momentAsStored()
        moment.now = storage.wallClockMilliseconds()
        return moment
    }

    /// The same for who sees records as they are stored, expired ones, too.
    ///
    /// A view has all that was committed while it was the present one, and nothing of a later
    /// commit is missing in it for a reader of that time. So the sequence is one that was read
    /// while the view stood.
    func momentAsStored() -> Moment {
        while true {
            let view = currentView
            let sequence = published.visibleSequence.load(ordering: .acquiring)
            if views.isCurrent(view) { return Moment(view: view, sequenceMax: sequence) }
        }
    }
}

extension Engine {
    /// The newest value of a key, handed out where it lies; nil if there is no live record.
    func withValue<Result>(
        of key: ByteView, in state: DatasetState,
        _ body: (ByteView?) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let pass = views.enter()
        defer { views.leave(pass) }
        let found = try newest(of: key, in: state, pass)
        defer { found?.release() }
        guard let found, found.entry.kind == .put, !hasExpired(found.entry) else {
            return try body(nil)
        }
        guard found.entry.isApart else { return try body(found.entry.valueField) }
        return try found.tables.withValue(of: found.entry) { (value) throws(StoreError) in
            try body(value)
        }
    }

    /// Whether there is a live record of a key.
    func contains(_ key: ByteView, in state: DatasetState) throws(StoreError) -> Bool {
        let pass = views.enter()
        defer { views.leave(pass) }
        let found = try newest(of: key, in: state, pass)
        defer { found?.release() }
        guard let found else { return false }
        return found.entry.kind == .put && !hasExpired(found.entry)
    }

    /// The newest version of a key in the view of a pass.
    private func newest(
        of key: ByteView, in state: DatasetState, _ pass: ViewGate.Pass
    ) throws(StoreError) -> FoundEntry? {
        let sequenceMax = published.visibleSequence.load(ordering: .acquiring)
        let id = state.visibleID
        if published.refusesReaders.load(ordering: .acquiring) { try checkReadable() }
        guard id != 0 else { throw .datasetNotFound(state.name) }
        return try unsafe pass.view.withBorrowed { (view) throws(StoreError) in
            try view.newest(of: key, in: id, sequenceMax: sequenceMax)
        }
    }

    func record(
        of key: ByteView, in state: DatasetState, at moment: Moment, includingDeleted: Bool
    ) throws(StoreError) -> Record? {
        let (id, dirtiness) = try scope(of: state, at: moment)
        return try moment.view.withNewest(of: key, in: id, sequenceMax: moment.sequenceMax) {
            (entry, tables) throws(StoreError) -> Record? in
            guard let entry, let tables, includingDeleted || entry.isLive(at: moment.now) else {
                return nil
            }
            return try Record(entry, tables, dirtiness, now: moment.now)
        }
    }

    /// All versions of a key that are still there, newest first.
    func history(
        of key: ByteView, in state: DatasetState, limit: Int, withCopies: Bool
    ) throws(StoreError) -> [Record] {
        let moment = try moment()
        let (id, dirtiness) = try scope(of: state, at: moment)
        var cursor = try MergeCursor(moment.view, order: .forward)
        try cursor.seek(EntryPosition(before: key, in: id))
        var versions: [Record] = []
        var taken: Set<StoredWrite> = []
        while versions.count < limit, let entry = cursor.entry, entry.dataset == id,
            entry.key.equals(key)
        {
            if entry.sequence <= moment.sequenceMax {
                let record = try Record(entry, cursor.tables, dirtiness)
                if withCopies || taken.insert(StoredWrite(record)).inserted {
                    versions.append(record)
                }
            }
            try cursor.advance()
        }
        return versions
    }
}

/// What makes two stored versions of a key the same write.
///
/// Not the vector, in which a winner is joined with what it has won over; and not the dot alone,
/// which is also that of the mark that takes the place of a record whose time has come.
private struct StoredWrite: Hashable {
    let dot: Dot
    let value: [UInt8]?
    let expiresAt: UInt64?
    let isDropped: Bool

    init(_ record: Record) {
        dot = record.version.dot
        value = record.value
        expiresAt = record.expiresAt
        isDropped = record.isDropped
    }
}

extension Record {
    /// - Parameter now: by which a record has expired; 0 for the record as it is stored.
    /// - Throws: `corruption`, `inputOutput` if the value lies apart and cannot be read.
    init(
        _ entry: Entry, _ tables: VersionTables, _ dirtiness: Dirtiness, now: UInt64 = 0
    ) throws(StoreError) {
        let version = tables.version(of: entry)
        self.init(
            key: entry.key.array,
            value: entry.isLive(at: now) ? try tables.value(of: entry) : nil,
            version: version, syncCount: SyncCount(rawValue: entry.syncCount),
            isDirty: dirtiness.isDirty(version.dot),
            expiresAt: entry.hasExpiry ? entry.expiresAt : nil)
    }
}
