import Tidemark

// The asking side of an exchange of a dataset of which only a part is kept here.
//
//   hello ─▶ lifecycle ─▶ by key, what others brought ─▶ pull ─▶ push ─▶ done
//                                                            ▲    │
//                                   by key, what conflicts   └────┘
//
// Invariants:
// - The dataset's vector never takes in the peer's: it says what was written here, and what was
//   seen while the dataset was kept whole. So a record that comes is compared with the record that
//   is here alone, and never passed over because the dataset had seen it.
// - After an exchange everything that the peer has of the scope is here, or something newer; and
//   what is here and is not newer than what the peer has belongs to the scope, unless it is to be
//   kept. Positions say how far that holds, for one peer and one scope.
// - A peer tells nothing again that it has told. What comes from others after that may be older
//   than what the peer told, and is therefore asked for by key.
// - What is handed out as all that this dataset has seen (a claim) is so only if the peer has
//   whatever of it went from here. Else nothing is claimed: the records stand for themselves.
// - Writes of this store go from here only when a peer has them. So does a version of somebody else
//   that has seen such a write: joined with what the peer has in its place it is handed on first.

/// What one attempt to exchange a part goes by.
struct PartExchange {
    var book: PartBook
    /// As it was when the attempt began.
    let record: PartRecord
    /// How far the part has come with the peer.
    var progress: PartProgress
    /// As it is stored.
    var stored: PartProgress
    /// In our order of change: up to here nothing is left that is to go.
    var letGoThrough: SyncCount
    /// What the peer had seen when the attempt began.
    var greeted = VersionVector()
    /// What the peer had seen, and what it had forgotten, when it had told everything.
    var whole: (vector: VersionVector, forgotten: ForgottenDeletions)?
    /// What it has then and does not hold apart because of its date.
    var told = VersionVector()
    /// In the peer's order of change: up to there it may have forgotten deletions, and was asked
    /// by key for all that is here.
    var askedThrough = SyncCount.zero
    /// Whether any record was handed on in this attempt.
    var hasHandedOn = false

    var scope: SyncScope { record.scope }

    /// What the asker has of the peer's changes behind a position.
    func former(after position: SyncCount) -> ScopedPullRequest.Former? {
        guard let former = record.former, progress.formerThrough > position else { return nil }
        return ScopedPullRequest.Former(scope: former, through: progress.formerThrough)
    }
}

extension SyncSession {
    /// As for a dataset that is kept whole.
    func attempt(
        _ book: PartBook, _ known: DatasetGreeting?
    ) async throws(SyncError) -> Bool {
        var greeting = known
        if greeting == nil { greeting = try await greet() }
        if try noteFork(greeting?.knowledge) { greeting = try await greet() }
        // A part cannot be compared with what the peer has, so all of it is written anew that may
        // lie under a dot of another write. What the peer has of it meets that in a conflict.
        try settleAlone()
        peerDisputed = Set(greeting?.disputed ?? [])
        remote = greeting?.knowledge
        seenByPeer = remote?.vector ?? VersionVector()
        try begin(book, greeting)
        if let remote {
            try await settleLifecycle(remote.lifecycle)
        }
        try await admitHeld()
        if let remote {
            try await checkWhatOthersBrought()
            // To be whole again takes what the peer claims without what it holds: its greeting
            // does not say.
            if remote.syncCount > pullPosition || isBeginningAfresh || book.part.isEnding {
                guard try await pullPart() else {
                    try storeProgress()
                    try await acknowledge()
                    return true
                }
            }
        }
        guard try !waitsForMoved() else {
            try storeProgress()
            try await acknowledge()
            return true
        }
        try checkHeldPending()
        return try await pushPart()
    }

    private func begin(
        _ book: PartBook, _ greeting: DatasetGreeting?
    ) throws(SyncError) {
        let (checkpoint, stored) = try engine(dataset.name) { () throws(StoreError) in
            (try dataset.checkpoint(for: peer), try book.progress(with: peer))
        }
        let record = book.part
        acknowledged = greeting?.pushedThrough ?? .zero
        var agreed = min(checkpoint.pulledThrough, acknowledged)
        if agreed > greeting?.knowledge?.syncCount ?? .zero { agreed = .zero }
        var progress = stored
        if stored.generation == record.generation {
            pullPosition = agreed
            if progress.formerThrough > acknowledged { progress.formerThrough = .zero }
        } else {
            // What came under the former scope while it was changed.
            _ = try engine(dataset.name) { () throws(StoreError) in try dataset.sweepPart() }
            pullPosition = .zero
            progress = PartProgress(generation: record.generation)
            if record.isFirst || stored.generation &+ 1 == record.generation {
                progress.formerThrough = agreed
            }
        }
        let ours = try syncCount()
        pushPosition = min(checkpoint.pushedThrough, greeting?.pulledThrough ?? .zero)
        if pushPosition > ours { pushPosition = .zero }
        if isBeginningAfresh {
            (pullPosition, pushPosition) = (.zero, .zero)
            progress.formerThrough = .zero
        }
        // From its beginning a peer tells of everything, whoever brought it.
        progress.checkedThrough = pullPosition == .zero ? ours : min(progress.checkedThrough, ours)
        part = PartExchange(
            book: book, record: record, progress: progress, stored: stored,
            letGoThrough: record.isHandingOver ? .zero : pushPosition,
            greeted: trusted(greeting?.knowledge?.vector ?? VersionVector()))
    }

    func syncCount() throws(SyncError) -> SyncCount {
        try engine(dataset.name) { () throws(StoreError) in try dataset.knowledge().syncCount }
    }

    // MARK: - Pull

    /// Before anything is asked for: what waits is found anew.
    private func beginTakingIn() {
        isFrozen = false
        forgetPending()
    }

    /// As ``pull()``.
    private func pullPart() async throws(SyncError) -> Bool {
        beginTakingIn()
        var isLast = false
        while !isLast {
            guard recordsLeft > 0 else {
                try await checkPending()
                return false
            }
            guard let part else { throw .scopeChanged }
            let request = try engine(dataset.name) { () throws(StoreError) in
                ScopedPullRequest(
                    address: address, since: pullPosition,
                    recordsMax: try dataset.recordsPerPage(
                        atMost: min(options.pageRecordsMax, recordsLeft)),
                    bytesMax: options.pageBytesMax, scope: part.scope,
                    former: part.former(after: pullPosition),
                    batons: try BatonBook(dataset).batons, disputed: peerDisputed.sorted())
            }
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.scopedPull(request, &traffic)
            }
            let page = answer.page
            if try noteFork(page.knowledge) { throw .forked }
            try await settleLifecycle(page.knowledge.lifecycle)
            // Before the position moves past them.
            if request.since < answer.forgottenThrough {
                try await checkAll(through: answer.forgottenThrough)
            }
            try await apply(
                PartNews(
                    records: page.records, outside: answer.outside, knowledge: page.knowledge,
                    through: page.through))
            remote = page.knowledge
            pullPosition = page.through
            isLast = page.isLast
            report(.pulling, records: page.recordCount)
        }
        // From when the dataset was kept whole.
        try await reviewIncoming()
        try await reviewPending()
        try await checkPending()
        part?.whole = remote.map { (vector: trusted($0.vector), forgotten: $0.forgotten) }
        if let whole = part?.whole {
            // It claims nothing as long as it has left anything out.
            let isSilent = whole.vector.isEmpty && part?.record.isEnding == true
            part?.told = isSilent ? try await seenWithoutHeld() : whole.vector
        }
        return true
    }

    // MARK: - By key

    /// Asks how those records are at the peer that came from others since it was last asked.
    private func checkWhatOthersBrought() async throws(SyncError) {
        guard let part else { return }
        try await checkByKey(since: part.progress.checkedThrough) { through in
            self.part?.progress.checkedThrough = through
        }
    }

    /// Asks how all records of the scope are at the peer: it has forgotten deletions of which it
    /// can no longer tell.
    private func checkAll(through forgotten: SyncCount) async throws(SyncError) {
        guard let part, part.askedThrough < forgotten else { return }
        try await checkByKey(since: .zero) { _ in }
        self.part?.askedThrough = forgotten
    }

    /// Asks how the records of the scope are at the peer that changed here after a count, but for
    /// writes that no peer has.
    ///
    /// - Parameter note: is told up to where, before that is asked about: what comes of it counts
    ///   behind that.
    private func checkByKey(
        since start: SyncCount, _ note: (SyncCount) -> Void
    ) async throws(SyncError) {
        let end = try syncCount()
        var position = start
        while let part, position < end {
            let since = position
            let (items, through) = try engine(dataset.name) { () throws(StoreError) in
                try dataset.brought(
                    since: since, scope: part.scope, countMax: SyncLimits.lookupKeysMax)
            }
            position = through
            note(through)
            try await lookUp(items, in: part.scope)
            try await checkPending()
        }
    }

    /// What the peer has and does not hold apart because of its date: answers about keys say so,
    /// whatever was left out.
    private func seenWithoutHeld() async throws(SyncError) -> VersionVector {
        let answer = try await ask([LookupRequest.Item(key: [0])], in: .nothing, bytesMax: 1)
        return trusted(answer.page.knowledge.vector)
    }

    /// Asks how records are now, and takes in what the answer is.
    ///
    /// - Parameter scope: nil to be told whatever they hold.
    func lookUp(
        _ items: [LookupRequest.Item], in scope: SyncScope?
    ) async throws(SyncError) {
        var rest = items[...]
        while !rest.isEmpty {
            let answer = try await ask(Array(rest), in: scope, bytesMax: options.pageBytesMax)
            let page = answer.page
            try await apply(
                PartNews(
                    records: page.records, outside: scope == nil ? [] : answer.outside,
                    missing: scope == nil ? [] : answer.missing,
                    refused: scope == nil ? answer.missing : [], knowledge: page.knowledge))
            report(.pulling, records: page.recordCount)
            rest = rest.dropFirst(answer.answered)
        }
    }

    private func ask(
        _ items: [LookupRequest.Item], in scope: SyncScope?, bytesMax: Int
    ) async throws(SyncError) -> LookupAnswer {
        let request = LookupRequest(
            address: address, scope: scope, bytesMax: bytesMax, items: items)
        let answer = try await counted { connection, traffic throws(SyncError) in
            try await connection.lookUp(request, &traffic)
        }
        if try noteFork(answer.page.knowledge) { throw .forked }
        return answer
    }

    // MARK: - Push

    /// As ``push()``. What the peer has then and does not belong to the scope goes from here.
    private func pushPart() async throws(SyncError) -> Bool {
        var conflictRounds = 0
        while true {
            let theirs = trusted(remote?.vector ?? VersionVector())
            let (changes, claim) = try partPage(for: theirs)
            let pulled = try pulledThrough()
            guard isNews(changes, claim, pulled) else {
                try letGo(through: changes.through)
                try rememberWhatThePeerTold()
                guard try endPart() else { return false }
                result.isComplete = true
                return true
            }
            guard recordsLeft > 0 || changes.recordCount == 0 else {
                try storeProgress()
                return true
            }
            let page = try engine(dataset.name) { () throws(StoreError) in
                try dataset.remember(try dataset.checkpoint(for: peer), of: peer)
                var page = try dataset.told(changes)
                page.knowledge.vector = claim
                // It is nobody's word for what is there no more.
                page.knowledge.forgotten = ForgottenDeletions()
                if !has(.skipSyncBeforeSend) { try store.sync() }
                return page
            }
            let request = PushRequest(
                address: address, since: pushPosition, acknowledged: pulled, page: page,
                disputed: peerDisputed.sorted())
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
                acknowledged = try remember(page, accepted: answer, pulled: pulled)
                pushPosition = page.through
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
                pushPosition = syncCount
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
                of: part.record, since: pushPosition, peerHas: theirs,
                recordsMax: dataset.recordsPerPage(
                    atMost: min(options.pageRecordsMax, recordsLeft)),
                bytesMax: options.pageBytesMax, after: address.replicas)
            // After reading: whatever went before that is noted.
            return (page, try PartBook(dataset))
        }
        guard let now, now.part.generation == part.record.generation else { throw .scopeChanged }
        let ours = page.knowledge.vector
        // What was left out while the dataset was whole lies before our position. And who has not
        // heard of deletions that are forgotten here must not take them for seen.
        let mayClaim =
            try heldBack().isEmpty && now.part.mayClaim(ours, to: peer, theirs)
            && theirs.covers(page.knowledge.forgotten.vector)
        return (page, mayClaim ? ours : VersionVector())
    }

    private func isNews(
        _ page: RecordPage, _ claim: VersionVector, _ pulled: SyncCount
    ) -> Bool {
        guard let remote else { return true }
        return pulled > acknowledged || page.recordCount > 0 || !page.isLast
            || !remote.vector.covers(claim)
            || !remote.lifecycle.covers(page.knowledge.lifecycle)
    }

    /// Drops what does not belong to the scope, up to a position up to which the peer has all that
    /// was written here: because it was just handed over, or had been, and the answer was lost.
    private func letGo(through end: SyncCount) throws(SyncError) {
        guard let part, part.record.action == .drop else { return }
        // Its position went past what was left out while the dataset was whole.
        var theirs: VersionVector?
        if part.letGoThrough < pushPosition, try !heldBack().isEmpty {
            theirs = trusted(remote?.vector ?? VersionVector())
        }
        var since = part.letGoThrough
        while since < end {
            let isBefore = since < pushPosition
            var (drops, through) = try engine(dataset.name) { () throws(StoreError) in
                try dataset.outside(
                    of: part.scope, since: since, through: isBefore ? min(pushPosition, end) : end,
                    countMax: SyncLimits.dropsAtOnce)
            }
            since = through
            self.part?.letGoThrough = through
            if isBefore, let theirs { drops.removeAll { !theirs.contains($0.expected.dot) } }
            guard !drops.isEmpty else { continue }
            try noteLost(drops.reduce(VersionVector()) { $0.union($1.expected.vector) })
            _ = try engine(dataset.name) { () throws(StoreError) in try dataset.drop(drops) }
            options.observer?(.localChanged(dataset: dataset.name, keys: drops.map(\.key)))
        }
    }

    /// Notes that what had seen that much goes from here, and that the peer has it.
    func noteLost(_ seen: VersionVector) throws(SyncError) {
        guard !seen.isEmpty, var book = part?.book else { return }
        try engine(dataset.name) { () throws(StoreError) in try book.lose(seen, to: peer) }
        part?.book = book
    }

    // MARK: - The end

    /// Stores how far the part has come, if that is not stored yet.
    func storeProgress() throws(SyncError) {
        guard let part, part.progress != part.stored else { return }
        try engine(dataset.name) { () throws(StoreError) in
            guard try part.book.isCurrent() else { return }
            var batch = ReplicationBatch()
            batch.notes = [part.book.note(part.progress, with: peer)]
            _ = try dataset.replicate(batch)
        }
        self.part?.stored = part.progress
    }

    /// The peer has all that was here while the dataset was whole, unless something of it was left
    /// out.
    private func endHandingOver() throws(SyncError) {
        guard let part, part.record.isHandingOver, try heldBack().isEmpty else { return }
        try engine(dataset.name) { () throws(StoreError) in
            guard let book = try PartBook(dataset),
                book.part.generation == part.record.generation
            else { return }
            var next = book.part
            next.isHandingOver = false
            // If somebody else has changed it, that is noted after the next exchange.
            _ = try book.change(to: next)
        }
    }

    /// Everything is exchanged. If the dataset is to be whole again, it is now, and claims all that
    /// the peer has; unless that lacks something that went from here.
    ///
    /// - Returns: false if anything was handed on in this attempt and the peer has anything new,
    ///   which is to be pulled before. What it was given it may have written anew, as what outlives
    ///   what it has forgotten: who claims to have seen that must have it so. What others write
    ///   there meanwhile is not claimed, and comes with the next exchange.
    private func endPart() throws(SyncError) -> Bool {
        try storeProgress()
        try endHandingOver()
        guard let part, part.record.isEnding, let whole = part.whole, peerDisputed.isEmpty else {
            return true
        }
        if part.hasHandedOn, let remote, try remote.syncCount > pulledThrough() {
            // Where it cannot end anyway, or there are no more attempts, another exchange ends it.
            return try holdsBackVectors() || result.attempts >= options.attemptsMax
        }
        try engine(dataset.name) { () throws(StoreError) in
            let ours = try dataset.vector.union(whole.vector)
            guard let book = try PartBook(dataset), book.part.isEnding,
                book.part.generation == part.record.generation,
                book.part.mayClaim(ours, to: peer, whole.vector),
                book.part.isTold(
                    by: peer, part.told, seen: part.greeted, ours: ours,
                    ownIDs: store.ownIDs),
                try !dataset.holdsBackVectors()
            else { return }
            // What others told under any scope is not all that they have, and what was handed to
            // them is not all that was here.
            for other in try dataset.peerIDs() where other != peer {
                var checkpoint = try dataset.checkpoint(for: other)
                checkpoint.pulledThrough = .zero
                checkpoint.pushedThrough = .zero
                try dataset.remember(checkpoint, of: other)
            }
            var batch = ReplicationBatch()
            batch.seen = whole.vector
            // Of what the peer had forgotten nothing is left here, either.
            var meeting = Meeting(vector: whole.vector, forgotten: whole.forgotten)
            meeting.settled = whole.forgotten.vector
            meeting.isJudged = true
            batch.meeting = meeting
            _ = try dataset.replicate(batch)
            _ = try book.end()
        }
        return true
    }
}

extension SyncError {
    static let scopeChanged = SyncError(
        .contended, "the scope was changed during the exchange; repeat the exchange")
}
