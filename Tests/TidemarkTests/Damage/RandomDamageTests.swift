import Glibc
import TestSupport
import Testing
import Tidemark

/// A store is damaged in random ways, in one file or two. A version is intact if no byte of the
/// blocks that it takes to read it was changed; by that:
///
/// - if `verify` finds nothing, everything can be read and is what it was;
/// - it finds something whenever a version is not intact, tells each place once, and names no file
///   that is whole;
/// - `repair` keeps every intact version, and gives none that never was;
/// - `salvage` gives every intact version of each damaged file that is there.
///
/// `TIDEMARK_DAMAGES` is how many ways there are: 100 unless it says otherwise.
@Suite("Random damage")
struct RandomDamageTests {
    private static var roundCount: Int {
        unsafe getenv("TIDEMARK_DAMAGES").flatMap { unsafe Int(String(cString: $0)) } ?? 100
    }

    @Test("Verification finds it, and repair keeps all that is intact")
    func randomDamage() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let store = try RandomDamageStore(Seed(random.next()))
            let kinds = Set(store.files.keys.map(Self.kind))
            try require(kinds == ["seg", "val", "log", "MANIFEST"], "\(kinds)")
            try require(try Store.verify(at: store.path).damages.isEmpty, "damaged at first")
            for round in 0..<Self.roundCount {
                let damages = Self.draw(store, &random)
                for damage in damages { try damage.write(to: store.path) }
                do {
                    let check = RandomDamageCheck(store, damages)
                    try check.verification()
                    try check.repair(isPlanned: round % 5 == 0)
                    try check.salvage()
                } catch {
                    throw Mismatch("round \(round), \(damages): \(error)")
                }
                try store.restore(Set(damages.map(\.file)))
            }
        }
    }

    private static func kind(_ name: String) -> String {
        String(name.split(separator: ".").last ?? "")
    }

    /// Mostly one; of different files if two.
    private static func draw(
        _ store: RandomDamageStore, _ random: inout SeededGenerator
    ) -> [RandomDamage] {
        var names = store.files.keys.sorted()
        var damages: [RandomDamage] = []
        for _ in 0..<(random.oneIn(4) ? 2 : 1) {
            let name = names.remove(at: random.below(names.count))
            damages.append(
                RandomDamage(
                    to: name, store.files[name] ?? [], used: store.usedBytes[name] ?? 1, &random))
        }
        return damages
    }
}

/// Holds what the store's tools make of damage against what was done.
private struct RandomDamageCheck {
    private let store: RandomDamageStore
    private let damages: [RandomDamage]

    /// Versions of which no byte was changed.
    private let intact: [RandomDamageStore.Saved]

    init(_ store: RandomDamageStore, _ damages: [RandomDamage]) {
        self.store = store
        self.damages = damages
        intact = store.versions.filter { version in
            version.places.allSatisfy { place in
                guard let whole = store.files[place.file] else { return false }
                return !damages.contains {
                    $0.file == place.file && $0.hits(place.range, of: whole)
                }
            }
        }
    }

    // MARK: - Verification

    func verification() throws {
        let found: [StoreError]
        do throws(StoreError) {
            found = try Store.verify(at: store.path).damages
        } catch {
            let isMissing = damages.contains { $0.file == "MANIFEST" && $0.bytes == nil }
            return try require(error.code == .notAStore && isMissing, "\(error)")
        }
        let places = found.map(\.location)
        try require(Set(places).count == places.count, "a damage is told twice: \(found)")
        for place in places {
            let path = try #require(place?.path)
            try require(
                damages.contains { path == "\(store.path)/\($0.file)" },
                "\(path) is whole, and is said to be damaged: \(found)")
        }
        guard found.isEmpty else { return }
        try require(
            intact.count == store.versions.count, "records are damaged, and nothing was found")
        let opened = try Store.open(at: store.path, options: RandomDamageStore.readOnly)
        for (name, contents) in store.contents {
            let dataset = try #require(try opened.existingDataset(name), "\(name) is gone")
            try require(try DamagedStore.read(dataset) == contents, "\(name) reads differently")
        }
        try opened.close()
    }

    // MARK: - Repair

    func repair(isPlanned: Bool) throws {
        let target = store.directory["repaired"]
        Files.removeTree(target)
        let report = try Store.repair(at: store.path, to: target)
        if isPlanned {
            let plan = try Store.planRepair(at: store.path)
            try require(
                plan.losses == report.losses && plan.datasets == report.datasets,
                "planned was \(plan), and done \(report)")
        }
        try require(
            intact.count == store.versions.count || !report.losses.isEmpty,
            "something is lost, and no loss is told")
        let repaired = try Store.open(at: target, options: RandomDamageStore.options)
        let wrong = try repaired.verify().damages
        try require(wrong.isEmpty, "the new store is damaged: \(wrong)")
        for name in RandomDamageStore.names { try check(name, in: repaired, report) }
        try repaired.close()
    }

    /// Every intact version is there, and nothing that never was.
    private func check(_ name: String, in repaired: Store, _ report: RepairReport) throws {
        let all = store.versions.filter { $0.dataset == name }
        let kept = intact.filter { $0.dataset == name }
        guard let dataset = try find(name, with: kept, in: repaired) else {
            return try require(kept.isEmpty, "dataset \(name) is gone with \(kept.count) versions")
        }
        for record in try dataset.records(includingDeleted: true).collect() {
            for version in try dataset.history(of: record.key) {
                try require(
                    all.contains { isSame($0.record, version, report.replicaID) },
                    "\(name) has \(Bytes.summary(version.key)) = \(Bytes.summary(version.value))")
            }
        }
        for version in kept {
            let history = try dataset.history(of: version.record.key)
            try require(
                history.contains { isSame(version.record, $0, report.replicaID) },
                "\(name) lacks \(Bytes.summary(version.record.key)) at "
                    + "\(version.record.syncCount), which is intact")
            let newest = try dataset.record(for: version.record.key, includingDeleted: true)
            try require(
                newest.map { $0.syncCount >= version.record.syncCount } ?? false,
                "an older version of \(Bytes.summary(version.record.key)) counts")
        }
    }

    /// The same, with its version or, where that was lost, one of the new store.
    private func isSame(_ record: Record, _ other: Record, _ new: ReplicaID) -> Bool {
        record.key == other.key && record.syncCount == other.syncCount
            && record.value == other.value && record.expiresAt == other.expiresAt
            && (record.version == other.version || other.version.dot.replica == new)
    }

    /// The dataset of that name, or the one with a made-up name that has its records.
    private func find(
        _ name: String, with kept: [RandomDamageStore.Saved], in repaired: Store
    ) throws -> Dataset? {
        if let dataset = try repaired.existingDataset(name) { return dataset }
        for dataset in try repaired.datasets() where dataset.name.hasPrefix("recovered-") {
            let hasAll = try kept.allSatisfy { version in
                try dataset.history(of: version.record.key).contains {
                    $0.value == version.record.value
                        && $0.syncCount == version.record.syncCount
                }
            }
            if hasAll { return dataset }
        }
        return nil
    }

    // MARK: - Salvage

    func salvage() throws {
        for damage in damages where damage.bytes != nil && damage.file != "MANIFEST" {
            var found: [SalvagedRecord] = []
            let wanted = intact.filter { $0.places[0].file == damage.file }
            do {
                _ = try Store.salvage(fileAt: "\(store.path)/\(damage.file)") { item in
                    if case .record(let record) = item { found.append(record) }
                }
            } catch let error as StoreError where error.code == .notAStore {
                try require(wanted.isEmpty, "\(damage.file) is refused: \(error)")
            }
            for version in wanted {
                try require(
                    found.contains { record in
                        record.key == version.record.key && record.value == version.record.value
                            && record.syncCount == version.record.syncCount
                    },
                    "\(Bytes.summary(version.record.key)) was not found in \(damage.file)")
            }
            for record in found {
                try require(
                    store.versions.contains {
                        $0.record.key == record.key && $0.record.value == record.value
                            && $0.record.syncCount == record.syncCount
                    },
                    "\(damage.file) gives \(Bytes.summary(record.key)), which never was")
            }
        }
    }
}
