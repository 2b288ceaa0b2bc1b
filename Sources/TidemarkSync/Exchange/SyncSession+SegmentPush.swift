import Tidemark

// A dataset of which the peer has nothing is handed over as it lies in the sealed segments here.
//
//   offer ─▶ what is missing there ─▶ ranges of blocks, one after the other ─▶ that was all
//
// Whenever a condition does not hold, or the peer cannot take it so, nothing has happened there,
// and the push that follows brings everything page by page. What is not sealed yet that push
// brings anyway.

extension SyncSession {
    /// Hands over what lies here, if the peer has nothing.
    func pushSegments() async throws(SyncError) {
        guard try mayPushSegments() else { return }
        let made = try engine(dataset.name) { () throws(StoreError) in
            try dataset.segmentsAnswer(for: peer, bytesMin: options.segmentBytesMin)
        }
        guard let offer = made.offer else { return }
        let request = SegmentsPushRequest(address: address, offer: offer, batons: made.batons)
        let wanted = try await counted { connection, traffic throws(SyncError) in
            try await connection.offerSegments(request, &traffic)
        }
        guard let wanted else { return }
        let parts = Dictionary(
            offer.runs.joined().map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
        for item in wanted {
            guard let part = parts[item.segment], part.identity == item.identity,
                item.first < part.blockCount
            else { throw .badMessage("the peer wants blocks that were not offered") }
            guard try await push(part, from: item.first, made.batons) else { return }
        }
        let last = SegmentRangePushRequest(address: address, batons: made.batons, range: nil)
        let answer = try await counted { connection, traffic throws(SyncError) in
            try await connection.pushSegmentRange(last, &traffic)
        }
        guard case .installed(let records, let knowledge) = answer else { return }
        remote = knowledge
        result.pushed += records
        try noteHandedOver(through: offer.knowledge.syncCount, knowledge)
    }

    /// Whether there may be much here, and nothing there, that nobody has to look at.
    private func mayPushSegments() throws(SyncError) -> Bool {
        guard options.adoptsSegments, !isOneWay, !options.isDryRun,
            options.recordsPerRunMax == nil, part == nil, late.freshStart == nil, !late.judgesPeer,
            doubts.isEmpty, waiting.withheld.isEmpty, positions.push == .zero,
            remote.map({ $0.syncCount == .zero && $0.vector.isEmpty }) ?? true
        else { return false }
        guard try !hasLeftOut() else { return false }
        return try syncCount().rawValue >= SyncLimits.segmentChangesMin
    }

    /// Hands over the blocks of a part of a segment.
    ///
    /// - Returns: false if the peer does not want them any more, or they are gone here.
    private func push(
        _ part: SegmentOffer.Segment, from first: Int, _ batons: [Baton]
    ) async throws(SyncError) -> Bool {
        var next = first
        while next < part.blockCount {
            let start = next
            let blocks = try engine(dataset.name) { () throws(StoreError) in
                try dataset.storedBlocks(
                    of: part.number, identity: part.identity, from: start,
                    countMax: part.blockCount - start,
                    bytesMax: SyncLimits.segmentRangeBytesMax)
            }
            guard let blocks else { return false }
            let request = SegmentRangePushRequest(
                address: address, batons: batons,
                range: SegmentRangePushRequest.Range(
                    segment: part.number, identity: part.identity, blocks: blocks))
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.pushSegmentRange(request, &traffic)
            }
            guard case .taken(let records) = answer else { return false }
            report(.pushing, records: records)
            next = blocks.next
        }
        return true
    }

    /// Both sides have the same up to a count, which means the same on either: there is nothing to
    /// be pulled up to there, nor to be pushed.
    private func noteHandedOver(
        through count: SyncCount, _ knowledge: PeerKnowledge
    ) throws(SyncError) {
        try engine(dataset.name) { () throws(StoreError) in
            var checkpoint = try dataset.checkpoint(for: peer)
            checkpoint.pulledThrough = max(checkpoint.pulledThrough, count)
            checkpoint.pushedThrough = max(checkpoint.pushedThrough, count)
            checkpoint.vector.formUnion(knowledge.vector)
            try dataset.remember(checkpoint, of: peer)
        }
        (positions.pull, positions.push) = (max(positions.pull, count), count)
        (positions.adopted, positions.acknowledged) = (count, count)
        try tellHandedOver(through: count)
    }
}
