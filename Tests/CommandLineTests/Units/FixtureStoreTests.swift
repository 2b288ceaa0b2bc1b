import TestSupport
import Testing
import Tidemark
import TidemarkSync

/// The store that golden outputs stand on, and what compares them.
struct FixtureStoreTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func itIsTheSameEachTime() throws {
        let names = try FixtureStore.make(in: directory.path)
        let again = try FixtureStore.shopFiles()
        let files = try Files.contents(names.store)
        #expect(files.keys.sorted() == again.keys.sorted())
        for (name, bytes) in files { #expect(again[name] == bytes, "\(name)") }
    }

    @Test func itHoldsWhatItsCommentSays() throws {
        let names = try FixtureStore.makeTwo(in: directory.path)
        let store = try Store.open(at: names.store, options: StoreOptions(isReadOnly: true))
        defer { try? store.close() }
        #expect(store.replicaID == FixtureNames.shop)
        #expect(
            try store.datasetNames() == ["odd", "photos", "prices", "recipes", "stock"])
        let stock = try store.dataset("stock")
        let flour = try stock.history(of: Array("flour".utf8)).map { $0.valueText ?? "" }
        #expect(Set(flour).isSuperset(of: ["40 sacks", "22 sacks", "24 sacks", "21 sacks"]))
        #expect(try stock.settledConflicts().map(\.keyText) == ["flour"])
        #expect(try stock.quarantined().map { $0.record.valueText } == ["0 cubes"])
        let prices = try store.dataset("prices")
        #expect(try prices.pendingConflicts().map { $0.conflict.key } == [Array("bun".utf8)])
        #expect(try prices.failedRecords().map(\.keyText) == ["cake"])
        #expect(try store.dataset("recipes").settledConflicts().map(\.policy) == [.custom])
        let kiosk = try stock.peers().first { $0.replica == FixtureNames.kiosk }
        #expect(kiosk.map { $0.lag > 5 && $0.tombstonesHeld == 2 } == true)
        let files = try Files.list(names.store)
        #expect(files.filter { $0.hasSuffix(".seg") }.count == 3)
        #expect(files.filter { $0.hasSuffix(".val") }.count == 2)
        #expect(files.filter { $0.hasSuffix(".log") }.count == 2)
        #expect(try Store.verify(at: names.store).damages.isEmpty)
        let peer = try #require(names.peer)
        #expect(try Store.verify(at: peer).damages.isEmpty)
    }

    @Test func differencesShowTheLinesThatDiffer() {
        #expect(
            Golden.difference(from: "a\nb\nc\nd\ne\n", to: "a\nb\nx\ny\nd\ne\n")
                == "line 3:\n  a\n  b\n- c\n+ x\n+ y\n  d\n  e")
        #expect(Golden.difference(from: "a\n", to: "a\nb\n") == "line 2:\n  a\n+ b\n  ")
    }

    @Test func theLongestSpellingIsReplacedFirst() {
        let text = Golden.replaced("/tmp/x/store /tmp/x", ["/tmp/x": "DIR", "/tmp/x/store": "S"])
        #expect(text == "S DIR")
    }

    @Test func whatChangesAStoreIsSeen() async throws {
        let names = try FixtureStore.make(in: directory.path)
        let name = try #require(try Files.list(names.store).first)
        let path = "\(names.store)/\(name)"
        let same = try await expectUnchanged(names.store) { try Files.read(path) }
        await withKnownIssue {
            try await expectUnchanged(names.store) { try Files.write(same, to: path) }
        }
        await withKnownIssue {
            try await expectUnchanged(names.store) {
                try Files.write([1], to: "\(names.store)/new")
            }
        }
    }
}
