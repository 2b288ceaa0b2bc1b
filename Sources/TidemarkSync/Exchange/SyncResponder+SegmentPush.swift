import Tidemark

// A dataset of which there is nothing here, as it lies in the sealed segments of an asker that has
// it: the same as what `SyncSession.bootstrap` takes from a responder, with the roles exchanged.
//
// What has come rests in the store between requests, as it does between two exchanges of an asker.
// Of several askers that hand over different datasets at once the one that comes last goes on so,
// and the others are told to go on record by record.

extension SyncResponder {
    func answer(to request: SegmentsPushRequest) throws(SyncError) -> SegmentsPushAnswer {
        let address = request.address
        try check(address)
        // Whoever may not hand over whatever it likes is looked at record by record.
        guard limits.quota == nil, validate == nil, limits.segmentBytesMin < .max,
            address.from != .nobody, request.offer.dataset <= SyncLimits.pushedDatasetNumberMax
        else { return SegmentsPushAnswer() }
        return try observed(address.dataset) { () throws(SyncError) in
            let dataset = try emptyDataset(address.dataset)
            try noteMoved(address, dataset)
            let theirs = request.offer.knowledge
            try checkForks(theirs.vector, request.batons, known: [], dataset, address)
            return try engine(dataset.name) { () throws(StoreError) in
                guard try dataset.canBeAdopted(), try QuarantineBook(dataset).isEmpty(),
                    let adoption = try dataset.beginAdoption(of: request.offer, from: address.from)
                else { return SegmentsPushAnswer() }
                defer { adoption.rest() }
                return SegmentsPushAnswer(
                    wanted: adoption.missing.map { part, first in
                        SegmentsPushAnswer.Wanted(
                            segment: part.number, identity: part.identity, first: first)
                    })
            }
        }
    }

    /// The dataset, made if there never was one: of one that was deleted here the asker hears when
    /// it goes on record by record.
    private func emptyDataset(_ name: String) throws(SyncError) -> Dataset {
        try refusePart(name)
        return try engine(name) { () throws(StoreError) in
            if let dataset = try store.datasetForSync(name, creating: false) { return dataset }
            return try store.dataset(name)
        }
    }

    func answer(to request: SegmentRangePushRequest) throws(SyncError) -> SegmentRangePushAnswer {
        let address = request.address
        try check(address)
        guard limits.quota == nil, validate == nil, address.from != .nobody else { return .refused }
        let dataset = try wholeDataset(address.dataset, creating: false)
        return try engine(dataset.name) { () throws(StoreError) in
            guard let adoption = dataset.resumeAdoption(from: address.from) else { return .refused }
            do throws(StoreError) {
                guard let range = request.range else {
                    return try install(adoption, request, dataset)
                }
                let records = try adoption.add(range)
                adoption.rest()
                return .taken(records: records)
            } catch {
                adoption.abandon()
                guard error.code == .invalidArgument else { throw error }
                return .refused
            }
        }
    }

    private func install(
        _ adoption: SegmentAdoption, _ request: SegmentRangePushRequest, _ dataset: Dataset
    ) throws(StoreError) -> SegmentRangePushAnswer {
        let asker = request.address.from
        var notes = try BatonBook(dataset).notes(taking: request.batons, settling: [])
        notes += try ArrivalLog(dataset, journal).notes(from: asker, .answered, exchange: nil)
        if let observer { try observer.willChange(dataset.name) }
        defer { observer?.didChange(dataset.name) }
        guard let records = try adoption.install(from: asker, notes: notes) else { return .refused }
        try store.sync()
        return .installed(records: records, PeerKnowledge(try dataset.knowledge()))
    }
}

extension SegmentAdoption {
    /// Takes blocks in. Those that have come before, as when an answer was lost, are taken again.
    ///
    /// - Returns: how many entries came with them.
    /// - Throws: `invalidArgument` if they are not what was offered; what writing throws.
    fileprivate func add(_ range: SegmentRangePushRequest.Range) throws(StoreError) -> Int {
        let part = offer.runs.joined().first {
            $0.number == range.segment && $0.identity == range.identity
        }
        guard let part else {
            throw StoreError(.invalidArgument, "blocks came of a segment that was not offered")
        }
        if has(part, through: range.blocks.next) { return 0 }
        return try add(range.blocks, of: part)
    }
}
