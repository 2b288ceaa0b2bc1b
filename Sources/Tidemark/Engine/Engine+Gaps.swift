extension Engine: GapKeeper {
    func note(_ found: KeyGap, order: ScanOrder) {
        note(found, order: order, putCount: nil)
    }

    /// Notes a gap that a walk has found, unless something was put into it meanwhile, or somebody
    /// holds the lock for long for whom a reader would have to wait.
    ///
    /// - Parameters:
    ///   - order: of the walk. Of a gap into which something was put, what lies before that in
    ///     this order is kept.
    ///   - putCount: how many records had been put at the moment of the walk, if the scout has
    ///     walked: if none was since, there is nothing to be looked at. Nil if a reader has.
    func note(_ found: KeyGap, order: ScanOrder, putCount: Int?) {
        var gap = found
        var since = found.sequence
        // What others have written during a long walk is looked at without the lock, so that only
        // what comes in between is left to be looked at with it.
        for _ in 0..<Self.gapRoundsMax {
            guard let rest = noteIfChecked(gap, since: since, order: order, putCount: putCount)
            else { return }
            rest.cut(&gap, since: since, order: order)
            since = rest.sequence
        }
    }

    private static let gapRoundsMax = 4
    /// How often the processor is given up for the lock.
    private static let gapTurnsMax = 64

    /// Adds the gap if few changes have come since; nil if that is done or cannot be done. Else the
    /// changes that are to be looked at first.
    private func noteIfChecked(
        _ found: KeyGap, since: UInt64, order: ScanOrder, putCount: Int?
    ) -> GapChanges? {
        guard let putCount else {
            // A reader waits for no writer: a note less does no harm.
            return withLock(turnsMax: Self.gapTurnsMax) { held in
                held.addIfChecked(found, since: since, order: order, putCount: nil)
            }
        }
        // The scout does: without its note nobody knows the span, and nobody walks there again.
        return withLock { held in
            held.awaitWriter()
            return held.addIfChecked(found, since: since, order: order, putCount: putCount)
        }
    }
}

extension EngineState {
    /// Changes that are looked at under the lock: more than a batch that somebody writes again and
    /// again is likely to have, and little beside the time that writing it takes under that lock.
    private static let gapChangesMax: UInt64 = 2_048

    fileprivate func addIfChecked(
        _ found: KeyGap, since: UInt64, order: ScanOrder, putCount: Int?
    ) -> GapChanges? {
        guard !isClosed, !found.isEmpty, !isWritingWithoutLock else { return nil }
        if let putCount, putCount == counted.puts {
            gaps.add(found)
            return nil
        }
        let view = currentView
        // What was written since lies in memtables, if the oldest of them was there already.
        let isInMemtables = view.memtables.last.map { $0.sequenceBase <= since } ?? false
        guard isInMemtables || sequence == since else { return nil }
        let changes = GapChanges(sequence: sequence, view: view)
        guard sequence - since <= Self.gapChangesMax else { return changes }
        var gap = found
        changes.cut(&gap, since: since, order: order)
        gaps.add(gap)
        return nil
    }
}

/// What has changed in a dataset up to a sequence, as far as it lies in memtables.
private struct GapChanges {
    let sequence: UInt64
    let view: ReadView

    /// Cuts a gap where something was put into it after a sequence. O(changes since).
    func cut(_ gap: inout KeyGap, since: UInt64, order: ScanOrder) {
        for memtable in view.memtables {
            var node = unsafe memtable.tail(of: gap.dataset)
            while let current = unsafe node {
                let entry = unsafe memtable.entry(of: current)
                guard entry.sequence > since else { return }
                if entry.kind == .put { gap.cut(at: entry.key, keeping: order) }
                unsafe node = current.pointee.previousChange
            }
        }
    }
}
