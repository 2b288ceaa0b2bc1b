import Tidemark

// What a replica that has nothing of a dataset asks for: first which blocks of the responder's
// sealed segments hold it, then these blocks as they lie there. Answers hold no more than one
// dataset: of blocks that it shares with others only its own entries are sent, in blocks of their
// own, and of tables only what its own versions name.

/// Asks what of a dataset could be taken over as it lies.
struct SegmentsRequest: Hashable, Sendable {
    var address: Address
}

struct SegmentsAnswer: Hashable, Sendable {
    /// nil: it goes record by record.
    var offer: SegmentOffer?
    /// With an offer, the newest known of each replica, in the order of the replicas.
    var batons: [Baton] = []
}

/// Asks for some blocks of an offer.
struct SegmentRangeRequest: Hashable, Sendable {
    var address: Address
    var segment: UInt64
    var identity: UInt64
    /// 0 for the first block of the dataset in the segment.
    var first: Int
    /// As many as this at most, and at least one.
    var count: Int
    var bytesMax: Int
}

struct SegmentRangeAnswer: Hashable, Sendable {
    /// nil: the segment is gone.
    var blocks: StoredBlocks?
}

extension SegmentsAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain { $0.putFlag(offer != nil) }
        guard let offer else { return }
        writer.plain { $0.putVarint(UInt64(offer.dataset)) }
        var knowledge = PeerKnowledge(offer.knowledge)
        knowledge.batons = batons
        writer.putKnowledge(knowledge)
        writer.putVector(offer.outstanding)
        writer.plain {
            $0.putVarint(offer.expiredThrough)
            $0.putVarint(offer.wipedTime)
            $0.putVarint(offer.collectedThrough)
            $0.putVarint(offer.wholeFrom)
            $0.putVarint(offer.wholeFromTime)
            $0.putCount(offer.runs.count)
            for run in offer.runs {
                $0.putCount(run.count)
                for segment in run { segment.write(to: &$0) }
            }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        guard try reader.takeFlag() else { return }
        let dataset = try reader.plain { reader throws(SyncError) in
            let number = try reader.takeVarint()
            guard number > 0, number <= UInt64(UInt32.max) else {
                throw reader.failure("\(number) is no number of a dataset")
            }
            return UInt32(number)
        }
        let told = try reader.takeKnowledge()
        batons = told.batons
        let knowledge = DatasetKnowledge(told)
        let outstanding = try reader.takeVector()
        offer = try reader.plain { reader throws(SyncError) in
            var offer = SegmentOffer(
                dataset: dataset, knowledge: knowledge, outstanding: outstanding,
                expiredThrough: try reader.takeVarint(), wipedTime: try reader.takeVarint(),
                collectedThrough: try reader.takeVarint(), wholeFrom: try reader.takeVarint(),
                wholeFromTime: try reader.takeVarint(), runs: [])
            var segmentsLeft = Limits.offeredSegmentsMax
            var tablesLeft = SyncLimits.segmentTablesBytesMax
            for _ in 0..<(try reader.takeCount(of: "runs", bytesEach: 14, max: segmentsLeft)) {
                let count = try reader.takeCount(of: "segments", bytesEach: 13, max: segmentsLeft)
                segmentsLeft -= count
                var run: [SegmentOffer.Segment] = []
                for _ in 0..<count {
                    let segment = try SegmentOffer.Segment(from: &reader, tablesMax: tablesLeft)
                    tablesLeft -= segment.tables.count
                    run.append(segment)
                }
                offer.runs.append(run)
            }
            return offer
        }
    }
}

extension SegmentOffer.Segment {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.putVarint(number)
        writer.putFixed(identity)
        writer.putVarint(entryCount)
        writer.putCount(blockCount)
        writer.putVarint(byteCount)
        writer.putBytes(tables)
    }

    fileprivate init(from reader: inout ByteReader, tablesMax: Int) throws(SyncError) {
        self.init(
            number: try reader.takeVarint(), identity: try reader.takeFixed(UInt64.self),
            entryCount: try reader.takeVarint(), blockCount: try reader.takeNumber(),
            byteCount: try reader.takeVarint(),
            tables: try reader.takeBytes("tables", max: tablesMax))
    }
}

extension SegmentRangeRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.plain {
            $0.putVarint(segment)
            $0.putFixed(identity)
            $0.putCount(first)
            $0.putCount(count)
            $0.putCount(bytesMax)
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        (segment, identity) = try reader.plain { reader throws(SyncError) in
            (try reader.takeVarint(), try reader.takeFixed(UInt64.self))
        }
        (first, count, bytesMax) = try reader.plain { reader throws(SyncError) in
            (try reader.takeNumber(), try reader.takeNumber(), try reader.takeNumber())
        }
    }
}

extension SegmentRangeAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            $0.putFlag(blocks != nil)
            guard let blocks else { return }
            $0.putCount(blocks.next)
            $0.putBytes(blocks.bytes)
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        guard try reader.takeFlag() else { return }
        blocks = try reader.plain { reader throws(SyncError) in
            let next = try reader.takeNumber()
            let bytes = try reader.takeBytes("blocks", max: SyncLimits.messageBytesMax)
            return StoredBlocks(bytes: bytes, next: next)
        }
    }
}

extension ByteReader {
    /// A number that stands for itself and not for bytes that follow.
    fileprivate mutating func takeNumber() throws(SyncError) -> Int {
        let number = try takeVarint()
        guard number <= UInt64(UInt32.max) else { throw failure("\(number) is too large") }
        return Int(number)
    }
}

extension DatasetKnowledge {
    fileprivate init(_ knowledge: PeerKnowledge) {
        let lifecycle = knowledge.lifecycle
        self.init(
            vector: knowledge.vector, syncCount: knowledge.syncCount,
            lifecycle: DatasetLifecycle(
                isDeleted: lifecycle.isDeleted, wiped: lifecycle.wiped, time: lifecycle.time,
                replica: lifecycle.replica),
            forgotten: knowledge.forgotten)
    }
}
