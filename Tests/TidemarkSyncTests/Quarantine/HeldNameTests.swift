import Testing
import Tidemark

@testable import TidemarkSync

/// Writes that are held under one dot: two stores made them, of which one is a copy of the other or
/// went back in time.
struct HeldNameTests {
    let a: TestReplica
    let dataset: Dataset
    private let dot = Dot(replica: ReplicaID(high: 7, low: 7), counter: 1)

    init() throws {
        a = try TestReplica("a", in: TemporaryDirectory())
        dataset = try a.dataset()
    }

    /// Half an hour after what is believed.
    private func write(_ value: String?, for key: String) -> Record {
        let time = HybridTime(rawValue: a.store.latestBelieved.rawValue + 1_800_000 << 16)
        return Record(
            key: Array(key.utf8), value: value.map { Array($0.utf8) },
            version: Version(dot: dot, vector: VersionVector(), time: time), syncCount: .zero,
            isDirty: false)
    }

    private func apply(_ notes: [SystemNote]) throws {
        var batch = ReplicationBatch()
        batch.notes = notes
        _ = try dataset.replicate(batch)
    }

    private func book() throws -> QuarantineBook { try QuarantineBook(dataset) }

    private func held() throws -> [String] {
        try dataset.quarantined().map { $0.record.valueText ?? "(deleted)" }.sorted()
    }

    @Test func writesOfOneDotAreHeldApart() throws {
        let writes = [
            write("lost", for: "key 1"), write("again", for: "key 2"),
            write("more", for: "key 1"), write(nil, for: "key 2"),
        ]
        // Of one page, so that none of them is there yet when the next one is looked at.
        try apply(try writes.compactMap { try book().note(holding: $0) })
        #expect(try held() == ["(deleted)", "again", "lost", "more"])
        #expect(try Set(book().dots()) == [dot])
        for write in writes {
            #expect(try book().holds(write))
            #expect(try book().note(holding: write) == nil)
        }
        #expect(try book().records(of: dot, key: writes[0].key).count == 2)
        #expect(try book().records(of: dot, key: Array("key".utf8)).isEmpty)
        for write in writes.suffix(2) {
            try apply([try book().note(dropping: write)])
        }
        #expect(try held() == ["again", "lost"])
        let lost = try #require(
            try dataset.quarantined().first { $0.record.valueText == "lost" })
        try dataset.release(lost)
        #expect(try dataset.text("key 1") == "lost")
        #expect(try held() == ["again"])
        a.clock.putForward(bySeconds: 3_600)
        #expect(try dataset.admitDue() == [writes[1].key])
        #expect(try dataset.text("key 2") == "again")
        #expect(try book().names().isEmpty)
    }

    /// As earlier versions kept it.
    @Test func whatIsHeldUnderItsDotAloneIsReadAndLetIn() throws {
        let old = write("old", for: "key 1")
        let plain = HeldName(old).plain
        try a.store.systemDataset(.quarantine).put(
            QuarantineBook.encoded(old), for: SystemDataset.prefix(of: "notes") + plain.bytes)
        #expect(try book().names() == [plain])
        #expect(try book().holds(old))
        #expect(try book().note(holding: old) == nil)
        let new = write("new", for: "key 2")
        try apply(try [new].compactMap { try book().note(holding: $0) })
        #expect(try Set(book().names()) == [plain, HeldName(new)])
        #expect(try held() == ["new", "old"])
        a.clock.putForward(bySeconds: 3_600)
        #expect(try dataset.admitDue().count == 2)
        #expect(try dataset.text("key 1") == "old")
        #expect(try dataset.text("key 2") == "new")
        #expect(try book().names().isEmpty)
    }

    @Test func oneLookTellsWhereAnythingIsHeldAndTheFirstDate() throws {
        #expect(try QuarantineBook.overview(of: a.store).names.isEmpty)
        #expect(try QuarantineBook.overview(of: a.store).firstDate == nil)
        let now = a.store.latestBelieved.rawValue
        for (name, minutes) in [("b", 3), ("b", 9), ("a", 5), ("other", 4)] as [(String, UInt64)] {
            let version = Version(
                dot: Dot(replica: dot.replica, counter: minutes), vector: VersionVector(),
                time: HybridTime(rawValue: now + minutes * 60_000 << 16))
            let record = Record(
                key: [1], value: [2], version: version, syncCount: .zero, isDirty: false)
            let dataset = try a.dataset(name)
            var batch = ReplicationBatch()
            let book = try QuarantineBook(dataset)
            batch.notes = [
                try #require(try book.note(holding: record)), try book.noteOfAdmission(),
            ]
            _ = try dataset.replicate(batch)
        }
        let held = try QuarantineBook.overview(of: a.store)
        #expect(held.names == ["a", "b", "other"])
        #expect(held.firstDate == HybridTime(rawValue: now + 180_000 << 16))
        // What cannot be read has no date, and is looked for all the same.
        try a.store.systemDataset(.quarantine).put([9], for: Array("c".utf8) + [0, 1])
        let other = try QuarantineBook.overview(of: a.store)
        #expect(other.names == ["a", "b", "c", "other"] && other.firstDate == held.firstDate)
    }

    @Test func namesAreReadAsTheyAreWritten() {
        let name = HeldName(write("value", for: "key"))
        #expect(name.bytes.count == 32 && name.content != nil)
        #expect(HeldName(name.bytes[...]) == name)
        #expect(HeldName(name.plain.bytes[...]) == name.plain)
        for count in 0..<32 where count != 24 {
            #expect(HeldName(name.bytes.prefix(count)) == nil)
        }
        #expect(HeldName((name.bytes + [0])[...]) == nil)
        #expect(HeldName([UInt8](repeating: 0, count: 24)[...]) == nil)
        // A deletion is not the same as an empty value.
        #expect(HeldName(write(nil, for: "key")) != HeldName(write("", for: "key")))
    }
}
