internal import CTidemark

// Searches for a key. The hash index leads to the one place where its newest entry can lie. Where a
// part of the index is damaged, the directory leads to the same place: entries lie in the order of
// their keys, the newest version of each first, so nothing is found that the index would not name
// and nothing missed that it would.
//
// The index names a few bits of a hash for each place, so a search may come to a block that never
// held the key. If that is damaged the directory tells that the key does not lie in it.

extension SegmentParts {
    /// The newest version of a key. O(1): one line of the index and the entry itself. O(log n), and
    /// a block to look through, where the index is damaged.
    @inline(__always)
    func newest(
        of key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        try search(key, in: dataset, hash: hash)
    }

    /// Has the processor fetch what a search for a key looks at first.
    @inline(__always)
    func prefetch(hash: UInt64) {
        let number = HashIndex.bucket(of: hash, count: bucketCount)
        unsafe tidemark_prefetch(buckets + number << 6)
    }

    /// Whether the hash index leads to a place for a hash. No entry is looked at.
    ///
    /// - Throws: `corruption`, `inputOutput` if the index is damaged: this is for whoever looks for
    ///   damage.
    func isIndexed(_ place: EntryPlace, hash: UInt64) throws(StoreError) -> Bool {
        var number = HashIndex.bucket(of: hash, count: bucketCount)
        var visited = 0
        while visited < bucketCount {
            let chunk = number / HashIndex.bucketsPerChunk
            if !checkedChunks[chunk] { try checkChunk(chunk) }
            var bucket = unsafe HashBucket(at: buckets + number << 6, hash: hash)
            while let named = bucket.nextPlace() {
                if named == place { return true }
            }
            guard bucket.isOverflown else { return false }
            number = number + 1 < bucketCount ? number + 1 : 0
            visited += 1
        }
        return false
    }

    @inline(__always)
    private func search(
        _ key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        var number = HashIndex.bucket(of: hash, count: bucketCount)
        var visited = 0
        while visited < bucketCount {
            let chunk = number / HashIndex.bucketsPerChunk
            if !checkedChunks[chunk], !isUsable(chunk: chunk) {
                return try searchByOrder(key, in: dataset)
            }
            var bucket = unsafe HashBucket(at: buckets + number << 6, hash: hash)
            while let place = bucket.nextPlace() {
                let candidate: FoundEntry?
                do throws(StoreError) {
                    candidate = try entry(at: place)
                } catch {
                    try goOn(past: place.block, for: key, in: dataset, after: error)
                    continue
                }
                guard let found = candidate else { continue }
                if found.entry.dataset == dataset, found.entry.key.equals(key) { return found }
                found.release()
            }
            guard bucket.isOverflown else { return nil }
            number = number + 1 < bucketCount ? number + 1 : 0
            visited += 1
        }
        return nil
    }

    // MARK: - Damaged blocks

    /// Goes on as if a block had not held a key, if the directory says that it does not.
    ///
    /// Only where the bytes of the block are not those that were written: if they are, and are
    /// refused for what they say, the directory may be what is wrong.
    ///
    /// - Throws: what reading the block ended with, if the key may lie in it.
    @inline(never)
    private func goOn(
        past block: Int, for key: ByteView, in dataset: DatasetID, after error: StoreError
    ) throws(StoreError) {
        guard !error.isOfEnvironment, !spans(block, key, in: dataset), !isAsWritten(block) else {
            throw error
        }
    }

    /// Whether a block can be read from the disk and its checksum matches.
    private func isAsWritten(_ block: Int) -> Bool {
        do throws(StoreError) {
            try populate(block)
            let (base, handle) = unsafe try stored(block)
            try unsafe checkChecksum(base, handle)
            return true
        } catch {
            return false
        }
    }

    // MARK: - Parts of the index

    /// Checks a part of the hash index that was not found whole yet. False if it is damaged, which
    /// is told and remembered, so that a disk is not asked for it with each search.
    @inline(never)
    private func isUsable(chunk: Int) -> Bool {
        guard !damagedChunks[chunk] else { return false }
        do throws(StoreError) {
            try checkChunk(chunk)
            return true
        } catch {
            if !error.isOfEnvironment { damagedChunks.set(chunk) }
            return false
        }
    }

    /// Compares a part of the hash index with its checksum.
    func checkChunk(_ chunk: Int) throws(StoreError) {
        let first = chunk * HashIndex.bucketsPerChunk
        let count = min(HashIndex.bucketsPerChunk, bucketCount - first)
        let start = Int(footer.indexOffset) + first * HashIndex.bucketByteCount
        let byteCount = count * HashIndex.bucketByteCount
        try telling { () throws(StoreError) in
            try file.populate(offset: start, count: byteCount)
        }
        let bytes = unsafe UnsafeRawBufferPointer(
            rebasing: map[start..<(start + byteCount)])
        let expected = unsafe UInt64(
            littleEndian: (checksums + 8 * chunk).loadUnaligned(as: UInt64.self))
        guard unsafe checksum64(bytes) == expected else {
            throw damaged("the hash index: the checksum does not match", at: UInt64(start))
        }
        checkedChunks.set(chunk)
    }

    var chunkCount: Int { checkedChunks.count }

    /// Of a bucket whose chunk was checked.
    func keyCount(ofBucket number: Int) -> Int {
        unsafe HashBucket(at: buckets + number << 6, hash: 0).count
    }

    // MARK: - By order

    @inline(never)
    private func searchByOrder(
        _ key: ByteView, in dataset: DatasetID
    ) throws(StoreError) -> FoundEntry? {
        guard let place = try placeByOrder(of: key, in: dataset) else { return nil }
        guard let found = try entry(at: place) else { throw changed(place.block) }
        return found
    }

    /// Where the newest entry of a key lies by the order of the entries; nil if there is none.
    /// O(log n), and a block to look through.
    ///
    /// - Throws: `corruption`, `inputOutput` if it may lie in a block that cannot be read.
    func placeByOrder(
        of key: ByteView, in dataset: DatasetID
    ) throws(StoreError) -> EntryPlace? {
        let position = EntryPosition(before: key, in: dataset)
        let block = directory.block(of: position)
        guard spans(block, key, in: dataset) else { return nil }
        let buffer = BlockBuffer()
        defer { withExtendedLifetime(buffer) {} }
        let entries = try view(of: block, in: buffer)
        let slot = entries.lowerBound(position)
        if slot == entries.count {
            // All of the block stands before the key, which may be the first of the next.
            guard block + 1 < directory.blockCount,
                directory.position(of: block + 1).compare(toKey: key, in: dataset) == 0
            else { return nil }
            return EntryPlace(block: block + 1, offset: DataBlock.entriesOffset)
        }
        guard let found = entries.entry(at: slot) else { throw changed(block) }
        // A segment that begins amid the versions of a key does not have the newest.
        guard found.dataset == dataset, found.key.equals(key), !found.isSuperseded else {
            return nil
        }
        return EntryPlace(block: block, offset: entries.offset(of: slot))
    }
}
