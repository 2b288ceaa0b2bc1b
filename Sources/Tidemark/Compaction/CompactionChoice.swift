/// What is merged when: the rules, apart from whoever follows them.
enum CompactionChoice {
    /// Runs of like size that are merged into one.
    static let runsMin = 8
    /// Fewer tombstones than that are not worth a merge of their own.
    static let tombstonesMin: UInt64 = 16_384
    /// Nor are fewer than this part of a dataset's entries: so that for each tombstone that goes no
    /// more than so many entries are written anew.
    static let tombstoneShare: UInt64 = 4

    /// Size-tiered: the newest runs, as long as each is at most as large as all newer ones
    /// together, once there are enough. So every byte is rewritten about log(n) times, and the
    /// number of runs grows with log(n). What other bounds cost says the article Compaction. Empty
    /// if there are too few.
    static func runs(of runs: [SegmentRun]) -> [SegmentRun] {
        Array(runs.prefix(count(ofSizes: runs.map(\.fileSize))))
    }

    /// How many of the newest runs to merge; 0 for none.
    static func count(ofSizes sizes: [UInt64]) -> Int {
        var count = 0
        var bytes: UInt64 = 0
        for size in sizes {
            // Two runs of one log each are alike, though the newer one may be a little smaller.
            if count > 0, size > max(bytes, 2 * sizes[0]) { break }
            count += 1
            bytes += size
        }
        return count >= runsMin ? count : 0
    }

    /// Whether there can be a dataset to clear, as the footers of the segments say.
    static func mayClear(_ runs: [SegmentRun]) -> Bool {
        let tombstones = runs.reduce(UInt64(0)) { sum, run in
            run.segments.reduce(sum) { $0 &+ $1.footer.tombstoneCount }
        }
        return tombstones >= tombstonesMin
    }

    /// The dataset with the most tombstones of those that have many, and that to compact would
    /// clear. O(segments, and datasets in each).
    ///
    /// Tombstones in the oldest run of a dataset have nothing to delete any more. They count only
    /// where the merge takes them away. Marks of records that were dropped here alone count among
    /// them, as in the tables of segments: above older entries they hide what was dropped, and the
    /// merge takes away both, whatever peers have seen.
    ///
    /// - Parameter forgets: whether nothing is left of a dataset's tombstones after a merge.
    static func datasetToClear(
        in runs: [SegmentRun], forgets: (DatasetID) throws(StoreError) -> Bool
    ) throws(StoreError) -> DatasetID? {
        struct Sum {
            var entries: UInt64 = 0
            var tombstones: UInt64 = 0
            /// Of these, in the oldest run that holds anything of the dataset.
            var inOldest: UInt64 = 0
            var oldest = -1
        }
        var sums: [DatasetID: Sum] = [:]
        for (index, run) in runs.enumerated().reversed() {
            for segment in run.segments {
                for row in try segment.parts().datasets().rows where row.dataset != 0 {
                    var sum = sums[row.dataset] ?? Sum()
                    if sum.oldest < 0 { sum.oldest = index }
                    sum.entries &+= row.entryCount
                    sum.tombstones &+= row.tombstoneCount
                    if sum.oldest == index { sum.inOldest &+= row.tombstoneCount }
                    sums[row.dataset] = sum
                }
            }
        }
        func isMany(_ tombstones: UInt64, _ sum: Sum) -> Bool {
            tombstones >= tombstonesMin && tombstones >= sum.entries / tombstoneShare
        }
        let many = sums.filter { isMany($0.value.tombstones, $0.value) }
            .sorted { $0.value.tombstones > $1.value.tombstones }
        for (dataset, sum) in many {
            if isMany(sum.tombstones - sum.inOldest, sum) { return dataset }
            if try forgets(dataset) { return dataset }
        }
        return nil
    }
}
