import TestSupport
import Testing
import Tidemark

/// The article on the file format says enough to read a store: a reader that was written from it
/// alone, in `Plain`, finds in every golden store what the engine finds, and reads each byte of
/// each file on the way.
@Suite("Golden stores, read by the article alone")
struct PlainReaderTests {
    @Test("A reader by the article finds what the engine finds", arguments: GoldenStore.all)
    func contents(golden: GoldenStore) throws {
        let files = try GoldenFiles(golden).files
        let storage = SimulatedStorage(seed: Seed(99))
        try storage.createDirectory(simulatedPath)
        for (name, bytes) in files {
            storage.setContents(of: "\(simulatedPath)/\(name)", to: bytes)
        }
        let store = try openSimulated(
            storage, StoreOptions(isReadOnly: true, historyVersions: 100))
        // Whether a peer has a version is no matter of the format.
        let expected = try StoreText.of(store).replacing(", unsent", with: "")
        try store.close()
        #expect(PlainText.of(try PlainStore(files)) == expected)
    }

    /// Of 0, which ends a block, nothing more is to be read.
    @Test("Every kind of item that a log can have is in a golden store")
    func itemCodes() throws {
        var found: Set<UInt8> = []
        for golden in GoldenStore.all {
            found.formUnion(try PlainStore(try GoldenFiles(golden).files).itemCodes)
        }
        #expect(found.sorted() == [1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17])
    }

    @Test("What has come of a segment is in a golden store")
    func parts() throws {
        let golden = try #require(GoldenStore.all.first { $0.name == "unfinished" })
        let parts = try PlainStore(try GoldenFiles(golden).files).parts
        #expect(parts.count == 1)
        #expect(parts.allSatisfy { $0.dataset == "notes" && $0.next == 2 && $0.entryCount > 0 })
        #expect(parts.allSatisfy { $0.blockCount > 2 })
    }

    @Test("The roster that a closing keeps is what the article says")
    func roster() throws {
        let fixture = try StoreFixture()
        let peer = ReplicaID(high: 7, low: 8)
        let mark = try fixture.store.changeMark()
        fixture.store.note(
            SettledExchange(
                peer: peer, own: fixture.store.replicaID, peerMark: mark, ownMark: mark,
                unsettled: ["other"]))
        try fixture.dataset.put("1", for: "key")
        try fixture.store.close()
        let files = try Files.contents(fixture.path).filter { $0.key != "LOCK" }
        let roster = try #require(try PlainStore(files).roster)
        #expect(roster.lines == ["main": 2] && roster.epoch == 3)
        #expect(roster.peers == [PlainID(bytes: [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8])])
        let log = try #require(files.first { $0.key.hasSuffix(".log") })
        #expect(log.key.hasSuffix("\(roster.log).log"))
        let content = Array(try #require(files["MANIFEST"])[(PlainFile.headerBytes + 24)...])
        let hash = Plain.hash128(content + log.value.prefix(Int(roster.logBytes)))
        #expect(roster.digest == Array(hash[8...] + hash[..<8]))
    }

    /// Or it would find nothing wrong because it looks at nothing.
    @Test("A bit that is another way round is found, wherever it is")
    func flippedBits() throws {
        for name in ["sealed", "apart-lz4", "logs-closed"] {
            let golden = try #require(GoldenStore.all.first { $0.name == name })
            let files = try GoldenFiles(golden).files
            let expected = PlainText.of(try PlainStore(files))
            for (name, bytes) in files {
                for offset in stride(from: 0, to: bytes.count, by: 389) {
                    var damaged = files
                    damaged[name]![offset] ^= 0x10
                    let found = try? PlainStore(damaged)
                    #expect(found.map { PlainText.of($0) } != expected, "\(name) at \(offset)")
                }
            }
        }
    }
}
