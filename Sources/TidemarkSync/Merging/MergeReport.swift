public import Tidemark

/// What a merge of two versions could not keep. Merges that kept everything make no report.
public struct MergeReport: Hashable, Sendable {
    /// The side of a conflict, as the store sees it that settled it.
    public enum Side: String, Hashable, Sendable {
        case local, remote
    }

    /// Something that was written on one side and is not in the outcome.
    public struct Lost: Hashable, Sendable {
        /// Where; ``JSONPath/whole`` for the record itself.
        public let path: JSONPath
        /// Who wrote it.
        public let side: Side
        /// What was written; nil if it was a removal, or if ``isLeftOut``.
        public let value: JSONValue?
        /// Whether the value is left out of the report: it takes more than
        /// ``SyncLimits/lostValueBytesMax`` bytes, or is no JSON. Both versions stay in the
        /// history of the store as long as that is kept.
        public let isLeftOut: Bool
    }

    public let key: [UInt8]
    /// The write of this side that was merged.
    public let local: Dot
    /// The write of the other side that was merged.
    public let remote: Dot
    /// The first ``SyncLimits/lostFieldsMax`` of what lost, in the order of the document.
    public let lost: [Lost]
    /// All that lost.
    public let lostCount: Int
    /// Why the two could not be merged at all, so that the later one stayed as a whole; nil if
    /// they could.
    public let obstacle: String?
}

/// Puts a report together within its bounds.
struct MergeNotes {
    private(set) var lost: [MergeReport.Lost] = []
    private(set) var lostCount = 0
    var obstacle: String?

    mutating func note(
        _ value: JSONValue?, of side: MergeReport.Side, at names: [String]
    ) {
        lostCount += 1
        guard lost.count < SyncLimits.lostFieldsMax else { return }
        let isLeftOut = (value?.encoded.count ?? 0) > SyncLimits.lostValueBytesMax
        lost.append(
            MergeReport.Lost(
                path: JSONPath(names), side: side, value: isLeftOut ? nil : value,
                isLeftOut: isLeftOut))
    }

    /// A whole record lost whose value is not shown.
    mutating func noteWhole(of side: MergeReport.Side, isRemoval: Bool) {
        lostCount += 1
        lost.append(
            MergeReport.Lost(path: .whole, side: side, value: nil, isLeftOut: !isRemoval))
    }

    func report(on conflict: Conflict) -> MergeReport? {
        guard lostCount > 0 || obstacle != nil else { return nil }
        return MergeReport(
            key: conflict.key, local: conflict.local.version.dot,
            remote: conflict.remote.version.dot, lost: lost, lostCount: lostCount,
            obstacle: obstacle)
    }
}

/// What a built-in merge comes to.
enum MergeDecision: Hashable {
    /// The later version as it is, with its own dot.
    case later
    case keep(MergeReport.Side)
    case value([UInt8])
    case delete
}
