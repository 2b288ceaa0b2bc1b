/// What is whole of a damaged sealed segment: data blocks are found by their headers and need
/// neither directory nor index, which serve to tell what is missing.
final class SalvagedSegment {
    let file: SalvageFile
    /// Of all segments of the store.
    let values: SalvagedValues
    private(set) var dataBlocks: [SalvageFile.FoundBlock] = []
    /// nil if the tables are lost.
    private(set) var origins: [SalvagedOrigin]?
    private(set) var losses: [SalvageLoss] = []
    private(set) var historyLosses = SegmentLosses()
    /// What the segment says it has of each dataset; nil if that is lost.
    private(set) var rows: [DatasetID: SegmentDatasets.Row]?
    /// What was saved of each.
    private(set) var entryCounts: [DatasetID: Int] = [:]
    private(set) var blockCount = 0
    private var directory: SegmentDirectory?
    /// By the offsets that the directory says.
    private var blockNumbers: [Int: Int] = [:]
    private var footer: SegmentFooter?
    private var others: [SalvageFile.FoundBlock] = []

    /// - Throws: `inputOutput` if a value file cannot be read now and is not known to be damaged.
    init(_ file: SalvageFile, _ values: SalvagedValues) throws(StoreError) {
        self.file = file
        self.values = values
        footer = readFooter()
        findBlocks()
        readTables()
        keepWhatIsInPlace()
        try dropWhatCannotBeRead()
        noteGaps()
        if origins == nil, !dataBlocks.isEmpty {
            losses.append(
                SalvageLoss(
                    kind: .versions, file: file.name, offset: footer?.tables.offset,
                    byteCount: footer.map { UInt64($0.tables.storedCount) } ?? 0, datasets: nil,
                    what: "the tables of versions are damaged; all records of the file are as if "
                        + "written anew"))
        }
    }

    private func readFooter() -> SegmentFooter? {
        let start = file.byteCount - SegmentFooter.byteCount
        guard let identity = file.identity, start >= FileHeader.byteCount,
            let view = file.view(start, SegmentFooter.byteCount)
        else { return nil }
        do {
            return try SegmentFooter(
                view, segment: file.number, fileSize: UInt64(file.byteCount), identity)
        } catch {
            return nil
        }
    }

    private func findBlocks() {
        var offset = FileHeader.byteCount
        while let found = file.nextBlock(from: offset) {
            offset = found.end
            blockCount += 1
            if found.header.kind == BlockHeader.Kind.data.rawValue {
                dataBlocks.append(found)
            } else {
                others.append(found)
            }
        }
    }

    private func block(_ kind: BlockHeader.Kind) -> Block? {
        others.last { $0.header.kind == kind.rawValue }.flatMap { file.payload($0) }
    }

    private func readTables() {
        do {
            if let block = block(.tables) {
                origins = try VersionTables(decoding: block.bytes).salvaged
            }
        } catch {}
        do {
            if let block = block(.datasets) {
                let decoded = try SegmentDatasets(decoding: block.bytes).rows
                rows = Dictionary(decoded.map { ($0.dataset, $0) }) { first, _ in first }
            }
        } catch {}
        do {
            if let block = block(.collected) {
                historyLosses = try SegmentLosses(decoding: block.bytes)
            }
        } catch {}
        do {
            if let found = others.last(where: {
                $0.header.kind == BlockHeader.Kind.directory.rawValue
            }) {
                let start = found.offset + BlockHeader.byteCount
                if let view = file.view(start, Int(found.header.storedCount)) {
                    directory = try SegmentDirectory(view, dataEnd: UInt64(file.byteCount))
                }
            }
        } catch {}
    }

    /// A value may hold what looks like a block; where the directory is whole, it says where
    /// blocks are.
    private func keepWhatIsInPlace() {
        guard let directory else { return }
        for block in 0..<directory.blockCount {
            blockNumbers[Int(directory.offset(of: block))] = block
        }
        dataBlocks.removeAll { blockNumbers[$0.offset] == nil }
    }

    /// Whether the directory, if it is whole, has another block in this place: then two of them
    /// have changed places, and this one would push out those that it does not belong among.
    private func isMisplaced(_ found: SalvageFile.FoundBlock, _ first: Entry) -> Bool {
        guard let directory, let number = blockNumbers[found.offset] else { return false }
        return directory.position(of: number).compare(first.position) != 0
    }

    /// Blocks whose checksum matches have what their writer put there. Should one be out of order
    /// all the same, it is none of this segment.
    private func dropWhatCannotBeRead() throws(StoreError) {
        var kept: [SalvageFile.FoundBlock] = []
        var last: (block: Block, view: DataBlockView)?
        for found in dataBlocks {
            guard let (block, view) = decoded(found), let first = view.entry(at: 0) else {
                if directory == nil { noteLoss(found.offset, found.end - found.offset, nil) }
                continue
            }
            guard !isMisplaced(found, first) else { continue }
            if let before = last?.view.entry(at: (last?.view.count ?? 1) - 1),
                before.position.compare(first.position) >= 0
            {
                if directory == nil { noteLoss(found.offset, found.end - found.offset, nil) }
                continue
            }
            kept.append(found)
            last = (block, view)
            for slot in 0..<view.count {
                guard let entry = view.entry(at: slot) else { continue }
                try values.check(entry)
                if !values.isLost(entry) { entryCounts[entry.dataset, default: 0] += 1 }
            }
        }
        withExtendedLifetime(last) {}
        dataBlocks = kept
    }

    func decoded(_ found: SalvageFile.FoundBlock) -> (Block, DataBlockView)? {
        guard let block = file.payload(found),
            let view = unsafe DataBlockView(base: block.bytes.base, rawCount: block.count)
        else { return nil }
        do {
            try view.check(originCount: origins?.count ?? Int(UInt32.max))
            return (block, view)
        } catch {
            return nil
        }
    }

    // MARK: - What is missing

    private func noteGaps() {
        let kept = Set(dataBlocks.map(\.offset))
        if let directory {
            for block in 0..<directory.blockCount
            where !kept.contains(Int(directory.offset(of: block))) {
                let offset = directory.offset(of: block)
                let first = directory.position(of: block).dataset
                let last = directory.position(of: block + 1).dataset
                noteLoss(
                    Int(offset), Int(directory.offset(of: block + 1) - offset),
                    first...max(first, last))
            }
            return
        }
        let firstOther = others.first { $0.header.kind != BlockHeader.Kind.data.rawValue }
        let dataEnd = footer.map { Int($0.dataEnd) } ?? firstOther?.offset ?? file.byteCount
        var offset = FileHeader.byteCount
        for found in dataBlocks where found.offset < dataEnd {
            if found.offset > offset { noteLoss(offset, found.offset - offset, nil) }
            offset = found.end
        }
        if offset < dataEnd { noteLoss(offset, dataEnd - offset, nil) }
    }

    private func noteLoss(_ offset: Int, _ byteCount: Int, _ datasets: ClosedRange<DatasetID>?) {
        losses.append(
            SalvageLoss(
                kind: .block, file: file.name, offset: UInt64(offset),
                byteCount: UInt64(byteCount), datasets: datasets,
                what: "a block of records is damaged"))
    }
}

extension VersionTables {
    /// All origins with what they name.
    var salvaged: [SalvagedOrigin] {
        withContent { content in
            content.origins.map { origin in
                SalvagedOrigin(
                    replica: content.replicas[Int(origin.replica)],
                    vector: content.vectors[Int(origin.vector)],
                    author: content.authors[Int(origin.author)])
            }
        }
    }
}

/// Walks over the entries of the whole blocks of a segment, apart from those whose value is lost.
final class SalvagedSegmentCursor: SalvageCursor {
    private let segment: SalvagedSegment
    private var blocks: ArraySlice<SalvageFile.FoundBlock>
    private var current: (block: Block, view: DataBlockView)?
    private var slot = 0
    private(set) var entry: Entry?

    init(_ segment: SalvagedSegment) {
        self.segment = segment
        blocks = segment.dataBlocks[...]
        load()
        passLost()
    }

    private func passLost() {
        while let found = entry, segment.values.isLost(found) { step() }
    }

    private func load() {
        current = nil
        entry = nil
        slot = 0
        while let found = blocks.popFirst() {
            guard let (block, view) = segment.decoded(found) else { continue }
            current = (block, view)
            entry = view.entry(at: 0)
            return
        }
    }

    func advance() {
        step()
        passLost()
    }

    private func step() {
        guard let view = current?.view else { return }
        slot += 1
        if slot < view.count { entry = view.entry(at: slot) } else { load() }
    }

    func version(of stamp: Stamp) -> Version? {
        guard let origins = segment.origins, Int(stamp.origin) < origins.count else { return nil }
        return origins[Int(stamp.origin)].version(of: stamp)
    }
}
