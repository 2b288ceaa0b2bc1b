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
    let page: MergePage
    let rule: MergeRule
    /// What is dated after that wins nothing by its date.
    let latestBelieved: UInt64
    private(set) var decisions: [Decision] = []
    private(set) var merges: [Merge] = []
    /// The values of merges that keep what is here.
    private(set) var kept: [UInt8] = []
    var outcome = MergeOutcome()
    /// The log's bytes that the steps may take.
    private(set) var bytesMax = 0
    private(set) var hasWrites = false
    private(set) var hasLiveWrites = false
    /// How many groups of merges there are.
    var groupCount: Int { shared.groups.count }

    /// What had been seen here and what the peer had seen, without what either holds because of its
    /// date: see ``SharedMerges``.
    private let ours: VersionVector
    private let told: VersionVector
    /// Whether nothing was wiped here, so that what was seen says of each key that it is here.
    private var mayShare = false
    /// Of ours, what counts as seen still.
    private var shareable = VersionVector()
    private var shared = SharedMerges()
    private var incoming: [IncomingOrigin] = []
    private var local: [LocalOrigin] = []
    private var localNumbers: [LocalKey: Int] = [:]
    private var lastLocal: (key: LocalKey, number: Int)?
    private var pairs: [UInt64: Pair] = [:]
    private var lastPair: (key: UInt64, pair: Pair)?

    /// - Parameters:
    ///   - ours: what had been seen here before the page is compared, without what is held.
    ///   - told: what the peer had seen when it read the page, without what it holds.
    init(
        _ page: MergePage, rule: MergeRule, latestBelieved: UInt64, ours: VersionVector,
        told: VersionVector
    ) {
        self.page = page
        self.rule = rule
        self.latestBelieved = latestBelieved
        self.ours = ours
        self.told = told
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
        // Each key is searched for in four steps, and hashed once.
        let hashes: [UInt64] =
            id == 0
            ? []
            : page.items.map { view.keyHash.of(MergePage.key(of: $0, in: all), in: id) }
        for index in page.items.indices {
            if id != 0 { fetch(ahead: index, of: hashes, in: view, id, all) }
            let item = page.items[index]
            let origin = Int(item.origin)
            if item.highest <= incoming[origin].wipedThrough {
                decisions.append(Decision(step: .ignore))
                continue
            }
            let isSeen =
                item.highest <= incoming[origin].seenThrough
                && item.counter > incoming[origin].wipedOwn
            guard id != 0,
                let found = try view.newest(
                    of: MergePage.key(of: item, in: all), in: id, hash: hashes[index],
                    sequenceMax: .max)
            else {
                if isSeen { note(.ignore) } else { take(item) }
                continue
            }
            defer { found.release() }
            try compare(item, at: index, isSeen: isSeen, with: found, all)
        }
        shareVectors()
    }

    private mutating func begin(seen: VersionVector, wiped: VersionVector) {
        decisions.removeAll(keepingCapacity: true)
        decisions.reserveCapacity(page.items.count)
        merges.removeAll()
        kept.removeAll()
        shared = SharedMerges()
        mayShare = wiped.isEmpty
        shareable = ours.intersection(seen)
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
                toldThrough: told.covers(others) ? told[replica] : 0,
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
            bytesMax += DefinitionItem.byteCountMax(vectorCount: incoming[number].others.count + 1)
        }
    }

    /// Stores the incoming value.
    private mutating func store(_ item: MergePage.Item, _ step: Step, _ merge: Merge) {
        note(step, merge: merges.count)
        merges.append(merge)
        count(item, value: item.hasValue ? Int(item.valueCount) : nil)
        if merge.group == nil { countDefinition(of: merge.vector) }
    }

    private mutating func countDefinition(of vector: VersionVector) {
        bytesMax += DefinitionItem.byteCountMax(vectorCount: vector.count + 1)
    }

    /// Stores anew what is here.
    private mutating func keep(
        _ item: MergePage.Item, _ step: Step, _ joined: Merge, _ found: FoundEntry
    ) throws(StoreError) {
        let entry = found.entry
        var merge = joined
        merge.kind = entry.kind
        merge.expiresAt = entry.expiresAt
        if entry.kind == .put {
            let start = kept.count
            try found.tables.withValue(of: entry) { (value) throws(StoreError) in
                unsafe kept.append(contentsOf: value.buffer)
            }
            merge.value = start..<kept.count
        }
        note(step, merge: merges.count)
        merges.append(merge)
        count(item, value: entry.kind == .put ? merge.value.count : nil)
        if merge.group == nil { countDefinition(of: merge.vector) }
    }

    // MARK: - One record

    private mutating func compare(
        _ item: MergePage.Item, at index: Int, isSeen: Bool, with found: FoundEntry,
        _ all: ByteView
    ) throws(StoreError) {
        let stamp = found.entry.stamp
        let number = localNumber(of: stamp, found)
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
                item: item, index: index, localNumber: number, localTime: stamp.time,
                theirs: Dot(
                    replica: incoming[Int(item.origin)].replica, counter: item.counter),
                ours: Dot(replica: local[number].replica, counter: stamp.counter), pair: pair,
                toldThrough: incoming[Int(item.origin)].toldThrough,
                seenThrough: local[number].seenThrough, own: local[number].own)
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
        case .same where isBuried(found.entry, ahead: item, theirs, ours):
            note(.ignore)
            outcome.isApplied = false
        case .same:
            if theirs.time > ours.time {
                try join(item, theirs, winsOver: ours, found)
            } else {
                try join(item, theirs, losesTo: ours, found)
            }
        }
    }

    /// Whether a write that was buried here under its own dot comes with more than it had.
    private func isBuried(
        _ entry: Entry, ahead item: MergePage.Item, _ theirs: Version, _ ours: Version
    ) -> Bool {
        entry.kind != .put && entry.expiresAt == 0 && item.hasValue && theirs.time == ours.time
            && !ours.vector.covers(theirs.vector)
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
        var merge = Merge(
            dot: both.theirs, time: HybridTime(rawValue: both.item.time), author: author,
            vector: VersionVector())
        share(&merge, both, isIncoming: true)
        store(both.item, .takeJoined, merge)
    }

    private mutating func keepJoined(
        _ both: Concurrent, _ found: FoundEntry
    ) throws(StoreError) {
        var merge = Merge(
            dot: both.ours, time: HybridTime(rawValue: both.localTime),
            author: local[both.localNumber].author, vector: VersionVector())
        share(&merge, both, isIncoming: false)
        try keep(both.item, .keepJoined, merge, found)
    }

    // MARK: - Vectors of merges

    /// Gives a merge its vector, or puts it down for one that it shares.
    private mutating func share(_ merge: inout Merge, _ both: Concurrent, isIncoming: Bool) {
        guard mayShare, both.maySeeMore(isIncoming: isIncoming) else {
            merge.vector = union(
                both.item, with: both.localNumber, at: both.ours.counter, storedWith: merge.dot)
            return
        }
        let origin = Int(both.item.origin)
        shared.add(
            SharedMerges.Member(
                merge: merges.count, item: both.index, local: both.localNumber,
                localCounter: both.ours.counter),
            origin: origin, highest: both.item.highest)
        merge.group = shared.number(
            ofOrigin: isIncoming ? origin : both.localNumber, isIncoming: isIncoming
        ) {
            SharedMerges.Group(replica: merge.dot.replica, author: merge.author)
        }
    }

    /// What a version of the page and one that is here have seen, as it is stored with one of the
    /// two dots.
    private func union(
        _ item: MergePage.Item, with localNumber: Int, at localCounter: UInt64,
        storedWith dot: Dot
    ) -> VersionVector {
        let theirs = incoming[Int(item.origin)]
        let ours = local[localNumber]
        var union = VersionVector(
            joining: theirs.others, ours.vector,
            Dot(replica: theirs.replica, counter: item.highest),
            Dot(replica: ours.replica, counter: localCounter))
        if union[dot.replica] == dot.counter { union.remove(dot.replica) }
        return union
    }

    /// Completes the merges that were put down.
    private mutating func shareVectors() {
        guard !shared.members.isEmpty else { return }
        guard shared.isWorthIt else {
            for member in shared.members {
                merges[member.merge].group = nil
                merges[member.merge].vector = union(
                    page.items[member.item], with: member.local, at: member.localCounter,
                    storedWith: merges[member.merge].dot)
                countDefinition(of: merges[member.merge].vector)
            }
            return
        }
        let joined = shared.joined(
            incoming: { (incoming[$0].replica, incoming[$0].others) },
            local: { (local[$0].replica, local[$0].vector) })
        let vectors = shared.groups.map { joined.removing($0.replica) }
        for vector in vectors { countDefinition(of: vector) }
        for member in shared.members {
            guard let group = merges[member.merge].group else { continue }
            merges[member.merge].vector = vectors[group]
        }
    }
}

// MARK: - Origins

extension PageComparison {
    private mutating func localNumber(of stamp: Stamp, _ found: FoundEntry) -> Int {
        let key = LocalKey(tables: found.tablesID, origin: stamp.origin)
        if let lastLocal, lastLocal.key == key { return lastLocal.number }
        let number: Int
        if let known = localNumbers[key] {
            number = known
        } else {
            let (replica, vector, author) = found.tables.source(of: stamp.origin)
            number = local.count
            local.append(
                LocalOrigin(
                    replica: replica, vector: vector, own: vector[replica],
                    seenThrough: shareable.covers(vector) ? shareable[replica] : 0, author: author))
            localNumbers[key] = number
        }
        lastLocal = (key, number)
        return number
    }

    private mutating func pair(_ incomingNumber: Int, _ localNumber: Int) -> Pair {
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
