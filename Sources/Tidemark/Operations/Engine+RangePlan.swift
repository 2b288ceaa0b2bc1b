extension Engine {
    /// What a compaction of a range would do, of which nothing is kept. The logs would be sealed
    /// first, and be the newest run.
    func planCompaction(
        _ range: KeyRange, of state: DatasetState, _ progress: ((CompactionProgress) -> Void)?
    ) throws(StoreError) -> CompactionReport {
        guard state.isVisible else { throw .datasetNotFound(state.name) }
        let image = try image()
        let plan = CompactionPlan(self, image, progress)
        let id = withLock { held in state.recordsID }
        let span = KeySpan(range, in: id)
        var parts: [RunPart] = []
        for run in image.view.runs where !range.isEmpty && id != 0 {
            if let part = try RunPart(run, span) { parts.append(part) }
        }
        let removed = parts.flatMap(\.segments)
        let sparse = sparseValueFiles(in: image.view, onlyOf: removed)
        let target = parts.popLast()
        typealias Source = CompactionPlan.Source
        let memtables = plan.memtables
        if !memtables.isEmpty {
            let isOldest = image.view.runs.isEmpty
            try plan.merge(
                [
                    Source(memtables: memtables, reachesOldest: isOldest, end: span.start),
                    Source(memtables: memtables, reachesOldest: isOldest, start: span.end),
                ], movingValuesOf: [], isSealing: true)
        }
        for part in parts {
            guard try part.reachesBeyond(span) else { continue }
            let run = SegmentRun(Array(part.segments))
            try plan.merge(
                [
                    Source(runs: [run], reachesOldest: false, end: span.start),
                    Source(runs: [run], reachesOldest: false, start: span.end),
                ], movingValuesOf: sparse)
        }
        guard target != nil || !memtables.isEmpty else { return try plan.report(removing: []) }
        let all = (parts + [target].compactMap(\.self)).map { SegmentRun(Array($0.segments)) }
        let oldest = Array(all.suffix(target == nil ? 0 : 1))
        let isOldest = target.map { $0.run === image.view.runs.last } ?? true
        try plan.merge(
            [
                Source(runs: oldest, reachesOldest: isOldest, end: span.start),
                Source(memtables: memtables, runs: all, start: span.start, end: span.end),
                Source(runs: oldest, reachesOldest: isOldest, start: span.end),
            ], movingValuesOf: sparse)
        return try plan.report(removing: removed)
    }
}
