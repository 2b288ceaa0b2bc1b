import Tidemark

extension Dataset {
    /// The newest version of each key changed after `since`, written for a message.
    ///
    /// - Parameters:
    ///   - recordsMax: records in the page at most, at least 1.
    ///   - bytesMax: bytes of keys and values at most; a single record may exceed it.
    ///   - excluding: leaves out versions of which this proves dot and whole vector known.
    ///   - replicas: those that the message names before the page.
    ///   - withheld: keys of held writes that are left out, so that the vector does not claim them.
    ///   - memory: of who reads page after page.
    ///   - isWanted: leaves out other changes; they count as told.
    func writtenPage(
        since: SyncCount, recordsMax: Int, bytesMax: Int, excluding: VersionVector,
        after replicas: [ReplicaID], withholding withheld: Set<[UInt8]> = [],
        remembering memory: ChangeMemory? = nil,
        where isWanted: (ChangeView) throws(StoreError) -> Bool = { _ in true }
    ) throws(StoreError) -> RecordPage {
        var written = WrittenRecords(after: replicas)
        // Their keys, if anything is held that may follow on them.
        var keys: Set<[UInt8]> = []
        let bounds = pageBounds(records: recordsMax, bytes: bytesMax)
        // In this order: what the vector claimed then is held now, or is among the changes.
        let vectorBefore = try vector
        let held = try QuarantineBook(self).names()
        let run = try withChanges(
            since: since, excluding: excluding, remembering: memory
        ) { (change) throws(StoreError) in
            guard try isWanted(change) else { return true }
            let size = change.keyCount + change.valueCount
            guard bounds.haveRoom(for: size, behind: written.count, written.bytes) else {
                return false
            }
            try written.add(change)
            if !held.isEmpty {
                var key: [UInt8] = []
                change.appendKey(to: &key)
                keys.insert(key)
            }
            return true
        }
        let book = try QuarantineBook(self)
        let isHolding = try !book.isEmpty()
        guard run.isLast, isHolding || !held.isEmpty else { return RecordPage(written, run) }
        let left = try add(
            held, of: book, to: &written, bounds, excluding: excluding, keys.union(withheld))
        var page = RecordPage(written, run)
        page.mayHaveHeld = true
        page.knowledge.vector = vectorBefore
        if !left.isEmpty {
            // What did not fit comes with a page of its own: the next one if there is one, else
            // that of the next exchange, and until then the vector does not claim it.
            if run.through > since {
                page.isLast = false
            } else {
                page.knowledge.vector = vectorBefore.before(left)
                page.seen = vectorBefore
            }
        }
        return page
    }

    /// Adds what is held of the dataset and not known to the receiver: behind all changes, since it
    /// has no place in their order. A page has each key once.
    ///
    /// - Parameters:
    ///   - held: what was held before the changes were read.
    ///   - withheld: keys of which nothing is added.
    /// - Returns: what has no room, or is held no more, and may be behind the changes by now.
    private func add(
        _ held: [HeldName], of book: QuarantineBook, to written: inout WrittenRecords,
        _ bounds: PageBounds, excluding: VersionVector, _ withheld: Set<[UInt8]>
    ) throws(StoreError) -> [Dot] {
        var left: [Dot] = []
        var taken = withheld
        for name in held {
            let dot = name.dot
            guard let record = try book.record(name) else {
                left.append(dot)
                continue
            }
            if excluding.contains(dot), excluding.covers(record.version.vector) { continue }
            // What was overwritten goes with what overwrote it.
            let local = try storedRecord(for: record.key)
            if local?.hasOverwritten(record) ?? false { continue }
            let size = record.key.count + (record.value?.count ?? 0)
            guard !taken.contains(record.key),
                bounds.haveRoom(for: size, behind: written.count, written.bytes)
            else {
                left.append(dot)
                continue
            }
            written.add(record)
            taken.insert(record.key)
        }
        return left
    }

    /// The newest versions of some keys, in their order, written for a message.
    ///
    /// - Parameters:
    ///   - changedThrough: leaves out records that have changed after that count.
    ///   - through: of the page, which is never the last one.
    ///   - bytesMax: bytes of keys and values at most; a single record may exceed it.
    ///   - replicas: those that the message names before the page.
    /// - Returns: with the page, how many of the keys it answers for, from the first on.
    func writtenPage(
        of keys: [[UInt8]], changedThrough: SyncCount = SyncCount(rawValue: .max),
        through: SyncCount = .zero, bytesMax: Int, after replicas: [ReplicaID]
    ) throws(StoreError) -> (page: RecordPage, lookedAt: Int) {
        var written = WrittenRecords(after: replicas)
        let (lookedAt, run) = try withRecords(of: keys) { (record) throws(StoreError) in
            guard record.syncCount <= changedThrough else { return true }
            let size = record.keyCount + record.valueCount
            guard written.count == 0 || written.bytes + size <= bytesMax else { return false }
            try written.add(record)
            return true
        }
        var page = RecordPage(written, run)
        page.through = through
        return (page, lookedAt)
    }

    /// The newest version of each key changed after `since`, in the order of the keys, written for
    /// a message.
    ///
    /// - Parameters:
    ///   - start: the first key; nil for the first there is.
    ///   - recordsMax: records in the page at most, at least 1.
    ///   - bytesMax: bytes of keys and values at most; a single record may exceed it.
    ///   - excluding: leaves out versions of which this proves dot and whole vector known.
    ///   - scannedMax: records that are looked at, and bytes of them, told or not: at least 1.
    /// - Returns: with the page, which is never the last one, the first key that it says nothing
    ///   of; nil if there is none.
    func writtenPage(
        from start: [UInt8]?, since: SyncCount, recordsMax: Int, bytesMax: Int,
        excluding: VersionVector, scannedMax: (records: Int, bytes: Int)
    ) throws(StoreError) -> (page: RecordPage, next: [UInt8]?) {
        var written = WrittenRecords(after: [])
        let (next, run) = try withRecords(
            from: start, since: since, excluding: excluding,
            countMax: scannedMax.records, scannedBytesMax: scannedMax.bytes
        ) { (record) throws(StoreError) in
            guard written.count < max(1, recordsMax) else { return false }
            let size = record.keyCount + record.valueCount
            guard written.count == 0 || written.bytes + size <= bytesMax else { return false }
            try written.add(record)
            return true
        }
        return (RecordPage(written, run), next)
    }
}

/// What a page may hold.
private struct PageBounds {
    /// At least 1.
    let records: Int
    /// Of keys and values; a single record may exceed it.
    let bytes: Int

    /// Whether a record of that size has room behind so many others.
    func haveRoom(for size: Int, behind count: Int, _ bytes: Int) -> Bool {
        count < max(1, records) && (count == 0 || bytes + size <= self.bytes)
    }
}

extension Dataset {
    /// What a page of changes may hold.
    fileprivate func pageBounds(records: Int, bytes: Int) -> PageBounds {
        guard !store.has(.unboundedPages) else {
            return PageBounds(records: .max, bytes: .max)
        }
        return PageBounds(records: records, bytes: bytes)
    }
}
