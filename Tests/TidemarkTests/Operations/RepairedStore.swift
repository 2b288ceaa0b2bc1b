import TestSupport
import Testing
import Tidemark

/// A store that is to be damaged and repaired, with what is known of every version in it: in
/// which block it lies, and what it says.
struct RepairedStore {
    struct Saved {
        let dataset: String
        let record: Record
        let file: String
        /// Of the whole block.
        let range: Range<Int>
    }

    let store: DamagedStore
    let replica: ReplicaID
    /// Every version in the store.
    private(set) var versions: [Saved] = []
    /// Bytes behind the last data block of the sealed segment: tables and indexes.
    private(set) var indexRange = 0..<0

    init() throws {
        store = try DamagedStore(logWrites: 14)
        var options = quickOptions()
        options.isReadOnly = true
        let opened = try Store.open(at: store.path, options: options)
        replica = opened.replicaID
        var histories: [String: [Record]] = [:]
        let cursor = try opened.operations()
        var dataEnd = 0
        while let operation = try cursor.next() {
            guard let key = operation.key else { continue }
            let name = operation.dataset
            let place = "\(name)/\(key)"
            if histories[place] == nil {
                histories[place] = try opened.dataset(name).history(of: key)
            }
            let record = try #require(
                histories[place]?.first { $0.version == operation.version })
            let bytes = try #require(store.files[operation.segment])
            let start = Int(operation.offset)
            let range = start..<(start + 24 + Self.length(bytes, at: start + 8))
            if operation.segment.hasSuffix(".seg") { dataEnd = max(dataEnd, range.upperBound) }
            versions.append(
                Saved(dataset: name, record: record, file: operation.segment, range: range))
        }
        indexRange = dataEnd..<(try #require(store.files[store.file(".seg")]).count)
        try opened.close()
    }

    private static func length(_ bytes: [UInt8], at offset: Int) -> Int {
        bytes[offset..<(offset + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    var names: Set<String> { Set(versions.map(\.dataset)) }

    /// Whether a file that was hit at some bytes still tells the store's secret: by a whole header,
    /// or by the secret in a damaged one under which the first block is right.
    func tellsSecret(_ name: String, _ hits: [(String, Int)]) -> Bool {
        guard let bytes = store.files[name] else { return false }
        let offsets = hits.filter { $0.0 == name }.map(\.1)
        let firstBlock = 80..<(80 + 24 + Self.length(bytes, at: 88))
        return !offsets.contains { $0 < 80 }
            || !offsets.contains { (56..<72).contains($0) || firstBlock.contains($0) }
    }

    /// The newest version of each key of those that are left, in the order of keys.
    func expected(_ name: String, without isLost: (Saved) -> Bool) -> [Record] {
        var newest: [[UInt8]: Record] = [:]
        for version in versions where version.dataset == name && !isLost(version) {
            if newest[version.record.key].map({ $0.syncCount < version.record.syncCount }) ?? true {
                newest[version.record.key] = version.record
            }
        }
        return newest.values.sorted { Bytes.precedes($0.key, $1.key) }
    }

    /// Repairs the damaged store and holds the new one against what must be there.
    ///
    /// - Parameters:
    ///   - isLost: whether a version lies in what was damaged.
    ///   - mayLoseVersion: whether what it is a version of may be lost, though the record is not.
    ///   - mayLoseNames: whether the names of datasets may be lost.
    @discardableResult
    func checkRepair(
        mayLoseNames: Bool = false, mayLoseVersion: (Saved) -> Bool = { _ in false },
        isLost: (Saved) -> Bool
    ) throws -> RepairReport {
        let target = store.directory["repaired"]
        Files.removeTree(target)
        let before = try Files.contents(store.path)
        let report = try Store.repair(at: store.path, to: target)
        try require(try Files.contents(store.path) == before, "the source was changed")
        let repaired = try Store.open(at: target, options: quickOptions())
        defer { try? repaired.close() }
        let damages = try repaired.verify().damages
        try require(damages.isEmpty, "damages of the new store: \(damages)")
        try require(
            repaired.replicaID == report.replicaID && repaired.replicaID != replica,
            "the new store has no new id")
        for lost in versions.filter(isLost) {
            try require(
                report.losses.contains { loss in
                    guard loss.file == lost.file else { return false }
                    guard let offset = loss.offset else { return true }
                    return loss.kind == .block && Int(offset) <= lost.range.lowerBound
                        && Int(offset) + Int(loss.byteCount) >= lost.range.upperBound
                },
                "the loss of \(lost.file) at \(lost.range) is not in \(report.losses)")
        }
        for name in names.sorted() {
            let wanted = expected(name, without: isLost)
            let dataset = try find(name, wanted, in: repaired, report, mayLoseNames: mayLoseNames)
            guard let dataset else { continue }
            let found = try dataset.records(includingDeleted: true).collect()
            try require(
                found.map(\.key) == wanted.map(\.key),
                "\(name) has \(found.compactMap(\.keyText)), not \(wanted.compactMap(\.keyText))")
            for (record, want) in zip(found, wanted) {
                try require(
                    record.value == want.value && record.syncCount == want.syncCount,
                    "\(name)/\(Bytes.summary(want.key)) is \(Bytes.summary(record.value))")
                guard record.version != want.version else { continue }
                let saved = try #require(
                    versions.first { $0.record == want && $0.dataset == name })
                try require(
                    mayLoseVersion(saved) && record.version.dot.replica == report.replicaID,
                    "\(name)/\(Bytes.summary(want.key)) is at \(record.version)")
            }
            // Every way of reading agrees.
            for record in found {
                let single = try dataset.record(for: record.key, includingDeleted: true)
                try require(single == record, "\(name)/\(Bytes.summary(record.key)) differs")
            }
            let row = report.datasets.first { $0.name == dataset.name }
            try require(row != nil, "\(dataset.name) is not in the report")
            let dots = Set(found.map(\.version.dot))
            let dot = try dataset.put("after", for: "after")
            try require(
                dot.replica == report.replicaID && !dots.contains(dot), "\(dot) was used before")
        }
        return report
    }

    /// The dataset of that name, or the one with a made-up name that has its records.
    private func find(
        _ name: String, _ wanted: [Record], in repaired: Store, _ report: RepairReport,
        mayLoseNames: Bool
    ) throws -> Dataset? {
        if let dataset = try repaired.existingDataset(name) { return dataset }
        try require(mayLoseNames, "dataset \(name) is gone")
        if wanted.isEmpty { return nil }
        for dataset in try repaired.datasets() where dataset.name.hasPrefix("recovered-") {
            let isReported = report.datasets.contains {
                $0.name == dataset.name && $0.isNameMadeUp
            }
            try require(isReported, "\(dataset.name) is not reported as made up")
            let records = try dataset.records(includingDeleted: true).collect()
            if records.map(\.value) == wanted.map(\.value) { return dataset }
        }
        throw Mismatch("dataset \(name) is gone, with its name and without")
    }
}
