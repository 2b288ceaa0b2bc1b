import Tidemark

// What a replica that has nothing of a dataset asks for: first which blocks of the responder's
// sealed segments hold it, then these blocks as they lie there. And how an asker hands the same to
// a responder that has nothing: first the offer, then the blocks, then that this was all. Messages
// hold no more than one
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

/// Offers a dataset to a responder that has nothing of it.
struct SegmentsPushRequest: Hashable, Sendable {
    var address: Address
    var offer: SegmentOffer
    /// The newest known of each replica, in the order of the replicas.
    var batons: [Baton]
}

struct SegmentsPushAnswer: Hashable, Sendable {
    struct Wanted: Hashable, Sendable {
        var segment: UInt64
        var identity: UInt64
        /// The first block that is missing.
        var first: Int
    }

    /// What is to come, in this order; nil: it goes record by record.
    var wanted: [Wanted]?
}

/// Hands over some blocks of what was offered.
struct SegmentRangePushRequest: Hashable, Sendable {
    struct Range: Hashable, Sendable {
        var segment: UInt64
        var identity: UInt64
        var blocks: StoredBlocks
    }

    var address: Address
    /// The same as with the offer.
    var batons: [Baton]
    /// nil: all has come.
    var range: Range?
}

enum SegmentRangePushAnswer: Hashable, Sendable {
    /// - Parameter records: that came with the blocks.
    case taken(records: Int)
    /// It goes record by record.
    case refused
    /// It is there.
    case installed(records: Int, PeerKnowledge)
}

extension SegmentsAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain { $0.putFlag(offer != nil) }
        offer?.write(to: &writer, batons)
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        guard try reader.takeFlag() else { return }
        let (offer, batons) = try SegmentOffer.taken(from: &reader)
        (self.offer, self.batons) = (offer, batons)
    }
}

extension SegmentOffer {
    fileprivate func write(to writer: inout VersionWriter, _ batons: [Baton]) {
        writer.plain { $0.putVarint(UInt64(dataset)) }
        var told = PeerKnowledge(knowledge)
        told.batons = batons
        writer.putKnowledge(told)
        writer.putVector(outstanding)
        writer.plain {
            $0.putVarint(expiredThrough)
            $0.putVarint(wipedTime)
            $0.putVarint(collectedThrough)
            $0.putVarint(wholeFrom)
            $0.putVarint(wholeFromTime)
            $0.putCount(runs.count)
            for run in runs {
                $0.putCount(run.count)
                for segment in run { segment.write(to: &$0) }
            }
        }
    }

    fileprivate static func taken(
        from reader: inout VersionReader
    ) throws(SyncError) -> (SegmentOffer, [Baton]) {
        let dataset = try reader.plain { reader throws(SyncError) in
            let number = try reader.takeVarint()
            guard number > 0, number <= UInt64(UInt32.max) else {
                throw reader.failure("\(number) is no number of a dataset")
            }
            return UInt32(number)
        }
        let told = try reader.takeKnowledge()
        let knowledge = DatasetKnowledge(told)
        let outstanding = try reader.takeVector()
        let offer = try reader.plain { reader throws(SyncError) in
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
        return (offer, told.batons)
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
            blocks?.write(to: &$0)
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        guard try reader.takeFlag() else { return }
        blocks = try reader.plain { reader throws(SyncError) in
            try StoredBlocks(from: &reader)
        }
    }
}

extension SegmentsPushRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        offer.write(to: &writer, batons)
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        (offer, batons) = try SegmentOffer.taken(from: &reader)
    }
}

extension SegmentsPushAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            $0.putFlag(wanted != nil)
            guard let wanted else { return }
            $0.putCount(wanted.count)
            for part in wanted {
                $0.putVarint(part.segment)
                $0.putFixed(part.identity)
                $0.putCount(part.first)
            }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        guard try reader.takeFlag() else { return }
        wanted = try reader.plain { reader throws(SyncError) in
            let count = try reader.takeCount(
                of: "parts", bytesEach: 10, max: Limits.offeredSegmentsMax)
            var wanted: [Wanted] = []
            for _ in 0..<count {
                wanted.append(
                    Wanted(
                        segment: try reader.takeVarint(),
                        identity: try reader.takeFixed(UInt64.self),
                        first: try reader.takeNumber()))
            }
            return wanted
        }
    }
}

extension SegmentRangePushRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.putBatons(batons)
        writer.plain {
            $0.putFlag(range != nil)
            guard let range else { return }
            $0.putVarint(range.segment)
            $0.putFixed(range.identity)
            range.blocks.write(to: &$0)
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        batons = try reader.takeBatons()
        range = try reader.plain { reader throws(SyncError) -> Range? in
            guard try reader.takeFlag() else { return nil }
            return Range(
                segment: try reader.takeVarint(), identity: try reader.takeFixed(UInt64.self),
                blocks: try StoredBlocks(from: &reader))
        }
    }
}

extension SegmentRangePushAnswer {
    func write(to writer: inout VersionWriter) {
        switch self {
        case .taken(let records): writer.plain { $0.put(form: 0, count: records) }
        case .refused: writer.plain { $0.put(form: 1, count: 0) }
        case .installed(let records, let knowledge):
            writer.plain { $0.put(form: 2, count: records) }
            writer.putKnowledge(knowledge)
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        let (form, records) = try reader.plain { reader throws(SyncError) in
            (try reader.takeNumber(), try reader.takeNumber())
        }
        switch form {
        case 0: self = .taken(records: records)
        case 1: self = .refused
        case 2: self = .installed(records: records, try reader.takeKnowledge())
        default: throw .badMessage("\(form) is no answer to blocks")
        }
    }
}

extension ByteWriter {
    fileprivate mutating func put(form: UInt64, count: Int) {
        putVarint(form)
        putCount(count)
    }
}

extension StoredBlocks {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.putCount(next)
        writer.putBytes(bytes)
    }

    fileprivate init(from reader: inout ByteReader) throws(SyncError) {
        let next = try reader.takeNumber()
        self.init(
            bytes: try reader.takeBytes("blocks", max: SyncLimits.messageBytesMax), next: next)
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
