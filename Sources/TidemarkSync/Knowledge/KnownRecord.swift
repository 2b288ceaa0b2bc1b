public import Tidemark

/// A record as somebody knew it who had seen just the writes of a version vector.
public struct KnownRecord: Hashable, Sendable {
    public let key: [UInt8]
    /// The newest version among those that are kept here and that the vector knows; nil if there is
    /// none. A tombstone has no value.
    public let record: Record?
    /// Whether it is certain: false if retention may have dropped a version here that the vector
    /// knew, too, and that was the one.
    public let isCertain: Bool

    /// nil if there was no live record, as far as it is known.
    public var value: [UInt8]? { record?.value }

    /// The value as text; nil if there is none or it is not UTF-8.
    public var valueText: String? { record?.valueText }

    /// The key as text; nil if it is not UTF-8.
    public var keyText: String? { String(validating: key, as: UTF8.self) }
}

/// What became of a record between two version vectors.
public struct KnownChange: Hashable, Sendable {
    public let key: [UInt8]
    public let before: KnownRecord
    public let after: KnownRecord

    /// Whether both are.
    public var isCertain: Bool { before.isCertain && after.isCertain }
}

// Which version a vector knew.
//
// A vector knows a version if it contains its dot. Of those that it knows, the one that the others
// are ancestors of is what its owner had; of concurrent ones, the one by last writer wins, since
// nothing says how the owner settled them (if it did by a write that came here, the vector knows
// that one, too).
//
// Retention drops a version only when another one has superseded it, and tells the greatest sync
// count at which one was that superseded a dropped one: the start S of the history. So of a key,
// everything after its last version up to S is kept. If the vector knows that version or a later
// one, what was dropped is older than what it had, and the answer is certain. It is uncertain if
// that version may be the other side of a conflict that was settled here, which stands in the
// history without having seen what stood there before it.

/// The versions of one key that are kept, newest first in the order of change here.
struct KeptVersions {
    let key: [UInt8]
    let versions: [Record]

    /// - Parameter start: from which sync count on everything is kept.
    func known(to vector: VersionVector, historyStart start: SyncCount) -> KnownRecord {
        var lead: Record?
        for version in versions where vector.contains(version.version.dot) {
            guard let other = lead else {
                lead = version
                continue
            }
            switch version.version.relation(to: other.version) {
            // The same write, before it was joined with another one.
            case .same, .descendant: lead = version
            case .ancestor: break
            case .concurrent:
                if version.version.isLater(than: other.version) { lead = version }
            }
        }
        return KnownRecord(
            key: key, record: lead, isCertain: isCertain(vector, historyStart: start))
    }

    private func isCertain(_ vector: VersionVector, historyStart start: SyncCount) -> Bool {
        guard start > .zero else { return true }
        let newestKnown = versions.firstIndex { vector.contains($0.version.dot) }
        guard let newestKnown else { return false }
        guard let last = versions.firstIndex(where: { $0.syncCount <= start }) else { return true }
        return newestKnown < last || newestKnown == last && !isHalfOfSettlement(last)
    }

    /// Whether a version may have been stored only to be merged with what was there: the next one
    /// follows at once, and is by another replica.
    private func isHalfOfSettlement(_ index: Int) -> Bool {
        guard index > 0 else { return false }
        let (next, version) = (versions[index - 1], versions[index])
        return next.version.dot.replica != version.version.dot.replica
            && next.syncCount.rawValue == version.syncCount.rawValue + 1
    }
}

/// Walks over the versions of all keys, a few keys at a time.
struct KeptVersionsWalk {
    private let dataset: Dataset
    private let keys: KeyCursor
    private var round: ArraySlice<KeptVersions> = []
    /// As of the last keys that were read. It only ever grows.
    private(set) var historyStart = SyncCount.zero

    init(_ dataset: Dataset, in range: KeyRange) throws(StoreError) {
        self.dataset = dataset
        keys = try dataset.keys(in: range, includingDeleted: true)
    }

    mutating func next() throws(StoreError) -> KeptVersions? {
        if round.isEmpty { try readRound() }
        return round.popFirst()
    }

    private mutating func readRound() throws(StoreError) {
        var read: [KeptVersions] = []
        while read.count < SyncLimits.keysWalkedAtOnce, let key = try keys.next() {
            read.append(KeptVersions(key: key, versions: try dataset.keptVersions(of: key)))
        }
        // Afterwards: what was dropped until then it speaks of.
        historyStart = try dataset.startOfWholeHistory()
        round = read[...]
    }
}

extension Dataset {
    /// The versions of a key that are kept, newest first. That one was let go here because it is
    /// outside of the part that is kept is no version.
    func keptVersions(of key: [UInt8]) throws(StoreError) -> [Record] {
        try storedVersions(of: key).filter { !$0.isDropped }
    }

    /// From which sync count on everything is kept; the greatest of all if only a part of the
    /// dataset is, since then anything may never have been here.
    func startOfWholeHistory() throws(StoreError) -> SyncCount {
        guard try !PartBook.isPart(self) else { return SyncCount(rawValue: .max) }
        return try historyStart().syncCount
    }
}
