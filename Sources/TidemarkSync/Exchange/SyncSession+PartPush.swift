import Tidemark

// How a part hands on what was written here, and lets go of what the peer has then. The invariants
// stand in SyncSession+Part.swift.

extension SyncSession {
    /// As ``push()``. What the peer has then and does not belong to the scope goes from here.
    func pushPart() async throws(SyncError) -> Bool {
        var conflictRounds = 0
        while true {
            let theirs = doubts.trusted(remote?.vector ?? VersionVector())
            let (changes, claim) = try partPage(for: theirs)
            let pulled = try pulledThrough()
            guard isNews(changes, claim, pulled) else {
                try letGo(through: changes.through)
                try rememberWhatThePeerTold()
                guard try endPart() else { return false }
                result.isComplete = true
                return true
            }
            guard tally.recordsLeft > 0 || changes.recordCount == 0 else {
                try storeProgress()
                return true
            }
            let page = try engine(dataset.name) { () throws(StoreError) in
                try dataset.remember(try dataset.checkpoint(for: peer), of: peer)
                var page = try dataset.told(changes)
                page.knowledge.vector = claim
                // It is nobody's word for what is there no more.
                page.knowledge.forgotten = ForgottenDeletions()
                try store.syncBeforeSending()
                return page
            }
            let request = PushRequest(
                address: address, since: positions.push, acknowledged: pulled, page: page,
                disputed: doubts.theirs.sorted())
            if page.recordCount > 0 { part?.hasHandedOn = true }
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.push(request, isPart: true, &traffic)
            }
            remote = answer.knowledge
            report(.pushing, records: page.recordCount)
            tellPushed(page, answer.outcome)
            switch answer.outcome {
            case .accepted(let changed):
                result.pushed += changed
                // Before that is noted: cut off here, it is done again.
                try letGo(through: page.through)
                positions.acknowledged = try remember(page, accepted: answer, pulled: pulled)
                positions.push = page.through
                conflictRounds = 0
                guard page.isLast else { continue }
                guard try endPart() else { return false }
                result.isComplete = true
                return true
            case .conflicts(let keys, let changed):
                result.pushed += changed
                conflictRounds += 1
                guard conflictRounds <= options.attemptsMax else { return false }
                // Of what does not belong to the scope the pull says nothing.
                beginTakingIn()
                try await lookUp(keys.map { LookupRequest.Item(key: $0) }, in: nil)
                try await checkPending()
            case .gap(let syncCount):
                positions.push = syncCount
            case .late:
                // The peer is about to find out what of its own records is dead.
                return false
            }
        }
    }

    /// A page of what is handed on, and what of the vector behind it may be claimed.
    private func partPage(
        for theirs: VersionVector
    ) throws(SyncError) -> (page: RecordPage, claim: VersionVector) {
        guard let part else { throw .scopeChanged }
        let (page, now) = try engine(dataset.name) { () throws(StoreError) in
            let page = try dataset.handedOnPage(
                of: part.record, since: positions.push, peerHas: theirs,
                recordsMax: dataset.recordsPerPage(
                    atMost: min(options.pageRecordsMax, tally.recordsLeft)),
                bytesMax: options.pageBytesMax, after: address.replicas)
            // After reading: whatever went before that is noted.
            return (page, try PartBook(dataset))
        }
        guard let now, now.part.generation == part.record.generation else { throw .scopeChanged }
        let ours = page.knowledge.vector
        // What was left out while the dataset was whole lies before our position. And who has not
        // heard of deletions that are forgotten here must not take them for seen.
        let mayClaim =
            try leftOut(at: page.through).isNothing && now.part.mayClaim(ours, to: peer, theirs)
            && theirs.covers(page.knowledge.forgotten.vector)
        return (page, mayClaim ? ours : VersionVector())
    }

    private func isNews(
        _ page: RecordPage, _ claim: VersionVector, _ pulled: SyncCount
    ) -> Bool {
        guard let remote else { return true }
        return pulled > positions.acknowledged || page.recordCount > 0 || !page.isLast
            || !remote.vector.covers(claim)
            || !remote.lifecycle.covers(page.knowledge.lifecycle)
    }

    /// Drops what does not belong to the scope, up to a position up to which the peer has all that
    /// was written here: because it was just handed over, or had been, and the answer was lost.
    private func letGo(through end: SyncCount) throws(SyncError) {
        guard let part, part.record.action == .drop else { return }
        let theirs = doubts.trusted(remote?.vector ?? VersionVector())
        let ownIDs = store.ownIDs
        // Its position went past what was left out while the dataset was whole.
        let failed = try failures(.outgoing)
        let leftOut = failed.held(from: peer)
        var since = part.letGoThrough
        while since < end {
            let isBefore = since < positions.push
            var (drops, through) = try engine(dataset.name) { () throws(StoreError) in
                try dataset.outside(
                    of: part.scope, since: since,
                    through: isBefore ? min(positions.push, end) : end,
                    countMax: SyncLimits.dropsAtOnce)
            }
            since = through
            self.part?.letGoThrough = through
            if isBefore {
                drops.removeAll {
                    let isThere = failed.hasOthers ? false : leftOut[$0.key] != $0.expected.dot
                    return !isThere && !theirs.contains($0.expected.dot)
                }
            }
            guard !drops.isEmpty else { continue }
            // Another exchange may have brought everything meanwhile, under another scope: what
            // goes now would be missing where the dataset claims to have it.
            guard try engine(dataset.name, { () throws(StoreError) in try part.book.isCurrent() })
            else { throw .scopeChanged }
            // Of what others wrote and joined nothing is handed on that does not belong to the
            // scope, so that the peer may not know of all that it has seen.
            var (known, unknown) = (VersionVector(), VersionVector())
            for version in drops.map(\.expected) {
                let isThere =
                    part.record.handsOn(version, ofWhom: ownIDs, to: theirs)
                    || theirs.covers(version.vector)
                if isThere {
                    known.formUnion(version.vector)
                } else {
                    unknown.formUnion(version.vector)
                }
            }
            try noteLost(known, to: peer)
            try noteLost(unknown, to: .nobody)
            _ = try engine(dataset.name) { () throws(StoreError) in try dataset.drop(drops) }
            options.observer?(.localChanged(dataset: dataset.name, keys: drops.map(\.key)))
        }
    }

    /// Notes that what had seen that much goes from here.
    ///
    /// - Parameter holder: who has it; nobody if nobody is known to.
    func noteLost(_ seen: VersionVector, to holder: ReplicaID) throws(SyncError) {
        guard !seen.isEmpty, var book = part?.book else { return }
        try engine(dataset.name) { () throws(StoreError) in try book.lose(seen, to: holder) }
        part?.book = book
    }
}
