import Tidemark

// What was left out of what a peer was pushed lies before its position, so that neither a push nor
// a pull comes to it any more. What somebody tries again is therefore put at the end of the order
// of change, under its own version: from then on it is given out like any other change, by
// whichever side asks. Its entry stays until it has arrived, and is waiting again if it is refused
// again.

extension FailedBook {
    /// Tries an outgoing record again. If it has another version by now, its entry goes. O(log n),
    /// and the value is written once more.
    ///
    /// - Returns: false if it is in the list no more.
    static func handOnAnew(
        _ failed: FailedRecord, in dataset: Dataset
    ) throws(StoreError) -> Bool {
        while true {
            guard let (line, entry) = try stored(failed, in: dataset) else { return false }
            var batch = ReplicationBatch()
            let record = try dataset.storedRecord(for: entry.key)
            var value: [UInt8]?
            if let record, record.version.dot == entry.write {
                let content = ReplicatedWrite.Content.adopt(
                    value: record.value, version: record.version, expiresAt: record.expiresAt)
                batch.writes = [
                    ReplicatedWrite(key: entry.key, content: content, expected: record.version)
                ]
                value = entry.changed(state: .due).encoded
            }
            let home = try list(of: dataset, .outgoing).home()
            batch.notes = [SystemNote(in: home, key: line.key, value: value)]
            if try dataset.replicate(batch).isEmpty { return true }
        }
    }

    /// Of each key the version that is to be left out of what a peer is pushed.
    func leftOut(of peer: ReplicaID) -> [[UInt8]: Dot] {
        var leftOut: [[UInt8]: Dot] = [:]
        for entry in entries where entry.peer == peer && entry.state != .due {
            leftOut[entry.key] = entry.write
        }
        return leftOut
    }

    /// Whether a peer that has come to a position in our order of change lacks what was left out
    /// before it: then it must not be told that it has seen all. What a later version of this
    /// module has noted counts, too.
    func holdsBack(
        from peer: ReplicaID, at position: SyncCount
    ) throws(StoreError) -> Bool {
        if hasOthers { return true }
        for entry in entries where entry.peer == peer {
            guard entry.state == .due else { return true }
            // Whoever asked to try it again may have done so since the page was read.
            if let record = try dataset.storedRecord(for: entry.key),
                record.version.dot == entry.write, record.syncCount > position
            {
                return true
            }
        }
        return false
    }

    /// Lets go of failures that are over: those of a peer that has the version now, by itself or
    /// tried again, or where there is another version here; and those of peers that were given up.
    ///
    /// - Parameters:
    ///   - seen: what the peer has seen, without ids in doubt.
    ///   - isGiven: whether a record is given out at its place in the order of change.
    /// - Returns: what is left. O(entries)
    static func afterForgettingEnded(
        in dataset: Dataset, with peer: ReplicaID, seen: VersionVector,
        isGiven: (Record) -> Bool = { _ in true }
    ) throws(StoreError) -> FailedBook {
        var book = try FailedBook(dataset, .outgoing)
        guard !book.entries.isEmpty, !dataset.store.options.isReadOnly else { return book }
        let givenUp = try dataset.givenUpPeers(besides: peer)
        let position = try dataset.checkpoint(for: peer).pushedThrough
        var ended: [FailedRecord] = []
        for entry in book.entries where entry.peer == peer || givenUp.contains(entry.peer) {
            let record = try dataset.storedRecord(for: entry.key)
            if entry.peer == peer, let record, record.version.dot == entry.write,
                !seen.contains(entry.write)
            {
                let hasArrived =
                    entry.state == .due && record.syncCount <= position && isGiven(record)
                guard hasArrived else { continue }
            }
            ended.append(entry)
        }
        guard !ended.isEmpty else { return book }
        var batch = ReplicationBatch()
        batch.notes = try book.notes(removing: ended)
        _ = try dataset.replicate(batch)
        book.remove(ended)
        return book
    }
}
