extension SealedSegment {
    /// A block of the segment and what it must hold.
    struct ContentPlace {
        let kind: BlockHeader.Kind
        let handle: BlockHandle
        /// The number among the data blocks or change blocks.
        let number: Int
    }

    /// All blocks in the order in which they lie in the file.
    func contentPlaces(_ parts: Parts) throws(StoreError) -> [ContentPlace] {
        var places = parts.handles.enumerated().map {
            ContentPlace(kind: .data, handle: $0.element, number: $0.offset)
        }
        places += parts.changes.enumerated().map {
            ContentPlace(kind: .changes, handle: $0.element.handle, number: $0.offset)
        }
        places.append(ContentPlace(kind: .filter, handle: footer.filter, number: 0))
        places.append(ContentPlace(kind: .tables, handle: footer.tables, number: 0))
        places.append(ContentPlace(kind: .dataIndex, handle: footer.dataIndex, number: 0))
        places.append(ContentPlace(kind: .changeIndex, handle: footer.changeIndex, number: 0))
        places.append(ContentPlace(kind: .datasets, handle: footer.datasets, number: 0))
        return places
    }

    /// Reads a block past every cache and checks it against the rest of the segment.
    func check(_ place: ContentPlace, _ parts: Parts) throws(StoreError) {
        switch place.kind {
        case .data:
            let block = try uncachedDataBlock(place.number, parts)
            try checkEntries(of: block, number: place.number, parts)
        case .changes:
            for change in try changeBlock(parts.changes[place.number]) {
                _ = try entry(of: change, parts)
            }
        default:
            _ = try loadBlock(place.handle, place.kind)
        }
    }

    private func checkEntries(
        of block: DataBlockView, number: Int, _ parts: Parts
    ) throws(StoreError) {
        let offset = parts.handles[number].offset
        guard block.entry(at: 0).position.compare(parts.index.entry(at: number).position) == 0
        else {
            throw Malformed("the index names another first key of this block")
                .error(in: path, at: offset)
        }
        for slot in 0..<block.count {
            let entry = block.entry(at: slot)
            guard parts.filter.mayContain(KeyFilter.hash(entry.key, in: entry.dataset)) else {
                throw Malformed("the filter denies a key of this block")
                    .error(in: path, at: offset)
            }
        }
    }
}
