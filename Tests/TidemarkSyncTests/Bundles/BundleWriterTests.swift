import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

// The property: whatever stands under a bundle's name is whole, and made by one export.
//
//     a   open ─ header ─── page ────── page ─ end, rename
//     b        open ─ header ─── page ───────────────────── page ─ end, rename
//     name                                     └ a's ───────────────── └ b's

/// Exports to one name at the same time.
struct BundleWriterTests {
    let directory = TemporaryDirectory()
    let a: TestReplica
    let b: TestReplica
    let file: String

    init() throws {
        a = try TestReplica("a", in: directory)
        b = try TestReplica("b", in: directory)
        file = "\(directory.path)/notes.bundle"
        try fill(a, 0..<9, "of a")
        try fill(b, 0..<4, "of b")
    }

    /// What an export writes, piece by piece.
    private func pieces(
        of replica: TestReplica
    ) throws -> (header: BundleHeader, pages: [RecordPage]) {
        let path = "\(directory.path)/\(replica.name).bundle"
        try replica.store.exportBundle(
            of: "notes", to: path, limits: SyncResponder.Limits(pageRecordsMax: 2))
        var reader = try BundleReader(path: path)
        let header = try reader.takeHeader()
        var pages: [RecordPage] = []
        var position = header.since
        while pages.last?.isLast != true {
            let (page, _) = try reader.takePage(since: position)
            pages.append(page)
            position = page.through
        }
        return (header, pages)
    }

    private var leftOver: [String] {
        get throws { try Files.list(directory.path).filter { $0.hasSuffix(".new") } }
    }

    @Test func twoExportsToOneNameAreEachWhole() async throws {
        let (ours, theirs) = (try pieces(of: a), try pieces(of: b))
        var first = try BundleWriter(path: file)
        var second = try BundleWriter(path: file)
        #expect(try leftOver.count == 2)
        try first.append(ours.header)
        try second.append(theirs.header)
        for index in 0..<max(ours.pages.count, theirs.pages.count) {
            if index < ours.pages.count { try first.append(ours.pages[index]) }
            if index < theirs.pages.count { try second.append(theirs.pages[index]) }
        }
        #expect(!Files.exists(file))
        try first.finish()
        #expect(try BundleSummary(ofFileAt: file).sender == a.store.replicaID)
        try second.finish()
        let last = try BundleSummary(ofFileAt: file)
        #expect(last.sender == b.store.replicaID && last.recordCount == 4)
        let c = try TestReplica("c", in: directory)
        #expect(try await c.store.importBundle(from: file).pulled == 4)
        try expectEqual([b, c])
        #expect(try leftOver.isEmpty)
    }

    /// One that gives up takes nothing with it but its own.
    @Test func oneThatIsAbandonedHurtsNoOther() throws {
        let pieces = try pieces(of: a)
        var first = try BundleWriter(path: file)
        let second = try BundleWriter(path: file)
        try first.append(pieces.header)
        for page in pieces.pages { try first.append(page) }
        second.abandon()
        try first.finish()
        #expect(try BundleSummary(ofFileAt: file).recordCount == 9)
        #expect(try leftOver.isEmpty)
    }

    @Test func manyExportsAtOnceEndInOneWholeBundle() async throws {
        let file = file
        let stores = [a.store, b.store]
        let made = try await withThrowingTaskGroup(of: BundleSummary.self) { group in
            for number in 0..<8 {
                let store = stores[number % stores.count]
                group.addTask { try store.exportBundle(of: "notes", to: file) }
            }
            var made: [BundleSummary] = []
            for try await summary in group { made.append(summary) }
            return made
        }
        #expect(made.count == 8)
        let last = try BundleSummary(ofFileAt: file)
        #expect(made.contains(last))
        #expect(try leftOver.isEmpty)
    }
}
