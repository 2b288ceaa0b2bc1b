// What can be known of keys whose entries lie in blocks that are left out because they are damaged:
// the directory tells where blocks begin, and the hash index where each key's newest entry lies.

/// Data blocks that are left out, by the numbers of their segments.
typealias SkippedBlocks = [UInt64: Set<Int>]

/// A data block of a segment.
struct BlockPlace: Hashable, Sendable {
    /// The number in the segment's name.
    let segment: UInt64
    let block: Int
}

/// How the newest version of a key stands in a segment of which some blocks are left out.
enum KeyStanding {
    case absent
    case readable
    /// It may lie in a block that is left out.
    case hidden
}

extension EntryPosition {
    /// As ``compare(_:)`` with any version of a key: 0 if it is one.
    func compare(toKey other: ByteView, in otherDataset: DatasetID) -> Int {
        if dataset != otherDataset { return dataset < otherDataset ? -1 : 1 }
        return key.compare(other)
    }
}

extension SegmentParts {
    /// The block in which a byte of the file lies; nil if it lies in none. O(log n).
    func block(containing offset: UInt64) -> Int? {
        let count = directory.blockCount
        guard count > 0, offset >= directory.offset(of: 0), offset < directory.offset(of: count)
        else { return nil }
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if directory.offset(of: middle) <= offset { low = middle + 1 } else { high = middle }
        }
        return low - 1
    }

    /// Whether a data block can be read from the disk and is whole.
    ///
    /// - Throws: `inputOutput` if it cannot be read now, which does not tell.
    func isWhole(_ block: Int) throws(StoreError) -> Bool {
        do throws(StoreError) {
            let own = try file.readBlock(
                try handle(of: block), kind: .data, segment: footer.segment, identity)
            defer { withExtendedLifetime(own) {} }
            guard let view = unsafe DataBlockView(base: own.bytes.base, rawCount: own.count)
            else { return false }
            do throws(Malformed) {
                try view.check(originCount: originCount)
            } catch {
                return false
            }
            return view.entry(at: 0)?.position.compare(directory.position(of: block)) == 0
        } catch {
            guard !error.isOfEnvironment else { throw error }
            return false
        }
    }

    /// What entries of a block may belong to: datasets in their order, and of each a range in which
    /// its keys lie.
    ///
    /// O(changes) if the last of several datasets begins with the next block or ends in this one.
    func keyRanges(
        of block: Int
    ) throws(StoreError) -> [(dataset: DatasetID, keys: KeyRange)] {
        let first = directory.position(of: block)
        let next = directory.position(of: block + 1)
        let isLast = block + 1 == directory.blockCount
        var ids = [first.dataset]
        if next.dataset != first.dataset {
            for row in try datasets().rows
            where row.entryCount > 0 && row.dataset > first.dataset
                && row.dataset <= next.dataset
            {
                ids.append(row.dataset)
            }
        }
        var ranges: [(dataset: DatasetID, keys: KeyRange)] = []
        for id in ids {
            let lowerBound = id == first.dataset ? first.key.array : nil
            guard id == next.dataset else {
                ranges.append((id, KeyRange(from: lowerBound)))
                continue
            }
            // The next block begins with it. Whether this one ends with it the changes tell.
            if id != first.dataset, !isLast, !mayHaveEntries(of: id, in: block) { continue }
            ranges.append((id, KeyRange(from: lowerBound, through: next.key.array)))
        }
        return ranges
    }

    private func mayHaveEntries(of dataset: DatasetID, in block: Int) -> Bool {
        var changes = SegmentChanges(self, of: dataset, since: 0)
        do throws(StoreError) {
            while let change = try changes.peek() {
                if change.place.block == block { return true }
                changes.pop()
            }
            return false
        } catch {
            return true
        }
    }

    // MARK: - Keys

    /// How a key stands if nothing of some blocks is read. O(1); O(log n) if the hash index cannot
    /// be read.
    ///
    /// - Throws: `corruption`, `inputOutput` if another block must be read and cannot.
    func standing(
        of key: ByteView, in dataset: DatasetID, hash: UInt64, skipping skipped: Set<Int>
    ) throws(StoreError) -> KeyStanding {
        let count = directory.blockCount
        guard count > 0,
            directory.position(of: 0).compare(toKey: key, in: dataset) <= 0,
            directory.position(of: count).compare(toKey: key, in: dataset) >= 0
        else { return .absent }
        guard let places = try unlessDamaged({ () throws(StoreError) in try candidates(hash) })
        else {
            return try standingByOrder(of: key, in: dataset, skipping: skipped)
        }
        var isHidden = false
        for place in places {
            guard !skipped.contains(place.block) else {
                isHidden = isHidden || spans(place.block, key, in: dataset)
                continue
            }
            guard let found = try entry(at: place) else { continue }
            let isSame = found.entry.dataset == dataset && found.entry.key.equals(key)
            found.release()
            if isSame { return .readable }
        }
        return isHidden ? .hidden : .absent
    }

    /// The same by the order of the entries alone: then every key that a block may hold counts as
    /// held by it.
    private func standingByOrder(
        of key: ByteView, in dataset: DatasetID, skipping skipped: Set<Int>
    ) throws(StoreError) -> KeyStanding {
        if skipped.contains(where: { spans($0, key, in: dataset) }) { return .hidden }
        return try placeByOrder(of: key, in: dataset) == nil ? .absent : .readable
    }

    /// Whether versions of a key may lie in a block, by the directory.
    func spans(_ block: Int, _ key: ByteView, in dataset: DatasetID) -> Bool {
        guard block < directory.blockCount else { return false }
        return directory.position(of: block).compare(toKey: key, in: dataset) <= 0
            && directory.position(of: block + 1).compare(toKey: key, in: dataset) >= 0
    }

    // MARK: - Hash index

    /// Where the newest entry of a key with that hash may lie. O(1).
    func candidates(_ hash: UInt64) throws(StoreError) -> [EntryPlace] {
        var places: [EntryPlace] = []
        var number = HashIndex.bucket(of: hash, count: bucketCount)
        for _ in 0..<bucketCount {
            try checkChunk(ofBucket: number)
            var bucket = unsafe HashBucket(at: buckets + number << 6, hash: hash)
            while let place = bucket.nextPlace() { places.append(place) }
            guard bucket.isOverflown else { break }
            number = number + 1 < bucketCount ? number + 1 : 0
        }
        return places
    }

    /// The places in a block that the hash index names: one for each key whose newest entry lies
    /// there. O(keys of the segment).
    func indexedPlaces(in block: Int) throws(StoreError) -> Set<UInt32> {
        var places: Set<UInt32> = []
        for number in 0..<bucketCount {
            try checkChunk(ofBucket: number)
            let bucket = unsafe HashBucket(at: buckets + number << 6, hash: 0)
            for slot in 0..<bucket.count {
                let place = bucket.place(at: slot)
                if place.block == block { places.insert(place.rawValue) }
            }
        }
        return places
    }

    private func checkChunk(ofBucket number: Int) throws(StoreError) {
        let chunk = number / HashIndex.bucketsPerChunk
        if !checkedChunks[chunk] { try checkChunk(chunk) }
    }
}
