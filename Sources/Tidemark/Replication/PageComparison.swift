// How the versions of a page are compared with those that are here: the same rules as for records
// that come one by one (`Comparison` in the module TidemarkSync, where the reasons stand), without
// making a record, a version or a vector for each.
//
// What makes it cheap: all versions of a page have a few origins (a replica, what that had seen of
// others), and so have those that are here. Whether one vector covers another is found out once
// for each pair of origins, but for the entries of the two replicas themselves, which differ from
// version to version and are numbers in the stamp. Only versions that do not fit that, above all
// the concurrent ones, are compared as versions.

/// Compares the records of one page with a view. Knows nothing of how they are stored.
struct PageComparison {
    /// What becomes of a record of the page.
    enum Step: UInt8 {
        case ignore
        /// Stored as it came.
        case takeIncoming
        /// The incoming value under a joined version.
        case takeJoined
        /// The value that is here under a joined version.
        case keepJoined
    }

    struct Decision {
        var step: Step
        /// In ``merges``.
        var merge: UInt32 = 0
    }

    /// What is more than taking over a record.
    struct Merge {
        /// Of the version to be stored under.
        let dot: Dot
        let time: HybridTime
        let author: String
        /// As it is stored, without what the dot says itself.
        let vector: VersionVector
        /// What is here, where that stays. Copied, because nothing may fail any more once a part
        /// of the page is in the log, and reading can.
        var kind = EntryKind.put
        var value: [UInt8] = []
        var expiresAt: UInt64 = 0
    }

    let page: MergePage
    let rule: MergeRule
    /// What is dated after that wins nothing by its date.
    let latestBelieved: UInt64
    private(set) var decisions: [Decision] = []
    private(set) var merges: [Merge] = []
    var outcome = MergeOutcome()
    /// The log's bytes that the steps may take.
    private(set) var bytesMax = 0
    private(set) var hasWrites = false
    private(set) var hasLiveWrites = false

    private var incoming: [IncomingOrigin] = []
    private var local: [LocalOrigin] = []
    private var localNumbers: [LocalKey: Int] = [:]
    private var lastLocal: (key: LocalKey, number: Int)?
    private var pairs: [UInt64: Pair] = [:]
    private var lastPair: (key: UInt64, pair: Pair)?

    init(_ page: MergePage, rule: MergeRule, latestBelieved: UInt64) {
        self.page = page
        self.rule = rule
        self.latestBelieved = latestBelieved
    }

    /// Compares all records with the newest of their keys. To be called again whenever something
    /// may have been written since.
    ///
    /// - Parameters:
    ///   - id: of the dataset's records; 0 if it can have none.
    ///   - seen: the dataset's vector.
    ///   - wiped: what was deleted with the whole dataset.
    ///   - all: the bytes of the page.
    mutating func compare(
        with view: ReadView, _ id: DatasetID, seen: VersionVector, wiped: VersionVector,
        _ all: ByteView
    ) throws(StoreError) {
        begin(seen: seen, wiped: wiped)
        for index in page.items.indices {
            let item = page.items[index]
            let origin = incoming[Int(item.origin)]
            if item.highest <= origin.wipedThrough {
                decisions.append(Decision(step: .ignore))
                continue
            }
            let isSeen = item.highest <= origin.seenThrough && item.counter > origin.wipedOwn
            guard id != 0,
                let found = try view.newest(
                    of: MergePage.key(of: item, in: all), in: id, sequenceMax: .max)
            else {
                if isSeen { note(.ignore) } else { take(item) }
                continue
            }
            defer { found.release() }
            try compare(item, at: index, isSeen: isSeen, with: found, all)
        }
    }

    private mutating func begin(seen: VersionVector, wiped: VersionVector) {
        decisions.removeAll(keepingCapacity: true)
        decisions.reserveCapacity(page.items.count)
        merges.removeAll()
        outcome = MergeOutcome()
        bytesMax = 0
        hasWrites = false
        hasLiveWrites = false
        local.removeAll()
        localNumbers.removeAll()
        lastLocal = nil
        pairs.removeAll()
        lastPair = nil
        incoming = page.origins.map { origin in
            let replica = page.replicas[Int(origin.replica)]
            let others = page.vectors[Int(origin.vector)]
            return IncomingOrigin(
                replica: replica, others: others,
                seenThrough: seen.covers(others) ? seen[replica] : 0,
                wipedThrough: wiped.covers(others) ? wiped[replica] : 0,
                wipedOwn: wiped[replica])
        }
    }

    // MARK: - Steps

    private mutating func note(_ step: Step, merge: Int = 0) {
        decisions.append(Decision(step: step, merge: UInt32(merge)))
    }

    /// Counts what is stored: a value of so many bytes, or a tombstone.
    private mutating func count(_ item: MergePage.Item, value: Int?) {
        hasWrites = true
        outcome.stored += 1
        if value != nil { hasLiveWrites = true }
        bytesMax += EntryLayout.byteCountMax(key: Int(item.keyCount), value: value ?? 0) + 1
    }

    /// That the record whose step was noted last is another write than the one that is here.
    private mutating func noteReplaced() {
        outcome.replaced += 1
        outcome.changed.append(UInt32(decisions.count - 1))
    }

    /// - Parameter isReplacement: whether it is another write than the one that is here.
    private mutating func take(_ item: MergePage.Item, isReplacement: Bool = true) {
        note(.takeIncoming)
        count(item, value: item.hasValue ? Int(item.valueCount) : nil)
        if isReplacement { noteReplaced() }
        let number = Int(item.origin)
        if item.highest != item.counter || !incoming[number].isCounted {
            incoming[number].isCounted = true
            bytesMax += VersionVector.definitionBytesMax(incoming[number].others.count + 1)
        }
    }

    /// Stores the incoming value.
    private mutating func store(_ item: MergePage.Item, _ step: Step, _ merge: Merge) {
        note(step, merge: merges.count)
        merges.append(merge)
        count(item, value: item.hasValue ? Int(item.valueCount) : nil)
        bytesMax += VersionVector.definitionBytesMax(merge.vector.count + 1)
    }

    /// Stores anew what is here.
    private mutating func keep(
        _ item: MergePage.Item, _ step: Step, _ joined: Merge, _ found: FoundEntry
    ) throws(StoreError) {
        let entry = found.entry
        var merge = joined
        merge.kind = entry.kind
        merge.expiresAt = entry.expiresAt
        if entry.kind == .put { merge.value = try found.tables.value(of: entry) }
        note(step, merge: merges.count)
        merges.append(merge)
        count(item, value: entry.kind == .put ? merge.value.count : nil)
        bytesMax += VersionVector.definitionBytesMax(merge.vector.count + 1)
    }

    // MARK: - One record

    private mutating func compare(
        _ item: MergePage.Item, at index: Int, isSeen: Bool, with found: FoundEntry,
        _ all: ByteView
    ) throws(StoreError) {
        let stamp = found.entry.stamp
        let number = localNumber(of: stamp, found.tables)
        let pair = pair(Int(item.origin), number)
        let localOwn = max(stamp.counter, local[number].own)
        let isDescendant: Bool
        let isAncestor: Bool
        let coversLocal: Bool
        let coversIncoming: Bool
        if pair.isSameReplica {
            isDescendant = stamp.counter <= item.highest
            isAncestor = item.counter <= localOwn
            coversLocal = pair.othersCoverLocal && localOwn <= item.highest
            coversIncoming = pair.localCoversOthers && item.highest <= localOwn
        } else {
            isDescendant = stamp.counter <= pair.incomingSeesLocal
            isAncestor = item.counter <= pair.localSeesIncoming
            coversLocal =
                pair.othersCoverLocal && localOwn <= pair.incomingSeesLocal
                && pair.localSeesIncoming <= item.highest
            coversIncoming =
                pair.localCoversOthers && item.highest <= pair.localSeesIncoming
                && pair.incomingSeesLocal <= localOwn
        }
        if pair.isSameReplica, item.counter == stamp.counter {
            if coversIncoming, item.time <= stamp.time { return note(.ignore) }
            // The same write, having been joined elsewhere.
            if coversLocal, item.time == stamp.time, try isEqual(item, found, all) {
                return take(item, isReplacement: false)
            }
        } else if isDescendant {
            // If each has seen the other, their times decide.
            if coversLocal, !isAncestor { return take(item) }
        } else if isAncestor {
            if coversIncoming { return note(.ignore) }
        } else {
            if isSeen { return note(.ignore) }
            let concurrent = Concurrent(
                item: item, index: index, incoming: incoming[Int(item.origin)],
                local: local[number], localCounter: stamp.counter, localTime: stamp.time)
            return try settle(concurrent, found, all)
        }
        try compareVersions(item, at: index, with: found)
    }

    /// The same with whole versions, for those of which one descends from the other, without
    /// having seen all that it had.
    private mutating func compareVersions(
        _ item: MergePage.Item, at index: Int, with found: FoundEntry
    ) throws(StoreError) {
        let ours = found.tables.version(of: found.entry)
        let theirs = page.version(of: item)
        switch theirs.relation(to: ours) {
        case .ancestor where theirs.isInDispute(with: ours),
            .descendant where theirs.isInDispute(with: ours):
            if theirs.vector.covers(ours.vector), theirs.vector != ours.vector {
                try join(item, theirs, winsOver: ours, found)
            } else if ours.vector.covers(theirs.vector), theirs.vector != ours.vector {
                try join(item, theirs, losesTo: ours, found)
            } else {
                leave(at: index)
            }
        case .descendant where !theirs.supersedesAsItIs(ours),
            .ancestor where !ours.supersedesAsItIs(theirs):
            leave(at: index)
        case .descendant:
            try join(item, theirs, winsOver: ours, found)
        case .ancestor, .concurrent:
            // Concurrent only if the memory of a mapped file has changed since it was looked at.
            try join(item, theirs, losesTo: ours, found)
        case .same:
            if theirs.time > ours.time {
                try join(item, theirs, winsOver: ours, found)
            } else {
                try join(item, theirs, losesTo: ours, found)
            }
        }
    }

    /// What has to become a new write is none that a page can be.
    private mutating func leave(at index: Int) {
        note(.ignore)
        switch rule {
        case .leave:
            outcome.conflicts.append(MergeOutcome.Conflict(index: index, staysRemote: false))
        case .refuse, .lastWriterWins:
            outcome.isApplied = false
        }
    }

    private mutating func join(
        _ item: MergePage.Item, _ theirs: Version, winsOver ours: Version, _ found: FoundEntry
    ) throws(StoreError) {
        let version = theirs.joined(with: ours.vector)
        guard version != ours else { return note(.ignore) }
        store(item, .takeJoined, Merge(version))
        if theirs.dot != ours.dot { noteReplaced() }
    }

    private mutating func join(
        _ item: MergePage.Item, _ theirs: Version, losesTo ours: Version, _ found: FoundEntry
    ) throws(StoreError) {
        let version = ours.joined(with: theirs.vector)
        guard version != ours else { return note(.ignore) }
        try keep(item, .keepJoined, Merge(version), found)
    }

    private func isEqual(
        _ item: MergePage.Item, _ found: FoundEntry, _ all: ByteView
    ) throws(StoreError) -> Bool {
        guard item.hasValue == (found.entry.kind == .put),
            item.expiresAt == found.entry.expiresAt
        else { return false }
        guard item.hasValue else { return true }
        let theirs = MergePage.value(of: item, in: all)
        return try found.tables.withValue(of: found.entry) { $0.equals(theirs) }
    }

    /// Two versions neither of which descends from the other.
    private struct Concurrent {
        let item: MergePage.Item
        let index: Int
        let incoming: IncomingOrigin
        let local: LocalOrigin
        let localCounter: UInt64
        let localTime: UInt64

        var theirs: Dot { Dot(replica: incoming.replica, counter: item.counter) }
        var ours: Dot { Dot(replica: local.replica, counter: localCounter) }

        /// The order by which last writer wins, as ``Version/isLater(than:)``.
        var isIncomingLater: Bool {
            item.time != localTime ? item.time > localTime : theirs > ours
        }

        /// All that both have seen.
        func union() -> VersionVector {
            VersionVector(
                joining: incoming.others, local.vector,
                Dot(replica: incoming.replica, counter: item.highest), ours)
        }

        /// What both have seen, as it is stored with one of the two dots.
        func union(storedWith dot: Dot) -> VersionVector {
            var union = union()
            if union[dot.replica] == dot.counter { union.remove(dot.replica) }
            return union
        }
    }

    private mutating func settle(
        _ both: Concurrent, _ found: FoundEntry, _ all: ByteView
    ) throws(StoreError) {
        let item = both.item
        if try isEqual(item, found, all) {
            if both.isIncomingLater {
                takeJoined(both)
                noteReplaced()
            } else {
                try keepJoined(both, found)
            }
            return
        }
        var staysRemote = false
        switch rule {
        case .leave:
            note(.ignore)
        case .refuse:
            note(.ignore)
            outcome.isApplied = false
        case .lastWriterWins where max(both.localTime, item.time) > latestBelieved:
            // Its date must not decide, and what then wins is a new write.
            note(.ignore)
            outcome.isApplied = false
        case .lastWriterWins:
            staysRemote = both.isIncomingLater
            if staysRemote { takeJoined(both) } else { try keepJoined(both, found) }
        }
        if staysRemote { outcome.changed.append(UInt32(both.index)) }
        outcome.conflicts.append(
            MergeOutcome.Conflict(index: both.index, staysRemote: staysRemote))
    }

    private mutating func takeJoined(_ both: Concurrent) {
        let author = page.authors[Int(page.origins[Int(both.item.origin)].author)]
        store(
            both.item, .takeJoined,
            Merge(
                dot: both.theirs, time: HybridTime(rawValue: both.item.time), author: author,
                vector: both.union(storedWith: both.theirs)))
    }

    private mutating func keepJoined(
        _ both: Concurrent, _ found: FoundEntry
    ) throws(StoreError) {
        try keep(
            both.item, .keepJoined,
            Merge(
                dot: both.ours, time: HybridTime(rawValue: both.localTime),
                author: both.local.author, vector: both.union(storedWith: both.ours)), found)
    }
}

extension PageComparison.Merge {
    fileprivate init(_ version: Version) {
        self.init(
            dot: version.dot, time: version.time, author: version.author,
            vector: version.storedVector)
    }
}

// MARK: - Origins

extension PageComparison {
    /// An origin of the page beside what the dataset has seen.
    fileprivate struct IncomingOrigin {
        let replica: ReplicaID
        let others: VersionVector
        /// Of the replica's writes: those whose whole vectors the dataset's vector covers.
        let seenThrough: UInt64
        /// The same for what was wiped.
        let wipedThrough: UInt64
        /// Of the replica's writes: those that were wiped.
        let wipedOwn: UInt64
        /// Whether its definition is among the bytes.
        var isCounted = false
    }

    fileprivate struct LocalOrigin {
        let replica: ReplicaID
        /// As it is stored: mostly without an entry of the replica itself.
        let vector: VersionVector
        /// That entry, if it is there.
        let own: UInt64
        let author: String
    }

    fileprivate struct LocalKey: Hashable {
        let tables: ObjectIdentifier
        let origin: UInt32
    }

    /// What is the same for all versions of two origins.
    fileprivate struct Pair {
        let isSameReplica: Bool
        /// Up to where the incoming ones have seen the writes of the local one's replica.
        let incomingSeesLocal: UInt64
        let localSeesIncoming: UInt64
        /// Whether what the incoming ones have seen covers what the local ones have, but for the
        /// writes of the incoming one's replica.
        let othersCoverLocal: Bool
        /// The other way round, but for the writes of the local one's replica.
        let localCoversOthers: Bool
    }

    fileprivate mutating func localNumber(of stamp: Stamp, _ tables: VersionTables) -> Int {
        let key = LocalKey(tables: ObjectIdentifier(tables), origin: stamp.origin)
        if let lastLocal, lastLocal.key == key { return lastLocal.number }
        let number: Int
        if let known = localNumbers[key] {
            number = known
        } else {
            let (replica, vector, author) = tables.source(of: stamp.origin)
            number = local.count
            local.append(
                LocalOrigin(
                    replica: replica, vector: vector, own: vector[replica], author: author))
            localNumbers[key] = number
        }
        lastLocal = (key, number)
        return number
    }

    fileprivate mutating func pair(_ incomingNumber: Int, _ localNumber: Int) -> Pair {
        let key = UInt64(incomingNumber) << 32 | UInt64(localNumber)
        if let lastPair, lastPair.key == key { return lastPair.pair }
        let pair: Pair
        if let known = pairs[key] {
            pair = known
        } else {
            let theirs = incoming[incomingNumber]
            let ours = local[localNumber]
            pair = Pair(
                isSameReplica: theirs.replica == ours.replica,
                incomingSeesLocal: theirs.others[ours.replica],
                localSeesIncoming: ours.vector[theirs.replica],
                othersCoverLocal: theirs.others.covers(ours.vector, except: theirs.replica),
                localCoversOthers: ours.vector.covers(theirs.others, except: ours.replica))
            pairs[key] = pair
        }
        lastPair = (key, pair)
        return pair
    }
}
