extension Dataset {
    /// Hands out the newest version of each key of a range changed after `since`, in the order of
    /// change.
    ///
    /// - Parameters:
    ///   - skipsMax: changes of other keys to be passed over at most, at least 1: then the run ends
    ///     as if the body had no more room.
    ///   - body: returns false if it has no room for the change, which ends the run before it.
    package func withChanges(
        since: SyncCount, in range: KeyRange, skipsMax: Int,
        _ body: (ChangeView) throws(StoreError) -> Bool
    ) throws(StoreError) -> ChangeRun {
        let changes = try engine.changes(of: state, since: since, in: range, isExchange: true)
        let end = max(since, changes.knowledge.syncCount)
        var steps = changes.steps
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
        return ChangeRun(
            through: isLast ? end : through, isLast: isLast, knowledge: changes.knowledge)
    }
}
