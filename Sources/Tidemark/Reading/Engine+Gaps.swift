extension Engine {
    /// Notes a gap that a walk has found, unless something was put into it meanwhile. Takes
    /// `monitor`, for a moment.
    ///
    /// - Parameters:
    ///   - order: of the walk. Of a gap into which something was put, what lies before that in
    ///     this order is kept.
    ///   - putCount: how many records had been put at the moment of the walk, if that is known: if
    ///     none was since, there is nothing to be looked at.
    func note(_ found: KeyGap, order: ScanOrder, putCount: Int? = nil) {
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
    /// Changes that are looked at under the lock: more than a batch that somebody writes again and
    /// again is likely to have, and little beside the time that writing it takes under that lock.
    private static let gapChangesMax: UInt64 = 2_048

    /// Adds the gap if few changes have come since; nil if that is done or cannot be done. Else the
    /// changes that are to be looked at first.
    private func noteIfChecked(
        _ found: KeyGap, since: UInt64, order: ScanOrder, putCount: Int?
    ) -> GapChanges? {
        monitor.lock()
        defer { monitor.unlock() }
        guard !isClosed, !found.isEmpty else { return nil }
        if let putCount, putCount == counted.puts {
            gaps.add(found)
            return nil
        }
        let view = currentView
        // What was written since lies in memtables, if the oldest of them was there already.
        let isInMemtables = view.memtables.last.map { $0.sequenceBase <= since } ?? false
        guard isInMemtables || sequence == since else { return nil }
        let changes = GapChanges(
            sequence: sequence, view: view,
            tails: view.memtables.map { UInt(bitPattern: unsafe $0.tail(of: found.dataset)) })
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
    /// For each memtable of the view the node of the newest change, as read under the writer lock.
    let tails: [UInt]

    /// Cuts a gap where something was put into it after a sequence. O(changes since).
    func cut(_ gap: inout KeyGap, since: UInt64, order: ScanOrder) {
        for (memtable, tail) in zip(view.memtables, tails) {
            var node = unsafe NodePointer(bitPattern: tail)
            while let current = unsafe node {
                let entry = unsafe memtable.entry(of: current)
                guard entry.sequence > since else { return }
                if entry.kind == .put { gap.cut(at: entry.key, keeping: order) }
                unsafe node = current.pointee.previousChange
            }
        }
    }
}
