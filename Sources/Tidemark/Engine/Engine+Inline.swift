// A store without threads, for simulations that must do the same each time.
//
// What the background threads would do is done on the thread of the caller, at the moment
// at which it would have to wait for it: a log is sealed when the queue is full or compaction
// wants it sealed, and a log is made when one is needed. Runs are merged only on demand, by
// ``Store/compact()`` or a step at a time, and so are deletions followed
// (``Store/scoutStep()``). One thread uses such a store, so whoever waits for
// something else than that waits for ever; that is a bug of the caller.

extension EngineState {
    /// Waits for what the background does next, or does it. It gives the lock up meanwhile:
    /// check the condition anew.
    func awaitBackground() {
        guard options.runsInline else { return wait() }
        if failure == nil, !sealing.isEmpty {
            sealNext()
        } else if failure == nil, supply.isAwaited {
            prepareLog()
        } else {
            precondition(
                turn.isWanted, "a store that runs inline is used by one thread at a time")
            // Nobody merges in the background.
            turn.isWanted = false
        }
    }
}

extension Engine {
    /// What the sealing threads do before they end.
    func sealInline() {
        withLock { held in
            while held.failure == nil, !held.sealing.isEmpty { held.sealNext() }
        }
    }
}

extension Store {
    /// Merges once, as the background of a store with threads does where that is due, and returns
    /// whether it was. For stores that run inline.
    ///
    /// - Throws: what ``compact()`` throws.
    package func compactStep() throws(StoreError) -> Bool {
        try engine.beginCompaction()
        defer { engine.endCompaction() }
        return try engine.stoppingOnFailure { () throws(StoreError) in
            try engine.compactWhereDue()
        }
    }
}
