import Tidemark

// What the answering side has to do with a fresh start: it says of which keys it holds nothing,
// buries what the asker has deleted and forgotten, and takes no page as long as either side lacks
// deletions that the other one has forgotten.

extension SyncResponder {
    func answer(to request: InquiryRequest) throws(SyncError) -> InquiryAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        guard let page = request.page.arrived else {
            throw .badMessage("an inquiry came without a message")
        }
        return try engine(dataset.name) { () throws(StoreError) in
            let isRemembered = request.address.from != .nobody
            // From now on the asker is waited for, so that no more is forgotten that it lacks.
            if isRemembered { try dataset.noteThatThereIs(request.address.from) }
            // What is held was seen, too, and is not among the records. Asked for twice, since a
            // write may be let in or come to be held in between.
            let book = try QuarantineBook(dataset)
            let heldBefore = try book.dots()
            let (numbers, knowledge) = try dataset.absent(in: page)
            let held = Set(try heldBefore + QuarantineBook(dataset).dots())
            let absent = numbers.filter { !held.contains(page.record(at: $0).version.dot) }
            var told = PeerKnowledge(knowledge)
            // What outlives there must not claim what is held here of its key, and comes later.
            let keys = Set(absent.map { page.key(at: $0) })
            told.forgotten = told.forgotten.before(try book.unforgotten(of: keys))
            // The asker deletes what was seen here, which must not be lost any more.
            if isRemembered { try store.syncBeforeSending() }
            return InquiryAnswer(absent: absent, knowledge: told)
        }
    }

    func answer(to request: BurialRequest) throws(SyncError) -> BurialAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        // Nobody has forgotten anything.
        guard request.address.from != .nobody else { return BurialAnswer(buried: 0) }
        try noteMoved(request.address, dataset)
        var dead = request.page.records
        if let observer {
            try engine(dataset.name) { () throws(StoreError) in
                try observer.willChange(dataset.name)
            }
        }
        defer { observer?.didChange(dataset.name) }
        return try engine(dataset.name) { () throws(StoreError) -> BurialAnswer in
            while true {
                var batch = ReplicationBatch()
                let book = try QuarantineBook(dataset)
                for record in dead {
                    try batch.bury(record.key, record.version, in: dataset)
                    for held in try book.records(of: record.version.dot, key: record.key) {
                        batch.notes.append(try book.note(dropping: held))
                        // By its date, which is not believed, nothing else must be dated.
                        let seen = ForgottenDeletions(vector: held.version.vector)
                        batch.forgotten = batch.forgotten?.union(seen) ?? seen
                    }
                }
                let moved = Set(try dataset.replicate(batch))
                guard !moved.isEmpty else {
                    try store.sync()
                    return BurialAnswer(buried: batch.writes.count)
                }
                // What was written over is another write.
                dead.removeAll { moved.contains($0.key) }
            }
        }
    }

    /// Who stands behind a page that is pushed.
    ///
    /// - Parameter isPart: whether the asker keeps a part, and so claims little: its records are
    ///   judged one by one.
    func meeting(_ request: PushRequest, isPart: Bool = false) -> Meeting {
        let theirs = request.page.knowledge
        var meeting = Meeting(
            vector: theirs.vector.union(request.seen), forgotten: theirs.forgotten)
        meeting.isJudged = isPart
        meeting.settled = request.settled
        meeting.settledThrough = request.acknowledged
        return meeting
    }
}

extension Dataset {
    /// The deletions that a record may not have met of whose key there is nothing here but, maybe,
    /// what was forgotten: as one of who keeps a part, which is not told of all deletions, and of
    /// which no vector says what it missed. Nobody else tells it.
    func unmet(
        by arrived: Record, _ ours: DatasetKnowledge
    ) throws(StoreError) -> UnmetDeletions {
        let book = try QuarantineBook(self)
        let (key, dot) = (arrived.key, arrived.version.dot)
        return UnmetDeletions(
            forgotten: ours.forgotten.before(try book.unforgotten(of: [key], beside: dot)),
            ours: PeerKnowledge(ours), isHeld: try !book.records(of: dot, key: key).isEmpty,
            latestBelieved: store.latestBelieved)
    }
}

extension DatasetKnowledge {
    /// Whether of a key there is no more than a deletion that counts as forgotten, or the mark of a
    /// dropped record.
    func isNothing(_ local: Record?) -> Bool {
        guard let local else { return true }
        return local.isDropped || local.isDeleted && forgotten.covers(local.version)
    }
}

extension ReplicationBatch {
    /// Buries a record under its own version, which counts as forgotten from then on: so nobody is
    /// told of a deletion who had not been told already. Does nothing if another version is there.
    /// No value is read for it.
    mutating func bury(
        _ key: [UInt8], _ version: Version, in dataset: Dataset
    ) throws(StoreError) {
        guard let present = try dataset.storedVersion(of: key), present.version == version
        else { return }
        // By a date that is not believed nothing else must be dated.
        let time = dataset.store.isAhead(version) ? .zero : version.time
        let buried = ForgottenDeletions(vector: version.vector, time: time)
        forgotten = forgotten?.union(buried) ?? buried
        guard !present.isDeleted else { return }
        writes.append(
            ReplicatedWrite(
                key: key, content: .adopt(value: nil, version: version), expected: version))
    }
}
