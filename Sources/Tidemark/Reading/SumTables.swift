internal import Synchronization

/// The tables of sums that were used last, in memory for as long as the store is open.
///
/// Thread rule: all under one lock, which is held for moments only. Two threads that ask for the
/// same table at the same time may both make it; the later one stays.
final class SumTables: Sendable {
    /// In the order of use, the last one last.
    private let tables = Mutex<[SumTable]>([])

    /// The table that was kept last; it holds for a moment of then.
    func table(of dataset: DatasetID, _ kind: SumKind) -> SumTable? {
        tables.withLock { tables in
            guard let index = Self.index(of: dataset, kind, in: tables) else { return nil }
            let table = tables.remove(at: index)
            tables.append(table)
            return table
        }
    }

    func keep(_ table: SumTable) {
        tables.withLock { tables in
            if let index = Self.index(of: table.dataset, table.kind, in: tables) {
                // Somebody else may have been faster, and at a later moment.
                guard tables[index].syncCount <= table.syncCount else { return }
                tables.remove(at: index)
            }
            tables.append(table)
            var leafCount = tables.reduce(0) { $0 + $1.leaves.count }
            while tables.count > Limits.sumTablesMax
                || (leafCount > Limits.sumLeavesMax && tables.count > 1)
            {
                leafCount -= tables.removeFirst().leaves.count
            }
        }
    }

    private static func index(
        of dataset: DatasetID, _ kind: SumKind, in tables: [SumTable]
    ) -> Int? {
        tables.lastIndex { $0.dataset == dataset && $0.kind == kind }
    }
}
