/// What a walk has passed over since it last gave a record out, and where that began.
struct DeadStretch {
    private enum Edge {
        /// Where the walk began.
        case start
        /// At a key: forward, that one is the first of the stretch; backward, the first behind it.
        case key([UInt8])
        case unknown
    }

    private let keeper: any GapKeeper
    private let dataset: DatasetID
    private let range: KeyRange
    private let order: ScanOrder
    private let moment: Moment
    private var edge = Edge.start

    init(
        _ keeper: any GapKeeper, _ moment: Moment, dataset: DatasetID, range: KeyRange,
        order: ScanOrder
    ) {
        self.keeper = keeper
        self.moment = moment
        self.dataset = dataset
        self.range = range
        self.order = order
    }

    /// Where to go on from the beginning of the walk; nil if no gap is known there.
    func startBehindGap() -> KeyPosition? {
        guard keeper.gaps.mayHave(dataset) else { return nil }
        let gap: KeyGap?
        switch order {
        case .forward:
            gap = unsafe (range.lowerBound ?? []).withUnsafeBytes {
                unsafe keeper.gaps.gap(around: ByteView($0), in: dataset, at: moment)
            }
        case .backward: gap = keeper.gaps.gap(below: range.upperBound, in: dataset, at: moment)
        }
        return gap.map(position(behind:))
    }

    /// Where to go on from a key that is dead like many before it; nil if no gap is known there.
    mutating func goOn(from key: ByteView) -> KeyPosition? {
        if case .unknown = edge { edge = .key(key.array) }
        return keeper.gaps.gap(around: key, in: dataset, at: moment).map(position(behind:))
    }

    private func position(behind gap: KeyGap) -> KeyPosition {
        switch order {
        case .forward:
            let end = KeyPosition(endOf: range, in: dataset)
            guard let upper = gap.upperBound,
                range.upperBound.map({ upper.lexicographicallyPrecedes($0) }) ?? true
            else { return end }
            return KeyPosition(dataset: dataset, key: upper)
        case .backward:
            guard let lower = range.lowerBound, gap.lowerBound.lexicographicallyPrecedes(lower)
            else { return KeyPosition(dataset: dataset, key: gap.lowerBound) }
            return KeyPosition(dataset: dataset, key: lower)
        }
    }

    /// Ends the stretch at a live record, or at the end of the walk.
    ///
    /// - Parameter passedCount: how many dead records were passed over.
    mutating func end(at key: ByteView?, passedCount: Int) {
        defer { edge = .unknown }
        if passedCount > 0 { keeper.gaps.notePassed(passedCount) }
        guard passedCount >= GapMemory.passedMin else { return }
        let begin: [UInt8]?
        switch edge {
        case .start: begin = order == .forward ? range.lowerBound : range.upperBound
        case .key(let key): begin = key
        case .unknown: return
        }
        let gap =
            order == .forward
            ? KeyGap(
                dataset: dataset, from: begin ?? [], upTo: key?.array ?? range.upperBound,
                at: moment)
            : KeyGap(
                dataset: dataset, from: key.map { $0.array + [0] } ?? range.lowerBound ?? [],
                upTo: begin, at: moment)
        keeper.note(gap, order: order)
    }
}
