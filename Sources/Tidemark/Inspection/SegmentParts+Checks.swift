extension SegmentParts {
    /// A part of the segment and where it begins.
    struct ContentPlace {
        enum Kind {
            case data
            case changes
            case hashIndex
            case table(BlockHeader.Kind)
        }

        let kind: Kind
        let offset: UInt64
        let byteCount: UInt64
        /// The number among the parts of its kind.
        let number: Int
    }

    /// All parts in the order in which they lie in the file, but for the footer.
    func contentPlaces() -> [ContentPlace] {
        var places: [ContentPlace] = []
        for block in 0..<directory.blockCount {
            let offset = directory.offset(of: block)
            places.append(
                ContentPlace(
                    kind: .data, offset: offset,
                    byteCount: directory.offset(of: block + 1) - offset, number: block))
        }
        for number in 0..<changeBlockCount {
            let row = changeRow(number)
            places.append(
                ContentPlace(
                    kind: .changes, offset: row.offset,
                    byteCount: row.end > row.offset ? row.end - row.offset : 0, number: number))
        }
        let chunkBytes = UInt64(HashIndex.bucketsPerChunk * HashIndex.bucketByteCount)
        for chunk in 0..<chunkCount {
            let start = UInt64(chunk) * chunkBytes
            let all = footer.bucketCount * UInt64(HashIndex.bucketByteCount)
            places.append(
                ContentPlace(
                    kind: .hashIndex, offset: footer.indexOffset + start,
                    byteCount: min(chunkBytes, all - start), number: chunk))
        }
        let tables: [(BlockHandle, BlockHeader.Kind)] = [
            (footer.indexChecksums, .indexChecksums), (footer.directory, .directory),
            (footer.changeDirectory, .changeDirectory), (footer.tables, .tables),
            (footer.datasets, .datasets), (footer.collected, .collected),
            (footer.valueFiles, .valueFiles),
        ]
        for (handle, kind) in tables {
            places.append(
                ContentPlace(
                    kind: .table(kind), offset: handle.offset,
                    byteCount: handle.endOffset - handle.offset, number: 0))
        }
        return places
    }

    /// Bytes between two parts, there so that the second begins where it may: they are zero.
    func checkPadding(_ range: Range<UInt64>) throws(StoreError) {
        guard range.count < HashIndex.bucketByteCount, unsafe range.upperBound <= map.count else {
            throw damaged("the segment has bytes between its parts", at: range.lowerBound)
        }
        try file.populate(offset: Int(range.lowerBound), count: range.count)
        let bytes = unsafe UnsafeRawBufferPointer(
            rebasing: map[Int(range.lowerBound)..<Int(range.upperBound)])
        guard unsafe bytes.allSatisfy({ $0 == 0 }) else {
            throw damaged("the segment has bytes between its parts", at: range.lowerBound)
        }
    }

    /// Reads a part past every cache and checks it against the rest of the segment.
    ///
    /// - Parameter damages: comes to hold all that is wrong with it. That one thing is does not
    ///   keep others from being looked at, where they can be.
    func check(_ place: ContentPlace, _ tally: inout TallyPart, _ damages: inout [StoreError]) {
        guard case .data = place.kind else {
            return note(&damages) { () throws(StoreError) in try check(index: place) }
        }
        let countBefore = tally.blockCount
        do throws(StoreError) {
            try checkData(place.number, &tally, &damages)
        } catch {
            damages.append(error)
        }
        // A damaged value does not take the entries away that name it.
        if tally.blockCount == countBefore { tally.noteUnreadable() }
    }

    private func note(_ damages: inout [StoreError], _ body: () throws(StoreError) -> Void) {
        do {
            try body()
        } catch {
            damages.append(error)
        }
    }

    /// A part of any kind but data.
    private func check(index place: ContentPlace) throws(StoreError) {
        switch place.kind {
        case .data: break
        case .changes:
            // Whether they lead to the right entries the tally tells, once it has all of these.
            let row = changeRow(place.number)
            _ = try changes(row)
            let header = unsafe BlockHeader(at: map.baseAddress! + Int(row.offset))
            let end =
                row.offset + UInt64(BlockHeader.byteCount) + UInt64(header.storedCount)
            if end < row.end { try checkPadding(end..<row.end) }
        case .hashIndex: try checkChunk(place.number)
        case .table(.datasets): _ = try datasets()
        case .table(.collected): _ = try losses()
        case .table(.valueFiles):
            _ = try SealedSegment.valueRows(footer, in: file, identity, readingEmpty: true)
        case .table(.tables):
            _ = try file.readBlock(
                footer.tables, kind: .tables, segment: footer.segment, identity)
        case .table(let kind):
            let handle =
                switch kind {
                case .directory: footer.directory
                case .changeDirectory: footer.changeDirectory
                default: footer.indexChecksums
                }
            _ = unsafe try Self.mappedBlock(
                handle, kind, in: file, map, segment: footer.segment, identity)
        }
    }

    /// Reads a data block, and finds each of its keys through the hash index.
    ///
    /// - Parameter damages: comes to hold what is wrong around a block that is whole itself.
    /// - Throws: what is wrong with the block.
    private func checkData(
        _ block: Int, _ tally: inout TallyPart, _ damages: inout [StoreError]
    ) throws(StoreError) {
        try populate(block)
        let (base, handle) = unsafe try stored(block)
        guard directory.isCompressed(block) else {
            try unsafe checkChecksum(base, handle)
            return try unsafe checkData(block, base, handle, &tally, &damages)
        }
        let own = unsafe try Block(count: Int(handle.rawCount)) { (memory) throws(StoreError) in
            try unsafe decompress(block, into: memory)
        }
        defer { withExtendedLifetime(own) {} }
        try unsafe checkData(block, own.bytes.base, handle, &tally, &damages)
    }

    /// - Parameter base: of the bytes before compression, whose checksum was right.
    private func checkData(
        _ block: Int, _ base: UnsafeRawPointer, _ handle: BlockHandle, _ tally: inout TallyPart,
        _ damages: inout [StoreError]
    ) throws(StoreError) {
        let offset = directory.offset(of: block)
        guard let view = unsafe DataBlockView(base: base, rawCount: Int(handle.rawCount)) else {
            throw damaged("a block has an impossible number of entries", at: offset)
        }
        do throws(Malformed) {
            try view.check(originCount: originCount)
        } catch {
            throw error.error(in: file.path, at: offset)
        }
        guard view.entry(at: 0)?.position.compare(directory.position(of: block)) == 0 else {
            throw damaged("the directory names another first entry of this block", at: offset)
        }
        try checkOrder(after: view, block)
        try checkStoreRecords(view, at: offset)
        tally.add(view, number: block, handle)
        note(&damages) { () throws(StoreError) in
            let end = directory.offset(of: block + 1)
            if handle.endOffset < end { try checkPadding(handle.endOffset..<end) }
        }
        note(&damages) { () throws(StoreError) in try checkPlaces(of: view, block) }
        checkValues(view, &damages)
    }

    /// The hash index leads to each entry that is the newest of its key here. That it leads to no
    /// other the tally tells, which counts them.
    private func checkPlaces(of view: DataBlockView, _ block: Int) throws(StoreError) {
        var expected: [(place: EntryPlace, hash: UInt64)] = []
        expected.reserveCapacity(view.count)
        for slot in 0..<view.count {
            guard let entry = view.entry(at: slot), !entry.isSuperseded else { continue }
            let hash = identity.keyHash.of(entry.key, in: entry.dataset)
            // The line of the index is here by the time it is looked at.
            prefetch(hash: hash)
            expected.append((EntryPlace(block: block, offset: view.offset(of: slot)), hash))
        }
        for (place, hash) in expected {
            guard try !isIndexed(place, hash: hash) else { continue }
            throw damaged(
                "the hash index denies a key of this block", at: directory.offset(of: block))
        }
    }

    /// Values that lie apart are where the entries say, and whole.
    private func checkValues(_ view: DataBlockView, _ damages: inout [StoreError]) {
        for slot in 0..<view.count {
            guard let entry = view.entry(at: slot), let handle = entry.valueHandle else { continue }
            note(&damages) { () throws(StoreError) in
                try tables.valueFile(handle).check(handle.block)
            }
        }
    }

    /// A block ends before the next one begins, and the last one where the directory says.
    private func checkOrder(after view: DataBlockView, _ block: Int) throws(StoreError) {
        let isLast = block + 1 == directory.blockCount
        let next = directory.position(of: block + 1)
        let order = view.entry(at: view.count - 1)?.position.compare(next) ?? 0
        guard isLast ? order == 0 : order < 0, directory.isSearchable(block) else {
            throw damaged(
                "the directory does not lead to this block", at: directory.offset(of: block))
        }
    }

    /// What opening reads of the store's own records can be read.
    private func checkStoreRecords(_ view: DataBlockView, at offset: UInt64) throws(StoreError) {
        for slot in 0..<view.count {
            guard let entry = view.entry(at: slot), entry.dataset == 0 else { return }
            do throws(Malformed) {
                guard StoreRecords.number(inKey: entry.key) == nil else {
                    _ = try StoreRecords.name(entry.valueField)
                    continue
                }
                let name = String(decoding: entry.key.array, as: UTF8.self)
                _ = try DatasetState(name: name, decoding: entry.valueField)
            } catch {
                throw error.error(in: file.path, at: offset)
            }
        }
    }
}
