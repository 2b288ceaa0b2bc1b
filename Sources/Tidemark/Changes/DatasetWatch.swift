// What the answering side of a watch needs of the store.

extension Store {
    /// Which of these datasets have a count above the given one, and which. A dataset that is not
    /// known here has none. O(datasets asked about).
    package func datasetsAhead(
        of counts: [String: SyncCount]
    ) throws(StoreError) -> [String: SyncCount] {
        var ahead: [String: SyncCount] = [:]
        for (name, known) in counts {
            try DatasetName.check(name)
            guard let state = try engine.existingState(named: name) else { continue }
            let count = engine.withLock { held in state.syncCount }
            if count > known.rawValue { ahead[name] = SyncCount(rawValue: count) }
        }
        return ahead
    }

    /// The same, but waits until there is any; none only if the task is cancelled or the store is
    /// closed. Sleeps without a thread, and looks only at what has changed.
    package func untilAhead(
        of counts: [String: SyncCount]
    ) async throws(StoreError) -> [String: SyncCount] {
        // Opened before anything is looked at, so that no change falls between.
        let interest = ChangeInterest.named(Array(counts.keys))
        let mailbox = engine.waiters.openMailbox(for: interest)
        var ahead = try datasetsAhead(of: counts)
        while ahead.isEmpty, !Task.isCancelled, !engine.waiters.isClosed {
            await engine.waiters.wait(for: interest) { !mailbox.isEmpty }
            var changed: [String: SyncCount] = [:]
            for name in mailbox.takeAll() {
                changed[name] = counts[name]
            }
            ahead = try datasetsAhead(of: changed)
        }
        return ahead
    }

    /// How many tasks sleep now until something changes.
    package var sleeperCount: Int { engine.waiters.sleeperCount }
}
