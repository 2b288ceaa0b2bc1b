import Tidemark

// What two replicas without a common checkpoint ask each other to find out where they differ: sums
// over ranges of keys, and then the records of the keys that were found.

/// What the asker says of itself with each of these requests, as with a pull.
struct AskerClaims: Hashable, Sendable {
    /// What the asker has seen.
    var vector: VersionVector
    /// The newest known to the asker of each replica, in the order of the replicas.
    var batons: [Baton] = []
    /// The responder's disputed ids, as the asker knows of them.
    var disputed: [ReplicaID] = []
    /// What either of the two has forgotten, and both have seen: of tombstones that had seen no
    /// more than this neither speaks.
    var forgotten = VersionVector()
}

/// A range of keys and what the sender has in it.
struct RangeClaim: Hashable, Sendable {
    var range: KeyRange
    var sum: RecordsSum
}

/// Asks whether the responder has the same in these ranges.
struct ReconcileRequest: Hashable, Sendable {
    var address: Address
    var asker: AskerClaims
    /// In the order of their keys; no two have a key in common, and none is empty.
    var ranges: [RangeClaim]
}

/// What the responder has in a range.
enum RangeFinding: Hashable, Sendable {
    /// The same.
    case equal
    /// Something else, as the sums of its parts say: 2 or more, which together are the range.
    case parts([RangePart])
    /// These, in the order of their keys.
    case records([RecordMark])
}

struct ReconcileAnswer: Hashable, Sendable {
    /// Of the moment of which the findings are.
    var knowledge: PeerKnowledge
    /// For each range in its turn; what is left of the ranges is to be asked for again.
    var findings: [RangeFinding]
}

/// Asks for records by their keys.
struct FetchRequest: Hashable, Sendable {
    var address: Address
    var asker: AskerClaims
    /// In their order, none twice.
    var keys: [[UInt8]]
    var bytesMax: Int
}

struct FetchAnswer: Hashable, Sendable {
    /// For so many of the keys, from the first on, the page has what there is.
    var lookedAt: Int
    /// It moves no position and is never the last one.
    var page: RecordPage
}

extension AskerClaims {
    fileprivate func write(to writer: inout VersionWriter) {
        writer.putVector(vector)
        writer.putBatons(batons)
        writer.putReplicas(disputed)
        writer.putVector(forgotten)
    }

    fileprivate init(from reader: inout VersionReader) throws(SyncError) {
        vector = try reader.takeVector()
        batons = try reader.takeBatons()
        disputed = try reader.takeReplicas()
        forgotten = try reader.takeVector()
    }
}

extension ReconcileRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        asker.write(to: &writer)
        writer.plain {
            var keys = KeyWriter()
            $0.putCount(ranges.count)
            for claim in ranges {
                keys.put(claim.range.lowerBound ?? [], to: &$0)
                $0.putFlag(claim.range.upperBound != nil)
                if let upperBound = claim.range.upperBound { keys.put(upperBound, to: &$0) }
                claim.sum.write(to: &$0)
            }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        asker = try AskerClaims(from: &reader)
        ranges = try reader.plain { reader throws(SyncError) in
            var keys = KeyReader()
            var ranges: [RangeClaim] = []
            let count = try reader.takeCount(
                of: "ranges", bytesEach: 20, max: SyncLimits.comparedRangesMax)
            for _ in 0..<count {
                let claim = try RangeClaim(from: &reader, &keys)
                guard !claim.range.isEmpty, claim.range.follows(ranges.last?.range) else {
                    throw reader.failure("ranges are not in order")
                }
                ranges.append(claim)
            }
            return ranges
        }
    }
}

extension RangeClaim {
    fileprivate init(
        from reader: inout ByteReader, _ keys: inout KeyReader
    ) throws(SyncError) {
        let lowerBound = try keys.take(from: &reader)
        let upperBound = try reader.takeFlag() ? try keys.take(from: &reader) : nil
        range = KeyRange(from: lowerBound.isEmpty ? nil : lowerBound, upTo: upperBound)
        sum = try RecordsSum(from: &reader)
    }
}

extension KeyRange {
    /// Whether it begins where another one ends, or after it.
    fileprivate func follows(_ other: KeyRange?) -> Bool {
        guard let other else { return true }
        guard let end = other.upperBound, let lowerBound else { return false }
        return !lowerBound.lexicographicallyPrecedes(end)
    }
}

extension RecordsSum {
    fileprivate static let byteCountMin = 17

    fileprivate func write(to writer: inout ByteWriter) {
        writer.putCount(count)
        writer.putFixed(digest.high)
        writer.putFixed(digest.low)
    }

    fileprivate init(from reader: inout ByteReader) throws(SyncError) {
        let count = try reader.takeVarint()
        guard count <= 1 << 48 else { throw reader.failure("\(count) is too large") }
        let high = try reader.takeFixed(UInt64.self)
        self.init(
            count: Int(count),
            digest: ConvergenceDigest(high: high, low: try reader.takeFixed(UInt64.self)))
    }
}

extension ReconcileAnswer {
    func write(to writer: inout VersionWriter) {
        writer.putKnowledge(knowledge)
        writer.plain {
            var keys = KeyWriter()
            $0.putCount(findings.count)
            for finding in findings { finding.write(to: &$0, &keys) }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        knowledge = try reader.takeKnowledge()
        findings = try reader.plain { reader throws(SyncError) in
            var keys = KeyReader()
            var findings: [RangeFinding] = []
            let count = try reader.takeCount(of: "findings", max: SyncLimits.comparedRangesMax)
            for _ in 0..<count {
                findings.append(try RangeFinding(from: &reader, &keys))
            }
            return findings
        }
    }
}

extension RangeFinding {
    fileprivate func write(to writer: inout ByteWriter, _ keys: inout KeyWriter) {
        switch self {
        case .equal:
            writer.put(0)
        case .parts(let parts):
            writer.put(1)
            writer.putCount(parts.count)
            for part in parts {
                if let upperBound = part.upperBound { keys.put(upperBound, to: &writer) }
                part.sum.write(to: &writer)
            }
        case .records(let marks):
            writer.put(2)
            writer.putCount(marks.count)
            for mark in marks {
                keys.put(mark.key, to: &writer)
                writer.putFixed(mark.mark)
            }
        }
    }

    fileprivate init(
        from reader: inout ByteReader, _ keys: inout KeyReader
    ) throws(SyncError) {
        switch try reader.takeByte() {
        case 0:
            self = .equal
        case 1:
            let count = try reader.takeCount(
                of: "parts", bytesEach: RecordsSum.byteCountMin, max: SyncLimits.rangePartsMax)
            guard count >= 2 else { throw reader.failure("a range has \(count) parts") }
            var parts: [RangePart] = []
            for index in 0..<count {
                // The last one ends with the range.
                let upperBound =
                    try index < count - 1
                    ? keys.take(after: parts.last?.upperBound, from: &reader) : nil
                parts.append(
                    RangePart(upperBound: upperBound, sum: try RecordsSum(from: &reader)))
            }
            self = .parts(parts)
        case 2:
            let count = try reader.takeCount(
                of: "records", bytesEach: 10, max: SyncLimits.listedRecordsMax)
            var marks: [RecordMark] = []
            for _ in 0..<count {
                let key = try keys.take(after: marks.last?.key, from: &reader)
                marks.append(RecordMark(key: key, mark: try reader.takeFixed(UInt64.self)))
            }
            self = .records(marks)
        case let other:
            throw reader.failure("\(other) is no finding")
        }
    }

    /// Bytes of the keys in it, and of everything else about as many as they take in a message.
    var byteCount: Int {
        switch self {
        case .equal: 1
        case .parts(let parts):
            parts.reduce(2) { $0 + ($1.upperBound?.count ?? 0) + RecordsSum.byteCountMin }
        case .records(let marks): marks.reduce(2) { $0 + $1.key.count + 10 }
        }
    }
}

extension FetchRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        asker.write(to: &writer)
        writer.plain {
            $0.putCount(bytesMax)
            var coded = KeyWriter()
            $0.putCount(keys.count)
            for key in keys { coded.put(key, to: &$0) }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        asker = try AskerClaims(from: &reader)
        bytesMax = try reader.takeNumber(max: SyncLimits.pageBytesMax)
        keys = try reader.plain { reader throws(SyncError) in
            var coded = KeyReader()
            var keys: [[UInt8]] = []
            let count = try reader.takeCount(
                of: "keys", bytesEach: 2, max: SyncLimits.pageRecordsMax)
            for _ in 0..<count {
                keys.append(try coded.take(after: keys.last, from: &reader))
            }
            return keys
        }
    }
}

extension FetchAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain { $0.putCount(lookedAt) }
        writer.putPage(page)
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        lookedAt = try reader.takeNumber(max: SyncLimits.pageRecordsMax)
        page = try reader.takePage()
    }
}
