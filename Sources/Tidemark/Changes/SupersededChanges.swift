internal import Synchronization

// Changes that were superseded by others, known in advance.
//
// A walk in the order of change looks at each change since a count, and most of what it looks at
// may be superseded: of a dataset that was merged or written anew as a whole every old change is.
// To find that out for one takes its block, which lies anywhere in the order of keys, and a search
// for its key in everything newer: some microseconds. A walk in the order of keys passes over the
// newest version of each key in a fraction of that, and leaves a bit for each sync count.
//
//     sync counts   1 2 3 4 5 6 7 8 9     since 2, through 9
//     newest of         ·   · ·   · ·     words[0] = 0b1101101
//
// A change that was superseded once stays superseded, whatever is written, sealed or compacted
// later: its key has a newer version, or is gone from the dataset with all its versions. So what is
// not among the bits need not be looked at by later walks over the same records, either. What is
// among them may have been superseded since, and is looked at as ever; unless the dataset has
// counted no change since: then each of them is the newest version of its key still, and nobody
// needs to search for it.

/// Tells which changes of a dataset were superseded at one moment: a bit for each sync count.
struct SupersededChanges: Sendable {
    /// Of the records: those of a dataset that was wiped have another number afterwards.
    let dataset: DatasetID
    /// Before the first count that has a bit.
    let since: UInt64
    /// The last count that has one.
    let through: UInt64
    /// The dataset's count at the moment.
    let end: UInt64
    /// Set for what is the newest version of its key.
    private let words: [UInt64]

    /// As many counts have a bit at most: 8 MiB.
    static let countMax: UInt64 = 1 << 26

    /// Walks over all records. O(records).
    ///
    /// - Parameters:
    ///   - since: counts up to there need no bit.
    ///   - end: the dataset's count at the moment.
    init(
        _ moment: Moment, of dataset: DatasetID, since: UInt64, through end: UInt64
    ) throws(StoreError) {
        self.dataset = dataset
        self.since = since
        self.end = end
        let count = end > since ? min(end - since, Self.countMax) : 0
        let through = since + count
        var words = [UInt64](repeating: 0, count: Int((count + 63) / 64))
        if dataset != 0, count > 0 {
            var steps = try ScanSteps(
                moment, dataset: dataset, range: .all, order: .forward, includingDeleted: true)
            while let entry = try steps.nextEntry() {
                if let place = Self.place(of: entry.syncCount, since: since, through: through) {
                    words[place.word] |= place.bit
                }
            }
        }
        self.through = through
        self.words = words
    }

    /// Whether a change of that count was superseded; false if it has no bit. O(1).
    @inline(__always)
    func contains(_ syncCount: UInt64) -> Bool {
        standing(of: syncCount) ?? false
    }

    /// Whether a change of that count was superseded; nil if it has no bit. O(1).
    @inline(__always)
    func standing(of syncCount: UInt64) -> Bool? {
        Self.place(of: syncCount, since: since, through: through).map { place in
            words[place.word] & place.bit == 0
        }
    }

    /// Where the bit of a count is; nil if it has none.
    @inline(__always)
    private static func place(
        of syncCount: UInt64, since: UInt64, through: UInt64
    ) -> (word: Int, bit: UInt64)? {
        guard syncCount > since, syncCount <= through else { return nil }
        let number = syncCount - since - 1
        return (Int(number >> 6), 1 << (number & 63))
    }
}

/// What reading one page of the changes of a dataset finds out that spares work with the next ones:
/// to be kept by whoever reads page after page. Thread-safe.
package final class ChangeMemory: Sendable {
    private struct State {
        var superseded: SupersededChanges?
        /// Of the last walk, whatever came of it.
        var walked: DatasetID = 0
        /// Before that count no other walk is worth it.
        var nextWalk: UInt64 = 0
        var walkCount = 0
    }

    private let state = Mutex(State())
    /// As many superseded changes are looked at one by one in a page before all are looked for.
    let passedMax: Int
    /// Fewer changes are always looked at one by one.
    private let changesMin: UInt64
    /// So are fewer than this part of all that the dataset has counted, since it may have as many
    /// records.
    private static let changesShare: UInt64 = 4
    /// Before all are walked over again, this part of what the last walk was for has been read:
    /// others may write as fast as we read.
    private static let readShare: UInt64 = 8

    /// - Parameters:
    ///   - passedMax: superseded changes in a page that are looked at one by one, from 1.
    ///   - changesMin: changes that are worth a walk over all records; 0: any number is.
    package init(passedMax: Int = 4_096, changesMin: UInt64) {
        self.passedMax = max(1, passedMax)
        self.changesMin = changesMin
    }

    /// For tests: how often all records were walked over.
    package var walkCount: Int { state.withLock { $0.walkCount } }

    /// What is known of a dataset's records.
    func superseded(of dataset: DatasetID) -> SupersededChanges? {
        state.withLock { state in
            state.superseded?.dataset == dataset ? state.superseded : nil
        }
    }

    /// Finds out which changes behind a count are superseded, if there are enough of them.
    ///
    /// - Parameter end: the dataset's count at the moment.
    /// - Returns: nil if that is not worth a walk, or if something in its way is damaged, which the
    ///   changes may never come by.
    func superseded(
        of dataset: DatasetID, since: UInt64, through end: UInt64, _ moment: Moment
    ) -> SupersededChanges? {
        let changes = end > since ? end - since : 0
        guard changesMin == 0 || changes >= max(changesMin, end / Self.changesShare) else {
            return nil
        }
        let isDue = state.withLock { state in
            guard state.walked != dataset || since >= state.nextWalk else { return false }
            state.walked = dataset
            state.nextWalk = since + min(changes, SupersededChanges.countMax) / Self.readShare
            state.walkCount += 1
            return true
        }
        guard isDue else { return nil }
        let found: SupersededChanges?
        do throws(StoreError) {
            found = try SupersededChanges(moment, of: dataset, since: since, through: end)
        } catch {
            found = nil
        }
        if let found { state.withLock { $0.superseded = found } }
        return found
    }
}
