package import Tidemark

/// The store is not what the model says.
package struct Mismatch: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// The reading side of one dataset, of its newest state or of a snapshot.
package struct DatasetView {
    package let name: String
    package let get: ([UInt8]) throws(StoreError) -> [UInt8]?
    package let record: ([UInt8], Bool) throws(StoreError) -> Record?
    package let records: (KeyRange, ScanOrder, Bool) throws(StoreError) -> [Record]
    package let changes: (SyncCount) throws(StoreError) -> [Record]
    package let count: () throws(StoreError) -> Int

    package init(_ dataset: Tidemark.Dataset) {
        name = dataset.name
        get = { key throws(StoreError) in try dataset.get(key) }
        record = { key, includingDeleted throws(StoreError) in
            try dataset.record(for: key, includingDeleted: includingDeleted)
        }
        records = { range, order, includingDeleted throws(StoreError) in
            try dataset.records(in: range, order: order, includingDeleted: includingDeleted)
                .collect()
        }
        changes = { since throws(StoreError) in try dataset.changes(since: since).collect() }
        count = { () throws(StoreError) in try dataset.count() }
    }

    package init(_ dataset: Tidemark.Dataset, at snapshot: Snapshot) {
        name = dataset.name
        get = { key throws(StoreError) in try snapshot.get(key, in: dataset) }
        record = { key, includingDeleted throws(StoreError) in
            try snapshot.record(for: key, in: dataset, includingDeleted: includingDeleted)
        }
        records = { range, order, includingDeleted throws(StoreError) in
            try snapshot.records(
                of: dataset, in: range, order: order, includingDeleted: includingDeleted
            ).collect()
        }
        changes = { since throws(StoreError) in
            try snapshot.changes(of: dataset, since: since).collect()
        }
        count = { () throws(StoreError) in try snapshot.count(of: dataset) }
    }
}

/// Holds a store against a model.
///
/// One thing is left to the store: in a dataset that was never synchronised, and without history,
/// nobody needs a tombstone, and compaction may collect it. From then on the key was never there,
/// and changes since an earlier count may have expired.
package struct ModelCheck {
    package var model: StoreModel
    package let replica: ReplicaID
    package let author: String
    package let collectsTombstones: Bool

    package init(
        _ model: StoreModel, replica: ReplicaID, author: String, collectsTombstones: Bool
    ) {
        self.model = model
        self.replica = replica
        self.author = author
        self.collectsTombstones = collectsTombstones
    }

    package init(_ model: StoreModel, of store: Store) {
        self.init(
            model, replica: store.replicaID, author: store.options.author,
            collectsTombstones: store.options.historyVersions == 0)
    }

    /// Everything that can be read of every dataset. Learns the times it did not know.
    package mutating func checkAll(_ store: Store, using random: inout SeededGenerator) throws {
        let names = try store.datasets().map(\.name)
        try require(names == model.liveNames, "datasets are \(names), not \(model.liveNames)")
        for name in model.datasets.keys.sorted() {
            guard let dataset = try store.existingDataset(name) else {
                try require(!model[name].isLive, "dataset \(name) is gone")
                continue
            }
            try require(model[name].isLive, "deleted dataset \(name) is back")
            try checkView(DatasetView(dataset), using: &random)
            let expected = model[name]
            let size = try dataset.size()
            try require(
                size.recordCount == expected.liveCount && size.keyBytes == expected.liveKeyBytes
                    && size.valueBytes == expected.liveValueBytes,
                "size of \(name) is \(size)")
            let count = try dataset.syncCount.rawValue
            try require(
                count == expected.syncCount,
                "sync count of \(name) is \(count), not \(expected.syncCount)")
            let vector = try dataset.vector
            let dot = Dot(replica: replica, counter: expected.counter)
            try require(vector == VersionVector([dot]), "vector of \(name) is \(vector)")
        }
    }

    /// Everything that can be read of one dataset at one moment.
    package mutating func checkView(
        _ view: DatasetView, using random: inout SeededGenerator
    ) throws {
        for order in [ScanOrder.forward, .backward] {
            for includingDeleted in [false, true] {
                try checkScan(view, .all, order, includingDeleted)
            }
        }
        let expected = model[view.name]
        let count = try view.count()
        try require(
            count == expected.liveCount,
            "count of \(view.name) is \(count), not \(expected.liveCount)")
        for key in expected.entries.keys { try checkKey(view, key) }
        try checkChanges(view, since: 0)
        try checkChanges(view, since: expected.syncCount)
        try checkChanges(view, since: UInt64(random.below(Int(expected.syncCount) + 1)))
    }

    package mutating func checkKey(_ view: DatasetView, _ key: [UInt8]) throws {
        let expected = model[view.name].entries[key]
        let value = try view.get(key)
        try require(
            Bytes.areEqual(value, expected?.value),
            """
            get \(Bytes.summary(key)) in \(view.name) is \(Bytes.summary(value)), \
            not \(Bytes.summary(expected?.value))
            """)
        let live = try view.record(key, false)
        try require((live != nil) == (expected?.value != nil), "record(for:) of a tombstone")
        guard let record = try view.record(key, true) else {
            try require(
                expected == nil || (collectsTombstones && expected?.value == nil),
                "\(view.name) lost the record of \(Bytes.summary(key))")
            return
        }
        try checkRecord(record, key, in: view.name)
    }

    package mutating func checkScan(
        _ view: DatasetView, _ range: KeyRange, _ order: ScanOrder, _ includingDeleted: Bool
    ) throws {
        let keys = model[view.name].keys(
            in: range, order: order, includingDeleted: includingDeleted)
        let records = try view.records(range, order, includingDeleted)
        try checkList(
            records, keys, in: view.name, "\(order) scan", mayLackTombstones: collectsTombstones)
    }

    package mutating func checkChanges(_ view: DatasetView, since: UInt64) throws {
        let keys = model[view.name].keysChanged(since: since)
        do {
            let records = try view.changes(SyncCount(rawValue: since))
            // Whoever begins at 0 has nothing that a tombstone could take away.
            try checkList(
                records, keys, in: view.name, "changes since \(since)",
                mayLackTombstones: collectsTombstones && since == 0)
        } catch let error as StoreError where error.code == .changesExpired {
            // Of a dataset that was deleted and made again nothing tells what went with it.
            let lastDeletion = model[view.name].lastDeletion
            try require(
                since > 0
                    && (since < model[view.name].wipedThrough
                        || collectsTombstones && since < lastDeletion),
                "changes since \(since) expired, with the last deletion at \(lastDeletion)")
        }
    }

    /// The retained versions come newest first. The newest of all are there, as many as the store
    /// promises; of the older ones those that no merge of segments has met yet.
    package func checkHistory(
        _ records: [Record], of key: [UInt8], in name: String, retained: Int
    ) throws {
        let versions = Array((model[name].history[key] ?? []).reversed())
        if collectsTombstones, records.isEmpty, versions.first?.value == nil { return }
        func message() -> String {
            """
            history of \(Bytes.summary(key)) has counters \
            \(records.map(\.version.dot.counter)) of \(versions.map(\.counter))
            """
        }
        var rest = versions[...]
        for (index, record) in records.enumerated() {
            rest = rest.drop { $0.counter != record.version.dot.counter }
            guard let version = rest.popFirst() else { throw Mismatch(message()) }
            try require(Bytes.areEqual(record.value, version.value), message())
            let isPromised = index <= retained
            try require(!isPromised || versions.count - rest.count == index + 1, message())
        }
        try require(records.count >= min(versions.count, 1 + retained), message())
    }

    private mutating func checkList(
        _ records: [Record], _ keys: [[UInt8]], in name: String, _ what: String,
        mayLackTombstones: Bool
    ) throws {
        var keys = keys
        if mayLackTombstones, records.count < keys.count {
            let found = Set(records.map(\.key))
            keys.removeAll { !found.contains($0) && model[name].entries[$0]?.value == nil }
        }
        for (record, key) in zip(records, keys) { try checkRecord(record, key, in: name) }
        try require(
            records.count == keys.count,
            "\(what) in \(name) gives \(records.count) records, not \(keys.count)")
    }

    package mutating func checkRecord(_ record: Record, _ key: [UInt8], in name: String) throws {
        // Put together only for a message: most records are right.
        func place() -> String { "\(name)/\(Bytes.summary(key))" }
        guard let entry = model[name].entries[key] else {
            throw Mismatch("\(place()) was never written, yet there is \(record.version)")
        }
        try require(
            Bytes.areEqual(record.key, key), "\(place()): key is \(Bytes.summary(record.key))")
        try require(
            Bytes.areEqual(record.value, entry.value),
            "\(place()): \(Bytes.summary(record.value)), not \(Bytes.summary(entry.value))")
        let dot = Dot(replica: replica, counter: entry.counter)
        try require(
            record.version.dot == dot, "\(place()): dot \(record.version.dot), not \(dot)")
        try require(
            record.version.vector == VersionVector([dot]),
            "\(place()): vector \(record.version.vector)")
        try require(
            record.syncCount.rawValue == entry.syncCount,
            "\(place()): sync count \(record.syncCount), not \(entry.syncCount)")
        try require(record.version.author == author, "\(place()): author \(record.version.author)")
        try require(record.isDirty, "\(place()): not dirty, though there is no peer")
        if let wrong = model.learn(record.version.time, of: key, in: name) {
            throw Mismatch("\(place()): \(wrong)")
        }
    }
}

package func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Mismatch(message()) }
}
