import TestSupport
import Testing
import Tidemark

/// What a plan of a compaction tells is what comes of it.
@Suite("Plan of a compaction")
struct CompactionPlanTests {
    private var options: StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.segmentEntriesMax = 100
        options.largeValueBytes = 1_000
        return options
    }

    /// A run, and in the log some of its records anew and some deleted.
    private func layered() throws -> StoreFixture {
        let fixture = try StoreFixture(options)
        var random = SeededGenerator(Seed(5))
        for number in 100..<700 {
            try fixture.dataset.put(
                random.bytes(number % 10 == 0 ? 2_000 : 30), for: bytes("\(number)"))
        }
        try fixture.store.compact()
        for number in stride(from: 100, to: 700, by: 2) {
            try fixture.dataset.put(random.bytes(30), for: bytes("\(number)"))
        }
        for number in stride(from: 101, to: 700, by: 4) { try fixture.dataset.delete("\(number)") }
        return fixture
    }

    private func expect(
        _ done: CompactionReport, asPlanned plan: CompactionReport,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(plan.entriesDropped == done.entriesDropped, sourceLocation: sourceLocation)
        #expect(plan.tombstonesDropped == done.tombstonesDropped, sourceLocation: sourceLocation)
        let difference = Int(plan.bytesAfter) - Int(done.bytesAfter)
        #expect(abs(difference) < 8_192, "\(plan), \(done)", sourceLocation: sourceLocation)
    }

    @Test("Of the whole store, of which every value file goes that is hardly used any more")
    func whole() throws {
        let fixture = try layered()
        let before = try Files.contents(fixture.path).filter { !$0.key.hasSuffix(".log") }
        var progress: [CompactionProgress] = []
        let plan = try fixture.store.planCompaction { progress.append($0) }
        #expect(try Files.contents(fixture.path).filter { !$0.key.hasSuffix(".log") } == before)
        #expect(progress.last.map { $0.bytesDone == $0.bytesTotal } == true)
        let done = try fixture.store.compact()
        #expect(done.entriesDropped > 0 && done.tombstonesDropped > 0)
        expect(done, asPlanned: plan)
        #expect(plan.segmentsAfter == done.segmentsAfter)
        let again = try fixture.store.planCompaction()
        #expect(again.entriesDropped == 0)
        try fixture.store.close()
    }

    @Test("Of a range", arguments: ["2", "35", "9"])
    func range(prefix: String) throws {
        let fixture = try layered()
        let plan = try fixture.dataset.planCompaction(.prefix(prefix))
        let done = try fixture.dataset.compact(.prefix(prefix))
        expect(done, asPlanned: plan)
        try fixture.store.close()
    }

    @Test("Of a store that is open read-only, and of one with nothing in it")
    func readOnly() throws {
        let fixture = try layered()
        let plan = try fixture.store.planCompaction()
        try fixture.store.close()
        let reader = try Store.open(at: fixture.path, options: options(readOnly: true))
        #expect(try reader.planCompaction().entriesDropped == plan.entriesDropped)
        try reader.close()
        let empty = try StoreFixture(options(readOnly: false))
        #expect(try empty.store.planCompaction().entriesDropped == 0)
        #expect(try empty.dataset.planCompaction(.prefix("a")).entriesDropped == 0)
        try empty.store.close()
    }

    private func options(readOnly: Bool) -> StoreOptions {
        var changed = options
        changed.isReadOnly = readOnly
        return changed
    }
}
