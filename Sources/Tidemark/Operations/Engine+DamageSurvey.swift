// From the places at which somebody came upon damage to what lies there. Places are all that is
// remembered; whether the damage is there, and part of the store, is looked at anew each time.

extension Engine {
    func surveyDamage() throws(StoreError) -> DamageSurvey {
        let view = try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return currentView
        }
        var survey = DamageSurvey()
        let places = Dictionary(grouping: events.places, by: \.path)
        guard !places.isEmpty else { return survey }
        for segment in view.segments {
            guard let found = places[segment.path] else { continue }
            try add(found.map(\.offset), in: segment, to: &survey)
        }
        for file in view.valueFiles {
            guard let found = places[file.path] else { continue }
            try add(found.map(\.offset), in: file, of: view, to: &survey)
        }
        return survey
    }

    private func add(
        _ offsets: [UInt64?], in segment: SealedSegment, to survey: inout DamageSurvey
    ) throws(StoreError) {
        let name = FileName.sealed(segment.number)
        let parts = try unlessDamaged { () throws(StoreError) in try segment.parts() }
        guard let parts else {
            survey.addFile(
                name, at: offsets.compactMap(\.self).min(), byteCount: segment.fileSize)
            return
        }
        for offset in Set(offsets).sorted(by: { $0 ?? 0 < $1 ?? 0 }) {
            guard let offset else {
                survey.addFile(name, at: nil, byteCount: segment.fileSize)
                continue
            }
            if let block = parts.block(containing: offset) {
                if try parts.isWhole(block) {
                    // What stands around its entries, or leads to them, is not.
                    survey.addIndex(of: segment.number, at: offset)
                } else {
                    try survey.addBlock(block, of: segment, parts, .records, owner: owner(of:))
                }
            } else if offset >= segment.footer.dataEnd,
                offset < segment.footer.indexChecksums.offset
                    || offset == segment.footer.datasets.offset
            {
                survey.addIndex(of: segment.number, at: offset)
            } else {
                survey.addFile(name, at: offset, byteCount: 0)
            }
        }
    }

    /// Finds the blocks that name damaged values. What no entry names any more is no damage.
    private func add(
        _ offsets: [UInt64?], in file: ValueFile, of view: ReadView, to survey: inout DamageSurvey
    ) throws(StoreError) {
        if offsets.contains(nil) {
            survey.addFile(FileName.values(file.number), at: nil, byteCount: file.fileSize)
        }
        let damaged = Set(offsets.compactMap(\.self))
        guard !damaged.isEmpty else { return }
        let buffer = BlockBuffer()
        for segment in view.segments {
            guard segment.values.files.contains(where: { $0.number == file.number }),
                let parts = try unlessDamaged({ () throws(StoreError) in try segment.parts() })
            else { continue }
            for block in 0..<parts.directory.blockCount {
                // One that cannot be read is among the damage itself.
                let entries = try unlessDamaged { () throws(StoreError) in
                    try parts.view(of: block, in: buffer)
                }
                guard let entries else { continue }
                for slot in 0..<entries.count {
                    guard let entry = entries.entry(at: slot), let handle = entry.valueHandle,
                        handle.file == file.number, handle.block.isMeant(byAnyOf: damaged)
                    else { continue }
                    survey.addValue(handle, of: entry, owner(of: entry.dataset))
                    try survey.addBlock(block, of: segment, parts, .value, owner: owner(of:))
                }
            }
        }
    }

    /// Whose records have a number now.
    private func owner(of id: DatasetID) -> DatasetOwner {
        guard id != 0, !Limits.systemDatasetNumbers.contains(id) else { return .store }
        do throws(StoreError) {
            return try withState(numbered: id) { (held, state) -> DatasetOwner in
                if let state, state.recordsID == id { return .user(state.name) }
                return held.datasetNumbers.isRetiring(id) ? .store : .nobody
            }
        } catch {
            return .store
        }
    }
}

extension BlockHandle {
    /// Whether damage at one of these offsets in the file is damage to the block, or to what fills
    /// up behind it.
    fileprivate func isMeant(byAnyOf offsets: Set<UInt64>) -> Bool {
        offsets.contains(offset) || !endOffset.isMultiple(of: 8) && offsets.contains(endOffset)
    }
}
