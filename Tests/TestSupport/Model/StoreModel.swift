package import Tidemark

/// What a store is supposed to be, in the plainest form: dictionaries.
///
/// A model is a value: a copy is a snapshot. It foretells everything but the times of writes,
/// which it learns at the first sight of a record and then holds against every later sight.
package struct StoreModel: Sendable {
    /// One version of one key.
    package struct Entry: Hashable, Sendable {
        /// nil: a tombstone.
        package var value: [UInt8]?
        package var counter: UInt64
        package var syncCount: UInt64
        /// nil until first seen.
        package var time: HybridTime?
    }

    package struct Dataset: Sendable {
        package var isLive = false
        /// The number of local writes ever made; goes on through deletion.
        package var counter: UInt64 = 0
        package var syncCount: UInt64 = 0
        package var entries: [[UInt8]: Entry] = [:]
        /// Every version since the dataset was last created, oldest first.
        package var history: [[UInt8]: [Entry]] = [:]
        /// The sync count of the last tombstone since the dataset was created; 0 if there is none.
        package var lastDeletion: UInt64 = 0
        /// The sync count when the dataset was last deleted.
        package var wipedThrough: UInt64 = 0
    }

    package private(set) var datasets: [String: Dataset] = [:]

    package init() {}

    package subscript(name: String) -> Dataset {
        datasets[name] ?? Dataset()
    }

    package var liveNames: [String] {
        datasets.filter(\.value.isLive).keys.sorted()
    }

    // MARK: Writing

    /// Creates the dataset unless it lives. It is no change of a record, so nothing counts it.
    package mutating func create(_ name: String) {
        guard !self[name].isLive else { return }
        datasets[name, default: Dataset()].isLive = true
    }

    /// Whether there was a live dataset to delete.
    package mutating func delete(_ name: String) -> Bool {
        guard self[name].isLive else { return false }
        datasets[name]?.isLive = false
        datasets[name]?.entries = [:]
        datasets[name]?.history = [:]
        datasets[name]?.lastDeletion = 0
        // That all records went counts as one change.
        let syncCount = self[name].syncCount + 1
        datasets[name]?.syncCount = syncCount
        datasets[name]?.wipedThrough = syncCount
        return true
    }

    /// Tombstones for all live records, in the order of their keys.
    package mutating func clear(_ name: String) {
        for key in self[name].sortedKeys where self[name].entries[key]?.value != nil {
            write(nil, for: key, in: name)
        }
    }

    /// nil deletes.
    package mutating func write(_ value: [UInt8]?, for key: [UInt8], in name: String) {
        datasets[name, default: Dataset()].write(value, for: key)
    }

    /// Remembers the time of the newest version of a key, which must be later than every earlier
    /// version's. Returns what is wrong with it, if anything is.
    package mutating func learn(
        _ time: HybridTime, of key: [UInt8], in name: String
    ) -> String? {
        datasets[name]?.learn(time, of: key)
    }
}

extension StoreModel.Dataset {
    package var sortedKeys: [[UInt8]] {
        entries.keys.sorted(by: Bytes.precedes)
    }

    package var liveCount: Int {
        entries.values.count { $0.value != nil }
    }

    package var liveKeyBytes: Int {
        entries.reduce(0) { $0 + ($1.value.value == nil ? 0 : $1.key.count) }
    }

    package var liveValueBytes: Int {
        entries.values.reduce(0) { $0 + ($1.value?.count ?? 0) }
    }

    /// The keys of a scan, in its order.
    package func keys(
        in range: KeyRange, order: ScanOrder, includingDeleted: Bool
    ) -> [[UInt8]] {
        let keys = sortedKeys.filter { key in
            if let lower = range.lowerBound, Bytes.precedes(key, lower) { return false }
            if let upper = range.upperBound, !Bytes.precedes(key, upper) { return false }
            return includingDeleted || entries[key]?.value != nil
        }
        return order == .forward ? keys : keys.reversed()
    }

    /// The keys changed after that count, in the order of change.
    package func keysChanged(since syncCount: UInt64) -> [[UInt8]] {
        entries.filter { $0.value.syncCount > syncCount }
            .sorted { $0.value.syncCount < $1.value.syncCount }
            .map(\.key)
    }

    fileprivate mutating func write(_ value: [UInt8]?, for key: [UInt8]) {
        counter += 1
        syncCount += 1
        if value == nil { lastDeletion = syncCount }
        let entry = StoreModel.Entry(
            value: value, counter: counter, syncCount: syncCount, time: nil)
        entries[key] = entry
        history[key, default: []].append(entry)
    }

    fileprivate mutating func learn(_ time: HybridTime, of key: [UInt8]) -> String? {
        guard let entry = entries[key] else { return "time of a key that was never written" }
        if let known = entry.time {
            return known == time ? nil : "time \(time) of dot \(entry.counter) was \(known) before"
        }
        let versions = history[key] ?? []
        for earlier in versions.dropLast() {
            if let before = earlier.time, before >= time {
                return "time \(time) is not later than \(before) of an earlier version"
            }
        }
        entries[key]?.time = time
        history[key]?[versions.count - 1].time = time
        return nil
    }
}
