import TestSupport
import Tidemark

/// A store on a simulated disk that has gone on since its backup was made, and damages to the files
/// of that backup.
struct DamagedBackup {
    /// What becomes of one file.
    struct Damage: CustomStringConvertible {
        let file: String
        let bytes: [UInt8]
        let description: String
    }

    static let path = "/backup"

    static var options: StoreOptions {
        var options = quickOptions()
        options.historyVersions = 1
        options.compactsAutomatically = false
        options.compression = .none
        options.largeValueBytes = 200
        return options
    }

    let storage: SimulatedStorage
    let store: Store
    /// Of the backup, without its lock.
    let files: [String: [UInt8]]
    /// What is in the backup.
    let first: StoreContents
    /// What is in the store now.
    let second: StoreContents

    init() throws {
        storage = SimulatedStorage(seed: Seed(6))
        store = try openSimulated(storage, Self.options)
        let dataset = try store.dataset("main")
        for number in 0..<20 { try dataset.put("value \(number)", for: "key \(number)") }
        try dataset.put([UInt8](repeating: 1, count: 300), for: bytes("large"))
        try store.dataset("other").put("1", for: "a")
        try store.compact()
        try dataset.delete("key 3")
        try dataset.put("in the log", for: "key 4")
        try store.backup(to: Self.path, linksFiles: false)
        first = try StoreContents(store)
        var files: [String: [UInt8]] = [:]
        for name in try storage.listDirectory(Self.path) where name != "LOCK" {
            files[name] = storage.contents(of: "\(Self.path)/\(name)")
        }
        self.files = files
        try dataset.put("later", for: "key 5")
        second = try StoreContents(store)
    }

    /// Of the names, without any twice.
    var endings: [String] {
        Set(files.keys.map { $0.contains(".") ? String($0.suffix(4)) : "" }).sorted()
    }

    /// Each byte of the mark, the manifest and the log with one bit flipped, and of the other files
    /// one in so many; and each file cut short.
    func damages(step: Int, _ random: inout SeededGenerator) -> [Damage] {
        var damages: [Damage] = []
        for (name, bytes) in files.sorted(by: { $0.key < $1.key }) {
            let isLong = name.hasSuffix(".seg") || name.hasSuffix(".val")
            // Of a log only what was written.
            let used = 1 + (bytes.lastIndex { $0 != 0 } ?? -1)
            let start = isLong ? random.below(step) : 0
            for place in stride(from: start, to: used, by: isLong ? step : 1) {
                var damaged = bytes
                damaged[place] ^= 1 << UInt8(random.below(8))
                damages.append(
                    Damage(
                        file: name, bytes: damaged,
                        description: "byte \(place) of \(name) flipped"))
            }
            for length in stride(from: 0, to: used, by: isLong ? 5 * step : 1) {
                damages.append(
                    Damage(
                        file: name, bytes: Array(bytes.prefix(length)),
                        description: "\(name) cut to \(length) bytes"))
            }
        }
        return damages
    }

    func apply(_ damage: Damage) {
        storage.setContents(of: "\(Self.path)/\(damage.file)", to: damage.bytes)
    }

    func undo(_ damage: Damage) {
        storage.setContents(of: "\(Self.path)/\(damage.file)", to: files[damage.file] ?? [])
    }

    /// Puts everything back as the first backup left it.
    func reset() throws {
        for name in try names() where files[name] == nil { try remove(name) }
        for (name, bytes) in files { storage.setContents(of: "\(Self.path)/\(name)", to: bytes) }
    }

    func remove(_ name: String) throws {
        try storage.remove("\(Self.path)/\(name)")
    }

    /// Removes all files of a directory, if there is one.
    func removeAll(in path: String) throws {
        for name in (try? storage.listDirectory(path)) ?? [] {
            try storage.remove("\(path)/\(name)")
        }
    }

    /// Of the files of the backup, sorted, without the lock.
    func names() throws -> [String] {
        try storage.listDirectory(Self.path).filter { $0 != "LOCK" }.sorted()
    }

    func isAsItWas(_ name: String) -> Bool {
        Bytes.areEqual(storage.contents(of: "\(Self.path)/\(name)"), files[name])
    }

    /// All that can be read of a store; nil if any call reports damage, or that there is none.
    func read(_ path: String = DamagedBackup.path) throws -> StoreContents? {
        var options = quickOptions()
        options.isReadOnly = true
        do {
            let store = try Store.open(at: path, options: options, storage: storage)
            let isWhole = try store.verify(threads: 1).damages.isEmpty
            let contents = try StoreContents(store)
            try store.close()
            return isWhole ? contents : nil
        } catch is StoreError {
            return nil
        }
    }
}
