import Tidemark

// The asking side of an exchange of a dataset of which only a part is kept here.
//
//   hello ─▶ lifecycle ─▶ by key, what others brought ─▶ pull ─▶ settle ─▶ push ─▶ done
//                                                                  ▲        │
//                                         by key, what conflicts   └────────┘
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
// - From a peer that keeps a part, too, records only come, and nothing goes here for what it says
//   or does not say. No checkpoint is kept of it, since nothing is to wait for it.
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
    func begin(
        _ book: PartBook, _ greeting: DatasetGreeting?
    ) throws(SyncError) {
        let (checkpoint, stored) = try engine(dataset.name) { () throws(StoreError) in
            (try dataset.checkpoint(for: peer), try book.progress(with: peer))
        }
        let record = book.part
        positions.acknowledged = greeting?.pushedThrough ?? .zero
        var agreed = min(checkpoint.pulledThrough, positions.acknowledged)
        if agreed > greeting?.knowledge?.syncCount ?? .zero { agreed = .zero }
        var progress = stored
        if stored.generation == record.generation {
            positions.pull = agreed
            if progress.formerThrough > positions.acknowledged {
                progress.formerThrough = .zero
            }
        } else {
            // What came under the former scope while it was changed.
            _ = try engine(dataset.name) { () throws(StoreError) in try dataset.sweepPart() }
            positions.pull = .zero
            progress = PartProgress(generation: record.generation)
            if record.isFirst || stored.generation &+ 1 == record.generation {
                progress.formerThrough = agreed
            }
        }
        let ours = try syncCount()
        positions.push = min(checkpoint.pushedThrough, greeting?.pulledThrough ?? .zero)
        if positions.push > ours { positions.push = .zero }
        if isBeginningAfresh {
            (positions.pull, positions.push) = (.zero, .zero)
            progress.formerThrough = .zero
        }
        // From its beginning a peer tells of everything, whoever brought it.
        progress.checkedThrough =
            positions.pull == .zero ? ours : min(progress.checkedThrough, ours)
        part = PartExchange(
            book: book, record: record, progress: progress, stored: stored,
            letGoThrough: record.isHandingOver ? .zero : positions.push,
            greeted: doubts.trusted(greeting?.knowledge?.vector ?? VersionVector()))
    }

    /// From a peer that keeps a part, too. It remembers nothing of this side: positions are kept
    /// here alone. That it went back behind them it finds out by what it is asked, so it is always
    /// asked.
    func beginTaking(_ book: PartBook) throws(SyncError) {
        let record = book.part
        let stored = try engine(dataset.name) { () throws(StoreError) in
            try book.progress(with: peer)
        }
        var progress = stored
        if stored.generation != record.generation {
            _ = try engine(dataset.name) { () throws(StoreError) in try dataset.sweepPart() }
            progress = PartProgress(generation: record.generation)
        }
        let isKnown = !isBeginningAfresh && progress.takenThrough <= remote?.syncCount ?? .zero
        positions.pull = isKnown ? progress.takenThrough : .zero
        part = PartExchange(
            book: book, record: record, progress: progress, stored: stored, letGoThrough: .zero)
    }

    func syncCount() throws(SyncError) -> SyncCount {
        try engine(dataset.name) { () throws(StoreError) in try dataset.knowledge().syncCount }
    }

    // MARK: - Pull

    /// Before anything is asked for: what waits is found anew.
    func beginTakingIn() {
        waiting.isFrozen = false
        forgetPending()
    }

    /// As ``pull()``.
    func pullPart() async throws(SyncError) -> Bool {
        beginTakingIn()
        var isLast = false
        while !isLast {
            guard tally.recordsLeft > 0 else { return false }
            guard let part else { throw .scopeChanged }
            let request = try engine(dataset.name) { () throws(StoreError) in
                ScopedPullRequest(
                    address: address, since: positions.pull,
                    recordsMax: try dataset.recordsPerPage(
                        atMost: min(options.pageRecordsMax, tally.recordsLeft)),
                    bytesMax: options.pageBytesMax, scope: part.scope,
                    former: part.former(after: positions.pull),
                    batons: try BatonBook(dataset).batons, disputed: doubts.theirs.sorted(),
                    takesOnly: isOneWay)
            }
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.scopedPull(request, &traffic)
            }
            let page = answer.page
            if try noteFork(page.knowledge) { throw .forked }
            try await settleLifecycle(page.knowledge.lifecycle)
            // Before the position moves past them.
            if !isOneWay, request.since < answer.forgottenThrough {
                try await checkAll(through: answer.forgottenThrough)
            }
            try await apply(
                PartNews(
                    records: page.records, outside: isOneWay ? [] : answer.outside,
                    knowledge: page.knowledge, through: page.through))
            remote = page.knowledge
            positions.pull = page.through
            isLast = page.isLast
            report(.pulling, records: page.recordCount)
        }
        return true
    }

    /// The peer has told all that it has, and nothing of that waits.
    func noteAllIsTold() async throws(SyncError) {
        guard !isOneWay else {
            result.isComplete = true
            return
        }
        part?.whole = remote.map { (vector: doubts.trusted($0.vector), forgotten: $0.forgotten) }
        if let whole = part?.whole {
            // It claims nothing as long as it has left anything out.
            let isSilent = whole.vector.isEmpty && part?.record.isEnding == true
            part?.told = isSilent ? try await seenWithoutHeld() : whole.vector
        }
    }

    // MARK: - By key

    /// Asks how those records are at the peer that came from others since it was last asked.
    func checkWhatOthersBrought() async throws(SyncError) {
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
        return doubts.trusted(answer.page.knowledge.vector)
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
        guard let part, part.record.isHandingOver, try !hasLeftOut() else { return }
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
    func endPart() throws(SyncError) -> Bool {
        try storeProgress()
        try endHandingOver()
        // No earlier: what is let go was looked for before that was known to have arrived.
        try forgetEndedFailures()
        guard let part, part.record.isEnding, let whole = part.whole, doubts.theirs.isEmpty else {
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
