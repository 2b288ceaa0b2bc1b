import TestSupport
import Testing
import Tidemark

/// What a verification tells of its progress goes up to the total, which stands from the beginning,
/// whatever there is that nobody checks: values that no entry names, space of a log that nothing
/// was written to, segments that cannot be read.
@Suite("Progress of a verification")
struct VerificationProgressTests {
    /// Value files of which parts are needless, and something in the log.
    private func filled() throws -> LargeValueStore {
        let fixture = try LargeValueStore(valueBytes: 3_000)
        try fixture.put(0..<40)
        try fixture.store.compact()
        try fixture.put(0..<15, round: 1)
        try fixture.store.compact()
        try fixture.put(40..<44)
        return fixture
    }

    private func check(
        _ verify: (@escaping (VerificationProgress) -> Void) throws -> VerificationReport
    ) throws -> (report: VerificationReport, total: UInt64) {
        var progress: [VerificationProgress] = []
        let report = try verify { progress.append($0) }
        let last = try #require(progress.last)
        try require(last.bytesChecked == last.bytesTotal, "it ends with \(last)")
        try require(progress.allSatisfy { $0.bytesTotal == last.bytesTotal }, "\(progress)")
        for (earlier, later) in zip(progress, progress.dropFirst()) {
            try require(earlier.bytesChecked < later.bytesChecked, "\(earlier), \(later)")
        }
        return (report, last.bytesTotal)
    }

    @Test("It ends at the total, open, closed and after a crash", arguments: [1, 2, 5])
    func whole(threads: Int) throws {
        let fixture = try filled()
        let usage = try fixture.store.usage()
        try #require(usage.valueFiles.contains { $0.usedBytes < $0.fileBytes - 10_000 })
        let (report, total) = try check { try fixture.store.verify(threads: threads, progress: $0) }
        #expect(report.damages.isEmpty)
        let sealedAndLogged = usage.segments.reduce(UInt64(0)) {
            $0 + ($1.isSealed ? $1.fileBytes : $1.storedBytes)
        }
        #expect(total == usage.valueFiles.reduce(sealedAndLogged) { $0 + 80 + $1.usedBytes })
        // The report does not count the log's header, nor what lies between parts.
        #expect(report.bytesChecked <= total && total - report.bytesChecked < 2_000)
        let crashed = fixture.directory["crashed"]
        try Files.copyDirectory(fixture.path, to: crashed)
        try fixture.store.close()
        for path in [fixture.path, crashed] {
            let (report, _) = try check {
                try Store.verify(at: path, threads: threads, progress: $0)
            }
            #expect(report.damages.isEmpty)
        }
    }

    @Test("It does so when a segment is left out because its tables are damaged")
    func damaged() throws {
        let fixture = try filled()
        try fixture.store.close()
        let names = try Files.list(fixture.path)
        let path = "\(fixture.path)/\(try #require(names.last { $0.hasSuffix(".seg") }))"
        let bytes = try Files.read(path)
        let whole = try check { try Store.verify(at: fixture.path, threads: 1, progress: $0) }
        var leftOut = 0
        for offset in stride(from: 80, to: bytes.count, by: 41) {
            try Files.overwrite([bytes[offset] ^ 1], in: path, at: offset)
            for threads in [1, 3] {
                let (report, total) = try check {
                    try Store.verify(at: fixture.path, threads: threads, progress: $0)
                }
                // All of the values belong to the segment, so nearly everything is left out. A
                // segment that cannot be opened is no part of the total.
                let isLeftOut = report.bytesChecked < whole.report.bytesChecked / 2
                if isLeftOut, total == whole.total { leftOut += 1 }
                #expect(report.bytesChecked <= whole.report.bytesChecked)
            }
            try Files.overwrite([bytes[offset]], in: path, at: offset)
        }
        #expect(leftOut > 0, "no segment was left out")
    }
}
