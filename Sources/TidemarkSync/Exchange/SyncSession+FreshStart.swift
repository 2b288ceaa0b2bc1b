import Tidemark

// What to do when one side of an exchange is *late*: when it lacks deletions that the other one has
// forgotten, so that changes cannot tell it of them. Which side that is shows in what either has
// seen and forgotten, at the greeting and again with each page (`Meeting` in the store).
//
// If this side is late it starts afresh. It asks the peer of each record that has not seen all that
// the peer has forgotten, by key and version alone, whether the peer holds anything of the key.
// - If so, the two are compared when the peer's changes come, as ever.
// - If not, and the peer has seen the record: it was deleted there. It is buried here under its own
//   version, and counts as forgotten here, too. So this side is as the peer is, of which nothing
//   but the absence can be told; no new deletion is made that might reach what the first did not.
// - If not, and the peer has not seen it: it outlives. It is stored anew as one that has seen all
//   that was forgotten, later than that, so that on a third replica it stands above the forgotten
//   deletion, and above what that had deleted, wherever either of them still is. It keeps its dot,
//   so that whoever has seen it and went on from it wins over it all the same.
// What is written here while the pull goes on is asked about before its last page. What comes even
// later the peer cannot have seen, so it outlives, under the same lock under which that page is
// applied: by then all that the peer holds is here. With that page the peer's vector is joined, and
// what it has forgotten is forgotten here. Until then nothing is taken from others who lack any of
// that.
//
// If the peer is late, this side looks at all that the peer has, whether it knows it or not.
// - A record of whose key there is nothing here, and which was seen here, is dead: the peer is told
//   to bury it, as above.
// - One that was not seen here outlives, as above.
// The responder joins this side's vector with the last page of the push only if all that it has
// was looked at.

extension SyncSession {
    // MARK: - This side is late

    /// Settles all that lies here with what the peer has forgotten, if any of that was missed.
    func startAfresh(_ theirs: ForgottenDeletions) async throws(SyncError) {
        var target = theirs
        for _ in 0..<SyncLimits.freshStartsMax {
            let missed = target
            let isLate = try engine(dataset.name) { () throws(StoreError) in
                try !dataset.vector.union(late.settled.forgotten.vector).covers(missed.vector)
            }
            guard isLate else { return }
            try beginFreshStart(missed)
            late.settled.through = .zero
            var news = try await settle(with: missed, isOwn: false)
            if news == nil { news = try await settleHeldWrites(with: missed) }
            guard let grown = news else {
                late.settled.forgotten = missed
                return
            }
            target.formUnion(grown)
        }
        throw SyncError(
            .contended, "the peer forgot deletions faster than it could be asked; repeat")
    }

    /// Lets nothing be taken from others who lack any of that, until the end.
    func beginFreshStart(_ missed: ForgottenDeletions) throws(SyncError) {
        let number = late.freshStart ?? store.randomNumber()
        try engine(dataset.name) { () throws(StoreError) in
            try dataset.startAfresh(missed, with: peer, number: number)
        }
        late.freshStart = number
    }

    /// Asks about what was written here since the peer was asked about the rest. A file answers no
    /// questions, and cannot have seen it: it outlives, with what is written later.
    func settleWrittenMeanwhile() async throws(SyncError) {
        guard late.freshStart != nil, !doubts.isOfFile else { return }
        // If the peer has forgotten more by now, the page that comes next is refused.
        _ = try await settle(with: late.settled.forgotten, isOwn: true)
    }

    /// Lets others be met again.
    func endFreshStart() {
        late.settled = (ForgottenDeletions(), .zero)
        guard let number = late.freshStart else { return }
        dataset.endFreshStart(number: number)
        late.freshStart = nil
    }

    /// - Parameter isOwn: whether only what was written here need be asked about.
    /// - Returns: what the peer has forgotten by now, if that is more than was given.
    private func settle(
        with missed: ForgottenDeletions, isOwn: Bool
    ) async throws(SyncError) -> ForgottenDeletions? {
        while true {
            let (page, request) = try engine(dataset.name) { () throws(StoreError) in
                let page = try dataset.unsettledPage(
                    since: late.settled.through, lacking: missed.vector, isOwn: isOwn,
                    countMax: try dataset.recordsPerPage(atMost: options.pageRecordsMax),
                    bytesMax: options.pageBytesMax)
                return (page, try inquiry(page))
            }
            if !page.versions.isEmpty {
                let answer = try await counted { connection, traffic throws(SyncError) in
                    try await connection.inquire(request, &traffic)
                }
                let theirs = answer.knowledge
                guard missed.covers(theirs.forgotten) else { return theirs.forgotten }
                try settle(answer.absent.map { page.versions[$0] }, theirs)
            }
            late.settled.through = page.through
            if page.isLast { return nil }
        }
    }

    /// Asks about what is held here because of its date: what the peer has seen, deleted and
    /// forgotten of it need not wait any more.
    ///
    /// - Returns: as ``settle(with:isOwn:)``.
    private func settleHeldWrites(
        with missed: ForgottenDeletions
    ) async throws(SyncError) -> ForgottenDeletions? {
        let (book, names) = try engine(dataset.name) {
            () throws(StoreError) -> (QuarantineBook, [HeldName]) in
            let book = try QuarantineBook(dataset)
            return (book, try book.names())
        }
        // A key may be held more than once, and a page has it once.
        for name in names {
            let request = try engine(dataset.name) { () throws(StoreError) -> InquiryRequest? in
                guard let held = try book.record(name) else { return nil }
                return try inquiry(
                    [(key: held.key, version: held.version)], through: .zero, isLast: true)
            }
            guard let request else { continue }
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.inquire(request, &traffic)
            }
            let theirs = answer.knowledge
            guard missed.covers(theirs.forgotten) else { return theirs.forgotten }
            guard !answer.absent.isEmpty,
                theirs.hasSeen(name.dot, doubts.trusted(theirs.vector))
            else { continue }
            try engine(dataset.name) { () throws(StoreError) in
                guard let held = try book.record(name) else { return }
                var batch = ReplicationBatch()
                batch.notes = [try book.note(dropping: held)]
                _ = try dataset.replicate(batch)
            }
        }
        return nil
    }

    private func inquiry(_ page: UnsettledPage) throws(StoreError) -> InquiryRequest {
        try inquiry(
            page.versions.map { (key: $0.key, version: $0.version) }, through: page.through,
            isLast: page.isLast)
    }

    private func inquiry(
        _ versions: [(key: [UInt8], version: Version)], through: SyncCount, isLast: Bool
    ) throws(StoreError) -> InquiryRequest {
        let records = versions.map { unsettled in
            Record(
                key: unsettled.key, value: nil, version: unsettled.version, syncCount: .zero,
                isDirty: false)
        }
        let knowledge = PeerKnowledge(try dataset.knowledge())
        return InquiryRequest(
            address: address,
            page: RecordPage(
                records: records, through: through, isLast: isLast, knowledge: knowledge))
    }

    /// Buries or writes anew what the peer holds nothing of.
    func settle(
        _ versions: [UnsettledVersion], _ theirs: PeerKnowledge
    ) throws(SyncError) {
        var rest = versions[...]
        while !rest.isEmpty {
            let (round, moved) = try engine(dataset.name) {
                () throws(StoreError) -> (SettlementRound, [[UInt8]]) in
                let round = try settlementRound(of: rest, theirs)
                return (round, try dataset.replicate(round.batch))
            }
            guard moved.isEmpty else {
                // What was written meanwhile comes later in the order of change.
                let gone = Set(moved)
                rest.removeAll { gone.contains($0.key) }
                continue
            }
            result.pulled += round.buried.count
            if !round.buried.isEmpty {
                options.observer?(.localChanged(dataset: dataset.name, keys: round.buried))
            }
            rest = rest.dropFirst(round.count)
        }
    }

    /// What becomes of the first of some versions of which the peer holds nothing: of as many as a
    /// page may have, by the bytes of what is stored. At least one. The value of what is buried is
    /// not read.
    func settlementRound(
        of versions: ArraySlice<UnsettledVersion>, _ theirs: PeerKnowledge
    ) throws(StoreError) -> SettlementRound {
        var round = SettlementRound()
        var bytes = 0
        let unread = try QuarantineBook(dataset).unforgotten()
        for unsettled in versions {
            guard bytes < options.pageBytesMax else { break }
            round.count += 1
            let (key, version) = (unsettled.key, unsettled.version)
            // Under a doubted id the peer may have seen another write.
            let isDoubted = doubts.ours.contains(version.dot.replica)
            let isShared = !isDoubted || doubts.peerHad(version.dot)
            let isDead = isShared && theirs.hasSeen(version.dot, doubts.trusted(theirs.vector))
            bytes += key.count
            if isDead, !isDoubted {
                let before = round.batch.writes.count
                try round.batch.bury(key, version, in: dataset)
                if round.batch.writes.count > before { round.buried.append(key) }
                continue
            }
            // Without what is held of the key on either side, which was not deleted.
            let forgotten = theirs.forgotten.before(unread[key] ?? [])
            guard isDead || !version.vector.covers(forgotten.vector),
                let record = try dataset.storedRecord(for: key), record.version == version
            else { continue }
            if isDead, !record.isDeleted { round.buried.append(key) }
            let content = anew(record, isDead: isDead, after: forgotten)
            round.batch.writes.append(
                ReplicatedWrite(key: key, content: content, expected: version))
            bytes += isDead ? 0 : record.value?.count ?? 0
        }
        return round
    }

    /// A record that outlives what was forgotten, or the end of one whose dot is doubted.
    private func anew(
        _ record: Record, isDead: Bool, after forgotten: ForgottenDeletions
    ) -> ReplicatedWrite.Content {
        Outlivers.content(
            value: isDead ? nil : record.value, of: record.version, seen: doubts.stripped(record),
            expiresAt: isDead ? nil : record.expiresAt, after: forgotten,
            latestBelieved: store.latestBelieved, isDoubted: doubts.contain(record.version.dot))
    }

    /// What is stored at once of what the peer holds nothing of.
    struct SettlementRound {
        var batch = ReplicationBatch()
        /// Of how many of the versions this is the outcome.
        var count = 0
        /// The keys of the records that are deleted.
        var buried: [[UInt8]] = []
    }

    // MARK: - The peer is late

    /// Finds out whether the peer lacks deletions that were forgotten here. If so all that it has
    /// is to be looked at, in one exchange.
    func judge(_ remote: PeerKnowledge?) throws(SyncError) {
        let ours = try engine(dataset.name) { () throws(StoreError) in
            try dataset.knowledge().forgotten
        }
        late.judgesPeer = !doubts.trusted(remote?.vector ?? VersionVector()).covers(ours.vector)
        late.judging = ours.vector
        late.leavesDead = false
        guard late.judgesPeer else {
            late.forgetJudged()
            return
        }
        guard let remote, remote.syncCount > .zero else {
            late.judged = (late.judging, .zero)
            return
        }
        if late.judged.forgotten.covers(late.judging) {
            // In an attempt before this one: only what came since is to be looked at.
            positions.pull = max(positions.pull, min(late.judged.through, remote.syncCount))
        } else {
            late.forgetJudged()
            positions.pull = .zero
        }
        tally.recordsLeft = .max
    }

    /// Has the peer bury what is dead.
    ///
    /// What was moved into another dataset is to be with the peer before it is gone from here, as
    /// with a push (`MovedRecords`): until then a plan withholds what is dead.
    func bury(_ dead: [Record]) async throws(SyncError) {
        guard !dead.isEmpty, !doubts.isOfFile else { return }
        guard !options.isDryRun else {
            result.pushed += dead.count
            return
        }
        let request = try engine(dataset.name) { () throws(StoreError) in
            // What was forgotten here must not be lost any more.
            try store.syncBeforeSending()
            let versions = dead.map { record in
                Record(
                    key: record.key, value: nil, version: record.version, syncCount: .zero,
                    isDirty: false)
            }
            return BurialRequest(
                address: address,
                page: RecordPage(
                    records: versions, through: .zero, isLast: true,
                    knowledge: PeerKnowledge(try dataset.knowledge())))
        }
        let answer = try await counted { connection, traffic throws(SyncError) in
            try await connection.bury(request, &traffic)
        }
        result.pushed += answer.buried
        // What the peer forgets by that, it forgets of keys of which there is nothing here.
        for record in dead {
            // By a date that is not believed nothing else must be dated.
            let time = store.isAhead(record.version) ? .zero : record.version.time
            late.settled.forgotten.formUnion(
                ForgottenDeletions(vector: record.version.vector, time: time))
        }
    }

    /// The deletions that a record of a late peer may not have met; nil if it meets what is here.
    func unmet(
        by incoming: Record, beside local: Record?, _ ours: DatasetKnowledge
    ) throws(SyncError) -> UnmetDeletions? {
        if let local, !local.isDeleted || !ours.forgotten.covers(local.version) { return nil }
        return try engine(dataset.name) { () throws(StoreError) in
            try dataset.unmet(by: incoming, ours)
        }
    }

    /// Who stands behind a page of the peer's. The page may claim less than the peer has told
    /// before, where it leaves out what the peer holds, or has left out of what it pushed here.
    func meeting(_ page: RecordPage) -> Meeting {
        let seen = page.knowledge.vector.union(seenByPeer).union(remote?.vector ?? VersionVector())
        var meeting = Meeting(vector: doubts.trusted(seen), forgotten: page.knowledge.forgotten)
        meeting.settled = late.settled.forgotten.vector
        meeting.isJudged = late.judgesPeer
        return meeting
    }
}

extension PeerKnowledge {
    /// Whether a write was seen, and is dead if nothing is there of its key. What was wiped with
    /// the whole dataset may live on within a version that the wipe did not reach.
    func hasSeen(_ dot: Dot, _ trusted: VersionVector) -> Bool {
        trusted.contains(dot)
            && (!lifecycle.wiped.contains(dot) || forgotten.vector.contains(dot))
    }
}

extension SyncError {
    /// Whether one of the two sides turned out to be late.
    var isOfLateness: Bool { storeError?.code == .changesExpired }
}
