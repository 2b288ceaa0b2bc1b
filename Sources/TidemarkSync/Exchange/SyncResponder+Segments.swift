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
        return try engine(dataset.name) { () throws(StoreError) -> SegmentsAnswer in
            // What lies under a disputed id is to be compared, and what is held lies elsewhere.
            guard try BatonBook(dataset).disputed.isEmpty, try QuarantineBook(dataset).isEmpty()
            else { return SegmentsAnswer(offer: nil) }
            try remember(request.address.from, dataset)
            let offer = try dataset.segmentOffer(bytesMin: UInt64(limits.segmentBytesMin))
            guard let offer, offer.runs.joined().count <= Tidemark.Limits.offeredSegmentsMax,
                offer.runs.joined().reduce(0, { $0 + $1.tables.count })
                    <= SyncLimits.segmentTablesBytesMax
            else { return SegmentsAnswer(offer: nil) }
            // As of the offer's moment the vector may claim what was held then.
            guard try QuarantineBook(dataset).admittedThrough() <= offer.knowledge.syncCount else {
                return SegmentsAnswer(offer: nil)
            }
            let told = try dataset.told(offer.knowledge)
            try store.sync()
            return SegmentsAnswer(offer: offer, batons: told.batons)
        }
    }

    /// That there is the asker must be known before it has anything, as with a pull.
    func remember(_ asker: ReplicaID, _ dataset: Dataset) throws(StoreError) {
        guard !store.options.isReadOnly else { return }
        try dataset.remember(try dataset.checkpoint(for: asker), of: asker)
        try store.sync()
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
