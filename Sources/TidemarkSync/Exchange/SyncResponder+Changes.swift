import Tidemark

// How changes are given out and taken in.
//
// Invariants on the answering side:
// - What leaves is durable first, and "accepted" is said only of what is durable.
// - A checkpoint about the asker moves only to positions that the asker itself has named as
//   reached, and only from a page that follows on the checkpoint without a gap.
// - The asker's vector is joined into ours only with the last page of such a sequence and only if
//   nothing of it was refused and nothing waits here: then everything that the vector speaks of has
//   been applied here.
// - Nor is the asker given our vector with what it pulls, if we left out anything when we pushed to
//   it.
// - Conflicts are never settled here. The asker is told the keys, pulls our versions, settles them
//   and comes back; the records without conflict are applied at once, because each stands for
//   itself. What lies here of those keys under a disputed id is written anew first: no settlement
//   can say that it descends from a dot that may name two writes.

extension SyncResponder {
    func answer(to request: PullRequest) throws(SyncError) -> PullAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        let isRemembered = request.address.from != .nobody
        if isRemembered {
            try checkForks(
                request.vector, request.batons, known: request.disputed, dataset, request.address)
        }
        return try engine(dataset.name) { () throws(StoreError) in
            if isRemembered {
                try acknowledge(request.since, of: request.address.from, isPart: false, dataset)
            }
            let failed = try failed(
                with: request.address.from,
                seen: request.disputed.isEmpty ? request.vector : VersionVector(), dataset)
            let recordsMax = min(request.recordsMax, limits.pageRecordsMax)
            let page = try dataset.writtenPage(
                since: request.since, recordsMax: dataset.recordsPerPage(atMost: recordsMax),
                bytesMax: min(max(1, request.bytesMax), limits.pageBytesMax),
                excluding: request.isAfresh ? VersionVector() : request.vector, after: [])
            var told = try dataset.told(page, isDrawing: isRemembered)
            // What was left out of what we pushed to the asker lies before its position.
            if try failed.holdsBack(from: request.address.from, at: page.through) {
                told.knowledge.vector = VersionVector()
            }
            // Nobody keeps what is given to it.
            if isRemembered { try store.syncBeforeSending() }
            return PullAnswer(page: told)
        }
    }

    /// What failed on its way to an asker that has come so far and is not over.
    func failed(
        with asker: ReplicaID, seen: VersionVector, _ dataset: Dataset
    ) throws(StoreError) -> FailedBook {
        guard asker != .nobody else { return try FailedBook(dataset, .outgoing) }
        let isDisputing = try !BatonBook(dataset).disputed.isEmpty
        return try FailedBook.afterForgettingEnded(
            in: dataset, with: asker, seen: isDisputing ? VersionVector() : seen)
    }

    /// Remembers that there is the asker, before it is given anything, and how far it has come. Of
    /// a dataset that nobody else has, the store may forget deletions; from now on it must not.
    ///
    /// A store that cannot write still gives out changes; the asker then reads some of them again
    /// next time. As does one that disputes an id: how far the asker had come before that says
    /// which of the doubtful writes it had. Unless it keeps a part: it compares nothing that is
    /// doubtful, and when it is whole again its own positions say no more than what it was told as
    /// such (`SyncSession.known`).
    func acknowledge(
        _ since: SyncCount, of asker: ReplicaID, isPart: Bool, _ dataset: Dataset
    ) throws(StoreError) {
        guard !store.options.isReadOnly else { return }
        var checkpoint = try dataset.checkpoint(for: asker)
        if since > checkpoint.pushedThrough, since <= (try dataset.knowledge().syncCount) {
            let disputed = try isPart ? [] : BatonBook(dataset).disputed
            if disputed.isEmpty { checkpoint.pushedThrough = since }
        }
        try dataset.remember(checkpoint, of: asker)
    }

    /// - Parameter isPart: whether the asker keeps only a part of the dataset. It has not compared
    ///   what lies here under a disputed id, so that its last page settles nothing.
    func answer(to request: PushRequest, isPart: Bool = false) throws(SyncError) -> PushAnswer {
        do throws(SyncError) {
            return try take(request, isPart: isPart)
        } catch {
            // So that the asker looks for the record that it is about, and leaves that one out.
            guard error.storeError?.code == .invalidArgument, holdsUnstorable(request) else {
                throw error
            }
            throw SyncError(.recordRefused, error.message, dataset: request.address.dataset)
        }
    }

    /// Whether any record of a page is at fault, and not what is said beside them: then no smaller
    /// page would pass, and the asker would leave out one record after the other in vain.
    private func holdsUnstorable(_ request: PushRequest) -> Bool {
        let dataset = try? store.datasetForSync(request.address.dataset, creating: false)
        guard let dataset else { return false }
        return request.page.records.contains { dataset.refusalByStore(of: $0) != nil }
    }

    /// - Throws: `recordRefused` if any of the records is.
    private func refuse(_ records: [Record]) throws(SyncError) {
        guard let validate else { return }
        for record in records {
            do {
                try validate(record)
            } catch {
                let reason = "\(error)".cut(toBytes: SyncLimits.reasonBytesMax)
                throw SyncError(
                    .recordRefused, "the peer refuses the record with \"\(reason)\"",
                    key: record.key)
            }
        }
    }

    private func take(_ request: PushRequest, isPart: Bool) throws(SyncError) -> PushAnswer {
        try check(request.address)
        if validate != nil || limits.quota != nil {
            let records = request.page.records
            try refuse(records)
            try admit(records, request, isPart: isPart)
        }
        guard request.address.from != .nobody else { return try forecast(request) }
        guard observer != nil, try mayChange(request) else {
            return try takeIn(request, isPart: isPart)
        }
        return try observed(request.address.dataset) { () throws(SyncError) in
            try takeIn(request, isPart: isPart)
        }
    }

    /// Tells the observer, if there is one, before and after what may change a dataset.
    func observed<Answer>(
        _ name: String, _ change: () throws(SyncError) -> Answer
    ) throws(SyncError) -> Answer {
        guard let observer else { return try change() }
        try engine(name) { () throws(StoreError) in try observer.willChange(name) }
        defer { observer.didChange(name) }
        return try change()
    }

    /// Whether a push says anything but how far the asker has come.
    private func mayChange(_ request: PushRequest) throws(SyncError) -> Bool {
        let (name, theirs) = (request.address.dataset, request.page.knowledge.lifecycle)
        guard request.page.recordCount == 0 else { return true }
        return try engine(name) { () throws(StoreError) -> Bool in
            guard let dataset = try store.datasetForSync(name, creating: false) else { return true }
            return !PeerKnowledge(try dataset.knowledge()).lifecycle.covers(theirs)
        }
    }

    private func takeIn(_ request: PushRequest, isPart: Bool) throws(SyncError) -> PushAnswer {
        let dataset = try wholeDataset(request.address.dataset, creating: true)
        try noteMoved(request.address, dataset)
        let theirs = request.page.knowledge
        try checkForks(
            theirs.vector, theirs.batons, known: request.disputed, dataset, request.address)
        let checkpoint = try engine(dataset.name) { () throws(StoreError) in
            try dataset.checkpoint(for: request.address.from)
        }
        guard request.since <= checkpoint.pulledThrough else {
            return try answer(.gap(checkpoint.pulledThrough), after: nil, request, dataset)
        }
        // Before the records, so that these are compared with what the deletion leaves.
        if !store.has(.ignoreLifecycle) {
            try engine(dataset.name) { () throws(StoreError) in
                try dataset.join(theirs.lifecycle)
            }
        }
        let plan: Plan
        do throws(SyncError) {
            // No vector is joined before the last page.
            if request.page.isLast {
                try forgetSuperseded(of: dataset, pushing: request.address.from)
            }
            plan = try apply(request, to: dataset, checkpoint, isPart: isPart)
        } catch {
            guard error.isOfLateness else { throw error }
            return try answer(.late, after: nil, request, dataset)
        }
        return try answer(plan.outcome, after: plan, request, dataset)
    }

    /// What waits or was refused since this store asked somebody, or took in a bundle, may have
    /// been settled or brought by others since. As long as it is noted, nothing that an asker has
    /// seen would ever be claimed by one who asks nobody.
    private func forgetSuperseded(
        of dataset: Dataset, pushing peer: ReplicaID
    ) throws(SyncError) {
        try engine(dataset.name) { () throws(StoreError) in
            guard try dataset.holdsBackVectors() else { return }
            let disputed = Set(try BatonBook(dataset).disputed)
            try PendingBook.forgetSuperseded(in: dataset, disputed: disputed)
            try FailedBook.forgetSuperseded(in: dataset, disputed: disputed, peer: peer)
        }
    }

    /// - Throws: also what says that one of the two sides is late.
    private func apply(
        _ request: PushRequest, to dataset: Dataset, _ checkpoint: PeerCheckpoint, isPart: Bool
    ) throws(SyncError) -> Plan {
        if !isPart, let plan = try mergeAtOnce(request, dataset) { return plan }
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            let plan = try engine(dataset.name) { () throws(StoreError) -> Plan? in
                let plan = try makePlan(request, for: dataset, checkpoint, isPart: isPart)
                // Records of a part are judged by what was forgotten before they were looked at.
                if isPart, plan.forgotten != (try dataset.knowledge().forgotten) { return nil }
                let batch = try plan.batch.claimingNothingHeld(in: dataset)
                return try dataset.replicate(batch).isEmpty ? plan : nil
            }
            if let plan { return plan }
        }
        throw SyncError(
            .contended,
            "the records of a page were written faster than they could be compared; "
                + "repeat the exchange", dataset: dataset.name)
    }

    /// What would come of a push, if it were not nobody's: nothing is applied, and nothing noted.
    private func forecast(_ request: PushRequest) throws(SyncError) -> PushAnswer {
        let name = request.address.dataset
        try refusePart(name)
        return try engine(name) { () throws(StoreError) in
            guard let dataset = try store.datasetForSync(name, creating: false) else {
                // It would know what it was given; as it is, it knows nothing.
                let nothing = PeerKnowledge(
                    vector: VersionVector(), syncCount: .zero,
                    lifecycle: request.page.knowledge.lifecycle)
                return PushAnswer(
                    outcome: .accepted(changed: request.page.records.count), appliedAfter: nil,
                    knowledge: nothing)
            }
            let plan = try makePlan(request, for: dataset, PeerCheckpoint())
            return PushAnswer(
                outcome: plan.outcome, appliedAfter: nil,
                knowledge: PeerKnowledge(try dataset.knowledge()))
        }
    }

    /// What is applied is durable before it is answered for.
    private func answer(
        _ outcome: PushAnswer.Outcome, after plan: Plan?, _ request: PushRequest,
        _ dataset: Dataset
    ) throws(SyncError) -> PushAnswer {
        try engine(dataset.name) { () throws(StoreError) in
            let knowledge = try dataset.knowledge()
            let appliedAfter = plan?.count(before: knowledge)
            var checkpoint = try dataset.checkpoint(for: request.address.from)
            if case .accepted = outcome, let appliedAfter,
                appliedAfter <= checkpoint.pushedThrough
            {
                // All that was applied since came from the asker, who has no need of it.
                checkpoint.pushedThrough = knowledge.syncCount
                try dataset.remember(checkpoint, of: request.address.from)
            }
            // What was tried again has arrived if the asker has come past it.
            _ = try failed(with: request.address.from, seen: VersionVector(), dataset)
            try store.sync()
            return PushAnswer(
                outcome: outcome, appliedAfter: appliedAfter,
                knowledge: PeerKnowledge(knowledge))
        }
    }

    /// What a page comes to here.
    struct Plan {
        var batch = ReplicationBatch()
        var outcome = PushAnswer.Outcome.accepted(changed: 0)
        /// Of the moment at which it was made.
        let syncCount: SyncCount
        let lifecycle: DatasetLifecycle
        /// Whether what it stores is something else than what the asker has.
        var hasRenewed = false
        /// Of the same moment.
        var forgotten = ForgottenDeletions()
        /// How many records it stores.
        var stored: Int?

        /// The count before the batch was applied, if nothing else was applied since the plan was
        /// made; each write counts one, unless the dataset was deleted in between.
        func count(before now: DatasetKnowledge) -> SyncCount? {
            guard !hasRenewed else { return nil }
            let stored = stored ?? batch.writes.count
            return now.syncCount.rawValue == syncCount.rawValue + UInt64(stored)
                && now.lifecycle == lifecycle
                ? syncCount : nil
        }
    }

    private func makePlan(
        _ request: PushRequest, for dataset: Dataset, _ checkpoint: PeerCheckpoint,
        isPart: Bool = false
    ) throws(StoreError) -> Plan {
        let knowledge = try dataset.knowledge()
        var plan = Plan(syncCount: knowledge.syncCount, lifecycle: knowledge.lifecycle)
        plan.forgotten = knowledge.forgotten
        let meeting = meeting(request, isPart: isPart)
        plan.batch.meeting = meeting
        let book = try BatonBook(dataset)
        // Of nobody there is nothing to be noted, and nowhere to note it is made for it.
        let isRemembered = request.address.from != .nobody
        // What a late asker has is not held before it is known whether it is dead.
        let isLate = !isPart && !meeting.vector.covers(knowledge.forgotten.vector)
        let conflicts = try compare(
            request.page, with: dataset, knowledge,
            mayHold: isRemembered && !isLate, isPart: isPart, disputed: book.disputed, &plan)
        let batons = isRemembered ? request.page.knowledge.batons : []
        let held = plan.batch.notes
        plan.batch.notes += try book.notes(taking: batons, settling: [])
        let changed = plan.batch.writes.count
        if !isPart { try renew(conflicts, in: dataset, book.disputed, &plan) }
        var arrival: [SystemNote] = []
        if isRemembered, changed > 0 {
            arrival = try ArrivalLog(dataset, journal).notes(
                from: request.address.from, .answered, exchange: nil)
            plan.batch.notes += arrival
        }
        guard conflicts.isEmpty else {
            let listed = Array(conflicts.prefix(SyncLimits.conflictKeysMax))
            plan.outcome = .conflicts(keys: listed, changed: changed)
            return plan
        }
        var reached = checkpoint
        reached.pulledThrough = request.page.through
        let waits = try !TimedNotes(which: .pending, dataset: dataset).isEmpty()
        let settles = request.page.isLast && !isPart && !waits
        // Before a dispute is over neither says anything of the disputed ids.
        let unsettled = settles ? [] : book.disputed
        reached.vector.formUnion(
            unsettled.reduce(request.page.knowledge.vector) { $0.removing($1) })
        if isPart || unsettled.isEmpty, request.acknowledged <= knowledge.syncCount {
            reached.pushedThrough = max(reached.pushedThrough, request.acknowledged)
        }
        // While an id is disputed no position moves.
        let mayBegin = !isPart && book.disputed.isEmpty
        let anew = try mayBegin ? givenAnew(request, to: dataset) : (begins: false, notes: [])
        if anew.begins { reached.pulledThrough = .zero }
        plan.batch.checkpoint = (request.address.from, reached)
        // Looked at after the checkpoint, which moves in one batch with what waits.
        let holdsBack = try dataset.holdsBackVectors()
        if store.joinsVector(atEnd: request.page.isLast), !holdsBack {
            plan.batch.seen = request.page.knowledge.vector
        }
        if settles {
            // The asker has compared what lies here under them, and this is what came of it.
            plan.batch.disowned = book.disputed
            plan.batch.isSettled = !holdsBack
            if isRemembered {
                let notes = try book.notes(taking: batons, settling: plan.batch.disowned)
                plan.batch.notes = held + notes + arrival
            }
        }
        plan.batch.notes += anew.notes
        plan.outcome = anew.begins ? .gap(.zero) : .accepted(changed: changed)
        return plan
    }

    /// What was refused here of the asker, and is to be tried again, lies before the position of
    /// its pushes, and this store may never ask it. So once its last page has come, it is told to
    /// begin anew, and leaves out what our vector says: nothing since the failure. With its next
    /// last page it has given all that it has, and what has not come by then it has no more.
    ///
    /// - Returns: whether it is to begin anew, and notes about what it is to give.
    private func givenAnew(
        _ request: PushRequest, to dataset: Dataset
    ) throws(StoreError) -> (begins: Bool, notes: [SystemNote]) {
        let asker = request.address.from
        guard request.page.isLast, asker != .nobody, request.disputed.isEmpty else {
            return (false, [])
        }
        let book = try FailedBook(dataset, .incoming)
        let brought = Dictionary(
            request.page.records.map { ($0.key, $0.version.vector) },
            uniquingKeysWith: { $0.union($1) })
        var ended: [FailedRecord] = []
        var awaited: [FailedRecord] = []
        for var entry in book.entries where entry.peer == asker && entry.state == .due {
            let isBrought = brought[entry.key]?.contains(entry.write) ?? false
            if entry.isGivenAnew || request.since == .zero || isBrought {
                ended.append(entry)
            } else {
                entry.isGivenAnew = true
                awaited.append(entry)
            }
        }
        var notes = try book.notes(removing: ended)
        for entry in awaited { notes.append(try book.note(entry)) }
        return (!awaited.isEmpty, notes)
    }

    /// Adds to a plan what is to be stored of a page.
    ///
    /// - Parameters:
    ///   - mayHold: whether what is dated too far ahead is kept apart, where neither it nor what is
    ///     here of its key is in doubt.
    ///   - isPart: whether they are of one who keeps a part.
    ///   - disputed: the disputed ids of this store.
    /// - Returns: the keys of those that are in conflict with what is here.
    private func compare(
        _ page: RecordPage, with dataset: Dataset, _ knowledge: DatasetKnowledge,
        mayHold: Bool, isPart: Bool, disputed: [ReplicaID], _ plan: inout Plan
    ) throws(StoreError) -> [[UInt8]] {
        var conflicts: [[UInt8]] = []
        for record in page.records {
            let local = try dataset.storedRecord(for: record.key)
            var circumstances = Circumstances(
                seen: knowledge.vector, wiped: knowledge.lifecycle.wiped)
            circumstances.side = .asked(disputed: disputed)
            circumstances.isAhead = mayHold && dataset.holds(record, beside: local, knowledge)
            if isPart, !knowledge.forgotten.isEmpty, knowledge.isNothing(local) {
                circumstances.unmet = try dataset.unmet(by: record, knowledge)
            }
            var outcome = Verdict(on: record, beside: local, circumstances).outcome
            if case .hold(let otherwise) = outcome {
                if try hold(record, of: dataset, in: &plan) { continue }
                outcome = otherwise
            }
            switch outcome {
            case .ignore, .confirmed, .hold:
                break
            case .dead:
                // The asker finds that there is nothing of it when it asks about the conflict.
                if !record.isDeleted { conflicts.append(record.key) }
            case .adopt(let write, _):
                plan.batch.writes.append(write)
            case .outlive(let write), .rebury(let write):
                plan.batch.writes.append(write)
                plan.hasRenewed = true
            case .settle where store.has(.applyConflictUnasked):
                plan.batch.writes.append(
                    ReplicatedWrite(
                        key: record.key,
                        content: .adopt(value: record.value, version: record.version),
                        expected: local?.version))
            case .settle, .renew:
                conflicts.append(record.key)
            }
        }
        return conflicts
    }

    /// Writes anew what lies here of keys under a disputed id, so that the asker can settle it; of
    /// many large ones some, the rest being in conflict again with the asker's next attempt.
    ///
    /// What it has settled descends from just what is sure, and so is in conflict with a version
    /// under a dot that may name another write, however often it pulls and settles that. Under a
    /// dot of our own it is a version like any other.
    private func renew(
        _ keys: [[UInt8]], in dataset: Dataset, _ disputed: [ReplicaID], _ plan: inout Plan
    ) throws(StoreError) {
        guard !disputed.isEmpty else { return }
        var bytes = 0
        for key in keys where bytes < limits.renewedBytesMax {
            guard let local = try dataset.storedRecord(for: key), !local.isDropped,
                disputed.contains(local.version.dot.replica)
            else { continue }
            bytes += key.count + (local.value?.count ?? 0)
            let sure = disputed.reduce(local.version.vector) { $0.removing($1) }
            plan.batch.writes.append(local.rewritten(seen: sure, over: local.version))
            plan.hasRenewed = true
        }
    }

    /// Notes a record of a page as held.
    ///
    /// - Returns: false if it cannot be.
    private func hold(
        _ record: Record, of dataset: Dataset, in plan: inout Plan
    ) throws(StoreError) -> Bool {
        let book = try QuarantineBook(dataset)
        guard let note = try book.note(holding: record) else {
            return try book.holds(record)
        }
        plan.batch.notes.append(note)
        return true
    }

    func dataset(_ name: String, creating: Bool) throws(SyncError) -> Dataset {
        try engine(name) { () throws(StoreError) in
            guard let dataset = try store.datasetForSync(name, creating: creating) else {
                throw StoreError(
                    .datasetNotFound,
                    "the peer has no dataset \(name); repeat the exchange to create it there")
            }
            return dataset
        }
    }
}
