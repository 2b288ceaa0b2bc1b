// A store without threads, for simulations that must do the same each time.
//
// What the background threads would do is done on the thread of the caller, at the moment
// at which it would have to wait for it: a log is sealed when the queue is full or compaction
// wants it sealed, and a log is made when one is needed. Runs are merged only on demand, by
// ``Store/compact()`` or a step at a time, and so are deletions followed
// (``Store/scoutStep()``). One thread uses such a store, so whoever waits for
// something else than that waits for ever; that is a bug of the caller.

extension Engine {
    /// Waits for what the background does next, or does it. Check the condition anew. Under
    /// `monitor`, which is given up meanwhile.
    func awaitBackground() {
        guard options.runsInline else { return monitor.wait() }
        if failure == nil, !sealQueue.isEmpty {
            sealNext()
        } else if failure == nil, isPreparing {
            prepareLog()
        } else {
            precondition(
                isCompactionWanted, "a store that runs inline is used by one thread at a time")
            // Nobody merges in the background.
            isCompactionWanted = false
        }
    }

    /// What the sealing threads do before they end.
    func sealInline() {
        monitor.withLock {
            while failure == nil, !sealQueue.isEmpty { sealNext() }
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
