import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

// The property: a run that took several attempts tells what an uninterrupted one would have told.
//
//     attempt 1   hello  pull  pull ╳               pulled 2
//     attempt 2                  hello  pull  push  pulled 3, pushed 4
//     report                                        pulled 5, pushed 4

@Suite(.timeLimit(.minutes(Patience.minutes)))
struct AttemptReportTests {
    private let time = VirtualEnvironment(passesBySleeping: true)

    /// Seven records to pull, five to push, and three documents changed on both sides.
    private func filled() async throws -> (TestReplica, TestReplica) {
        let (a, b) = try TestReplica.two()
        for number in 0..<3 { try a.dataset().put("{\"count\":0}", for: "both \(number)") }
        try await a.store.synchronize(with: b.transport)
        for number in 0..<3 {
            try a.dataset().put("{\"count\":1}", for: "both \(number)")
            try b.dataset().put("{\"count\":2}", for: "both \(number)")
        }
        for number in 0..<5 { try a.dataset().put("ours", for: "here \(number)") }
        for number in 0..<7 { try b.dataset().put("theirs", for: "there \(number)") }
        return (a, b)
    }

    private func synchronizer(
        _ a: TestReplica, _ transport: any SyncTransport
    ) -> Synchronizer {
        let exchange = SyncOptions(policy: .autoMerge(AutoMerge()), pageRecordsMax: 2)
        return Synchronizer(
            store: a.store, transport: transport, options: SynchronizerOptions(exchange: exchange),
            environment: time)
    }

    @Test func whatAttemptsDidAddsUp() async throws {
        let (a, b) = try await filled()
        let counting = CountingTransport(b.transport)
        let reference = try await synchronizer(a, counting).synchronize()
        let whole = try #require(reference["notes"]?.result)
        #expect(whole.pulled >= 7 && whole.pushed >= 5)
        #expect(whole.conflicts == 3 && whole.reports.count == 3)
        #expect(counting.count > 6, "the exchange was too short to prove anything")
        for broken in 2...counting.count {
            let (a, b) = try await filled()
            let transport = CountingTransport(b.transport) { number in
                number == broken ? SyncError(.unreachable, "message \(broken) is lost") : nil
            }
            let synchronizer = synchronizer(a, transport)
            let report = try await synchronizer.synchronize()
            let result = try #require(report["notes"]?.result, "broken at \(broken)")
            let comment: Comment = "broken at message \(broken)"
            #expect(report.isComplete, comment)
            #expect(result.pulled == whole.pulled, comment)
            #expect(result.pushed == whole.pushed, comment)
            #expect(result.conflicts == whole.conflicts, comment)
            // Of two writes of one moment either may be the later one.
            #expect(Set(result.settled.map(\.key)) == Set(whole.settled.map(\.key)), comment)
            #expect(result.settled.count == whole.settled.count, comment)
            #expect(Set(result.reports.map(\.key)) == Set(whole.reports.map(\.key)), comment)
            #expect(result.attempts == 2, comment)
            #expect(synchronizer.lastReport == report, comment)
            try expectEqual([a, b], comment)
        }
    }

    /// Nothing of what was done is untold because the last attempt failed, too.
    @Test func aRunThatFailsTellsWhatItDid() async throws {
        let (a, b) = try await filled()
        let transport = CountingTransport(b.transport) { number in
            // A hello and two pulls, and from then on nothing.
            number > 3 ? SyncError(.unreachable, "no route") : nil
        }
        let synchronizer = synchronizer(a, transport)
        #expect(synchronizer.lastReport == nil)
        let error = await #expect(throws: SyncError.self) { try await synchronizer.synchronize() }
        let report = try #require(synchronizer.lastReport)
        #expect(report.error == error)
        #expect(report.peer == b.store.replicaID)
        let pulled = try #require(report["notes"]?.result?.pulled)
        #expect(pulled > 0)
        #expect(report["notes"]?.error?.code == .unreachable)
        #expect(!report.isComplete)
    }

    /// Also what no exchange of a few small records comes by.
    @Test func everyCountAddsUp() {
        let peer = ReplicaID(high: 1, low: 2)
        func result(_ number: Int) -> SyncResult {
            var result = SyncResult(dataset: "notes", remoteReplica: peer)
            result.pulled = number
            result.adopted = number
            result.pushed = number
            result.quarantined = number
            result.overlooked = number
            result.note(SyncResult.Settlement(key: [UInt8(number)], decision: .merged))
            result.noteFailed([UInt8(number)])
            result.reportsLeftOut = number
            result.pagesSent = number
            result.pagesReceived = number
            result.bytesSent = number
            result.bytesReceived = number
            result.attempts = number
            return result
        }
        var first = result(1)
        first.noteWaiting([7])
        first.remoteSyncCount = SyncCount(rawValue: 9)
        let total = result(2).following(first, isCutOff: false)
        let counts = [
            total.pulled, total.adopted, total.pushed, total.quarantined, total.overlooked,
            total.reportsLeftOut, total.pagesSent, total.pagesReceived, total.bytesSent,
            total.bytesReceived,
            total.attempts,
        ]
        #expect(counts == Array(repeating: 3, count: counts.count))
        #expect(total.conflicts == 2 && total.settled.map(\.key) == [[1], [2]])
        #expect(total.failedCount == 2 && total.failed == [[1], [2]])
        #expect(total.remoteSyncCount == SyncCount(rawValue: 9))
        // What waits is not counted up: the last attempt looked, or did not come to it.
        #expect(total.pendingCount == 0)
        let cutOff = result(2).following(first, isCutOff: true)
        #expect(cutOff.pendingCount == 1 && cutOff.pending == [[7]])
    }
}
