extension Dataset {
    /// Hands out the newest version of each key that has one, tombstones included, in the order of
    /// the keys as they are given, all as of one moment.
    ///
    /// - Parameter body: returns false if it has no room for the record, which ends the run before
    ///   it.
    /// - Returns: how many of the keys were looked at, and what was known at the moment.
    package func withRecords(
        of keys: [[UInt8]], _ body: (ChangeView) throws(StoreError) -> Bool
    ) throws(StoreError) -> (lookedAt: Int, run: ChangeRun) {
        let (moment, id, knowledge) = try engine.monitor.withLock { () throws(StoreError) in
            try engine.checkOpen()
            return (
                Moment(view: engine.currentView, sequenceMax: engine.sequence),
                state.recordsID, state.knowledge
            )
        }
        let run = ChangeRun(through: .zero, isLast: false, knowledge: knowledge)
        guard id != 0 else { return (keys.count, run) }
        var lookedAt = 0
        for key in keys {
            let isTaken = try key.withBytes { (key) throws(StoreError) in
                try moment.view.withNewest(
                    of: key, in: id, sequenceMax: moment.sequenceMax
                ) { (entry, tables) throws(StoreError) -> Bool in
                    guard let entry, let tables else { return true }
                    return try body(ChangeView(entry, tables))
                }
            }
            guard isTaken else { break }
            lookedAt += 1
        }
        return (lookedAt, run)
    }
}
