extension Dataset {
    /// The count of the last operation applied here: the position to go on from with
    /// ``changes(since:in:)``.
    public var syncCount: SyncCount {
        get throws(StoreError) { try knowledge().syncCount }
    }

    /// Everything this dataset has seen.
    public var vector: VersionVector {
        get throws(StoreError) { try knowledge().vector }
    }

    /// What has changed since a sync count, as of now: the newest version of each key, tombstones
    /// included, in the order of change. Costs in proportion to the changes.
    ///
    /// - Parameters:
    ///   - syncCount: of the last change already known; ``SyncCount/zero`` for everything.
    ///   - range: changes of other keys are passed over, and no records made of them.
    /// - Throws: `changesExpired` if deletions after that count are forgotten.
    public func changes(
        since syncCount: SyncCount, in range: KeyRange = .all
    ) throws(StoreError) -> RecordCursor {
        let changes = try engine.changes(of: state, since: syncCount, in: range)
        return RecordCursor(changes.steps, changes.dirtiness)
    }

    /// The same, and then what changes from now on, until the task is cancelled or the store is
    /// closed. What changes twice while the consumer is busy is given once.
    ///
    /// - Parameters:
    ///   - syncCount: of the last change already known; ``SyncCount/zero`` for everything.
    ///   - range: which keys: ``KeyRange/prefix(_:)-(String)``, ``KeyRange/only(_:)-(String)``, or
    ///     any other. Changes of other keys are passed over, and no records made of them.
    public func liveChanges(
        since syncCount: SyncCount, in range: KeyRange = .all
    ) -> LiveChanges {
        LiveChanges(dataset: self, since: syncCount, range: range)
    }

    /// A hash of all records, whatever the order in which they came: equal on two replicas if,
    /// and but for chance only if, both hold the same keys at the same versions. O(n).
    ///
    /// The sum, modulo 2^128, of XXH3-128 over each record's dot, time, time of expiry, key and
    /// value. A record that has expired has no value, whether or not that was noted in it yet, so
    /// replicas agree once the clocks of all have passed the time.
    public func digest() throws(StoreError) -> ConvergenceDigest {
        let cursor = try records(includingDeleted: true)
        var digest = ConvergenceDigest()
        while let bytes = try cursor.next({ (entry, tables) throws(StoreError) -> [UInt8] in
            var writer = ByteWriter()
            let dot = tables.dot(of: entry)
            writer.append(dot.replica)
            writer.append(fixed64: dot.counter)
            writer.append(fixed64: entry.stamp.time)
            let isLive = entry.isLive(at: cursor.now)
            writer.append(byte: (isLive ? EntryKind.put : .delete).rawValue)
            writer.append(fixed64: entry.expiresAt)
            writer.append(counted: entry.key)
            guard isLive else {
                writer.append(counted: ByteView.empty)
                return writer.bytes
            }
            return try tables.withValue(of: entry) { (value) throws(StoreError) in
                writer.append(counted: value)
                return writer.bytes
            }
        }) {
            digest.add(unsafe bytes.withUnsafeBytes { unsafe checksum128($0) })
        }
        return digest
    }
}

/// 128 bits that stand for the content of a dataset.
public struct ConvergenceDigest: Hashable, Sendable, CustomStringConvertible {
    public private(set) var high: UInt64 = 0
    public private(set) var low: UInt64 = 0

    /// 32 hexadecimal digits.
    public var description: String { ReplicaID(high: high, low: low).description }

    mutating func add(_ hash: (high: UInt64, low: UInt64)) {
        let (sum, carries) = low.addingReportingOverflow(hash.low)
        low = sum
        high = high &+ hash.high &+ (carries ? 1 : 0)
    }
}
