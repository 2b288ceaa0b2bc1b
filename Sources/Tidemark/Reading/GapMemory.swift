internal import Synchronization

/// A span of a dataset's keys in which no record lives: for every reader of the sequence or a
/// later one, by the clock of the time or a later one.
struct KeyGap {
    let dataset: DatasetID
    /// The first key of the span; empty for the first of all.
    private(set) var lowerBound: [UInt8]
    /// The first key behind the span; nil if it reaches to the last of the dataset.
    private(set) var upperBound: [UInt8]?
    private(set) var sequence: UInt64
    /// By which records had expired, in milliseconds since 1970.
    private(set) var now: UInt64
    fileprivate var lastUse: UInt64 = 0

    init(
        dataset: DatasetID, from lowerBound: [UInt8], upTo upperBound: [UInt8]?, at moment: Moment
    ) {
        self.dataset = dataset
        self.lowerBound = lowerBound
        self.upperBound = upperBound
        sequence = moment.sequenceMax
        now = moment.now
    }

    var isEmpty: Bool {
        guard let upperBound else { return false }
        return !lowerBound.lexicographicallyPrecedes(upperBound)
    }

    func contains(_ key: ByteView) -> Bool {
        guard KeyRange.compare(key, lowerBound) >= 0 else { return false }
        guard let upperBound else { return true }
        return KeyRange.compare(key, upperBound) < 0
    }

    /// Whether all keys below a bound, as far down as any of the span, belong to the span.
    fileprivate func reaches(upTo bound: [UInt8]?) -> Bool {
        guard let upperBound else {
            return bound.map { lowerBound.lexicographicallyPrecedes($0) } ?? true
        }
        guard let bound else { return false }
        return lowerBound.lexicographicallyPrecedes(bound)
            && !upperBound.lexicographicallyPrecedes(bound)
    }

    /// Whether both together are one span.
    fileprivate func touches(_ other: KeyGap) -> Bool {
        !endsBelow(other.lowerBound) && !other.endsBelow(lowerBound)
    }

    private func endsBelow(_ key: [UInt8]) -> Bool {
        upperBound?.lexicographicallyPrecedes(key) ?? false
    }

    /// Both spans as one, of which is true what is true of either.
    fileprivate mutating func formUnion(_ other: KeyGap) {
        if other.lowerBound.lexicographicallyPrecedes(lowerBound) { lowerBound = other.lowerBound }
        if let bound = upperBound, !other.endsBelow(bound) { upperBound = other.upperBound }
        sequence = max(sequence, other.sequence)
        now = max(now, other.now)
    }

    /// Takes a key out of the span, and with it what a walk in that order would come to after it.
    mutating func cut(at key: ByteView, keeping order: ScanOrder) {
        guard contains(key) else { return }
        switch order {
        case .forward: upperBound = key.array
        case .backward: lowerBound = key.array + [0]
        }
    }
}

/// Where walks have found nothing but deleted, superseded and expired records, many in a row: so
/// that the next walk need not pass over all of them again, as it would have to at the front of a
/// queue, until compaction has cleared them away. After long rows of deletions the scout has
/// walked there first (`Engine+Scouting.swift`).
///
/// What is noted stays true as long as nobody puts a record into the span: a record that is dead
/// stays dead for whoever looks later, whatever is sealed or compacted. So whoever puts a record
/// asks here, under the store's writer lock, and the span is cut at its key before the write can
/// be seen. A span is never used by readers of an earlier moment than that of the walk which found
/// it, nor for reading the past, nor by a clock that was set back.
///
/// Bounded: a few spans, those that were used last. Not on disk: after opening they are found
/// anew. Thread rule: spans are added and cut under the writer lock, and looked up by anybody.
final class GapMemory: Sendable {
    /// A walk that has passed over so many dead records in a row looks whether it can go on faster,
    /// and leaves a note when it comes to a live one. To pass over them costs about as much as
    /// that.
    static let passedMin = 64

    private struct State {
        /// Those of one dataset neither overlap nor touch.
        var gaps: [KeyGap] = []
        var useCount: UInt64 = 0
    }

    private let state = Mutex(State())
    /// A bit for each rest of a dataset's number by 64: set if there may be a span of such a one.
    private let datasets = Atomic<UInt64>(0)
    private let passed = Atomic<UInt64>(0)
    private let scouted = Atomic<UInt64>(0)

    /// Whether there may be a gap in a dataset. One load, where there mostly is none.
    @inline(__always)
    func mayHave(_ dataset: DatasetID) -> Bool {
        datasets.load(ordering: .relaxed) & Self.bit(of: dataset) != 0
    }

    private static func bit(of dataset: DatasetID) -> UInt64 { 1 << UInt64(dataset & 63) }

    /// How many there are. For tests.
    var count: Int { state.withLock { $0.gaps.count } }

    /// How often one was added or used. For tests.
    var useCount: UInt64 { state.withLock { $0.useCount } }

    /// How many dead records walks have passed over that use this memory: each where several
    /// sources are merged, and of a single run those in whole blocks. For tests.
    var passedCount: UInt64 { passed.load(ordering: .relaxed) }

    /// Takes note that a walk has passed over dead records. Not for every walk: only where there
    /// were any.
    func notePassed(_ count: Int) {
        _ = passed.add(UInt64(count), ordering: .relaxed)
    }

    /// The same of the scout, which passes over them so that walks need not. For tests.
    var scoutedCount: UInt64 { scouted.load(ordering: .relaxed) }

    /// Takes note that the scout has passed over dead records.
    func noteScouted(_ count: Int) {
        _ = scouted.add(UInt64(count), ordering: .relaxed)
    }

    // MARK: - Looking up

    /// The gap in which a key lies, for a reader of that moment.
    func gap(around key: ByteView, in dataset: DatasetID, at moment: Moment) -> KeyGap? {
        find(dataset, moment) { $0.contains(key) }
    }

    /// The gap that a walk backward from a bound is in, for a reader of that moment.
    func gap(below bound: [UInt8]?, in dataset: DatasetID, at moment: Moment) -> KeyGap? {
        find(dataset, moment) { $0.reaches(upTo: bound) }
    }

    private func find(
        _ dataset: DatasetID, _ moment: Moment, _ isWanted: (KeyGap) -> Bool
    ) -> KeyGap? {
        guard mayHave(dataset) else { return nil }
        return state.withLock { state in
            let index = state.gaps.firstIndex { gap in
                gap.dataset == dataset && gap.sequence <= moment.sequenceMax
                    && gap.now <= moment.now && isWanted(gap)
            }
            guard let index else { return nil }
            state.useCount += 1
            state.gaps[index].lastUse = state.useCount
            return state.gaps[index]
        }
    }

    // MARK: - Changing, under the writer lock

    /// Adds a gap into which nothing was put since its sequence.
    func add(_ found: KeyGap) {
        guard !found.isEmpty else { return }
        change { state in
            var gap = found
            state.useCount += 1
            gap.lastUse = state.useCount
            var others: [KeyGap] = []
            for other in state.gaps {
                if other.dataset == gap.dataset, other.touches(gap) {
                    gap.formUnion(other)
                } else {
                    others.append(other)
                }
            }
            state.gaps = others + [gap]
        }
    }

    /// Takes note that a record is put.
    @inline(__always)
    func notePut(_ key: ByteView, in dataset: DatasetID) {
        if mayHave(dataset) { cut(at: key, in: dataset) }
    }

    /// A gap that holds the key becomes two, on both sides of it.
    private func cut(at key: ByteView, in dataset: DatasetID) {
        let holds = state.withLock { state in
            state.gaps.contains { $0.dataset == dataset && $0.contains(key) }
        }
        guard holds else { return }
        change { state in
            state.gaps = state.gaps.flatMap { gap -> [KeyGap] in
                guard gap.dataset == dataset, gap.contains(key) else { return [gap] }
                var (below, above) = (gap, gap)
                below.cut(at: key, keeping: .forward)
                above.cut(at: key, keeping: .backward)
                return [below, above].filter { !$0.isEmpty }
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            while state.gaps.count > Limits.gapsMax,
                let oldest = state.gaps.indices.min(by: {
                    state.gaps[$0].lastUse < state.gaps[$1].lastUse
                })
            {
                state.gaps.remove(at: oldest)
            }
            let bits = state.gaps.reduce(0) { $0 | Self.bit(of: $1.dataset) }
            datasets.store(bits, ordering: .relaxed)
        }
    }
}

/// Who knows gaps, and whether one that a walk has found still is one.
protocol GapKeeper: AnyObject, Sendable {
    var gaps: GapMemory { get }

    /// Notes a gap that a walk has found, unless something was put into it meanwhile.
    ///
    /// - Parameter order: of the walk.
    func note(_ found: KeyGap, order: ScanOrder)
}

extension Store {
    /// For tests: spans of keys that are known to hold no live record, and how often one was noted
    /// or used.
    package var gapsNoted: Int { engine.gaps.count }
    package var gapUseCount: UInt64 { engine.gaps.useCount }
    /// For tests: dead records that walks have passed over.
    package var deadRecordsPassed: UInt64 { engine.gaps.passedCount }
}
