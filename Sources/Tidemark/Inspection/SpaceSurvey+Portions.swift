extension SpaceSurvey {
    /// What one dataset has of a segment, or all those together that are not among the heaviest.
    package struct Portion: Hashable, Sendable {
        /// Bytes of keys and values, wherever the values lie, before compression.
        package internal(set) var contentBytes: UInt64 = 0
        /// Of what was looked at.
        package internal(set) var found = Counts()

        /// Bytes of keys and values that are live; nil if it is there and nothing of it was looked
        /// at.
        package var liveBytesEstimate: UInt64? {
            guard found.bytes > 0 else { return contentBytes == 0 ? 0 : nil }
            guard found.bytes < contentBytes else { return found.liveBytes }
            return UInt64(Double(contentBytes) * (Double(found.liveBytes) / Double(found.bytes)))
        }

        /// Takes away what is told of by itself.
        mutating func subtract(_ other: Portion) {
            contentBytes -= min(contentBytes, other.contentBytes)
            found -= other.found
        }
    }
}

/// The datasets that have the most bytes of keys and values, found before a survey so that it need
/// not remember of each segment what each of a million datasets has in it.
struct HeaviestDatasets {
    private struct Candidate {
        let dataset: DatasetID
        let name: String
        let bytes: UInt64
    }

    private let countMax: Int
    /// The heaviest first; of two alike the one with the lower number.
    private var candidates: [Candidate] = []

    var datasets: [DatasetID] { candidates.map(\.dataset) }
    var names: [String] { candidates.map(\.name) }

    /// O(entries in the logs, segments, and datasets in each). What no dataset has any more is
    /// passed over.
    ///
    /// - Parameter countMax: 0...; with 0 nothing is looked at.
    init(_ countMax: Int, of view: ReadView, in engine: Engine) throws(StoreError) {
        self.countMax = countMax
        guard countMax > 0 else { return }
        var sums: [DatasetID: UInt64] = [:]
        for memtable in view.memtables {
            var cursor = MemtableCursor(memtable)
            cursor.seek(to: EntryPosition(before: .empty, in: 0))
            while let entry = cursor.entry {
                sums[entry.dataset, default: 0] &+= UInt64(entry.key.count + entry.valueCount)
                cursor.stepForward()
            }
        }
        for segment in view.segments {
            for row in try segment.parts().datasets().rows {
                sums[row.dataset, default: 0] &+= row.keyBytes &+ row.valueBytes
            }
        }
        for (dataset, bytes) in sums where dataset != 0 && bytes > 0 {
            try consider(dataset, bytes, in: engine)
        }
    }

    private mutating func consider(
        _ dataset: DatasetID, _ bytes: UInt64, in engine: Engine
    ) throws(StoreError) {
        let place =
            candidates.firstIndex { other in
                (other.bytes, dataset) < (bytes, other.dataset)
            } ?? candidates.count
        guard place < countMax else { return }
        let name = try engine.withState(numbered: dataset) { _, state -> String? in
            guard let state, state.recordsID == dataset else { return nil }
            return state.name
        }
        guard let name else { return }
        candidates.insert(Candidate(dataset: dataset, name: name, bytes: bytes), at: place)
        if candidates.count > countMax { candidates.removeLast() }
    }
}
