import Tidemark

// A dataset of which there is nothing here is taken over as it lies in the peer's sealed segments:
// no record is compared, since there is none to compare with, and no block is encoded anew.
//
//   offer ─▶ ranges of blocks, several at a time ─▶ all of it at once ─▶ ordinary pull from there
//     ▲                 │
//     └── segment gone ─┘
//
// Whenever a condition does not hold, or the peer's blocks are not what they must be, nothing has
// happened, and the pull that follows brings everything page by page. Cut off, what has come rests
// in the store, and the next exchange goes on with it, also when the store was closed meanwhile or
// its process has ended.

extension SyncSession {
    /// Takes over what the peer offers, if there is nothing here.
    func bootstrap(_ remote: PeerKnowledge) async throws(SyncError) {
        // A bound to the records of an exchange could not be kept, and nobody is given segments.
        guard
            try engine(dataset.name, { () throws(StoreError) in try dataset.canBeAdopted() }),
            options.adoptsSegments, options.validate == nil, !options.isDryRun,
            options.recordsPerRunMax == nil,
            doubts.isEmpty, positions.pull == .zero,
            remote.syncCount.rawValue >= SyncLimits.segmentChangesMin
        else { return }
        for round in 1...SyncLimits.segmentOffersMax {
            let request = SegmentsRequest(address: address)
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.segments(request, &traffic)
            }
            guard let offer = answer.offer else { return dataset.abandonAdoption() }
            let adoption = try engine(dataset.name) { () throws(StoreError) in
                try dataset.beginAdoption(of: offer, from: peer)
            }
            guard let adoption else { return }
            switch try await fetch(adoption) {
            case .complete: return try install(adoption, answer.batons)
            case .gone where round < SyncLimits.segmentOffersMax: adoption.rest()
            case .gone, .refused: return adoption.abandon()
            }
        }
    }

    private func install(
        _ adoption: SegmentAdoption, _ batons: [Baton]
    ) throws(SyncError) {
        do throws(StoreError) {
            var notes = try BatonBook(dataset).notes(taking: batons, settling: [])
            notes += try arrivalNotes(
                counts: (after: .zero, through: adoption.offer.knowledge.syncCount))
            guard let count = try adoption.install(from: peer, notes: notes) else { return }
            result.pulled += count
            result.adopted += count
            positions.pull = adoption.offer.knowledge.syncCount
            positions.adopted = positions.pull
        } catch {
            adoption.abandon()
            guard error.code == .invalidArgument else {
                throw SyncError(error, dataset: dataset.name)
            }
            return
        }
        try tellAdopted()
    }

    private enum Outcome {
        case complete
        /// A segment is no longer there.
        case gone
        /// The blocks are not what they must be.
        case refused
    }

    private typealias Fetched = (
        index: Int, blocks: Result<StoredBlocks?, SyncError>, traffic: PeerConnection.Traffic
    )

    /// Asks for everything that is missing, a few ranges at a time, and takes it in its order.
    private func fetch(_ adoption: SegmentAdoption) async throws(SyncError) -> Outcome {
        let ranges = ranges(of: adoption)
        let connection = connection
        let result = await withTaskGroup(of: Fetched.self) {
            group -> Result<Outcome, SyncError> in
            var started = 0
            var arrived: [Int: Fetched] = [:]
            for index in ranges.indices {
                while started < ranges.count, started - index < SyncLimits.segmentRangesAtOnce {
                    let (number, request) = (started, ranges[started].request)
                    group.addTask { await Self.fetch(number, request, connection) }
                    started += 1
                }
                while arrived[index] == nil, let next = await group.next() {
                    arrived[next.index] = next
                }
                guard let fetched = arrived.removeValue(forKey: index) else { break }
                let outcome: Result<Outcome?, SyncError>
                do throws(SyncError) {
                    outcome = .success(try await take(fetched, of: ranges[index], adoption))
                } catch {
                    outcome = .failure(error)
                }
                if case .success(nil) = outcome { continue }
                group.cancelAll()
                return outcome.map { $0 ?? .complete }
            }
            return .success(.complete)
        }
        if case .failure = result { adoption.rest() }
        return try result.get()
    }

    /// Runs beside others, so it touches nothing of the session.
    private static func fetch(
        _ index: Int, _ request: SegmentRangeRequest, _ connection: PeerConnection
    ) async -> Fetched {
        var traffic = PeerConnection.Traffic()
        do throws(SyncError) {
            return (index, .success(try await connection.segmentRange(request, &traffic)), traffic)
        } catch {
            return (index, .failure(error), traffic)
        }
    }

    private struct BlockRange {
        let part: SegmentOffer.Segment
        let request: SegmentRangeRequest
    }

    /// What is missing, cut into ranges of about the greatest size.
    private func ranges(of adoption: SegmentAdoption) -> [BlockRange] {
        let bytesMax = SyncLimits.segmentRangeBytesMax
        var ranges: [BlockRange] = []
        for (part, first) in adoption.missing {
            let blockBytes = max(1, part.byteCount / UInt64(part.blockCount))
            let count = max(1, bytesMax / Int(clamping: blockBytes))
            for start in stride(from: first, to: part.blockCount, by: count) {
                let request = SegmentRangeRequest(
                    address: address, segment: part.number, identity: part.identity,
                    first: start, count: min(count, part.blockCount - start), bytesMax: bytesMax)
                ranges.append(BlockRange(part: part, request: request))
            }
        }
        return ranges
    }

    /// Takes a range that has come, and asks for what did not fit into the answer. nil to go on.
    private func take(
        _ fetched: Fetched, of range: BlockRange, _ adoption: SegmentAdoption
    ) async throws(SyncError) -> Outcome? {
        var (_, answer, traffic) = fetched
        let end = range.request.first + range.request.count
        while true {
            result.bytesSent += traffic.sent
            result.bytesReceived += traffic.received
            guard let blocks = try answer.get() else { return .gone }
            let count: Int
            do throws(StoreError) {
                count = try adoption.add(blocks, of: range.part)
            } catch {
                guard error.code == .invalidArgument else {
                    adoption.abandon()
                    throw SyncError(error, dataset: dataset.name)
                }
                return .refused
            }
            report(.pulling, records: count)
            guard blocks.next < end else { return nil }
            var request = range.request
            request.first = blocks.next
            request.count = end - blocks.next
            (_, answer, traffic) = await Self.fetch(0, request, connection)
        }
    }
}
