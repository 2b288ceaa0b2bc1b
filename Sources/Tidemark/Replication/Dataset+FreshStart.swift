// What a fresh start needs of the store: see the article on the sync protocol of TidemarkSync.

/// A version of which it is to be found out whether a peer has seen, deleted and forgotten it.
package struct UnsettledVersion: Sendable {
    package let key: [UInt8]
    package let version: Version
    package let isDeleted: Bool
}

package struct UnsettledPage: Sendable {
    package internal(set) var versions: [UnsettledVersion] = []
    /// In our order of change: everything up to here is in this page or an earlier one, or need not
    /// be asked about.
    package internal(set) var through: SyncCount
    /// Whether nothing came after that at the moment of reading.
    package internal(set) var isLast = false
}

extension Dataset {
    /// Begins a fresh start with a peer that has forgotten these deletions, or goes on with it.
    /// Until its end nothing is taken from anybody else who lacks any of them.
    ///
    /// - Parameter number: of this fresh start.
    /// - Throws: `invalidArgument` if what the peer says is beyond all limits.
    package func startAfresh(
        _ forgotten: ForgottenDeletions, with peer: ReplicaID, number: UInt64
    ) throws(StoreError) {
        guard forgotten.isStorable else { throw .beyondLimits }
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            // What is written from now on wins over whatever they deleted.
            held.see(forgotten.time)
            state.startAfresh(FreshStart(peer: peer, forgotten: forgotten), number: number)
        }
    }

    /// Whether a fresh start is under way, with whomever. What counts as forgotten here may grow
    /// with its end.
    package func isStartingAfresh() throws(StoreError) -> Bool {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return !state.freshStarts.isEmpty
        }
    }

    package func endFreshStart(number: UInt64) {
        engine.withLock { held in state.startAfresh(nil, number: number) }
    }

    /// What changed after a count and has not seen all of the given, in the order of change. O(what
    /// changed), without reading a value.
    ///
    /// - Parameters:
    ///   - isOwn: whether only what was written here is wanted.
    ///   - countMax: versions in the page at most, at least 1.
    ///   - bytesMax: bytes of keys before the last one.
    package func unsettledPage(
        since: SyncCount, lacking vector: VersionVector, isOwn: Bool, countMax: Int, bytesMax: Int
    ) throws(StoreError) -> UnsettledPage {
        let changes = try engine.changes(of: state, since: since, isExchange: true)
        let forgotten = changes.knowledge.forgotten
        var steps = changes.steps
        let own = changes.dirtiness.ownIDs
        var page = UnsettledPage(through: since)
        var bytes = 0
        while page.versions.count < max(1, countMax), bytes < max(1, bytesMax) {
            let next = try steps.next {
                (entry, tables) throws(StoreError) -> (SyncCount, UnsettledVersion?) in
                let count = SyncCount(rawValue: entry.syncCount)
                let version = tables.version(of: entry)
                let isDeleted = entry.kind == .delete
                // What is forgotten here has nothing left to say, nor has the mark of a dropped
                // record.
                guard entry.stamp.counter > 0, !version.vector.covers(vector),
                    !isDeleted || !forgotten.covers(version),
                    !isOwn || own.contains(version.dot.replica)
                else { return (count, nil) }
                let unsettled = UnsettledVersion(
                    key: entry.key.array, version: version, isDeleted: isDeleted)
                return (count, unsettled)
            }
            guard let (count, unsettled) = next else {
                page.through = max(since, changes.knowledge.syncCount)
                page.isLast = true
                break
            }
            page.through = count
            if let unsettled {
                bytes += unsettled.key.count
                page.versions.append(unsettled)
            }
        }
        return page
    }

    /// Which records of a page, by their numbers in it, have keys of which there is nothing here,
    /// or nothing but a deletion that counts as forgotten; with what was known at that moment.
    package func absent(
        in page: MergePage
    ) throws(StoreError) -> (numbers: [Int], knowledge: DatasetKnowledge) {
        let (moment, id, knowledge) = try momentAsStored { $0.knowledge }
        var numbers: [Int] = []
        try page.bytes.withBytes { (all) throws(StoreError) in
            for (number, item) in page.items.enumerated() {
                let isThere = try moment.view.withNewest(
                    of: MergePage.key(of: item, in: all), in: id, sequenceMax: moment.sequenceMax
                ) { (entry, tables) throws(StoreError) -> Bool in
                    guard id != 0, let entry, let tables else { return false }
                    return entry.kind == .put
                        || !knowledge.forgotten.covers(tables.version(of: entry))
                }
                if !isThere { numbers.append(number) }
            }
        }
        return (numbers, knowledge)
    }
}
