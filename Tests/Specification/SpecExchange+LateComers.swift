// What a side comes to that lacks deletions which the other one has forgotten.

extension SpecExchange {
    /// Rule: a peer that has not seen all that was forgotten here is late, and all that it has is
    /// looked at.
    mutating func judge() {
        judgesPeer =
            !trusted(remote.vector).covers(asker.forgotten.vector)
            && !mistakes.contains(.nobodyIsLate)
        judging = asker.forgotten.vector
        guard judgesPeer else {
            judged = (SpecVector(), 0)
            return
        }
        guard remote.syncCount > 0 else {
            judged = (judging, 0)
            return
        }
        if judged.forgotten.covers(judging) {
            pullPosition = max(pullPosition, min(judged.through, remote.syncCount))
        } else {
            judged = (SpecVector(), 0)
            pullPosition = 0
        }
    }

    /// Rule: a late asker asks about each record that has not seen what the peer has forgotten. If
    /// the peer has nothing of the key, it buries what the peer has seen, and the rest outlives.
    mutating func startAfresh() throws {
        let missed = remote.forgotten
        guard !mistakes.contains(.nobodyIsLate),
            !asker.vector.union(settled).covers(missed.vector)
        else { return }
        hasFreshStart = true
        asker.clock = max(asker.clock, missed.time)
        settledThrough = 0
        try settle(missed.vector, isOwn: false)
        settled = missed.vector
    }

    /// Rule: what was written here during a fresh start is asked about before the last page of the
    /// pull, what was written anew for a dispute included.
    mutating func settleWrittenMeanwhile() throws {
        guard hasFreshStart else { return }
        try settle(settled, isOwn: true)
    }

    private mutating func settle(_ missed: SpecVector, isOwn: Bool) throws {
        while true {
            let unsettled = inOrder(asker).filter { _, record in
                record.count > settledThrough && !record.version.vector.covers(missed)
                    && !(record.isDeleted && asker.forgotten.covers(record.version))
                    && (!isOwn || asker.ownIDs.contains(record.version.dot.id))
            }
            let page = unsettled.prefix(settings.pageRecordsMax)
            let isLast = page.count < settings.pageRecordsMax
            settledThrough = isLast ? asker.syncCount : page.last?.record.count ?? 0
            if !page.isEmpty { try inquire(Array(page)) }
            if isLast { return }
        }
    }

    mutating func inquire(_ page: [(key: Int, record: SpecRecord)]) throws {
        let (absent, theirs) = try ask { session in
            guard session.responder.id == session.peer else { throw Interruption.peerChanged }
            session.register()
            let responder = session.responder
            let absent = page.filter { key, _ in
                guard let record = responder.records[key] else { return true }
                return record.isDeleted && responder.forgotten.covers(record.version)
            }
            return (absent, Knowledge(responder, session.settings))
        }
        for (key, record) in absent {
            let dot = record.version.dot
            let isDoubted = doubted.contains(dot.id)
            let isShared = !isDoubted || peerHad(dot)
            let isDead =
                isShared && trusted(theirs.vector).contains(dot)
                && !mistakes.contains(.nothingIsBuried)
            if isDead, !isDoubted {
                asker.bury(record, key: key)
                continue
            }
            guard isDead || !record.version.vector.covers(theirs.forgotten.vector) else {
                continue
            }
            outlive(record, key: key, isDead: isDead, after: theirs.forgotten)
        }
    }

    /// Rule: what outlives is dated after what was forgotten; under a dot that may name two writes
    /// it is written anew instead.
    mutating func outlive(
        _ record: SpecRecord, key: Int, isDead: Bool, after forgotten: SpecForgotten
    ) {
        let time = max(record.version.time, forgotten.time)
        let seen = stripped(record).union(forgotten.vector)
        var next = record
        if isDead { next.isDeleted = true }
        next.replaced.formUnion(asker.records[key]?.replaced ?? SpecWrites())
        let dot = record.version.dot
        guard doubted.contains(dot.id) || peerDisputed.contains(dot.id) else {
            next.version = SpecVersion(dot: dot, vector: seen, time: time.outlived)
            asker.outlive(next, key: key)
            return
        }
        next.version.time = time
        asker.rewrite(next, key: key, seen: seen, time: time.next, replaced: next.replaced)
    }

    /// Rule: of a late peer, a record of whose key there is nothing here is dead if it was seen
    /// here, and outlives if not.
    enum Judgement { case dead, outlives }

    func judgement(_ incoming: SpecRecord, beside local: SpecRecord?) -> Judgement? {
        if let local, !local.isDeleted || !asker.forgotten.covers(local.version) { return nil }
        let dot = incoming.version.dot
        let isShared = !peerDisputed.contains(dot.id) || weHad(incoming)
        if isShared, asker.vector.contains(dot), !mistakes.contains(.nothingIsBuried) {
            return .dead
        }
        return incoming.version.vector.covers(asker.forgotten.vector) ? nil : .outlives
    }

    mutating func bury(_ dead: [(key: Int, record: SpecRecord)]) throws {
        guard !dead.isEmpty else { return }
        try ask { session in
            guard session.responder.id == session.peer else { throw Interruption.peerChanged }
            for (key, record) in dead { session.responder.bury(record, key: key) }
        }
        for (_, record) in dead { settled.formUnion(record.version.vector) }
    }

    /// Rule: no page is applied while either side lacks what the other one has forgotten, and has
    /// not settled it.
    func check(
        _ receiver: SpecReplica, sender: SpecVector, _ forgotten: SpecForgotten, isJudged: Bool,
        settled: SpecVector, settledThrough: UInt8?, isLast: Bool
    ) throws {
        guard !mistakes.contains(.nobodyIsLate) else { return }
        guard isJudged || sender.covers(receiver.forgotten.vector) else { throw Interruption.late }
        guard !receiver.vector.covers(forgotten.vector) else { return }
        guard receiver.vector.union(settled).covers(forgotten.vector) else {
            throw Interruption.late
        }
        guard isLast, let settledThrough else { return }
        for (_, record) in inOrder(receiver) where record.count > settledThrough {
            let isForgotten = record.isDeleted && receiver.forgotten.covers(record.version)
            guard isForgotten || record.version.vector.covers(forgotten.vector) else {
                throw Interruption.late
            }
        }
    }
}
