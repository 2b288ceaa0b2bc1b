import Glibc
import TestSupport
import Testing
import Tidemark

/// Stores of format version 2 as they lie in `Golden`, and what was in them when they were made.
/// They are read by every later version.
@Suite("Golden stores")
struct GoldenStoreTests {
    @Test("What is in the files is what was put into them", arguments: GoldenStore.all)
    func contents(golden: GoldenStore) throws {
        let files = try GoldenFiles(golden)
        if golden.isBackup {
            expectError(.readOnly) { try open(files.files, isReadOnly: false) }
        }
        for isReadOnly in golden.isBackup ? [true] : [true, false] {
            let store = try open(files.files, isReadOnly: isReadOnly)
            #expect(try StoreText.of(store) == files.text)
            let report = try store.verify(threads: 1)
            #expect(report.damages.isEmpty && report.blocksChecked > 0)
            try store.close()
        }
    }

    @Test("They can be written on, merged and opened again", arguments: GoldenStore.all)
    func goesOn(golden: GoldenStore) throws {
        let files = try GoldenFiles(golden)
        let storage = try writableDisk(golden, files.files)
        let store = try openSimulated(storage, options())
        let before = try StoreText.of(store)
        let added = try store.dataset("added")
        let dot = try added.put("1", for: "a")
        #expect(dot.counter == 1)
        try store.compact()
        try store.deleteDataset("added")
        try store.close()
        let again = try openSimulated(storage, options())
        let after = try StoreText.of(again)
        // A dataset that was deleted stands among the others, with two lines of its own.
        var lines = after.split(separator: "\n", omittingEmptySubsequences: false)
        let first = try #require(lines.firstIndex { $0.hasPrefix("dataset added") })
        lines.removeSubrange(first..<(first + 3))
        #expect(lines.joined(separator: "\n") == before)
        try again.close()
    }

    /// What liblz4 makes of a block may differ from version to version of it, and with that places
    /// and sizes in segments, and what the manifest says of them. The same steps without
    /// compression are compared to the byte, in `sealed`.
    @Test("The same steps make the same files to the byte", arguments: GoldenStore.all)
    func bytes(golden: GoldenStore) throws {
        let files = try GoldenFiles(golden)
        let made = try golden.made()
        #expect(made.keys.sorted() == files.files.keys.sorted())
        for (name, bytes) in files.files {
            let dependsOnLZ4 = name == "MANIFEST" || [".seg", ".val"].contains(name.suffix(4))
            guard golden.compression == .none || !dependsOnLZ4 else { continue }
            let other = made[name] ?? []
            let place = zip(bytes, other).enumerated().first { $0.element.0 != $0.element.1 }
            #expect(
                Bytes.areEqual(bytes, other),
                "\(golden.name)/\(name) differs from byte \(place?.offset ?? bytes.count) on")
        }
        let store = try open(made, isReadOnly: true)
        #expect(try StoreText.of(store) == files.text)
        try store.close()
    }

    private func options() -> StoreOptions {
        // So much history that a merge drops nothing that the text tells of.
        StoreOptions(
            durability: .process, segmentBytes: 1 << 20, historyVersions: 100,
            compactsAutomatically: false)
    }

    private func disk(
        _ files: [String: [UInt8]], at path: String = simulatedPath
    ) throws -> SimulatedStorage {
        let storage = SimulatedStorage(seed: Seed(99))
        try storage.createDirectory(path)
        for (name, bytes) in files { storage.setContents(of: "\(path)/\(name)", to: bytes) }
        return storage
    }

    /// With a store that may be written: of a backup, what is restored from it.
    private func writableDisk(
        _ golden: GoldenStore, _ files: [String: [UInt8]]
    ) throws -> SimulatedStorage {
        guard golden.isBackup else { return try disk(files) }
        let storage = try disk(files, at: GoldenMaker.backupPath)
        try Store.restore(
            from: GoldenMaker.backupPath, to: simulatedPath, linksFiles: false, storage: storage)
        return storage
    }

    private func open(_ files: [String: [UInt8]], isReadOnly: Bool) throws -> Store {
        var options = options()
        options.isReadOnly = isReadOnly
        return try openSimulated(try disk(files), options)
    }
}

/// The files of a golden store and its text, as they are checked in. `Golden/README.md` says how
/// they are made.
struct GoldenFiles {
    let files: [String: [UInt8]]
    let text: String

    private static let folder: String = {
        let path = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return path.dropLast(2).joined(separator: "/") + "/Golden"
    }()

    /// Writes them anew, or those that are missing, once, if the environment asks for it.
    private static let isReady: Bool = {
        let wish = unsafe getenv("TIDEMARK_GOLDEN").map { unsafe String(cString: $0) } ?? ""
        guard ["add", "write"].contains(wish) else { return true }
        do {
            for golden in GoldenStore.all
            where wish == "write" || !Files.exists("\(folder)/\(golden.name)") {
                try write(golden)
            }
            return true
        } catch {
            Issue.record("\(error)")
            return false
        }
    }()

    private static func write(_ golden: GoldenStore) throws {
        let path = "\(folder)/\(golden.name)"
        Files.removeTree(path)
        try Files.createDirectory(path)
        let files = try golden.made()
        let storage = SimulatedStorage(seed: Seed(99))
        try storage.createDirectory(simulatedPath)
        for (name, bytes) in files {
            try Files.write(bytes, to: "\(path)/\(name)")
            storage.setContents(of: "\(simulatedPath)/\(name)", to: bytes)
        }
        let store = try openSimulated(storage, StoreOptions(isReadOnly: true))
        try Files.write(bytes(try StoreText.of(store)), to: "\(path)/contents.txt")
        try store.close()
    }

    init(_ golden: GoldenStore) throws {
        #expect(Self.isReady)
        let path = "\(Self.folder)/\(golden.name)"
        try require(
            Files.exists(path),
            "no golden store \(golden.name) yet: "
                + "TIDEMARK_GOLDEN=add tools/test --filter GoldenStoreTests")
        var files = try Files.contents(path)
        let text = files.removeValue(forKey: "contents.txt")
        self.text = String(decoding: try #require(text), as: UTF8.self)
        self.files = files
    }
}
