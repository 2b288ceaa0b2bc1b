extension Dataset {
    /// The count of the last operation applied here: the position to go on from with
    /// ``changes(since:)``.
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
    /// - Parameter syncCount: of the last change already known; ``SyncCount/zero`` for everything.
    /// - Throws: `changesExpired` if deletions after that count are forgotten.
    public func changes(since syncCount: SyncCount) throws(StoreError) -> RecordCursor {
        let changes = try engine.changes(of: state, since: syncCount)
        return RecordCursor(changes.steps, changes.dirtiness)
    }

    /// The same, and then what changes from now on, until the task is cancelled or the store is
    /// closed. What changes twice while the consumer is busy is given once.
    public func liveChanges(since syncCount: SyncCount) -> LiveChanges {
        LiveChanges(dataset: self, since: syncCount)
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
        while let bytes = try cursor.next({ entry, tables in
            var writer = ByteWriter()
            let dot = tables.dot(of: entry)
            writer.append(dot.replica)
            writer.append(fixed64: dot.counter)
            writer.append(fixed64: entry.stamp.time)
            let isLive = entry.isLive(at: cursor.now)
            writer.append(byte: (isLive ? EntryKind.put : .delete).rawValue)
            writer.append(fixed64: entry.expiresAt)
            writer.append(counted: entry.key)
            writer.append(counted: isLive ? entry.value : .empty)
            return writer.bytes
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

/// Changes of a dataset as they happen.
public struct LiveChanges: AsyncSequence, Sendable {
    let dataset: Dataset
    let since: SyncCount

    public func makeAsyncIterator() -> Iterator {
        Iterator(dataset: dataset, position: since)
    }

    /// Holds the segments of the moment that it is giving out, and looks again when it is through.
    public struct Iterator: AsyncIteratorProtocol {
        private let dataset: Dataset
        /// Everything up to here has been given, or is in `pass`.
        private var position: SyncCount
        private var pass: RecordCursor?

        init(dataset: Dataset, position: SyncCount) {
            self.dataset = dataset
            self.position = position
        }

        public mutating func next() async throws(StoreError) -> Record? {
            try await next(isolation: nil)
        }

        /// The next change; nil when the task is cancelled or the store is closed.
        /// - Throws: `changesExpired` if the consumer fell so far behind that deletions it has
        ///   not seen are forgotten, `datasetNotFound` when the dataset is deleted, `corruption`,
        ///   `inputOutput`.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(StoreError) -> Record? {
            while !Task.isCancelled {
                if let record = try pass?.next() { return record }
                pass = nil
                do {
                    let changes = try dataset.engine.changes(of: dataset.state, since: position)
                    if changes.knowledge.syncCount > position {
                        pass = RecordCursor(changes.steps, changes.dirtiness)
                        position = changes.knowledge.syncCount
                        continue
                    }
                } catch let error where error.code == .closed {
                    return nil
                }
                await sleepUntilChanged()
            }
            return nil
        }

        private func sleepUntilChanged() async {
            let known = position.rawValue
            let state = dataset.state
            let engine = dataset.engine
            await engine.waiters.wait(for: dataset.name) {
                engine.monitor.withLock { state.syncCount > known }
            }
        }
    }
}
