import Tidemark

// A dataset for a replica that has nothing of it, as it lies in the sealed segments.
//
// What is sealed is durable, so it may leave without more ado. Nothing is kept between requests:
// each names its segment, and whether that is still there is found out each time.

extension SyncResponder {
    func answer(to request: SegmentsRequest) throws(SyncError) -> SegmentsAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        guard limits.segmentBytesMin < .max, request.address.from != .nobody else {
            return SegmentsAnswer(offer: nil)
        }
        return try engine(dataset.name) { () throws(StoreError) in
            try dataset.segmentsAnswer(for: request.address.from, bytesMin: limits.segmentBytesMin)
        }
    }

    func answer(to request: SegmentRangeRequest) throws(SyncError) -> SegmentRangeAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        guard limits.segmentBytesMin < .max, request.address.from != .nobody else {
            return SegmentRangeAnswer(blocks: nil)
        }
        return try engine(dataset.name) { () throws(StoreError) in
            SegmentRangeAnswer(
                blocks: try dataset.storedBlocks(
                    of: request.segment, identity: request.identity, from: request.first,
                    countMax: request.count,
                    bytesMax: min(request.bytesMax, SyncLimits.segmentRangeBytesMax)))
        }
    }
}

extension Dataset {
    /// What a replica that has nothing of the dataset may take over as it lies here.
    ///
    /// - Parameter bytesMin: of stored blocks; less goes record by record.
    func segmentsAnswer(
        for peer: ReplicaID, bytesMin: Int
    ) throws(StoreError) -> SegmentsAnswer {
        // What lies under a disputed id is to be compared, and what is held lies elsewhere.
        guard try BatonBook(self).disputed.isEmpty, try QuarantineBook(self).isEmpty()
        else { return SegmentsAnswer(offer: nil) }
        try noteThatThereIs(peer)
        let offer = try segmentOffer(bytesMin: UInt64(bytesMin))
        guard let offer, offer.runs.joined().count <= Tidemark.Limits.offeredSegmentsMax,
            offer.runs.joined().reduce(0, { $0 + $1.tables.count })
                <= SyncLimits.segmentTablesBytesMax
        else { return SegmentsAnswer(offer: nil) }
        // As of the offer's moment the vector may claim what was held then.
        guard try QuarantineBook(self).admittedThrough() <= offer.knowledge.syncCount else {
            return SegmentsAnswer(offer: nil)
        }
        let told = try told(offer.knowledge)
        try store.sync()
        return SegmentsAnswer(offer: offer, batons: told.batons)
    }

    /// That there is a peer must be known before it has anything, as with a pull.
    func noteThatThereIs(_ peer: ReplicaID) throws(StoreError) {
        guard !store.options.isReadOnly else { return }
        try remember(try checkpoint(for: peer), of: peer)
        try store.sync()
    }
}
