extension Engine {
    /// Sums over the records of a dataset as of now. O(n) when there is no table of it that can be
    /// brought to this moment; else in proportion to the changes since it was asked for last.
    ///
    /// - Parameters:
    ///   - forgotten: tombstones that had seen no more than this do not count.
    ///   - isExchange: whether they are for a peer, which is told of what a deleted dataset still
    ///     holds, too.
    ///   - tell: called now and then while all records are walked over, with the bytes of keys and
    ///     values since the last call.
    /// - Throws: `datasetNotFound` unless `isExchange`, and what reading throws.
    func recordSums(
        of state: DatasetState, _ kind: SumKind, forgotten: VersionVector = VersionVector(),
        isExchange: Bool, tell: ((UInt64) -> Void)? = nil
    ) throws(StoreError) -> RecordSums {
        let (moment, id, knowledge) = try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            guard isExchange || state.isVisible else { throw .datasetNotFound(state.name) }
            return (momentNow(), state.recordsID, state.knowledge)
        }
        let scan = SumScan(moment: moment, dataset: id, kind: kind, forgotten: forgotten)
        let segments = moment.view.segments.map(\.number)
        if id != 0, let known = sumTables.table(of: id, kind),
            let table = try renewed(
                known, by: scan, syncCount: knowledge.syncCount, segments: segments)
        {
            sumTables.keep(table)
            return RecordSums(table, scan, knowledge)
        }
        let table = try scan.table(
            syncCount: knowledge.syncCount, segments: segments, tell: tell)
        if id != 0 { sumTables.keep(table) }
        return RecordSums(table, scan, knowledge)
    }

    /// Brings a table to the moment of a scan; nil if it is as good to make it anew.
    private func renewed(
        _ table: SumTable, by scan: SumScan, syncCount: SyncCount, segments: [UInt64]
    ) throws(StoreError) -> SumTable? {
        guard table.syncCount <= syncCount else { return nil }
        // Tombstones that counted may be forgotten now, and such that were passed over may count:
        // what is forgotten is told by whoever asks, and differs from one to the next.
        let hasForgottenMore = table.deletedCount > 0 && scan.forgotten != table.forgotten
        let hasForgottenLess =
            table.forgottenCount > 0 && !scan.forgotten.covers(table.forgotten)
        if table.segments != segments {
            guard table.deletedCount == 0 else { return nil }
            for segment in scan.moment.view.segments {
                let collected = try segment.parts().losses()[scan.dataset].collectedThrough
                guard collected <= table.syncCount.rawValue else { return nil }
            }
        }
        if table.syncCount == syncCount, !hasForgottenMore, !hasForgottenLess,
            scan.now.map(table.holds(at:)) ?? true
        {
            return SumTable(
                table, forgotten: scan.forgotten, syncCount: syncCount, segments: segments)
        }
        var isStale = [Bool](repeating: false, count: table.leaves.count)
        var staleCount = 0
        if let now = scan.now {
            for (index, leaf) in table.leaves.enumerated() where !leaf.holds(at: now) {
                isStale[index] = true
                staleCount += 1
            }
        }
        for (index, leaf) in table.leaves.enumerated() {
            guard
                hasForgottenMore && leaf.deletedCount > 0
                    || hasForgottenLess && leaf.forgottenCount > 0
            else { continue }
            isStale[index] = true
            staleCount += 1
        }
        if table.syncCount < syncCount {
            var steps = ChangeSteps(
                scan.moment, dataset: scan.dataset, since: table.syncCount.rawValue)
            var changeCount = 0
            let missesDeletions = options.make(.digestMissesDeletions)
            while let (index, isDeletion) = try steps.next({ entry, _ in
                (table.leaf(of: entry.key), entry.kind == .delete)
            }) {
                changeCount += 1
                // Changes are found one by one, and a walk over all records is many times as fast.
                guard changeCount <= max(Self.changesMin, table.total.count / 16) else {
                    return nil
                }
                guard !isStale[index], !(isDeletion && missesDeletions) else { continue }
                isStale[index] = true
                staleCount += 1
            }
        }
        guard staleCount > 0 else {
            return SumTable(
                table, forgotten: scan.forgotten, syncCount: syncCount, segments: segments)
        }
        return try scan.renewed(
            table, where: isStale, syncCount: syncCount, segments: segments)
    }

    /// As many changes as are always looked for one by one.
    private static let changesMin = 256
}
