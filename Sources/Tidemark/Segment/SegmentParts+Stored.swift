// Data blocks as they lie in the file, for a replica that is to have them as they are.

/// The data blocks in which the entries of one dataset lie.
struct DatasetBlocks {
    let blocks: Range<Int>
    /// Whether the first and the last of them hold entries of other datasets, too.
    let isFirstShared: Bool
    let isLastShared: Bool

    func isShared(_ block: Int) -> Bool {
        block == blocks.lowerBound && isFirstShared
            || block == blocks.upperBound - 1 && isLastShared
    }
}

extension SegmentParts {
    /// Where the entries of a dataset lie. O(log n), and two blocks to read at most.
    func blocks(
        of dataset: DatasetID, _ buffer: BlockBuffer
    ) throws(StoreError) -> DatasetBlocks {
        let none = DatasetBlocks(blocks: 0..<0, isFirstShared: false, isLastShared: false)
        let count = directory.blockCount
        guard count > 0 else { return none }
        let start = EntryPosition(before: .empty, in: dataset)
        var first = directory.block(of: start)
        var isFirstShared = false
        if directory.position(of: first).dataset < dataset {
            let view = try view(of: first, in: buffer)
            let slot = view.lowerBound(start)
            if slot < view.count { isFirstShared = true } else { first += 1 }
        }
        let last = directory.block(of: EntryPosition(before: .empty, in: dataset + 1))
        guard first <= last, directory.position(of: last).dataset <= dataset else { return none }
        let isLastShared = try lastDataset(of: last, buffer) != dataset
        guard first < last || !isFirstShared || !isLastShared else {
            // Both in one block: whether there is anything of the dataset has to be looked at.
            let view = try view(of: first, in: buffer)
            let slot = view.lowerBound(start)
            guard slot < view.count, view.entry(at: slot)?.dataset == dataset else { return none }
            return DatasetBlocks(
                blocks: first..<first + 1, isFirstShared: true, isLastShared: true)
        }
        guard directory.position(of: last).dataset == dataset || isFirstShared else { return none }
        return DatasetBlocks(
            blocks: first..<last + 1, isFirstShared: isFirstShared, isLastShared: isLastShared)
    }

    private func lastDataset(
        of block: Int, _ buffer: BlockBuffer
    ) throws(StoreError) -> DatasetID {
        // The directory tells it of the last one.
        if block == directory.blockCount - 1 {
            return directory.position(of: directory.blockCount).dataset
        }
        let view = try view(of: block, in: buffer)
        guard let entry = view.entry(at: view.count - 1) else { throw changed(block) }
        return entry.dataset
    }

    /// Which origins the entries of a dataset name. O(entries).
    func origins(
        of dataset: DatasetID, in range: DatasetBlocks, _ buffer: BlockBuffer
    ) throws(StoreError) -> [Bool] {
        var isNamed = [Bool](repeating: false, count: originCount)
        var populated = range.blocks.lowerBound
        for block in range.blocks {
            if block >= populated { populated = max(block, populate(ahead: block)) }
            let view = try view(of: block, in: buffer, isPopulated: block < populated)
            for slot in 0..<view.count {
                guard let entry = view.entry(at: slot) else { throw changed(block) }
                guard entry.dataset == dataset else { continue }
                let origin = Int(entry.stamp.origin)
                if origin < isNamed.count { isNamed[origin] = true }
            }
        }
        return isNamed
    }

    /// Appends some of the blocks of a dataset, as many as there is room for and at least one: as
    /// they are stored, header included; of one that it shares with others only its own entries,
    /// as blocks of their own. Returns the first block that was left out.
    func appendStored(
        _ wanted: Range<Int>, of dataset: DatasetID, in range: DatasetBlocks, bytesMax: Int,
        to bytes: inout [UInt8], _ buffer: BlockBuffer
    ) throws(StoreError) -> Int {
        var populated = wanted.lowerBound
        for block in wanted {
            let size = Int(directory.offset(of: block + 1) - directory.offset(of: block))
            if !bytes.isEmpty, bytes.count + size > bytesMax { return block }
            if range.isShared(block) {
                try appendCut(block, to: dataset, into: &bytes, buffer)
                continue
            }
            if block >= populated { populated = max(block, populate(ahead: block)) }
            if block >= populated { try populate(block) }
            let (base, handle) = unsafe try stored(block)
            let start = bytes.count
            unsafe bytes.append(
                contentsOf: UnsafeRawBufferPointer(
                    start: base - BlockHeader.byteCount,
                    count: BlockHeader.byteCount + Int(handle.storedCount)))
            // The checksum of the file is made with the store's secret. It is compared in the copy,
            // which nobody changes before it gets another.
            let isMeant = unsafe bytes.withUnsafeMutableBytes { copy in
                let base = unsafe copy.baseAddress! + start
                guard unsafe self.isMeant(base, handle) else { return false }
                unsafe BlockHeader(at: base).seal(at: base, nil)
                return true
            }
            guard isMeant else {
                throw damaged("block data: the checksum does not match", at: handle.offset)
            }
        }
        return wanted.upperBound
    }

    private func appendCut(
        _ block: Int, to dataset: DatasetID, into bytes: inout [UInt8], _ buffer: BlockBuffer
    ) throws(StoreError) {
        let view = try view(of: block, in: buffer)
        var builder = DataBlockBuilder()
        for slot in 0..<view.count {
            guard let entry = view.entry(at: slot) else { throw changed(block) }
            guard entry.dataset == dataset else { continue }
            let hasRoom = builder.hasRoom(key: entry.key.count, value: entry.valueField.count)
            if !hasRoom { endCut(&builder, into: &bytes) }
            _ = builder.append(
                dataset: dataset, kind: entry.kind, isSuperseded: entry.isSuperseded,
                isApart: entry.isApart, key: entry.key, valueField: entry.valueField,
                stamp: entry.stamp)
        }
        if !builder.isEmpty { endCut(&builder, into: &bytes) }
    }

    private func endCut(_ builder: inout DataBlockBuilder, into bytes: inout [UInt8]) {
        let raw = unsafe builder.finish()
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: BlockHeader.byteCount))
        unsafe bytes.append(contentsOf: raw)
        let header = BlockHeader(
            storedCount: raw.count, mark: UInt32(raw.count), segment: footer.segment, kind: .data)
        unsafe bytes.withUnsafeMutableBytes { unsafe header.seal(at: $0.baseAddress! + start, nil) }
        builder.begin()
    }
}

extension VersionTables {
    /// As ``encoded()``, with everything that only other origins name made unrecognisable: each
    /// keeps its number, and says nothing of whom it was.
    func encoded(keeping isKept: [Bool]) -> [UInt8] {
        let content = withContent { content in content.obscured(keeping: isKept) }
        return VersionTables(content).encoded()
    }
}

extension VersionTables.Content {
    fileprivate func obscured(keeping isKept: [Bool]) -> VersionTables.Content {
        var keepsVector = [Bool](repeating: false, count: vectors.count)
        var keepsAuthor = [Bool](repeating: false, count: authors.count)
        var kept: Set<ReplicaID> = []
        for (index, origin) in origins.enumerated() where isKept[index] {
            keepsVector[Int(origin.vector)] = true
            keepsAuthor[Int(origin.author)] = true
            kept.insert(replicas[Int(origin.replica)])
            for dot in vectors[Int(origin.vector)].dots { kept.insert(dot.replica) }
        }
        var content = VersionTables.Content()
        for (index, replica) in replicas.enumerated() {
            // No replica draws an id that begins with 64 zeros.
            _ = content.number(
                of: kept.contains(replica)
                    ? replica : ReplicaID(high: 0, low: UInt64(index) + 1))
        }
        for (index, vector) in vectors.enumerated() {
            var shown = vector
            if !keepsVector[index] {
                let counter = Limits.countMax - UInt64(index)
                shown = VersionVector([Dot(replica: content.replicas[0], counter: counter)])
            }
            _ = content.number(of: shown)
        }
        for (index, author) in authors.enumerated() {
            var shown = author
            if !keepsAuthor[index] {
                shown = "~\(index)"
                while authors.contains(shown) { shown = "~" + shown }
            }
            _ = content.number(of: shown)
        }
        for origin in origins { _ = content.number(of: origin) }
        return content
    }
}
