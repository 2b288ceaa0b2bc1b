public import Tidemark

/// A write that is dated further ahead of this store's clock than it believes
/// (``StoreOptions/clockAheadMax``), and is kept apart until its date has come.
///
/// ```swift
/// for held in try notes.quarantined() {
///     print("\(held.record.keyText ?? "?") is dated \(held.record.version.time)")
///     try notes.release(held)
/// }
/// ```
///
/// See *Writes from the future* in <doc:ConflictHandling>.
public struct QuarantinedWrite: Hashable, Sendable {
    public let dataset: String
    /// Key, value and version as they came; a nil value would delete the record. Its `syncCount`
    /// is zero, since it has no place in the dataset's order of change yet.
    public let record: Record
    /// From when on it counts as any other write, in milliseconds since 1970 by this store's
    /// clock.
    public let dueAt: UInt64
}

extension Dataset {
    /// The writes of this dataset that are held here because of their dates, in no particular
    /// order. Reading sees none of them. O(held), and memory for all of them.
    ///
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func quarantined() throws(StoreError) -> [QuarantinedWrite] {
        let ahead = store.options.clockAheadMax.millisecondsClamped
        var found: [QuarantinedWrite] = []
        try QuarantineBook(self).each { (record) throws(StoreError) in
            // One that was overwritten is forgotten with the next exchange.
            guard try !isOverwritten(record) else { return true }
            let date = record.version.time.milliseconds
            found.append(
                QuarantinedWrite(
                    dataset: name, record: record, dueAt: date > ahead ? date - ahead : 0))
            return true
        }
        return found
    }

    /// Lets a held write count now, whatever its date: as a new write of this store that has seen
    /// it, with its value and its expiry. So it wins over the present record, here and, with the
    /// next exchange, everywhere.
    ///
    /// - Throws: `versionMismatch` if it is not held any more, or the record is being written too
    ///   fast; and what `put` throws.
    public func release(_ write: QuarantinedWrite) throws(StoreError) {
        try settle(write) { _ in (write.record.value, write.record.expiresAt) }
    }

    /// Lets a held write never count: the present record is written anew, having seen it; if there
    /// is none, its deletion. So it has lost, here and, with the next exchange, everywhere.
    ///
    /// - Throws: as ``release(_:)``.
    public func discard(_ write: QuarantinedWrite) throws(StoreError) {
        try settle(write) { local in (local?.value, local?.expiresAt) }
    }

    /// Whether a write has lost already, to one that has seen it or with the whole dataset.
    private func isOverwritten(_ record: Record) throws(StoreError) -> Bool {
        if try knowledge().lifecycle.wiped.covers(record.version.vector) { return true }
        return try storedRecord(for: record.key)?.hasOverwritten(record) ?? false
    }

    /// Writes what is to be there in place of the record and of the held write.
    private func settle(
        _ write: QuarantinedWrite, as content: (Record?) -> (value: [UInt8]?, expiresAt: UInt64?)
    ) throws(StoreError) {
        let book = try QuarantineBook(self)
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            guard let held = try book.held(write.record),
                try !isOverwritten(held)
            else { break }
            let local = try storedRecord(for: held.key)
            let (value, expiresAt) = content(local)
            var batch = ReplicationBatch()
            batch.writes = [
                ReplicatedWrite(
                    key: held.key,
                    content: .resolve(value: value, seen: held.version, expiresAt: expiresAt),
                    expected: local?.version)
            ]
            batch.notes = [try book.note(dropping: held)]
            // Of several that are held of the key it decides about this one.
            if try replicate(batch.claimingNothingHeld(in: self)).isEmpty { return }
        }
        throw StoreError(
            .versionMismatch,
            "the write \(write.record.version.dot) is not held any more; list what is held again")
    }
}
