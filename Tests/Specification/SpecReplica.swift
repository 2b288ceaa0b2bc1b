/// How far a replica has come with a peer, in either one's order of change.
package struct SpecCheckpoint: Hashable, Sendable {
    /// In the peer's order.
    package var pulledThrough: UInt8 = 0
    /// In our own.
    package var pushedThrough: UInt8 = 0
    /// What the peer was last known to have seen.
    package var vector = SpecVector()

    package init() {}
}

/// A token that a replica drew when its writes left it.
package struct SpecBaton: Hashable, Sendable {
    package var number: UInt8
    /// 0: two of this number were met; else which life of the replica drew it.
    package var random: UInt8
    /// The replica's counter when it was drawn; 0 if it is another one's.
    package var through: UInt8 = 0

    package init(number: UInt8, random: UInt8, through: UInt8 = 0) {
        self.number = number
        self.random = random
        self.through = through
    }

    /// Rule: of two batons the one of the greater number is kept; of two of one number only that
    /// there were two.
    package func joined(with other: SpecBaton) -> SpecBaton {
        guard number == other.number else { return number > other.number ? self : other }
        return random == other.random ? self : SpecBaton(number: number, random: 0)
    }
}

/// What is remembered of the batons of one id.
package struct SpecBatonRecord: Hashable, Sendable {
    package enum Standing: Hashable, Sendable { case plain, disputed, foreign }

    package var standing = Standing.plain
    package var drawn: [SpecBaton] = []

    package init() {}

    package var metTwoThrough: UInt8 { drawn.last { $0.random == 0 }?.number ?? 0 }

    /// Rule: a baton of an own id that was never drawn is another store's.
    package func isForeign(_ shown: SpecBaton) -> Bool {
        shown.number > drawn.last?.number ?? 0
            || drawn.contains { $0.number == shown.number && $0.random != shown.random }
    }

    /// Rule: of another id two batons of one number show that there were two stores, once.
    package func isNewlyMetTwo(by shown: SpecBaton) -> Bool {
        guard let known = drawn.last, known.random != 0, shown.number > metTwoThrough else {
            return false
        }
        return shown.random == 0
            || known.number == shown.number && known.random != shown.random
    }

    package mutating func take(_ shown: SpecBaton) {
        var joined = drawn.last.map { $0.joined(with: shown) } ?? shown
        joined.through = 0
        let through = max(metTwoThrough, shown.random == 0 ? shown.number : 0)
        var next = [joined]
        if through > 0, joined.random != 0 {
            next.insert(SpecBaton(number: through, random: 0), at: 0)
        }
        drawn = next
    }
}

/// One replica of one dataset of two keys.
package struct SpecReplica: Hashable, Sendable {
    package let index: Int
    package var hasRenewedID = false
    package var records = Two<SpecRecord?>(nil)
    /// Everything seen.
    package var vector = SpecVector()
    /// What records that were applied had seen, where the vector does not cover it yet.
    package var outstanding = SpecVector()
    package var syncCount: UInt8 = 0
    package var clock = SpecTime.zero
    /// Deletions that were forgotten here, whether they are believed to have been seen or not.
    private(set) var noted = SpecForgotten()
    package var peers = Four<SpecCheckpoint?>(nil)
    /// The latest stamp of the dataset's life: whose it is.
    package var life: Int
    /// By id.
    package var batons = [SpecBatonRecord](repeating: SpecBatonRecord(), count: 4)
    /// 1, or 2 after it went back in time.
    package var line: UInt8 = 1
    /// Which acknowledged writes have been here or were superseded by what has: told by nothing
    /// that the product knows.
    package var known = SpecWrites()

    package init(_ index: Int) {
        self.index = index
        life = index
    }

    package static let renewedID = 3

    package var id: Int { hasRenewedID ? Self.renewedID : index }

    package var ownIDs: SpecIDs {
        var ids = SpecIDs()
        ids.insert(index)
        if hasRenewedID { ids.insert(Self.renewedID) }
        return ids
    }

    package func checkpoint(_ peer: Int) -> SpecCheckpoint { peers[peer] ?? SpecCheckpoint() }

    // MARK: - Writes

    /// Rule: a write descends from all that the dataset has seen, and from the record that it
    /// replaces, but for dots in doubt; it gets the next counter and a later time than everything
    /// seen.
    package mutating func write(
        _ name: SpecWriteName, key: Int, isDeleted: Bool, of writes: SpecWrites,
        _ mistakes: SpecMistakes
    ) -> SpecVersion {
        var seen = vector
        if !outstanding.isEmpty, let local = records[key],
            !mistakes.contains(.writesDescendFromTheVectorAlone)
        {
            seen.formUnion(local.version.vector.removing(doubtedIDs))
        }
        var replaced = known.union(name.set)
        if let local = records[key] { replaced.formUnion(local.replaced) }
        known.formUnion(name.set)
        clock = clock.nextTick
        return append(
            name, key: key, isDeleted: isDeleted, seen: seen,
            replaced: replaced.intersection(writes.union(name.set)), at: clock)
    }

    /// A new write of this replica, of an acknowledged one.
    mutating func append(
        _ name: SpecWriteName, key: Int, isDeleted: Bool, seen: SpecVector, replaced: SpecWrites,
        at time: SpecTime
    ) -> SpecVersion {
        let dot = SpecDot(id, vector[id] + 1)
        vector.insert(dot)
        var claimed = seen
        claimed[id] = dot.counter
        let version = SpecVersion(dot: dot, vector: claimed, time: time)
        syncCount += 1
        records[key] = SpecRecord(
            write: name, isDeleted: isDeleted, version: version, count: syncCount,
            replaced: replaced)
        return version
    }

    /// Stores a version as it is.
    mutating func adopt(_ record: SpecRecord, key: Int) {
        noteApplied(record.version.vector)
        clock = max(clock, record.version.time)
        syncCount += 1
        var stored = record
        stored.count = syncCount
        records[key] = stored
    }

    mutating func noteApplied(_ seen: SpecVector) {
        if !vector.covers(seen) { outstanding.formUnion(seen) }
    }

    mutating func see(_ seen: SpecVector) {
        vector.formUnion(seen)
        if vector.covers(outstanding) { outstanding = SpecVector() }
    }

    /// Rule: what outlives keeps its dot, has seen all that was forgotten, is later than that, and
    /// gets a new count of the replica, which nobody has seen.
    mutating func outlive(_ record: SpecRecord, key: Int) {
        var next = record
        let count = SpecDot(id, vector[id] + 1)
        vector.insert(count)
        next.version.vector.insert(count)
        adopt(next, key: key)
    }

    /// What takes the place of a write whose dot names two: a new one that has seen just that.
    mutating func rewrite(
        _ record: SpecRecord, key: Int, seen: SpecVector, time: SpecTime?, replaced: SpecWrites
    ) {
        clock = max(clock, record.version.time)
        noteApplied(seen)
        if time == nil { clock = clock.next }
        _ = append(
            record.write, key: key, isDeleted: record.isDeleted, seen: vector.union(seen),
            replaced: replaced, at: time ?? clock)
    }

    /// Former ids under which two stores wrote, of which nothing is claimed: a dot of theirs may
    /// name another write elsewhere.
    var doubtedIDs: SpecIDs {
        var ids = SpecIDs()
        for id in ownIDs where vector[id] == 0 && outstanding[id] > 0 { ids.insert(id) }
        return ids
    }

    // MARK: - Forgetting

    /// What every peer that is waited for has seen; nil if there is none.
    var seenByAllPeers: SpecVector? {
        var common: SpecVector?
        for id in 0..<4 {
            guard let peer = peers[id] else { continue }
            common = common.map { $0.intersection(peer.vector) } ?? peer.vector
        }
        return common
    }

    var isSolitary: Bool {
        guard seenByAllPeers == nil, outstanding.isEmpty else { return false }
        return vector.removing(id).isEmpty
    }

    func isDirty(_ dot: SpecDot) -> Bool {
        guard ownIDs.contains(dot.id) else { return false }
        return !(0..<4).contains { peers[$0]?.vector.contains(dot) ?? false }
    }

    /// Rule: a tombstone goes once every registered peer has seen it, or with age once any has;
    /// what it had seen is noted. Where nobody else ever had a part, it goes and nothing is noted.
    /// While anything is in doubt all stay, since they do not say what they were written over.
    ///
    /// - Returns: the keys whose tombstones went without a note; nil if there was none to go.
    mutating func forget(isAged: Bool, _ mistakes: SpecMistakes) -> [Int]? {
        var unnoted: [Int] = []
        var hasForgotten = false
        let isSolitary = isSolitary || mistakes.contains(.collectTombstonesEarly)
        let passed = seenByAllPeers
        let isInDoubt = !doubtedIDs.isEmpty
        var next = noted
        for key in 0..<2 {
            guard let record = records[key], record.isDeleted else { continue }
            let version = record.version
            if isSolitary {
                unnoted.append(key)
            } else {
                guard !isInDoubt else { continue }
                let hasPassed = passed?.covers(version.vector) ?? false
                guard hasPassed || isAged && !isDirty(version.dot), vector.covers(version.vector)
                else { continue }
                next.insert(version)
            }
            hasForgotten = true
            records[key] = nil
        }
        noted = next
        clock = max(clock, noted.time)
        return hasForgotten ? unnoted : nil
    }

    /// Rule: of what was forgotten, what is not believed to have been seen while an id is disputed
    /// neither counts here nor is told.
    package var forgotten: SpecForgotten {
        var known = noted
        known.vector = noted.vector.intersection(vector)
        return known
    }

    mutating func note(_ more: SpecForgotten) {
        noted.formUnion(more)
        clock = max(clock, more.time)
    }

    /// Rule: who buries a record keeps a tombstone under the record's own version, which counts as
    /// forgotten at once.
    mutating func bury(_ record: SpecRecord, key: Int) {
        guard let present = records[key], present.version == record.version else { return }
        var deletion = SpecForgotten()
        deletion.insert(record.version)
        if !present.isDeleted {
            var tombstone = present
            tombstone.isDeleted = true
            adopt(tombstone, key: key)
        }
        note(deletion)
    }

    // MARK: - Batons

    /// Rule: a replica draws a baton when writes of its own leave that no baton covers.
    mutating func drawBatons() {
        for id in ownIDs where batons[id].standing == .plain && vector[id] > 0 {
            guard vector[id] > batons[id].drawn.last?.through ?? 0 else { continue }
            let number = (batons[id].drawn.last?.number ?? 0) + 1
            batons[id].drawn.append(
                SpecBaton(number: number, random: line, through: vector[id]))
        }
    }

    /// Rule: everything that is told goes with the newest baton of each id that is known, but for
    /// those of ids that are in doubt here and that no two are known to have used.
    var shownBatons: Four<SpecBaton?> {
        var shown = Four<SpecBaton?>(nil)
        for id in 0..<4 {
            let record = batons[id]
            guard record.standing != .disputed || record.metTwoThrough > 0 else { continue }
            shown[id] = record.drawn.last
            shown[id]?.through = 0
        }
        return shown
    }

    package var disputed: SpecIDs {
        var ids = SpecIDs()
        for id in 0..<4 where batons[id].standing == .disputed { ids.insert(id) }
        return ids
    }

    /// Rule: who is shown a baton of an id of its own that it never drew, or more of its writes
    /// than it has made, is forked: it takes a new id, and claims to have seen nothing of the old
    /// one. Who is shown that two others wrote under one id claims nothing of that.
    ///
    /// - Returns: whether there was any such sign.
    mutating func dispute(
        _ shown: Four<SpecBaton?>, _ theirs: SpecVector, _ mistakes: SpecMistakes
    ) -> Bool {
        guard !mistakes.contains(.reuseDot) else { return false }
        var forked = SpecIDs()
        for id in ownIDs where batons[id].standing == .plain {
            let isForeign = shown[id].map { batons[id].isForeign($0) } ?? false
            if isForeign || theirs[id] > vector[id] { forked.insert(id) }
        }
        var contested: [(id: Int, number: UInt8)] = []
        for id in 0..<4 where !ownIDs.contains(id) {
            guard let baton = shown[id], batons[id].standing != .disputed,
                batons[id].isNewlyMetTwo(by: baton), let known = batons[id].drawn.last
            else { continue }
            contested.append((id, max(known.number, baton.number)))
        }
        guard !forked.isEmpty || !contested.isEmpty else { return false }
        if forked.contains(id) { hasRenewedID = true }
        if mistakes.contains(.forkedDisputesNothing) {
            for id in forked { batons[id].standing = .foreign }
            return true
        }
        for id in forked {
            batons[id].standing = .disputed
            disown(id, isSettled: false)
        }
        for (id, number) in contested {
            batons[id].standing = .disputed
            batons[id].drawn = [SpecBaton(number: number, random: 0)]
            disown(id, isSettled: false)
        }
        return true
    }

    /// Rule: what was seen of a disowned id counts no more. Until it is settled, and claimed by
    /// whoever settles it, it counts as in the middle of an exchange.
    mutating func disown(_ id: Int, isSettled: Bool) {
        guard id != self.id else { return }
        let claimed = max(vector[id], outstanding[id])
        vector[id] = 0
        outstanding[id] = isSettled ? 0 : claimed
    }

    mutating func take(_ shown: Four<SpecBaton?>, settling settled: SpecIDs) {
        for id in settled {
            let before = batons[id]
            batons[id] = SpecBatonRecord()
            batons[id].standing = .foreign
            guard let last = before.drawn.last else { continue }
            if before.metTwoThrough > 0 {
                batons[id].drawn = before.drawn
            } else if let baton = shown[id],
                before.drawn.contains(where: {
                    $0.number == baton.number && $0.random != baton.random
                })
            {
                batons[id].drawn = [SpecBaton(number: last.number, random: 0)]
            }
        }
        for id in 0..<4 {
            guard let baton = shown[id] else { continue }
            guard !ownIDs.contains(id) || batons[id].standing == .foreign else { continue }
            // `contested` looks at others' ids, and at what was remembered before.
            let isContest =
                !ownIDs.contains(id) && batons[id].standing != .disputed
                && batons[id].isNewlyMetTwo(by: baton)
            if !isContest { batons[id].take(baton) }
        }
    }

    // MARK: - Canonical form

    package var swappingKeys: SpecReplica {
        var other = self
        other.records = records.swapped
        return other
    }
}
