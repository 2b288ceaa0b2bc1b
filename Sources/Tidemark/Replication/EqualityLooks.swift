internal import Synchronization

/// When the records of a dataset were last compared with those of a peer, so that to do it again
/// can wait: it takes a sum over all of them on both sides, and finds something only where a store
/// went back in time or was copied.
///
/// In memory only, and with the store, since whoever asks may be another one each time. Bounded:
/// beyond ``pairsMax`` the pair that was looked at first is forgotten, and counts as new.
///
/// Thread rule: all under one lock, which is held for moments only.
final class EqualityLooks: Sendable {
    private struct Pair: Hashable {
        let dataset: String
        let peer: ReplicaID
    }

    private struct Look {
        /// By the wall clock, in milliseconds since 1970.
        var time: UInt64
        /// What both sides had counted of the dataset when they were found to be equal.
        var counts: (ours: SyncCount, theirs: SyncCount)?
    }

    private struct State {
        var looks: [Pair: Look] = [:]
        /// The pairs in the order in which they came.
        var order: [Pair] = []

        mutating func set(_ look: Look, of pair: Pair) {
            if looks.updateValue(look, forKey: pair) == nil { order.append(pair) }
            guard order.count > EqualityLooks.pairsMax else { return }
            looks[order.removeFirst()] = nil
        }
    }

    static let pairsMax = 4_096

    private let state = Mutex(State())

    init() {}

    /// Whether the two are to be compared now. What has not changed on either side since they were
    /// found equal need not be.
    ///
    /// - Parameters:
    ///   - interval: in milliseconds, since the last time or, if there is none, since this was
    ///     asked first. 0: whenever anything has changed.
    ///   - now: in milliseconds since 1970.
    fileprivate func isDue(
        _ dataset: String, _ peer: ReplicaID, at counts: (ours: SyncCount, theirs: SyncCount),
        every interval: UInt64, now: UInt64
    ) -> Bool {
        let pair = Pair(dataset: dataset, peer: peer)
        return state.withLock { state in
            guard let look = state.looks[pair] else {
                state.set(Look(time: now), of: pair)
                return interval == 0
            }
            if let equal = look.counts, equal == counts { return false }
            // A clock that was set back must not put it off.
            return now < look.time || now - look.time >= interval
        }
    }

    /// - Parameter counts: nil if they were not found equal.
    fileprivate func note(
        _ dataset: String, _ peer: ReplicaID, equalAt counts: (ours: SyncCount, theirs: SyncCount)?,
        now: UInt64
    ) {
        state.withLock { state in
            state.set(
                Look(time: now, counts: counts), of: Pair(dataset: dataset, peer: peer))
        }
    }
}

extension Dataset {
    /// Whether all records here are to be compared with those of a peer now.
    ///
    /// - Parameters:
    ///   - counts: what both sides have counted of the dataset.
    ///   - interval: since the last time, or since this was asked first.
    package func isEqualityDue(
        with peer: ReplicaID, at counts: (ours: SyncCount, theirs: SyncCount),
        every interval: Duration
    ) -> Bool {
        engine.equalityLooks.isDue(
            name, peer, at: counts, every: interval.millisecondsClamped,
            now: engine.storage.wallClockMilliseconds())
    }

    /// Notes that they were compared.
    ///
    /// - Parameter counts: nil if they were not found equal.
    package func noteEquality(
        with peer: ReplicaID, at counts: (ours: SyncCount, theirs: SyncCount)?
    ) {
        engine.equalityLooks.note(
            name, peer, equalAt: counts, now: engine.storage.wallClockMilliseconds())
    }
}
