internal import Synchronization

/// A moment in the changes of all datasets of a store.
package struct StoreMark: Hashable, Sendable {
    /// Of the opening in which something first changed after the mark before: drawn anew each time,
    /// so that of two stores that went on from one state neither takes a mark of the other for one
    /// of its own.
    package let incarnation: UInt64
    package let position: UInt64

    package init(incarnation: UInt64, position: UInt64) {
        self.incarnation = incarnation
        self.position = position
    }
}

/// Which datasets have changed since when, so that an exchange of all datasets need look only at
/// those: what a peer may want to know, records, vector and lifecycle, and not how far exchanges
/// have come.
///
/// Time is counted in epochs. One ends when a mark is handed out in which anything was noted, so
/// each dataset is noted once in an epoch, and a write that changes a dataset again looks at one
/// flag (`DatasetState.isNoted`). Until the first mark is handed out nothing is noted: a
/// store that is never synchronised pays nothing.
///
/// Epochs go on when the store is opened again as it was closed (`KeptRoster`), each opening under
/// an incarnation of its own; after a crash they begin anew, and everything is looked at once.
///
///     positions        1 ·· 2 ·· 3 | 4 ·· 5 | 6 ·· now
///     incarnations     a           | b      | c
///
/// Thread rule: everything under the store's writer lock.
struct ChangeRoster {
    struct Line: Hashable {
        let name: String
        let epoch: UInt64
    }

    /// The marks of an opening: from its first position on, up to that of the next opening.
    struct Stretch: Hashable {
        let incarnation: UInt64
        let first: UInt64
    }

    /// Never 0.
    private(set) var epoch: UInt64 = 1
    /// The present epoch must end before a mark can be handed out.
    private var hasNoted = false
    /// In rising order, the present opening's last; none before the first mark.
    private(set) var stretches: [Stretch] = []
    /// Marks before this tell nothing.
    private(set) var positionMin: UInt64 = 0
    /// In the order of their epochs. Only the last of each name counts.
    private var lines: [Line] = []
    private var epochs: [String: UInt64] = [:]
    private let namesMax: Int

    init(namesMax: Int = Limits.rosterNamesMax) {
        self.namesMax = namesMax
    }

    /// Goes on with what an earlier opening kept.
    ///
    /// - Parameters:
    ///   - stretches: at least one, in rising order from 1 on; all below the epoch.
    ///   - lines: each name once, in the order of their epochs, all below the present one.
    init(
        epoch: UInt64, positionMin: UInt64, stretches: [Stretch], lines: [Line],
        incarnation: UInt64, namesMax: Int = Limits.rosterNamesMax
    ) {
        self.epoch = epoch
        self.positionMin = positionMin
        self.stretches = stretches.suffix(Limits.rosterStretchesMax - 1)
        self.stretches.append(Stretch(incarnation: incarnation, first: epoch))
        self.lines = lines
        epochs = Dictionary(lines.map { ($0.name, $0.epoch) }, uniquingKeysWith: max)
        self.namesMax = namesMax
    }

    /// Whether a mark was ever handed out.
    var hasBegun: Bool { !stretches.isEmpty }

    /// What changed last, each name once, in the order of their epochs. O(n).
    var lastLines: [Line] { lines.filter { epochs[$0.name] == $0.epoch } }

    /// O(1), amortised.
    mutating func note(_ name: String) {
        guard hasBegun, epochs.updateValue(epoch, forKey: name) != epoch else { return }
        hasNoted = true
        lines.append(Line(name: name, epoch: epoch))
        if epochs.count > namesMax {
            lines = []
            epochs = [:]
            positionMin = epoch
        } else if lines.count > 2 * epochs.count + 64 {
            lines.removeAll { epochs[$0.name] != $0.epoch }
        }
    }

    /// The present moment. Equal to the last one if nothing was noted since. O(1).
    mutating func mark(drawing random: () -> UInt64) -> StoreMark {
        if !hasBegun {
            stretches.append(Stretch(incarnation: random(), first: epoch))
            // What changed before was not noted.
            positionMin = epoch
            hasNoted = true
        }
        if hasNoted {
            epoch += 1
            hasNoted = false
        }
        let position = epoch - 1
        // As long as nothing has changed since the store was opened, this is the mark with which it
        // was closed.
        let stretch = stretches.last { $0.first <= position } ?? stretches[0]
        return StoreMark(incarnation: stretch.incarnation, position: position)
    }

    /// The datasets that changed after a mark, in no order; nil if that is not known. O(answer).
    func names(since mark: StoreMark) -> [String]? {
        guard let index = stretches.firstIndex(where: { $0.incarnation == mark.incarnation })
        else { return nil }
        let next = index + 1
        let end = next < stretches.count ? stretches[next].first : epoch
        guard mark.position >= max(stretches[index].first, positionMin), mark.position < end
        else { return nil }
        var names: [String] = []
        for line in lines.reversed() {
            guard line.epoch > mark.position else { break }
            if epochs[line.name] == line.epoch { names.append(line.name) }
        }
        return names
    }
}

extension Store {
    /// The present moment, for ``datasetsChanged(since:)``. O(1) if nothing has changed since the
    /// last one, else O(datasets changed in the active log).
    package func changeMark() throws(StoreError) -> StoreMark {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return held.catalog.mark { engine.storage.randomUInt64() }
        }
    }

    /// The names of the datasets of which anything that concerns a peer has changed since a mark,
    /// in no order; nil if that is not known: the mark is of another store, or from before this
    /// one was last opened after a crash, or more than 65,536 datasets have changed. O(answer).
    package func datasetsChanged(since mark: StoreMark) throws(StoreError) -> [String]? {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return held.catalog.roster.names(since: mark)
        }
    }

    /// How exchanges of all datasets with peers have ended, the latest first.
    package var settledExchanges: [SettledExchange] {
        engine.settledExchanges.withLock { $0 }
    }

    /// Puts an exchange in place of the one with the same peer before.
    package func note(_ exchange: SettledExchange) {
        engine.settledExchanges.withLock { exchanges in
            exchanges.removeAll { $0.peer == exchange.peer }
            exchanges.insert(exchange, at: 0)
            exchanges.removeLast(max(0, exchanges.count - SettledExchange.countMax))
        }
    }
}

/// After an exchange of all datasets: from which moments on there can be anything new.
package struct SettledExchange: Hashable, Sendable {
    /// Peers that are kept in mind; an exchange with another one looks at every dataset.
    package static let countMax = 16

    package let peer: ReplicaID
    /// Under which id of ours.
    package let own: ReplicaID
    package let peerMark: StoreMark
    package let ownMark: StoreMark
    /// Datasets in which the two may differ nevertheless.
    package let unsettled: Set<String>

    package init(
        peer: ReplicaID, own: ReplicaID, peerMark: StoreMark, ownMark: StoreMark,
        unsettled: Set<String>
    ) {
        self.peer = peer
        self.own = own
        self.peerMark = peerMark
        self.ownMark = ownMark
        self.unsettled = unsettled
    }
}
