import Tidemark

// How two replicas without a common checkpoint find out where they differ, without telling each
// other what they have in common.
//
// The asker claims the sum over a range of keys. The responder answers that it has the same, or
// the sums of up to 16 parts of the range, or, if there are few records, which they are. The asker
// compares the parts with its own records, cuts those that differ into parts of their own, and
// claims these. So each message goes two steps deeper, and what is equal is left behind: d
// differences among n records cost O(d log n) bytes. (Meyer: "Range-Based Set Reconciliation",
// 2023; the sums are those of Clarke et al.: "Incremental Multiset Hash Functions", 2003, without
// their guard against whoever makes up records on purpose: he could as well give false sums.)
//
// Both sides may write meanwhile. The asker compares with one moment of its own. What the responder
// finds is of the moment of each answer: of a record that it has changed since the first one it
// tells what it has now, and tells the change again in the pull that follows.

/// The asking side of one search. Knows nothing of messages.
struct DifferenceSearch {
    private let sums: RecordSums
    /// In the order of their keys: to be asked for.
    private var due: ArraySlice<RangeClaim>
    /// Parts of ranges that differ, for when all of those were asked for.
    private var next: [RangeClaim] = []
    private var foundTheirs: [[UInt8]] = []
    private var foundOurs: [[UInt8]] = []
    private var rangeCount = 1
    /// Whether so much differs that to ask for everything is better.
    private(set) var isTooMuch = false

    init(_ sums: RecordSums) {
        self.sums = sums
        due = [RangeClaim(range: .all, sum: sums.total)]
    }

    /// The keys of records that the responder has and the asker has not, or at another version, in
    /// their order.
    var theirs: [[UInt8]] { foundTheirs.sorted { $0.lexicographicallyPrecedes($1) } }

    /// The keys of records that the asker has and the responder has not, or at another version, in
    /// their order.
    var ours: [[UInt8]] { foundOurs.sorted { $0.lexicographicallyPrecedes($1) } }

    /// What to ask next; nil at the end. The same again until it is answered.
    mutating func claims() -> [RangeClaim]? {
        if due.isEmpty {
            due = next[...]
            next = []
        }
        var claims: [RangeClaim] = []
        var bytes = 0
        for claim in due.prefix(SyncLimits.comparedRangesMax) {
            bytes += (claim.range.lowerBound?.count ?? 0) + (claim.range.upperBound?.count ?? 0)
            guard claims.isEmpty || bytes <= SyncLimits.comparedBytesMax else { break }
            claims.append(claim)
        }
        return claims.isEmpty ? nil : claims
    }

    /// - Parameters:
    ///   - findings: for the first of the claims, one each. They fit them.
    ///   - claims: what ``claims()`` gave last.
    mutating func take(
        _ findings: [RangeFinding], for claims: [RangeClaim]
    ) throws(StoreError) {
        due = due.dropFirst(findings.count)
        for (finding, claim) in zip(findings, claims) where !isTooMuch {
            switch finding {
            case .equal: continue
            case .parts(let parts): try compare(parts, of: claim.range)
            case .records(let marks): try compare(marks, in: claim)
            }
        }
    }

    private mutating func compare(
        _ parts: [RangePart], of range: KeyRange
    ) throws(StoreError) {
        var lowerBound = range.lowerBound
        // At least so many records differ.
        var difference = 0
        for part in parts {
            let piece = KeyRange(from: lowerBound, upTo: part.upperBound ?? range.upperBound)
            lowerBound = part.upperBound
            let sum = try sums.sum(of: piece)
            guard sum != part.sum else { continue }
            difference += abs(sum.count - part.sum.count)
            guard difference <= SyncLimits.differingKeysMax else {
                isTooMuch = true
                return
            }
            try pursue(RangeClaim(range: piece, sum: sum), theirs: part.sum.count)
        }
    }

    /// Goes after what differs in a range.
    private mutating func pursue(
        _ claim: RangeClaim, theirs count: Int
    ) throws(StoreError) {
        let fewMax = SyncLimits.rangeRecordsMax
        if count == 0 {
            try compare([], in: claim)
        } else if claim.sum.count <= fewMax || count <= fewMax {
            add(claim)
        } else {
            var lowerBound = claim.range.lowerBound
            for part in try sums.parts(of: claim.range, countMax: SyncLimits.rangePartsMax) {
                let upperBound = part.upperBound ?? claim.range.upperBound
                add(
                    RangeClaim(
                        range: KeyRange(from: lowerBound, upTo: upperBound), sum: part.sum))
                lowerBound = part.upperBound
            }
        }
    }

    private mutating func add(_ claim: RangeClaim) {
        rangeCount += 1
        isTooMuch = isTooMuch || rangeCount > SyncLimits.searchedRangesMax
        next.append(claim)
    }

    /// - Parameter theirs: all that the responder has in the range.
    private mutating func compare(
        _ theirs: [RecordMark], in claim: RangeClaim
    ) throws(StoreError) {
        guard note(claim.sum.count - theirs.count) else { return }
        let ours = try sums.marks(in: claim.range) ?? []
        var (mine, other) = (ours[...], theirs[...])
        while true {
            switch (mine.first, other.first) {
            case (nil, nil):
                _ = note(0)
                return
            case (let left?, let right?) where left.key == right.key:
                if left.mark != right.mark {
                    foundOurs.append(left.key)
                    foundTheirs.append(left.key)
                }
                mine.removeFirst()
                other.removeFirst()
            case (let left?, let right?) where left.key.lexicographicallyPrecedes(right.key):
                foundOurs.append(left.key)
                mine.removeFirst()
            case (let left?, nil):
                foundOurs.append(left.key)
                mine.removeFirst()
            case (_, let right?):
                foundTheirs.append(right.key)
                other.removeFirst()
            }
        }
    }

    /// Returns whether there is room for so many more differences.
    private mutating func note(_ more: Int) -> Bool {
        let count = foundTheirs.count + foundOurs.count + max(0, more)
        isTooMuch = isTooMuch || count > SyncLimits.differingKeysMax
        return !isTooMuch
    }
}

extension RangeFinding {
    /// What the answering side says to a claim.
    init(_ claim: RangeClaim, by sums: RecordSums) throws(StoreError) {
        let sum = try sums.sum(of: claim.range)
        guard sum != claim.sum else {
            self = .equal
            return
        }
        // Where the asker has nothing it lacks all of them.
        let listedMax =
            claim.sum.count == 0 ? SyncLimits.listedRecordsMax : SyncLimits.rangeRecordsMax
        if sum.count <= listedMax,
            let marks = try sums.marks(
                in: claim.range, keyBytesMax: 2 * SyncLimits.comparedBytesMax + 1 << 16)
        {
            self = .records(marks)
            return
        }
        self = .parts(try sums.parts(of: claim.range, countMax: SyncLimits.rangePartsMax))
    }

    /// Whether it can be an answer to a claim about the range.
    func fits(_ range: KeyRange) -> Bool {
        switch self {
        case .equal: true
        case .parts(let parts):
            parts.allSatisfy { part in
                part.upperBound.map { bound in
                    range.contains(bound) && bound != range.lowerBound
                } ?? true
            }
        case .records(let marks): marks.allSatisfy { range.contains($0.key) }
        }
    }
}
