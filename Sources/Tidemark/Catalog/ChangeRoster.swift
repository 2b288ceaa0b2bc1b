internal import Synchronization

/// A moment in the changes of all datasets of a store, as long as it is open.
package struct StoreMark: Hashable, Sendable {
    /// Of the opening: drawn anew each time, so that no mark means anything to another store, or
    /// to this one after it was closed.
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
/// Thread rule: everything under the store's writer lock. Nothing of this is on disk; after a
/// crash the marks are those of another incarnation, and everything is looked at once.
struct ChangeRoster {
    private struct Line {
        let name: String
        let epoch: UInt64
    }

    /// Never 0.
    private(set) var epoch: UInt64 = 1
    /// The present epoch must end before a mark can be handed out.
    private var hasNoted = false
    private var incarnation: UInt64?
    /// Marks before this tell nothing.
    private var positionMin: UInt64 = 0
    /// In the order of their epochs. Only the last of each name counts.
    private var lines: [Line] = []
    private var epochs: [String: UInt64] = [:]
    private let namesMax: Int

    init(namesMax: Int = Limits.rosterNamesMax) {
        self.namesMax = namesMax
    }

    /// O(1), amortised.
    mutating func note(_ name: String) {
        guard incarnation != nil, epochs.updateValue(epoch, forKey: name) != epoch else { return }
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
        let drawn: UInt64
        if let incarnation {
            drawn = incarnation
        } else {
            drawn = random()
            incarnation = drawn
            // What changed before was not noted.
            positionMin = epoch
            hasNoted = true
        }
        if hasNoted {
            epoch += 1
            hasNoted = false
        }
        return StoreMark(incarnation: drawn, position: epoch - 1)
    }

    /// The datasets that changed after a mark, in no order; nil if that is not known. O(answer).
    func names(since mark: StoreMark) -> [String]? {
        guard mark.incarnation == incarnation, mark.position >= positionMin,
            mark.position < epoch
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
    /// one was opened, or more than 65,536 datasets have changed. O(answer).
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
