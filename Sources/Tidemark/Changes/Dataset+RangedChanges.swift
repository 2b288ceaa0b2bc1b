// The changes of a part of a dataset, for a peer that keeps no more.
//
// Mostly they are a few since the last exchange, and the others are passed over. A peer that begins
// with a small part of a large dataset would have all of it passed over: then the part is walked
// over in the order of its keys, and put into the order of change.

extension Dataset {
    /// Hands out the newest version of each key of a range changed after `since`, in the order of
    /// change. Costs in proportion to the changes of all keys, or to the records of the range,
    /// whichever are fewer, as far as `scanMax` allows.
    ///
    /// - Parameters:
    ///   - skipsMax: changes of other keys to be passed over at most, at least 1: then the run ends
    ///     as if the body had no more room.
    ///   - scanMax: if more than so many changes may have to be looked at, as many keys of the
    ///     range are walked over at most; 0 for none.
    ///   - body: returns false if it has no room for the change, which ends the run before it.
    package func withChanges(
        since: SyncCount, in range: KeyRange, skipsMax: Int, scanMax: Int = 0,
        _ body: (ChangeView) throws(StoreError) -> Bool
    ) throws(StoreError) -> ChangeRun {
        let changes = try engine.changes(of: state, since: since, in: range, isExchange: true)
        let knowledge = changes.knowledge
        let end = max(since, knowledge.syncCount)
        var steps = changes.steps
        if scanMax > 0, range != .all, end.rawValue - since.rawValue > UInt64(scanMax),
            let found = try Self.changes(
                steps.moment, of: steps.dataset, since: since, in: range, countMax: scanMax)
        {
            let through = try Self.handOut(found, steps.moment, of: steps.dataset, body)
            return ChangeRun(
                through: max(since, through ?? end), isLast: through == nil,
                knowledge: knowledge)
        }
        steps.pause(afterSkips: max(1, skipsMax))
        var through = since
        var isFull = false
        while !isFull,
            let syncCount = try steps.next({ (entry, tables) throws(StoreError) -> SyncCount in
                let change = ChangeView(entry, tables)
                if !change.isDropped { isFull = try !body(change) }
                return change.syncCount
            })
        {
            if !isFull { through = syncCount }
        }
        if !isFull, steps.isPaused { through = max(through, SyncCount(rawValue: steps.through)) }
        let isLast = !isFull && !steps.isPaused
        return ChangeRun(through: isLast ? end : through, isLast: isLast, knowledge: knowledge)
    }

    private struct FoundChange {
        let syncCount: UInt64
        let key: [UInt8]
    }

    /// Bytes of keys that are put in order at most.
    private static let foundBytesMax = 16 << 20

    /// The keys of a range that changed after a count, in the order of change; nil if there are
    /// more keys in it than may be walked over.
    private static func changes(
        _ moment: Moment, of dataset: DatasetID, since: SyncCount, in range: KeyRange,
        countMax: Int
    ) throws(StoreError) -> [FoundChange]? {
        guard dataset != 0 else { return [] }
        var scan = try ScanSteps(
            moment, dataset: dataset, range: range, order: .forward, includingDeleted: true)
        var found: [FoundChange] = []
        var (count, bytes) = (0, 0)
        while let change = try scan.next({ (entry, _) throws(StoreError) -> FoundChange in
            FoundChange(syncCount: entry.syncCount, key: entry.key.array)
        }) {
            count += 1
            guard count <= countMax, bytes <= foundBytesMax else { return nil }
            guard change.syncCount > since.rawValue else { continue }
            bytes += change.key.count
            found.append(change)
        }
        found.sort { $0.syncCount < $1.syncCount }
        return found
    }

    /// - Returns: nil if there was room for all of them; else up to where there was.
    private static func handOut(
        _ found: [FoundChange], _ moment: Moment, of dataset: DatasetID,
        _ body: (ChangeView) throws(StoreError) -> Bool
    ) throws(StoreError) -> SyncCount? {
        var through = SyncCount.zero
        for next in found {
            let hasRoom = try next.key.withBytes { (key) throws(StoreError) in
                try moment.view.withNewest(
                    of: key, in: dataset, sequenceMax: moment.sequenceMax
                ) { (entry, tables) throws(StoreError) -> Bool in
                    guard let entry, let tables else { return true }
                    let change = ChangeView(entry, tables)
                    return try change.isDropped ? true : body(change)
                }
            }
            guard hasRoom else { return through }
            through = SyncCount(rawValue: next.syncCount)
        }
        return nil
    }
}
