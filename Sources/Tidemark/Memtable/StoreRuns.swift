internal import Synchronization

/// The order of what a memtable holds of the store's own datasets, of each by itself.
///
/// They are read a few records at a time, between one write and the next: each exchange of a
/// dataset looks at its batons, its notes and what waits of it, and stores some. To look for these
/// among all that came since the log was begun would take the longer the more datasets were
/// exchanged, and the order of all entries (``SortedRuns``) would sort the users' records for it.
/// So each of these datasets has sorted runs of its own. Whoever looks goes back over the changes
/// that came since the last look, each of which leads to the one before, and sorts them together
/// with the runs that are not at least four times as long. A write does nothing for that, and a
/// look after each write pays O(log n).
///
/// Thread rule: all under one lock, which is held while what is new is put into order.
final class StoreRuns: Sendable {
    private struct State {
        /// Longest first.
        var runs: [SortedRuns.Run] = []
        /// The address of the newest node in a run; 0 if there is none.
        var newest: UInt = 0
    }

    private static let growth = 4
    private let states = Mutex<[DatasetID: State]>([:])

    /// Runs that together hold at least the entries of a dataset up to a change, longest first.
    /// Somebody else may have sorted more; that does no harm, since a reader passes over what it
    /// may not see.
    ///
    /// - Parameter newest: the address of the change's node.
    func runs(
        of dataset: DatasetID, through newest: UInt, in memtable: Memtable
    ) -> [SortedRuns.Run] {
        states.withLock { states in
            var state = states[dataset] ?? State()
            var places = memtable.changes(through: newest, after: state.newest)
            guard !places.isEmpty else { return state.runs }
            while let last = state.runs.last, last.count < Self.growth * places.count {
                places = last.places + places
                state.runs.removeLast()
            }
            state.runs.append(memtable.run(of: places))
            state.newest = newest
            states[dataset] = state
            return state.runs
        }
    }
}

extension Memtable {
    /// The addresses of the nodes of a dataset's changes behind one that is known, up to another;
    /// oldest first. O(those).
    ///
    /// - Parameters:
    ///   - newest: the address of the last of them.
    ///   - known: that of the one before the first, or of one that came after `newest`, which is
    ///     known then, too; 0 for all.
    fileprivate func changes(through newest: UInt, after known: UInt) -> [UInt] {
        var node = unsafe NodePointer(bitPattern: newest)
        if let first = unsafe node, let last = unsafe NodePointer(bitPattern: known),
            unsafe first.pointee.order < last.pointee.order
        {
            return []
        }
        var found: [UInt] = []
        while let current = unsafe node {
            let place = UInt(bitPattern: current)
            if place == known { return found.reversed() }
            found.append(place)
            unsafe node = current.pointee.previousChange
        }
        // Of one commit it may be that the known one came later.
        return known == 0 ? found.reversed() : []
    }
}
