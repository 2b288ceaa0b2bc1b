import Tidemark

extension SyncSession {
    /// Hands over everything the peer lacks, page by page, or as much of it as may travel in one
    /// exchange; nothing as long as the peer lacks what was moved from here into another dataset.
    ///
    /// - Returns: false if the peer has versions that must be pulled and merged first.
    func push() async throws(SyncError) -> Bool {
        guard try !waitsForMoved() else {
            try await acknowledge()
            return true
        }
        try reviewOutgoing()
        lastSynced = nil
        try await pushSegments()
        guard try await pushDifferences() else { return false }
        guard differences == nil else { return true }
        var recordsMax = options.pageRecordsMax
        var ready: RecordPage?
        while true {
            let changes: RecordPage
            if let ready {
                changes = ready
            } else {
                changes = try read(wantedChanges(since: positions.push, atMost: recordsMax))
            }
            ready = nil
            guard try isNews(changes) else {
                try rememberWhatThePeerTold()
                try noteEnd()
                return true
            }
            // What is about no record may still leave: how far we have pulled, for one.
            guard tally.recordsLeft > 0 || changes.recordCount == 0 else { return true }
            // Looked at after reading: what went until then is in the page.
            guard try !waitsForMoved() else { return true }
            // The next page is read while the peer takes in this one.
            let following = wantedChanges(behind: changes, atMost: recordsMax)
            let dataset = dataset
            async let ahead = Self.readAhead(following, of: dataset)
            let sent = try await send(changes, &recordsMax)
            let next = await ahead
            switch sent {
            case .accepted(let isLast):
                positions.push = changes.through
                guard changes.isLast else {
                    ready = next
                    continue
                }
                if isLast { doubts.endTheirs() }
                try noteEnd()
                return true
            case .again: continue
            case .conflicts, .late: return false
            case .gap(let syncCount): positions.push = syncCount
            }
        }
    }

    /// Everything was exchanged that can be.
    private func noteEnd() throws(SyncError) {
        try forgetEndedFailures()
        result.lacksOnlyFailed = try hasFailures()
        result.isComplete = !result.lacksOnlyFailed
    }

    /// Which changes a page is to have.
    private struct WantedChanges: Sendable {
        let since: SyncCount
        let recordsMax: Int
        let bytesMax: Int
        let excluding: VersionVector
        /// Those that the message names before the page.
        let replicas: [ReplicaID]
        let withheld: Set<[UInt8]>
        let memory: ChangeMemory

        func page(of dataset: Dataset) throws(StoreError) -> RecordPage {
            try dataset.writtenPage(
                since: since, recordsMax: dataset.recordsPerPage(atMost: recordsMax),
                bytesMax: bytesMax, excluding: excluding, after: replicas,
                withholding: withheld, remembering: memory)
        }
    }

    /// - Parameter sent: how many records have travelled by then that are not counted yet.
    private func wantedChanges(
        since: SyncCount, atMost recordsMax: Int, behind sent: Int = 0
    ) -> WantedChanges {
        WantedChanges(
            // What is known to be there as it lies here need not be looked through for it.
            since: max(since, positions.adopted),
            recordsMax: min(recordsMax, tally.recordsLeft - min(tally.recordsLeft, sent)),
            bytesMax: options.pageBytesMax,
            excluding: doubts.trusted(remote?.vector ?? VersionVector()),
            replicas: address.replicas, withheld: waiting.withheld, memory: changeMemory)
    }

    /// What follows on a page that is about to leave; nil if nothing does, if no more may, or if
    /// the page is small and the next one soon read.
    private func wantedChanges(
        behind page: RecordPage, atMost recordsMax: Int
    ) -> WantedChanges? {
        // Where all is to be done on one thread, nothing is done beside.
        guard !page.isLast, page.recordCount < tally.recordsLeft, !store.options.runsInline,
            page.recordCount >= options.readsAheadFrom
        else { return nil }
        return wantedChanges(
            since: page.through, atMost: recordsMax, behind: page.recordCount)
    }

    private func read(_ wanted: WantedChanges) throws(SyncError) -> RecordPage {
        try engine(dataset.name) { () throws(StoreError) in try wanted.page(of: dataset) }
    }

    /// A page that is read before it is known what came of the one before it is as good as one
    /// whose reader was slow to send it: whatever is written here meanwhile comes later in the
    /// order of change. What must hold when a page leaves is looked at when it does.
    ///
    /// - Returns: nil if nothing is wanted, or if it cannot be read: who reads it again is told
    ///   why.
    @concurrent
    private static func readAhead(
        _ wanted: WantedChanges?, of dataset: Dataset
    ) async -> RecordPage? {
        guard let wanted else { return nil }
        do throws(StoreError) {
            return try wanted.page(of: dataset)
        } catch {
            return nil
        }
    }

    /// The changes without what failed before. As long as anything did, no page is the last one:
    /// the peer must not claim to have seen all that we have, nor take a disputed id for settled.
    ///
    /// - Parameter pulled: how far we have pulled.
    private func pageToPush(
        _ changes: RecordPage, pulled: SyncCount
    ) throws(SyncError) -> RecordPage {
        let leftOut = try leftOut(at: changes.through)
        let settles = try !hasRefusedDisputed()
        let isLast = changes.isLast && leftOut.isNothing && settles
        let (page, isDurable) = try engine(dataset.name) {
            () throws(StoreError) -> (RecordPage, Bool) in
            // That there is a peer must be known before it has anything: of a dataset that
            // nobody else has, the store may forget deletions.
            let isKnown = try dataset.peerIDs().contains(peer)
            try dataset.remember(try dataset.checkpoint(for: peer), of: peer)
            // After reading, so that all of the page is durable before it leaves.
            var page = try dataset.told(changes)
            page.leaveOut(leftOut.versions)
            page.isLast = isLast
            let isDurable = isKnown && !changes.isLast && isCovered(page)
            if !isDurable { try store.syncBeforeSending() }
            return (page, isDurable)
        }
        if isDurable {
            lastSynced?.followers += 1
        } else {
            lastSynced = SyncedPage(knowledge: page.knowledge, pulled: pulled)
        }
        return page
    }

    /// Whether everything in a large page was there before the store was last synced: all of it has
    /// a sync count up to one that was there then, and what is said besides was said then.
    private func isCovered(_ page: RecordPage) -> Bool {
        guard let lastSynced, lastSynced.followers < SyncLimits.unsyncedPagesMax else {
            return false
        }
        return page.recordCount >= options.readsAheadFrom && !page.mayHaveHeld
            && page.knowledge == lastSynced.knowledge
    }

    /// What came of a page.
    enum Sent {
        /// The peer has it, but for what is left out.
        ///
        /// - Parameter isLast: whether the peer was told that it is the last one.
        case accepted(isLast: Bool)
        /// Fewer changes are to be sent, or the same without what is left out from now on.
        case again
        /// The peer has versions that must be pulled and merged first.
        case conflicts
        /// The peer lacks what comes after that.
        case gap(SyncCount)
        /// One of the two lacks deletions that the other has forgotten.
        case late
    }

    /// Pushes one page, which follows on the position.
    ///
    /// - Parameter recordsMax: how many changes the next page is to have at most. It becomes
    ///   smaller when the peer takes in none of these, until it is known which one is at fault.
    func send(
        _ changes: RecordPage, _ recordsMax: inout Int
    ) async throws(SyncError) -> Sent {
        // Before the sync, so that it is durable when it is claimed.
        let pulled = try pulledThrough()
        let page = try pageToPush(changes, pulled: pulled)
        let request = PushRequest(
            address: address, since: positions.push,
            acknowledged: lookedThrough(lastSynced?.pulled ?? pulled), page: page,
            disputed: doubts.theirs.sorted(), settled: late.judged.forgotten,
            seen: page.seen ?? VersionVector())
        let answer: PushAnswer
        do throws(SyncError) {
            answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.push(request, &traffic)
            }
        } catch {
            guard error.concernsRecords, page.recordCount > 0 else { throw error }
            recordsMax = max(1, page.recordCount / 2)
            if page.recordCount == 1 { try leaveOut(page.writes, error) }
            return .again
        }
        remote = answer.knowledge
        report(.pushing, records: page.recordCount)
        tellPushed(page, answer.outcome)
        recordsMax = min(options.pageRecordsMax, recordsMax * 2)
        switch answer.outcome {
        case .accepted(let changed):
            result.pushed += changed
            positions.acknowledged = try remember(page, accepted: answer, pulled: pulled)
            return .accepted(isLast: page.isLast)
        case .conflicts(let keys, let changed):
            result.pushed += changed
            if let waiting = try firstWaiting(of: keys) { throw waiting }
            if try leaveOutRefused(keys, of: page) { return .again }
            if try settleHeld(keys) { return .again }
            // At first they are taken for what the peer wrote meanwhile, which a pull brings;
            // unless there is no other attempt.
            guard result.attempts > 1 || options.attemptsMax == 1, try await takeLeftOut(keys)
            else { return .conflicts }
            return .again
        case .gap(let syncCount):
            return .gap(syncCount)
        case .late:
            late.isMet = true
            return .late
        }
    }

    /// Tells the peer how far we have pulled, when nothing may be pushed yet: unless it knows, the
    /// next exchange would begin where this one did, and never come to an end.
    func acknowledge() async throws(SyncError) {
        let pulled = try pulledThrough()
        // Of the dataset's life it is told nothing new.
        guard !isOneWay, let remote, pulled > positions.acknowledged else { return }
        try await tell(remote.lifecycle, pulled: pulled)
    }

    /// Pushes a page in which there is nothing.
    ///
    /// - Parameters:
    ///   - lifecycle: what the peer is told of the dataset's life.
    ///   - pulled: how far we have pulled.
    private func tell(_ lifecycle: PeerLifecycle, pulled: SyncCount) async throws(SyncError) {
        var knowledge = try engine(dataset.name) { () throws(StoreError) in
            let knowledge = try dataset.told(try dataset.knowledge())
            try store.syncBeforeSending()
            return knowledge
        }
        // Of a part nothing is claimed but at the end.
        if part != nil {
            (knowledge.vector, knowledge.forgotten) = (VersionVector(), ForgottenDeletions())
        }
        knowledge.lifecycle = lifecycle
        let nothing = RecordPage(
            records: [], through: positions.push, isLast: false, knowledge: knowledge)
        let request = PushRequest(
            address: address, since: positions.push, acknowledged: pulled, page: nothing,
            disputed: doubts.theirs.sorted(), settled: late.judged.forgotten)
        let isPart = part != nil
        remote = try await counted { connection, traffic throws(SyncError) in
            try await connection.push(request, isPart: isPart, &traffic)
        }.knowledge
    }

    /// Tells the peer of a deletion of the whole dataset that it has not heard of, before anything
    /// is pulled: it leaves out what our vector contains, and that contains all that the deletion
    /// reached. Of what has seen more than the deletion, and outlives it there, only who knows of
    /// the deletion gives out everything.
    func tellDeletion() async throws(SyncError) {
        guard !isOneWay, !options.isDryRun, let remote else { return }
        let ours = try engine(dataset.name) { () throws(StoreError) in
            PeerLifecycle(try dataset.knowledge().lifecycle)
        }
        // What was moved from here into another dataset goes before the deletion that it left.
        guard !remote.lifecycle.wiped.covers(ours.wiped), try !waitsForMoved() else { return }
        try await tell(ours, pulled: try pulledThrough())
    }

    /// Whether there is anything in a page, or about it, that the peer does not know.
    private func isNews(_ page: RecordPage) throws(SyncError) -> Bool {
        guard let remote else { return true }
        // Unless it hears how far we have pulled, it would start further back next time.
        let isUnacknowledged = try pulledThrough() > positions.acknowledged
        // Unless it hears how much it has of ours, likewise.
        let isUnsaid = positions.adopted > positions.push
        return isUnacknowledged || isUnsaid || !doubts.theirs.isEmpty || page.recordCount > 0
            || !page.isLast || !remote.vector.covers(page.knowledge.vector)
            || !remote.lifecycle.covers(page.knowledge.lifecycle)
    }

    /// That the peer has our writes may be known from what it says of itself alone: the answer to
    /// the push that brought them was lost, or somebody else brought them.
    func rememberWhatThePeerTold() throws(SyncError) {
        guard let remote else { return }
        try engine(dataset.name) { () throws(StoreError) in
            var checkpoint = try dataset.checkpoint(for: peer)
            guard !checkpoint.vector.covers(remote.vector) else { return }
            checkpoint.vector.formUnion(remote.vector)
            try dataset.remember(checkpoint, of: peer)
        }
    }

    func pulledThrough() throws(SyncError) -> SyncCount {
        try engine(dataset.name) { () throws(StoreError) in
            try dataset.checkpoint(for: peer).pulledThrough
        }
    }

    /// What a push says of how far we have come. A late peer goes by it to tell whether all that it
    /// has was looked at. While it disputes an id no position moves; still, all up to where the
    /// last page of the pull ended was looked at in this exchange.
    ///
    /// - Parameter pulled: what is remembered.
    private func lookedThrough(_ pulled: SyncCount) -> SyncCount {
        doubts.theirs.isEmpty ? pulled : max(pulled, late.judged.through)
    }

    /// The peer has everything up to the end of the page, and we have everything of the peer's
    /// that came of it.
    ///
    /// - Returns: how far the peer now knows us to have pulled.
    func remember(
        _ page: RecordPage, accepted answer: PushAnswer, pulled: SyncCount
    ) throws(SyncError) -> SyncCount {
        try engine(dataset.name) { () throws(StoreError) in
            var checkpoint = try dataset.checkpoint(for: peer)
            var acknowledged = pulled
            if let appliedAfter = answer.appliedAfter, appliedAfter <= pulled {
                acknowledged = max(pulled, answer.knowledge.syncCount)
                checkpoint.pulledThrough = max(checkpoint.pulledThrough, acknowledged)
            }
            checkpoint.pushedThrough = page.through
            checkpoint.vector.formUnion(answer.knowledge.vector)
            try dataset.remember(checkpoint, of: peer)
            return acknowledged
        }
    }
}

/// A page before which the store was synced, by what it claimed.
struct SyncedPage {
    let knowledge: PeerKnowledge
    /// How far we had pulled.
    let pulled: SyncCount
    /// Pages that have left since then without another sync, since nothing in them was newer.
    var followers = 0
}
