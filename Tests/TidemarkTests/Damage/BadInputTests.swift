import TestSupport
import Testing
import Tidemark

@Suite("What is no store")
struct BadInputTests {
    @Test("A directory of other things is no store, and stays as it is")
    func otherDirectory() throws {
        let directory = try TemporaryDirectory()
        try Files.write(bytes("dear diary"), to: directory["notes.txt"])
        let before = try Files.contents(directory.path)
        let error = expectError(.notAStore) {
            try Store.open(at: directory.path, options: quickOptions())
        }
        #expect(error?.location?.path.hasPrefix(directory.path) == true)
        expectError(.notAStore) { try Store.verify(at: directory.path) }
        #expect(try Files.contents(directory.path) == before)
    }

    @Test("A file is no store")
    func file() throws {
        let directory = try TemporaryDirectory()
        try Files.write(bytes("dear diary"), to: directory["notes.txt"])
        expectError(.notAStore) {
            try Store.open(at: directory["notes.txt"], options: quickOptions())
        }
        #expect(try Files.read(directory["notes.txt"]) == bytes("dear diary"))
    }

    @Test("A manifest of something else is no store's", arguments: [0, 1, 7, 64, 5_000])
    func otherManifest(count: Int) throws {
        let directory = try TemporaryDirectory()
        var random = SeededGenerator(Seed(UInt64(count)))
        try Files.write(random.bytes(count), to: directory["MANIFEST"])
        let before = try Files.read(directory["MANIFEST"])
        do {
            try Store.open(at: directory.path, options: quickOptions()).close()
            Issue.record("a random manifest was opened")
        } catch {
            #expect([.notAStore, .corruption].contains(error.code), "\(error)")
        }
        #expect(try Files.read(directory["MANIFEST"]) == before)
    }

    @Test(
        "A file of a newer format is refused as such, and not touched",
        arguments: ["MANIFEST", ".seg", ".log", ".val"])
    func newerFormat(ending: String) throws {
        let store = try DamagedStore(largeValueBytes: 200)
        let name = try store.file(ending)
        var bytes = try #require(store.files[name])
        setVersion(3, headerBytes: 80, of: &bytes)
        try Files.write(bytes, to: "\(store.path)/\(name)")
        for isReadOnly in [false, true] {
            var options = quickOptions()
            options.isReadOnly = isReadOnly
            do {
                try Store.open(at: store.path, options: options).close()
                Issue.record("a store of a newer format was opened")
            } catch {
                #expect(error.code == .formatTooNew, "\(error)")
            }
        }
        #expect(try Files.read("\(store.path)/\(name)") == bytes)
    }

    /// Gives a file another format version, and its header the right checksum at its end.
    private func setVersion(_ version: UInt8, headerBytes: Int, of file: inout [UInt8]) {
        file[8] = version
        let end = headerBytes - 8
        let checksum = unsafe file[..<end].withUnsafeBytes { unsafe checksum64($0) }
        for index in 0..<8 {
            file[end + index] = UInt8(truncatingIfNeeded: checksum >> UInt64(8 * index))
        }
    }

    /// Headers of version 1 had 64 bytes.
    @Test(
        "A file of the first format is refused as such, and not touched",
        arguments: ["MANIFEST", ".seg", ".log", ".val"], [64, 80])
    func olderFormat(ending: String, headerBytes: Int) throws {
        let store = try DamagedStore(largeValueBytes: 200)
        let name = try store.file(ending)
        var bytes = try #require(store.files[name])
        setVersion(1, headerBytes: headerBytes, of: &bytes)
        try Files.write(bytes, to: "\(store.path)/\(name)")
        for isReadOnly in [false, true] {
            var options = quickOptions()
            options.isReadOnly = isReadOnly
            expectError(.formatTooOld) {
                try Store.open(at: store.path, options: options).close()
            }
        }
        #expect(try Files.read("\(store.path)/\(name)") == bytes)
    }

    @Test(
        "A path that cannot be a directory is a typed error",
        arguments: [
            "", "/dev/null/store", "/proc/nothing/store", String(repeating: "x", count: 5_000),
            "a\0b",
        ])
    func impossiblePath(path: String) {
        do {
            try Store.open(at: path, options: quickOptions()).close()
            Issue.record("a store was opened at \(path.prefix(20))")
        } catch {
            #expect(
                [.invalidArgument, .inputOutput, .notAStore].contains(error.code), "\(error)")
        }
    }
}
