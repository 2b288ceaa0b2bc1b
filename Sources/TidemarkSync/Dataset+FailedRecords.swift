public import Tidemark

extension Dataset {
    /// Records of this dataset that could not be exchanged, those that have failed for longest
    /// first. O(entries).
    ///
    /// - Parameter includingDropped: whether to give those that were dropped, too.
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func failedRecords(
        includingDropped: Bool = false
    ) throws(StoreError) -> [FailedRecord] {
        var failed: [FailedRecord] = []
        for direction in FailedRecord.Direction.allCases {
            failed += try FailedBook(self, direction).entries
        }
        return failed.filter { includingDropped || $0.state != .dropped }
            .sorted { $0.since < $1.since }
    }

    /// Lets the next exchanges try a record again: an incoming one is asked for by its key, of any
    /// peer; an outgoing one is put at the end of the order of change, so that the peer that it
    /// failed with meets it again, whichever of the two begins. O(log n), and of an outgoing one
    /// the value is written once more.
    ///
    /// - Returns: false if it is not in the list any more.
    /// - Throws: what `put` throws.
    @discardableResult
    public func retry(_ failed: FailedRecord) throws(StoreError) -> Bool {
        guard failed.direction == .outgoing else { return try change(failed, to: .due) }
        return try FailedBook.handOnAnew(failed, in: self)
    }

    /// The same for all that wait.
    public func retryFailedRecords() throws(StoreError) {
        for failed in try failedRecords() where failed.state == .waiting { try retry(failed) }
    }

    /// Gives a record up: it is never tried again, and the two sides stay different in this key
    /// until it gets another version on either side. Nothing is deleted.
    ///
    /// - Returns: false if it is not in the list any more.
    /// - Throws: what `put` throws.
    @discardableResult
    public func drop(_ failed: FailedRecord) throws(StoreError) -> Bool {
        try change(failed, to: .dropped)
    }

    private func change(
        _ failed: FailedRecord, to state: FailedRecord.State
    ) throws(StoreError) -> Bool {
        guard try FailedBook.change(failed, to: state, in: self) else { return false }
        // An exchange that looks only at what has changed is to look at this one.
        try touch()
        return true
    }

    /// Why a peer's record can be stored nowhere; nil if it can.
    func refusal(of record: Record) -> SyncError? {
        refusalByStore(of: record).map {
            SyncError(.recordRefused, $0.message, dataset: name, key: record.key)
        }
    }
}
