/// Which versions of a dataset's records are still needed: asked once per dataset in a merge.
struct Retention {
    /// False if the dataset was deleted: nothing is needed.
    let isLive: Bool
    /// How many of the newest superseded versions of each key to keep, whatever they are.
    let historyVersions: Int
    /// In milliseconds since 1970: what was superseded then or later is kept, whatever it is.
    let agedBefore: UInt64
    /// Tells which versions no peer is known to have.
    let dirtiness: Dirtiness
    /// Which tombstones have no work left.
    var tombstones = TombstoneRule.keepAll

    /// Whether every tombstone goes when a merge reaches everything older.
    var forgetsDeletions: Bool {
        tombstones.forgetsAll && historyVersions == 0 && agedBefore == .max
    }
}

/// Which tombstones of a dataset may go, as long as nobody who lacks one of them can bring back
/// what it deleted: who does is told so by what it has seen (``ForgottenDeletions``), whatever the
/// reason for which it went.
struct TombstoneRule {
    /// No replica but this one has ever had a part in the dataset, so nobody can lack anything: all
    /// may go, and nothing need be noted of them.
    var isSolitary = false
    /// What the dataset has seen: a tombstone that came in an exchange which has not ended stays.
    var seen = VersionVector()
    /// What every peer that is waited for has seen: tombstones that are in it may go.
    var passed: VersionVector?
    /// Whether `passed` covers everything that there is.
    var isAllPassed = false
    /// In milliseconds since 1970: those from before may go, if any peer has them.
    var agedBefore: UInt64 = 0
    /// By a later date of a tombstone nothing else is to be dated.
    var latestBelieved = HybridTime.zero

    static let keepAll = TombstoneRule()

    var forgetsAll: Bool { isSolitary || isAllPassed }
}

/// Decides, key by key and version by version, newest first, what of a dataset is kept.
struct KeyRetention {
    private let retention: Retention
    private let canCollect: Bool
    /// The tombstones that were collected.
    private(set) var forgotten = ForgottenDeletions()
    private var keptCount = 0
    /// Whether an older version may yet be needed as the ancestor of those kept so far; nil as long
    /// as only the newest was met, which mostly is the only one, and then nobody need know.
    private var isAncestorWanted: Bool?
    /// Of the newest version.
    private var newest = Stamp(syncCount: 0, origin: 0, counter: 0, time: 0)
    private var newestTables: VersionTables?
    /// Of the version before, which superseded the next one.
    private var superseder: (syncCount: UInt64, time: UInt64)?

    /// - Parameter reachesOldest: whether the merge includes the oldest segment, so that nothing
    ///   older of the key can lie anywhere else.
    init(_ retention: Retention, reachesOldest: Bool) {
        self.retention = retention
        canCollect = reachesOldest && retention.historyVersions == 0
    }

    enum Verdict {
        case keep
        case drop
    }

    /// The next version is the newest of another key.
    mutating func beginKey() {
        keptCount = 0
        isAncestorWanted = nil
        superseder = nil
    }

    /// - Parameters:
    ///   - tables: in which the entry's origin has its number.
    ///   - lost: takes note of what is dropped.
    mutating func verdict(
        on entry: Entry, in tables: VersionTables, _ lost: inout HistoryLoss
    ) -> Verdict {
        guard retention.isLive else { return .drop }
        let stamp = entry.stamp
        defer { superseder = (stamp.syncCount, stamp.effectTime(of: entry.kind)) }
        guard let superseder else {
            return verdict(onNewest: entry, stamp, tables, &lost)
        }
        // A tombstone at the head was collected: what follows is older and goes with it.
        if keptCount > 0 {
            let isAncestorWanted = isAncestorWanted ?? isDirty(newest, in: newestTables)
            self.isAncestorWanted = isAncestorWanted
            if keptCount <= retention.historyVersions
                || superseder.time >> 16 >= retention.agedBefore
            {
                keptCount += 1
                if isAncestorWanted { self.isAncestorWanted = isDirty(stamp, in: tables) }
                return .keep
            }
            // The newest version that a peer has stays while newer ones have not been
            // synchronised: it is the ancestor of the conflict that may come.
            if isAncestorWanted, !isDirty(stamp, in: tables) {
                self.isAncestorWanted = false
                return .keep
            }
        }
        lost.noteDropped(supersededAt: superseder.syncCount, time: superseder.time)
        return .drop
    }

    private func isDirty(_ stamp: Stamp, in tables: VersionTables?) -> Bool {
        tables.map { retention.dirtiness.isDirty($0.dot(of: stamp)) } ?? false
    }

    private mutating func verdict(
        onNewest entry: Entry, _ stamp: Stamp, _ tables: VersionTables, _ lost: inout HistoryLoss
    ) -> Verdict {
        // Of the mark of a dropped record nobody else knows.
        if entry.kind == .delete, canCollect,
            stamp.effectTime(of: entry.kind) >> 16 < retention.agedBefore,
            stamp.counter == 0 || isForgettable(entry, stamp, tables)
        {
            // The last word on its key: from now on the key was never there.
            lost.collectedThrough = max(lost.collectedThrough, stamp.syncCount)
            return .drop
        }
        keptCount = 1
        newest = stamp
        // Mostly they are those of the key before, and then they need not be counted again.
        if newestTables !== tables { newestTables = tables }
        return .keep
    }

    /// Whether nobody must be told of a tombstone any more; takes note of it if so.
    private mutating func isForgettable(
        _ entry: Entry, _ stamp: Stamp, _ tables: VersionTables
    ) -> Bool {
        let rule = retention.tombstones
        if rule.isSolitary { return true }
        let isAged = stamp.effectTime(of: entry.kind) >> 16 < rule.agedBefore
        guard rule.passed != nil || isAged else { return false }
        let version = tables.version(of: entry)
        let hasPassed = rule.passed?.covers(version.vector) ?? false
        guard hasPassed || isAged && !retention.dirtiness.isDirty(version.dot),
            rule.seen.covers(version.vector)
        else { return false }
        let time = version.time > rule.latestBelieved ? .zero : version.time
        if !forgotten.covers(version) || time > forgotten.time {
            forgotten.formUnion(ForgottenDeletions(vector: version.vector, time: time))
        }
        return true
    }
}
