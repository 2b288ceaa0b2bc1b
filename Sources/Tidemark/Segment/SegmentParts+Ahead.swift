internal import CTidemark

// What is fetched before it is asked for, since a walk tells what it will ask for next: from the
// disk some blocks ahead, from memory the next one, and of changes some.

extension SegmentParts {
    /// So much is brought into memory by one system call.
    private static let bytesAhead: UInt64 = 256 << 10

    /// Brings a block that was never looked at into memory together with some that follow it, for
    /// a walk that will come to these: one system call for many. Returns the first block that was
    /// left out, which is the given one if nothing was done.
    func populate(ahead block: Int) -> Int {
        guard !checkedBlocks[block] else { return block }
        let start = directory.offset(of: block)
        var end = block + 1
        while end < directory.blockCount, directory.offset(of: end) - start < Self.bytesAhead {
            end += 1
        }
        do {
            try file.populate(
                offset: Int(start), count: Int(directory.offset(of: end) - start))
            return end
        } catch {
            // Which of them cannot be read is found when each is asked for.
            return block
        }
    }

    /// Has the processor fetch what a walk needs first of a block that is stored as it is: its
    /// header, its first entry, and where the others begin, which stands at its end.
    @inline(__always)
    func prefetch(_ block: Int) {
        guard block < directory.blockCount, !directory.isCompressed(block) else { return }
        let start = unsafe map.baseAddress! + Int(directory.offset(of: block))
        unsafe tidemark_prefetch(start)
        unsafe tidemark_prefetch(start + 64)
        let end = unsafe map.baseAddress! + Int(directory.offset(of: block + 1))
        unsafe tidemark_prefetch(end - 10)
        unsafe tidemark_prefetch(end - 74)
    }

    /// Has the processor fetch the entry that a search for a hash comes to first. False if the hash
    /// index leads to none, or was not found whole yet.
    @inline(__always)
    func prefetchEntry(hash: UInt64) -> Bool {
        let number = HashIndex.bucket(of: hash, count: bucketCount)
        guard bucketCount > 0, checkedChunks[number / HashIndex.bucketsPerChunk] else {
            return false
        }
        var bucket = unsafe HashBucket(at: buckets + number << 6, hash: hash)
        guard let place = bucket.nextPlace() else { return false }
        prefetch(place)
        return true
    }

    /// Has the processor fetch an entry, if its block is stored as it is: as much of it as an entry
    /// of some hundred bytes takes. Nothing is read, so the place need not be one.
    @inline(__always)
    func prefetch(_ place: EntryPlace) {
        let block = place.block
        guard block < directory.blockCount, !directory.isCompressed(block) else { return }
        let start = Int(directory.offset(of: block)) + BlockHeader.byteCount + place.offset
        let entry = unsafe map.baseAddress! + start
        unsafe tidemark_prefetch(entry)
        unsafe tidemark_prefetch(entry + 64)
        unsafe tidemark_prefetch(entry + 128)
    }
}
