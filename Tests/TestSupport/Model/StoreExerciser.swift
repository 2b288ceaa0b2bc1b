package import Tidemark

/// Does the same to a store and to its model, and holds the one against the other at each step.
package final class StoreExerciser {
    package private(set) var store: Store
    package private(set) var check: ModelCheck
    private let reopen: () throws -> Store
    private var snapshots: [(snapshot: Snapshot, model: StoreModel)] = []
    private var random: SeededGenerator
    /// Counts the reopenings, each of which compares everything.
    package private(set) var reopenCount = 0

    /// - Parameter reopen: opens the store, at first and after each close.
    package init(seed: Seed, model: StoreModel = StoreModel(), reopen: @escaping () throws -> Store)
        throws
    {
        self.reopen = reopen
        random = SeededGenerator(seed)
        store = try reopen()
        check = ModelCheck(model, of: store)
    }

    package var model: StoreModel { check.model }

    package func apply(_ operation: StoreOperation) throws {
        switch operation {
        case .write(let write, let durability): try apply(write, durability)
        case .batch(let writes, let durability): try apply(writes, durability)
        case .clear(let name):
            try dataset(name).clear()
            check.model.clear(name)
            try check.checkView(DatasetView(dataset(name)), using: &random)
        case .createDataset(let name):
            try require(store.dataset(name).name == name, "dataset(_:) gave another one")
            check.model.create(name)
        case .deleteDataset(let name):
            let existed = try store.deleteDataset(name)
            try require(existed == check.model.delete(name), "deleteDataset said \(existed)")
        case .sync: try store.sync()
        case .compact: try compact()
        case .compactRange(let name, let range): try compact(range, of: name)
        case .reopen: try reopenAndCompare()
        case .takeSnapshot: try takeSnapshot()
        case .checkSnapshot: try checkSnapshot()
        default: try read(operation)
        }
        store.checkInvariants()
    }

    /// Closes, opens again and compares everything.
    package func reopenAndCompare() throws {
        while !snapshots.isEmpty { try checkSnapshot() }
        let digests = try digests()
        try store.close()
        store = try reopen()
        reopenCount += 1
        try require(store.replicaID == check.replica, "the replica id changed at reopening")
        try check.checkAll(store, using: &random)
        // A collected tombstone is no longer part of the digest.
        if !check.collectsTombstones {
            try require(try self.digests() == digests, "a digest changed at reopening")
        }
    }

    package func checkAll() throws {
        try check.checkAll(store, using: &random)
    }

    package func close() throws {
        snapshots = []
        try store.close()
    }

    /// Everything, or a range of keys of one dataset.
    private func compact() throws {
        guard !random.oneIn(3), !model.liveNames.isEmpty else {
            try store.compact()
            return
        }
        let name = random.element(of: model.liveNames)
        let keys = model[name].sortedKeys
        func bound() -> [UInt8]? {
            keys.isEmpty || random.oneIn(3) ? nil : random.element(of: keys)
        }
        try compact(KeyRange(from: bound(), upTo: bound()), of: name)
    }

    private func compact(_ range: KeyRange, of name: String) throws {
        let report = try dataset(name).compact(range)
        try require(
            report.entriesDropped >= report.tombstonesDropped && report.tombstonesDropped >= 0,
            "a compaction reports \(report)")
        try check.checkView(DatasetView(dataset(name)), using: &random)
    }

    // MARK: Writing

    private func apply(_ write: GeneratedWrite, _ durability: Durability) throws {
        let dataset = try dataset(write.dataset)
        // There is no single conditional deletion, so it goes as a batch of one.
        guard write.value != nil || write.expectation == .none else {
            return try apply([write], durability)
        }
        let expected = Dot(
            replica: check.replica, counter: check.model[write.dataset].counter + 1)
        do {
            let dot: Dot
            if let value = write.value {
                if write.expectation == .none {
                    dot = try dataset.put(value, for: write.key, durability: durability)
                } else {
                    dot = try dataset.put(
                        value, for: write.key, ifAt: dotExpected(by: write),
                        durability: durability)
                }
            } else {
                dot = try dataset.delete(write.key, durability: durability)
            }
            try require(write.expectation != .stale, "a write at a stale version succeeded")
            try require(dot == expected, "the write returned \(dot), not \(expected)")
            check.model.write(write.value, for: write.key, in: write.dataset)
        } catch let error as StoreError where error.code == .versionMismatch {
            try require(write.expectation == .stale, "\(error)")
        }
        try check.checkKey(DatasetView(dataset), write.key)
    }

    private func apply(_ writes: [GeneratedWrite], _ durability: Durability) throws {
        var batch = WriteBatch()
        for write in writes {
            let dataset = try dataset(write.dataset)
            switch (write.value, write.expectation) {
            case (let value?, .none): batch.put(value, for: write.key, in: dataset)
            case (let value?, _):
                batch.put(value, for: write.key, in: dataset, ifAt: dotExpected(by: write))
            case (nil, .none): batch.delete(write.key, in: dataset)
            case (nil, _): batch.delete(write.key, in: dataset, ifAt: dotExpected(by: write))
            }
        }
        do {
            try store.write(batch, durability: durability)
            try require(check.model.accepts(writes), "a batch with a stale condition succeeded")
            check.model.apply(.batch(writes, durability))
        } catch let error as StoreError where error.code == .versionMismatch {
            try require(!check.model.accepts(writes), "\(error)")
        }
        for write in writes { try check.checkKey(DatasetView(dataset(write.dataset)), write.key) }
    }

    /// The condition of a write, before the write.
    private func dotExpected(by write: GeneratedWrite) -> Dot? {
        let entry = check.model[write.dataset].entries[write.key]
        let present = entry?.value == nil ? nil : entry.map(dot)
        guard write.expectation == .stale else { return present }
        // A record that lives is not missing; one that is missing is at no version.
        if present != nil, random.oneIn(2) { return nil }
        return Dot(replica: check.replica, counter: (entry?.counter ?? 0) + 1)
    }

    private func dot(of entry: StoreModel.Entry) -> Dot {
        Dot(replica: check.replica, counter: entry.counter)
    }

    // MARK: Reading

    private func read(_ operation: StoreOperation) throws {
        switch operation {
        case .readKey(let name, let key):
            let dataset = try dataset(name)
            try check.checkKey(DatasetView(dataset), key)
            let isLive = check.model[name].entries[key]?.value != nil
            try require(dataset.contains(key) == isLive, "contains says \(!isLive)")
        case .scan(let name, let range, let order, let includingDeleted):
            try check.checkScan(DatasetView(dataset(name)), range, order, includingDeleted)
        case .changes(let name, let since):
            try check.checkChanges(DatasetView(dataset(name)), since: since)
        case .history(let name, let key):
            try check.checkHistory(
                dataset(name).history(of: key), of: key, in: name,
                retained: store.options.historyVersions)
        default: throw Mismatch("\(operation) is not a read")
        }
    }

    private func takeSnapshot() throws {
        if snapshots.count >= 3 { try checkSnapshot() }
        snapshots.append((try store.snapshot(), check.model))
    }

    /// Compares one open snapshot with the model of its moment, and closes it.
    private func checkSnapshot() throws {
        guard !snapshots.isEmpty else { return }
        let (snapshot, moment) = snapshots.remove(at: random.below(snapshots.count))
        defer { snapshot.close() }
        var past = ModelCheck(moment, of: store)
        // A dataset deleted since has no handle any more, though the snapshot still holds it.
        for name in moment.liveNames where check.model[name].isLive {
            try past.checkView(DatasetView(dataset(name), at: snapshot), using: &random)
        }
    }

    private func dataset(_ name: String) throws -> Dataset {
        guard let dataset = try store.existingDataset(name) else {
            throw Mismatch("dataset \(name) is missing")
        }
        return dataset
    }

    private func digests() throws -> [ConvergenceDigest] {
        var digests: [ConvergenceDigest] = []
        for dataset in try store.datasets() { digests.append(try dataset.digest()) }
        return digests
    }
}
