import Tidemark

// When what was last exchanged. A dataset in which nothing had changed is not in the report of an
// exchange of all, which says of each that it is equal; so the later of two times counts, that of
// the dataset and that of all.

extension SynchronizerBook {
    /// When an exchange of the dataset last ended whole, in milliseconds since 1970. O(1).
    func lastSync(of dataset: String) throws(StoreError) -> UInt64? {
        let times = [
            try time(key(.exchange, dataset)), try time(key(.exchangeOfAll)),
        ]
        return times.compactMap { $0 }.max()
    }

    /// When a full exchange of all datasets last ended whole, in milliseconds since 1970. O(1).
    func lastFullSync() throws(StoreError) -> UInt64? {
        try time(key(.fullExchange))
    }

    /// Notes which datasets have ended whole, in a run that may go on or fail. Not durably: who
    /// loses such a time has only to exchange again.
    func note(_ report: SyncReport, at now: UInt64) throws(StoreError) {
        guard report.datasets.contains(where: \.isComplete) else { return }
        let book = try store.systemDataset(.sync)
        var batch = WriteBatch()
        for outcome in report.datasets where outcome.isComplete {
            let key = key(.exchange, outcome.dataset)
            // Of what is deleted nobody asks.
            if try store.existingDataset(outcome.dataset) == nil {
                if try book.contains(key) { batch.delete(key, in: book) }
            } else {
                batch.put(Self.bytes(now), for: key, in: book)
            }
        }
        try store.write(batch, durability: .memory)
    }

    /// Notes that an exchange of all datasets has ended whole.
    func noteAll(at now: UInt64) throws(StoreError) {
        let book = try store.systemDataset(.sync)
        try book.put(Self.bytes(now), for: key(.exchangeOfAll), durability: .memory)
    }

    func noteFullSync(at now: UInt64) throws(StoreError) {
        let book = try store.systemDataset(.sync)
        try book.put(Self.bytes(now), for: key(.fullExchange), durability: .memory)
    }

    private static func bytes(_ time: UInt64) -> [UInt8] {
        stride(from: 0, to: UInt64.bitWidth, by: 8).map { UInt8(truncatingIfNeeded: time >> $0) }
    }

    /// nil also for what is no time.
    private func time(_ key: [UInt8]) throws(StoreError) -> UInt64? {
        guard let book = try store.existingSystemDataset(.sync), let value = try book.get(key),
            value.count == UInt64.bitWidth / 8
        else { return nil }
        return value.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
