/// One change where it lies, for whoever writes it out at once: nothing is copied but what is
/// asked for. Valid during the call that hands it out.
@safe
package struct ChangeView {
    /// Which versions share their replica, author and what they had seen of others: equal origins
    /// stand for equal ones, for as long as one walk lasts.
    package struct Origin: Hashable {
        private let tables: ObjectIdentifier
        private let number: UInt32

        fileprivate init(_ tables: VersionTables, _ number: UInt32) {
            self.tables = ObjectIdentifier(tables)
            self.number = number
        }
    }

    private let entry: Entry
    private let tables: VersionTables
    private let stamp: Stamp

    init(_ entry: Entry, _ tables: VersionTables) {
        self.entry = entry
        self.tables = tables
        stamp = entry.stamp
    }

    package var origin: Origin { Origin(tables, stamp.origin) }

    /// Who made it, and what that had seen of others, as it is stored.
    package var source: (replica: ReplicaID, others: VersionVector, author: String) {
        tables.source(of: stamp.origin)
    }

    /// Of the dot.
    package var counter: UInt64 { stamp.counter }

    package var time: HybridTime { HybridTime(rawValue: stamp.time) }

    package var syncCount: SyncCount { SyncCount(rawValue: stamp.syncCount) }

    /// In milliseconds since 1970; 0 if it does not expire.
    package var expiresAt: UInt64 { stamp.expiresAt }

    package var isDeleted: Bool { entry.kind == .delete }

    /// Whether it is the mark of a record that was dropped here and nowhere else.
    package var isDropped: Bool { stamp.counter == 0 }

    /// A copy.
    package var key: [UInt8] { entry.key.array }

    /// A copy; nil for a tombstone.
    /// - Throws: `corruption` or `inputOutput` if the value lies apart and cannot be read.
    package func value() throws(StoreError) -> [UInt8]? {
        try isDeleted ? nil : tables.value(of: entry)
    }

    /// The whole version.
    package var version: Version { tables.version(of: entry) }

    package var keyCount: Int { entry.key.count }

    package func appendKey(to bytes: inout [UInt8]) {
        unsafe bytes.append(contentsOf: entry.key.buffer)
    }

    /// Bytes of the value; 0 for a tombstone. One that lies apart is not read for it.
    package var valueCount: Int { isDeleted ? 0 : entry.valueCount }

    /// - Throws: `corruption` or `inputOutput` if the value lies apart and cannot be read.
    package func appendValue(to bytes: inout [UInt8]) throws(StoreError) {
        try tables.withValue(of: entry) { (value) throws(StoreError) in
            unsafe bytes.append(contentsOf: value.buffer)
        }
    }
}

/// Which changes a peer is known to have: the same for all versions of one origin, but for their
/// counters.
struct KnownChanges {
    private struct Known {
        /// Of the writer's counters: those whose whole vectors the peer has.
        let through: UInt64
        /// Of these: those that were wiped.
        let wipedThrough: UInt64
    }

    private let excluding: VersionVector
    private let wiped: VersionVector
    private var known: [ChangeView.Origin: Known] = [:]
    private var last: (origin: ChangeView.Origin, known: Known)?

    init(_ excluding: VersionVector, wiped: VersionVector) {
        self.excluding = excluding
        self.wiped = wiped
    }

    mutating func contains(_ change: ChangeView) -> Bool {
        let origin = change.origin
        if let last, last.origin == origin { return contains(change.counter, last.known) }
        let found: Known
        if let known = known[origin] {
            found = known
        } else {
            // If the writer's own entry exceeds the dots, it stands among the others.
            let (replica, others, _) = change.source
            found = Known(
                through: excluding.covers(others) ? excluding[replica] : 0,
                wipedThrough: wiped[replica])
            known[origin] = found
        }
        last = (origin, found)
        return contains(change.counter, found)
    }

    /// A version that outlived a deletion of the dataset, because it had won over a write that the
    /// deletion had not seen, is never taken for known: the peer may have seen both writes and
    /// never the one that they became.
    private func contains(_ counter: UInt64, _ known: Known) -> Bool {
        counter <= known.through && counter > known.wipedThrough
    }
}

/// A run of changes that was handed out.
package struct ChangeRun: Sendable {
    /// Everything up to here was handed out in this run or an earlier one, or left out as known.
    package let through: SyncCount
    /// Whether `through` is the dataset's last count at the moment of reading.
    package let isLast: Bool
    /// Of the same moment.
    package let knowledge: DatasetKnowledge
}

extension Dataset {
    /// Hands out the newest version of each key changed after `since`, in the order of change, but
    /// for deletions that count as forgotten: whoever lacks one of them is told so in another way.
    ///
    /// - Parameters:
    ///   - excluding: leaves out versions of which this proves dot and whole vector known.
    ///   - memory: kept for the next run, by whoever reads one after the other; see
    ///     `SupersededChanges`.
    ///   - body: returns false if it has no room for the change, which ends the run before it.
    package func withChanges(
        since: SyncCount, excluding: VersionVector, remembering memory: ChangeMemory? = nil,
        _ body: (ChangeView) throws(StoreError) -> Bool
    ) throws(StoreError) -> ChangeRun {
        let changes = try engine.changes(of: state, since: since, isExchange: true)
        let knowledge = changes.knowledge
        // Asked for each change, and not with a copy of all that is known.
        let forgotten = knowledge.forgotten
        let hasForgotten = !forgotten.isEmpty
        var steps = changes.steps
        var known = KnownChanges(excluding, wiped: knowledge.lifecycle.wiped)
        var through = since
        var isFull = false
        if let memory {
            steps.leaveOut(
                memory.superseded(of: steps.dataset), at: knowledge.syncCount.rawValue)
            steps.pause(afterSkips: memory.passedMax)
        }
        while !isFull {
            let found = try steps.next { (entry, tables) throws(StoreError) -> SyncCount in
                let change = ChangeView(entry, tables)
                let isForgotten =
                    hasForgotten && change.isDeleted
                    && forgotten.covers(tables.version(of: entry))
                if !change.isDropped, !isForgotten, !known.contains(change) {
                    isFull = try !body(change)
                }
                return change.syncCount
            }
            if let syncCount = found {
                if !isFull || engine.options.make(.advanceCursorPastCap) {
                    through = syncCount
                }
                continue
            }
            // At the end, or after many that were superseded.
            guard let memory, steps.isPaused else { break }
            let superseded = memory.superseded(
                of: steps.dataset, since: steps.through, through: knowledge.syncCount.rawValue,
                steps.moment)
            if let superseded {
                steps.leaveOut(superseded, at: knowledge.syncCount.rawValue)
            }
            steps.pause(afterSkips: .max)
        }
        return ChangeRun(
            through: isFull ? through : max(since, knowledge.syncCount), isLast: !isFull,
            knowledge: knowledge)
    }
}
