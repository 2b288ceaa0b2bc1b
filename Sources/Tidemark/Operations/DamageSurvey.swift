/// All damage of a store that is known, and what has to be restored before it can go.
package struct DamageSurvey: Sendable {
    /// A damaged block, or one that names a damaged value, and what it may hold of one dataset of
    /// a user.
    package struct Piece: Sendable {
        let place: BlockPlace
        /// Of the dataset's records when the survey was made.
        let id: DatasetID
        package let dataset: String
        package let keys: KeyRange
        package let damage: StoreDamage

        package func isOfSameBlock(as other: Piece) -> Bool { place == other.place }
    }

    /// For whoever is to be told.
    private(set) var damages: [StoreDamage] = []
    package private(set) var pieces: [Piece] = []
    /// What no peer can restore: the store's own records, and files that cannot be read at all.
    package private(set) var hopeless: [StoreDamage] = []
    /// Blocks with something in them that no peer can restore.
    private(set) var hopelessBlocks: Set<BlockPlace> = []
    /// Blocks with entries of datasets that are gone, which nobody needs.
    private(set) var blocksWithDead: Set<BlockPlace> = []
    /// All blocks that are to be left out.
    private(set) var skipped: SkippedBlocks = [:]
    /// Segments with damaged indexes.
    private(set) var indexes: [UInt64: StoreDamage] = [:]

    /// Whether it names blocks that an earlier one does not.
    package func hasBlocks(beyond other: DamageSurvey) -> Bool {
        skipped.contains { number, blocks in
            !blocks.isSubset(of: other.skipped[number] ?? [])
        }
    }

    /// Of all pieces of a block, the places among ``pieces``.
    func indices(of place: BlockPlace) -> [Int] {
        pieces.indices.filter { pieces[$0].place == place }
    }

    // MARK: - Taking note

    /// Damage of which no more is known than where it lies.
    mutating func addFile(_ name: String, at offset: UInt64?, byteCount: UInt64) {
        let damage = StoreDamage(
            kind: .file, file: name, offset: offset, byteCount: byteCount, dataset: nil, keys: nil)
        damages.append(damage)
        hopeless.append(damage)
    }

    mutating func addIndex(of segment: UInt64, at offset: UInt64) {
        guard indexes[segment] == nil else { return }
        let damage = StoreDamage(
            kind: .index, file: FileName.sealed(segment), offset: offset, byteCount: 0,
            dataset: nil, keys: nil)
        damages.append(damage)
        indexes[segment] = damage
    }

    /// A block that is to be left out.
    ///
    /// - Parameters:
    ///   - kind: `records` if the block itself is damaged, `value` if a value is that it names.
    ///   - owner: tells whose records have a number.
    /// - Throws: `inputOutput` if the segment's tables cannot be read now.
    mutating func addBlock(
        _ block: Int, of segment: SealedSegment, _ parts: SegmentParts, _ kind: StoreDamage.Kind,
        owner: (DatasetID) -> DatasetOwner
    ) throws(StoreError) {
        let place = BlockPlace(segment: segment.number, block: block)
        guard skipped[segment.number, default: []].insert(block).inserted else { return }
        let offset = parts.directory.offset(of: block)
        func damage(_ dataset: String?, _ keys: KeyRange?) -> StoreDamage {
            StoreDamage(
                kind: kind, file: FileName.sealed(segment.number), offset: offset,
                byteCount: parts.directory.offset(of: block + 1) - offset, dataset: dataset,
                keys: keys)
        }
        let ranges = try unlessDamaged { () throws(StoreError) in
            try parts.keyRanges(of: block)
        }
        guard let ranges else {
            addHopeless(damage(nil, nil), place, isTold: kind == .records)
            return
        }
        var isTold = false
        for (id, keys) in ranges {
            switch owner(id) {
            case .user(let name):
                let found = damage(name, keys)
                pieces.append(
                    Piece(place: place, id: id, dataset: name, keys: keys, damage: found))
                if kind == .records { damages.append(found) }
                isTold = true
            case .store:
                guard !hopelessBlocks.contains(place) else { continue }
                addHopeless(damage(nil, nil), place, isTold: kind == .records)
                isTold = true
            case .nobody:
                blocksWithDead.insert(place)
            }
        }
        if !isTold, kind == .records { damages.append(damage(nil, nil)) }
    }

    private mutating func addHopeless(
        _ damage: StoreDamage, _ place: BlockPlace, isTold: Bool
    ) {
        hopeless.append(damage)
        hopelessBlocks.insert(place)
        if isTold { damages.append(damage) }
    }

    /// A damaged value that an entry names.
    mutating func addValue(_ handle: ValueHandle, of entry: Entry, _ owner: DatasetOwner) {
        let name: String? = if case .user(let name) = owner { name } else { nil }
        damages.append(
            StoreDamage(
                kind: .value, file: FileName.values(handle.file), offset: handle.block.offset,
                byteCount: handle.footprint, dataset: name,
                keys: name == nil ? nil : KeyRange.only(entry.key.array)))
    }
}

/// Whose records have a number.
enum DatasetOwner {
    case user(String)
    /// They are the store's own, or it cannot be told whose they are.
    case store
    /// The dataset was deleted.
    case nobody
}
