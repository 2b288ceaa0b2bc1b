// The giving side of what replicas send to one that has nothing: which blocks of sealed segments
// are a dataset's. Whoever asks for them later asks by the number of their segment, and compaction
// goes on meanwhile: what it has removed by then is not to be had any more.

extension Engine {
    /// So many changes in the log are given out record by record sooner than sealed for that.
    private static let unsealedCountMax: UInt64 = 8_192

    /// Seals what is in the log if much of the dataset is there only, or that it has its number.
    func sealForOffer(of state: DatasetState) throws(StoreError) {
        guard !options.isReadOnly else { return }
        let sealed = try records.state(named: state.name)
        let (id, syncCount) = (sealed?.recordsID ?? 0, sealed?.syncCount ?? 0)
        try sealLog { held in
            held.failure == nil
                && (state.recordsID != id || state.syncCount &- syncCount > Self.unsealedCountMax)
        }
    }

    func segmentOffer(
        of state: DatasetState, bytesMin: UInt64
    ) throws(StoreError) -> SegmentOffer? {
        let (view, id, lifecycle, forgotten) = try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return (
                currentView, state.isVisible ? state.recordsID : 0, state.lifecycle,
                state.forgotten
            )
        }
        // What the records of the store say is of the same moment as the runs beside them.
        guard id != 0,
            let sealed = try StoreRecords(view, of: path).state(named: state.name),
            sealed.recordsID == id, sealed.isVisible, sealed.lifecycle.wiped == lifecycle.wiped
        else { return nil }
        var loss = HistoryLoss()
        var runs: [[SegmentOffer.Segment]] = []
        let buffer = BlockBuffer()
        for run in view.runs {
            var segments: [SegmentOffer.Segment] = []
            for segment in run.segments {
                let parts = try segment.parts()
                loss.formUnion(try parts.losses()[id])
                guard let row = try parts.datasets().rows.first(where: { $0.dataset == id })
                else { continue }
                guard segment.values.files.isEmpty,
                    let part = try part(of: id, row, in: segment, parts, buffer)
                else { return nil }
                segments.append(part)
            }
            if !segments.isEmpty { runs.append(segments) }
        }
        // Merges may have forgotten deletions since the last log was sealed.
        var knowledge = sealed.knowledge
        knowledge.forgotten = forgotten
        let offer = SegmentOffer(
            dataset: id, knowledge: knowledge, outstanding: sealed.outstanding,
            expiredThrough: sealed.expiredThrough, wipedTime: sealed.wipedTime,
            collectedThrough: loss.collectedThrough, wholeFrom: loss.wholeFrom,
            wholeFromTime: loss.wholeFromTime, runs: runs)
        return !runs.isEmpty && offer.byteCount >= bytesMin ? offer : nil
    }

    /// nil if it cannot be given out.
    private func part(
        of dataset: DatasetID, _ row: SegmentDatasets.Row, in segment: SealedSegment,
        _ parts: SegmentParts, _ buffer: BlockBuffer
    ) throws(StoreError) -> SegmentOffer.Segment? {
        let range = try parts.blocks(of: dataset, buffer)
        guard !range.blocks.isEmpty else {
            throw parts.damaged(
                "the table of datasets names one that has no blocks",
                at: segment.footer.datasets.offset)
        }
        // Of other datasets' replicas and authors nobody is told who has no part in them.
        let isAlone = try parts.datasets().rows.allSatisfy { row in
            row.dataset == 0 || row.dataset == dataset
        }
        let tables: [UInt8]
        if isAlone {
            tables = parts.tables.encoded()
        } else {
            let isNamed = try parts.origins(of: dataset, in: range, buffer)
            tables = parts.tables.encoded(keeping: isNamed)
        }
        guard tables.count <= Limits.offeredTablesBytesMax else { return nil }
        let start = parts.directory.offset(of: range.blocks.lowerBound)
        let end = parts.directory.offset(of: range.blocks.upperBound)
        return SegmentOffer.Segment(
            number: segment.number, identity: segment.offerIdentity, entryCount: row.entryCount,
            blockCount: range.blocks.count, byteCount: end - start, tables: tables)
    }
}
