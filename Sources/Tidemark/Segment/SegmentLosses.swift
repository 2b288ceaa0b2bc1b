/// What merges have dropped of one dataset: from where on a question about the past has an answer.
struct HistoryLoss: Hashable {
    /// The sync count up to which tombstones may have been collected: whoever knows the changes up
    /// to an earlier one cannot be told which records are gone.
    var collectedThrough: UInt64 = 0
    /// The sync count and the time from which on, both included, everything that could be read
    /// then is still there: the greatest at which a version that was dropped was superseded.
    var wholeFrom: UInt64 = 0
    var wholeFromTime: UInt64 = 0

    mutating func formUnion(_ other: HistoryLoss) {
        collectedThrough = max(collectedThrough, other.collectedThrough)
        wholeFrom = max(wholeFrom, other.wholeFrom)
        wholeFromTime = max(wholeFromTime, other.wholeFromTime)
    }

    /// Notes that a version was dropped which another one had superseded.
    mutating func noteDropped(supersededAt syncCount: UInt64, time: UInt64) {
        wholeFrom = max(wholeFrom, syncCount)
        wholeFromTime = max(wholeFromTime, time)
    }
}

/// The losses of all datasets that a segment was made with, as its block of kind `collected` holds
/// them. They outlive the segment: a merge hands them on.
struct SegmentLosses {
    private(set) var rows: [DatasetID: HistoryLoss] = [:]

    init() {}

    subscript(dataset: DatasetID) -> HistoryLoss {
        get { rows[dataset] ?? HistoryLoss() }
        set { rows[dataset] = newValue == HistoryLoss() ? nil : newValue }
    }

    mutating func formUnion(_ other: SegmentLosses) {
        for (dataset, loss) in other.rows { self[dataset].formUnion(loss) }
    }

    /// Forgets datasets that are gone themselves.
    mutating func removeAll(
        where isGone: (DatasetID) throws(StoreError) -> Bool
    ) throws(StoreError) {
        for id in rows.keys where try isGone(id) { rows[id] = nil }
    }

    /// The number of datasets, then four varints each: dataset, then the fields of its loss.
    func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: rows.count)
        for (dataset, loss) in rows.sorted(by: { $0.key < $1.key }) {
            writer.append(varint: UInt64(dataset))
            writer.append(varint: loss.collectedThrough)
            writer.append(varint: loss.wholeFrom)
            writer.append(varint: loss.wholeFromTime)
        }
        return writer.bytes
    }

    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        var previous: DatasetID?
        for _ in 0..<(try reader.count(eachAtLeast: 4)) {
            let dataset = try reader.varint32()
            guard previous.map({ $0 < dataset }) ?? true else {
                throw Malformed("the table of losses is out of order")
            }
            previous = dataset
            rows[dataset] = HistoryLoss(
                collectedThrough: try reader.varint(), wholeFrom: try reader.varint(),
                wholeFromTime: try reader.varint())
        }
        guard reader.isAtEnd else { throw Malformed("the table of losses is too long") }
    }
}
