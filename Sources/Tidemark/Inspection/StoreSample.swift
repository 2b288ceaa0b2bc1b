/// One entry of a sample, and for how many of the store's it stands.
package struct SampledEntry: Hashable, Sendable {
    package let isDeletion: Bool
    package let keyBytes: Int
    /// 0 of a deletion. Of a value that lies apart its whole length.
    package let valueBytes: Int
    /// When it was written, by its writer's clock: milliseconds since 1970.
    package let writtenAt: UInt64
    /// How many entries it stands for: 1...
    package let weight: Double
}

/// How a sample was taken.
package struct SampleReport: Hashable, Sendable {
    /// Entries in all segments and logs, the store's own not counted where they are told apart.
    package fileprivate(set) var entriesTotal = 0
    package fileprivate(set) var entriesSampled = 0
    /// Blocks that are damaged, and were passed over.
    package fileprivate(set) var blocksDamaged = 0

    /// Whether every entry was looked at.
    package var isWhole: Bool { entriesSampled == entriesTotal && blocksDamaged == 0 }
}

extension Store {
    /// Looks at some of all the entries that are stored, superseded ones and deletions included:
    /// whole blocks, at equal distances within each sealed segment, so that each dataset and each
    /// range of keys has its share. For histograms of stores that are too large to be walked over.
    ///
    /// Reads about as many entries as are asked for, and one block of each segment at least; of
    /// values that lie apart none is read. What one block holds is near to each other in keys, so
    /// the error of a share is that of a sample of blocks, not of single entries.
    ///
    /// - Parameters:
    ///   - entriesMax: about how many to look at: 1...
    ///   - body: called for each.
    ///   - tell: called after each segment.
    /// - Throws: `closed`, `inputOutput`; `corruption` if the tables of a segment are damaged.
    package func sampleEntries(
        about entriesMax: Int, _ body: (SampledEntry) -> Void, tell: () -> Void = {}
    ) throws(StoreError) -> SampleReport {
        let view = try engine.moment().view
        let sealedCount = view.segments.reduce(0) { $0 + Int(clamping: $1.footer.entryCount) }
        let total = view.memtables.reduce(sealedCount) { $0 + $1.count }
        let stride = max(1, Double(total) / Double(max(1, entriesMax)))
        var report = SampleReport()
        for memtable in view.memtables {
            memtable.sample(every: stride, into: &report, body)
            tell()
        }
        let buffer = BlockBuffer()
        for segment in view.segments {
            let parts = try segment.parts()
            do throws(StoreError) {
                try parts.sample(every: stride, buffer, into: &report, body)
            } catch {
                guard error.code == .corruption else { throw error }
                report.blocksDamaged += 1
            }
            tell()
        }
        return report
    }
}

extension Memtable {
    fileprivate func sample(
        every stride: Double, into report: inout SampleReport, _ body: (SampledEntry) -> Void
    ) {
        var cursor = MemtableCursor(self)
        cursor.seek(to: EntryPosition(before: .empty, in: 0))
        var next = 0.0
        var number = 0.0
        while let entry = cursor.entry {
            if entry.isOfUsers {
                report.entriesTotal += 1
                if number >= next {
                    report.entriesSampled += 1
                    body(SampledEntry(entry, weight: stride))
                    next += stride
                }
                number += 1
            }
            cursor.stepForward()
        }
    }
}

extension SegmentParts {
    /// Every block whose number is the next multiple of the stride.
    fileprivate func sample(
        every stride: Double, _ buffer: BlockBuffer, into report: inout SampleReport,
        _ body: (SampledEntry) -> Void
    ) throws(StoreError) {
        let blockCount = directory.blockCount
        guard blockCount > 0 else { return }
        report.entriesTotal += Int(clamping: try usersEntryCount())
        let wanted = max(1, min(blockCount, Int((Double(blockCount) / stride).rounded(.up))))
        let weight = Double(blockCount) / Double(wanted)
        for step in 0..<wanted {
            let block = step * blockCount / wanted
            do throws(StoreError) {
                let view = try view(of: block, in: buffer)
                for slot in 0..<view.count {
                    guard let entry = view.entry(at: slot) else { throw changed(block) }
                    guard entry.isOfUsers else { continue }
                    report.entriesSampled += 1
                    body(SampledEntry(entry, weight: weight))
                }
            } catch {
                guard error.code == .corruption else { throw error }
                report.blocksDamaged += 1
            }
        }
    }

    private func usersEntryCount() throws(StoreError) -> UInt64 {
        try datasets().rows.reduce(0) { sum, row in
            Entry.isOfUsers(row.dataset) ? sum &+ row.entryCount : sum
        }
    }
}

extension SampledEntry {
    fileprivate init(_ entry: Entry, weight: Double) {
        let isDeletion = entry.kind == .delete
        self.init(
            isDeletion: isDeletion, keyBytes: entry.key.count,
            valueBytes: isDeletion ? 0 : entry.valueCount, writtenAt: entry.stamp.time >> 16,
            weight: weight)
    }
}

extension Entry {
    /// Whether it is a record of a user, not one of the store's own.
    fileprivate var isOfUsers: Bool { Self.isOfUsers(dataset) }

    fileprivate static func isOfUsers(_ dataset: DatasetID) -> Bool {
        dataset != 0 && !Limits.systemDatasetNumbers.contains(dataset)
    }
}
