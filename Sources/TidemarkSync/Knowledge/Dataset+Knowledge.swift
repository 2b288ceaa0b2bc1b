public import Tidemark

extension Dataset {
    /// What a peer was known to have seen of this dataset when the two last exchanged it; empty if
    /// they never did. O(1).
    ///
    /// - Throws: `closed`.
    public func vector(knownTo peer: ReplicaID) throws(StoreError) -> VersionVector {
        try checkpoint(for: peer).vector
    }

    /// The dataset as somebody knew it who had seen just the writes of the vector, in the order of
    /// keys: "as replica B saw it".
    ///
    /// ```swift
    /// let seen = try notes.records(asKnownTo: try notes.vector(knownTo: phone))
    /// while let known = try seen.next() {
    ///     print(known.keyText ?? "?", known.valueText ?? "", known.isCertain ? "" : "(perhaps)")
    /// }
    /// ```
    ///
    /// It goes as far back as the history that is kept (`historyStart()`), and says of each record
    /// whether it is certain. What its owner wrote and wrote over before any of it came here cannot
    /// be known here. O(all versions that are kept).
    ///
    /// - Parameters:
    ///   - range: of which keys.
    ///   - includesDeleted: whether to give tombstones.
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func records(
        asKnownTo vector: VersionVector, in range: KeyRange = .all, includesDeleted: Bool = false
    ) throws(StoreError) -> KnownRecords {
        try KnownRecords(self, vector, range, includesDeleted: includesDeleted)
    }

    /// One record likewise. O(its versions that are kept).
    public func record(
        for key: [UInt8], asKnownTo vector: VersionVector
    ) throws(StoreError) -> KnownRecord {
        let versions = KeptVersions(key: key, versions: try keptVersions(of: key))
        return versions.known(to: vector, historyStart: try startOfWholeHistory())
    }

    public func record(
        for key: String, asKnownTo vector: VersionVector
    ) throws(StoreError) -> KnownRecord {
        try record(for: Array(key.utf8), asKnownTo: vector)
    }

    /// What differs between what two vectors knew, in the order of keys. As for
    /// ``records(asKnownTo:in:includesDeleted:)``.
    public func changes(
        from before: VersionVector, to after: VersionVector, in range: KeyRange = .all
    ) throws(StoreError) -> KnownChanges {
        try KnownChanges(self, before, after, range)
    }
}

/// Walks over a dataset as a version vector knew it. Not for two threads at once.
public final class KnownRecords {
    private let vector: VersionVector
    private let includesDeleted: Bool
    private let isOfAllKeys: Bool
    private var walk: KeptVersionsWalk
    /// What the dataset had seen at the beginning.
    private let present: VersionVector
    /// Of those, writes that the vector does not know and that are kept.
    private var laterCount: UInt64 = 0
    /// The least of their counts.
    private var laterFrom: SyncCount?
    private var isAtEnd = false
    /// Keys passed over so far of which no version is kept that the vector knows, although one may
    /// have been dropped.
    public private(set) var uncertainCount = 0

    init(
        _ dataset: Dataset, _ vector: VersionVector, _ range: KeyRange, includesDeleted: Bool
    ) throws(StoreError) {
        self.vector = vector
        self.includesDeleted = includesDeleted
        isOfAllKeys = range == .all
        present = try dataset.vector
        walk = try KeptVersionsWalk(dataset, in: range)
    }

    /// The next record; nil at the end. Records are given of which the vector knows a version.
    ///
    /// - Throws: `corruption`, `inputOutput`; `datasetNotFound` if the dataset was deleted
    ///   meanwhile.
    public func next() throws(StoreError) -> KnownRecord? {
        while let versions = try walk.next() {
            count(versions)
            let known = versions.known(to: vector, historyStart: walk.historyStart)
            guard let record = known.record else {
                uncertainCount += known.isCertain ? 0 : 1
                continue
            }
            if includesDeleted || !record.isDeleted || !known.isCertain { return known }
        }
        isAtEnd = true
        return nil
    }

    /// All that are left, in memory.
    public func collect() throws(StoreError) -> [KnownRecord] {
        var all: [KnownRecord] = []
        while let known = try next() { all.append(known) }
        return all
    }

    /// Whether it is certain that nothing was left out, once the end is reached; false before. A
    /// key that is gone with all its versions is in no walk, so this asks for more than that every
    /// record is certain: that no history was dropped, or that every write which the vector does
    /// not know is still kept.
    public var isWhole: Bool {
        guard isAtEnd, walk.historyStart.rawValue < .max else { return false }
        if walk.historyStart == .zero { return true }
        guard isOfAllKeys, laterFrom.map({ $0 > walk.historyStart }) ?? true else { return false }
        let unknown = present.dots.reduce(UInt64(0)) { sum, dot in
            sum &+ (dot.counter - min(dot.counter, vector[dot.replica]))
        }
        return laterCount == unknown
    }

    private func count(_ kept: KeptVersions) {
        var counted: Set<Dot> = []
        for version in kept.versions {
            let dot = version.version.dot
            guard !vector.contains(dot), present.contains(dot) else { continue }
            laterFrom = min(laterFrom ?? version.syncCount, version.syncCount)
            if counted.insert(dot).inserted { laterCount += 1 }
        }
    }
}

/// Walks over what differs between what two version vectors knew. Not for two threads at once.
public final class KnownChanges {
    private let before: VersionVector
    private let after: VersionVector
    private var walk: KeptVersionsWalk
    /// Keys passed over so far of which both knew the same version, or none, as far as versions are
    /// kept, although one may have been dropped that makes a difference.
    public private(set) var uncertainCount = 0

    init(
        _ dataset: Dataset, _ before: VersionVector, _ after: VersionVector, _ range: KeyRange
    ) throws(StoreError) {
        self.before = before
        self.after = after
        walk = try KeptVersionsWalk(dataset, in: range)
    }

    /// The next difference; nil at the end.
    /// - Throws: as ``KnownRecords/next()``.
    public func next() throws(StoreError) -> KnownChange? {
        while let versions = try walk.next() {
            let start = walk.historyStart
            let change = KnownChange(
                key: versions.key, before: versions.known(to: before, historyStart: start),
                after: versions.known(to: after, historyStart: start))
            guard change.before.record?.version.dot == change.after.record?.version.dot else {
                return change
            }
            uncertainCount += change.isCertain ? 0 : 1
        }
        return nil
    }

    /// All that are left, in memory.
    public func collect() throws(StoreError) -> [KnownChange] {
        var all: [KnownChange] = []
        while let change = try next() { all.append(change) }
        return all
    }
}
