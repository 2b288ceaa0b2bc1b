// What becomes of large values that lie apart.
//
// A merge carries the handles of values from the old segments to the new ones and leaves the values
// where they are. A value file goes when no segment names it any more. One that is used for less
// than a half is sparse: a merge that meets its values moves them to a value file of its own. So a
// file is at most twice as large as what is used of it, once merges have come by; and for each byte
// that moving writes at least one is given up.
//
// How much of a file is used the segments say themselves (`SegmentValueRows`), each for its own
// entries. Mostly all handles of a file lie in one run, that which it was made with or that which
// came of it, so merges of neighbours meet either all of them or none. The compaction of a range
// may meet some of them, and may take those to another run: it moves values only out of files of
// which it meets every handle, since none else would go.
//
// The merge that drops what superseded a file's values is over before anyone knows that the file
// became sparse, and the next merge of that run may be far off. Therefore a run is rewritten for
// its own sake once that gives up at least as many bytes as the run has itself.

extension EngineParts {
    /// How much the segments of a view use of each value file.
    func valueTable(of view: ReadView) -> SegmentValueRows {
        var table = SegmentValueRows()
        for segment in view.segments { table.add(segment.values.table) }
        return table
    }

    /// Value files of which less than a half is used, apart from those that cannot be read.
    func sparseValueFiles(in view: ReadView) -> Set<UInt64> {
        let table = valueTable(of: view)
        var sparse: Set<UInt64> = []
        for file in view.valueFiles where !file.isDamaged {
            guard let row = table[file.number] else { continue }
            if row.storedBytes < row.contentBytes / 2 { sparse.insert(file.number) }
        }
        return sparse
    }

    /// The same, of those files that no other segments of the view name than the given ones.
    func sparseValueFiles(in view: ReadView, onlyOf segments: [SealedSegment]) -> Set<UInt64> {
        let sparse = sparseValueFiles(in: view)
        guard !sparse.isEmpty else { return [] }
        let given = Set(segments.map(\.number))
        let others = view.segments.filter { !given.contains($0.number) }
        return sparse.subtracting(others.flatMap { $0.values.files.map(\.number) })
    }

    /// A run that names sparse value files.
    ///
    /// - Parameter isWorthIt: only if rewriting the run gives up at least as many bytes of value
    ///   files as the run has.
    func runToRelieve(in view: ReadView, isWorthIt: Bool) -> SegmentRun? {
        let sparse = sparseValueFiles(in: view)
        guard !sparse.isEmpty else { return nil }
        let table = valueTable(of: view)
        return view.runs.first { run in
            let files = Set(run.segments.flatMap { $0.values.files.map(\.number) })
            let named = files.intersection(sparse).compactMap { table[$0] }
            let unused = named.reduce(0) { $0 + $1.contentBytes - $1.storedBytes }
            return !named.isEmpty && (!isWorthIt || unused >= run.fileSize)
        }
    }

    /// Removes the value files that only segments name which are no longer part of the store.
    /// Whoever still sees those holds the files open.
    func removeValueFiles(of old: [SealedSegment]) throws(StoreError) {
        let used = Set(currentView.valueFiles.map(\.number))
        var removed: Set<UInt64> = []
        for file in old.flatMap(\.values.files)
        where !used.contains(file.number) && removed.insert(file.number).inserted {
            try storage.remove(file.path)
        }
    }
}
