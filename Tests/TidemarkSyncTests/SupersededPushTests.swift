import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// A push passes over changes that are known to be superseded, and reads the next page while the
/// peer takes in the one before:
///
///     written three times   1 1 1 1 ... 2 2 2 2 ... 3 3 3 3 ...
///     looked at             ▲ one       none        all, pushed
@Suite(.serialized)
struct SupersededPushTests {
    private static let keyCount = 120

    private static var options: SyncOptions {
        var options = SyncOptions(pageRecordsMax: 10, adoptsSegments: false)
        options.walksFrom = 0
        options.readsAheadFrom = 0
        return options
    }

    private static func fillThreeTimes(_ replica: TestReplica) throws {
        for text in ["one", "two", "three"] { try fill(replica, 0..<keyCount, text) }
    }

    @Test func whatWasOverwrittenIsPushedOnce() async throws {
        let (a, b) = try TestReplica.two()
        try Self.fillThreeTimes(a)
        let result = try await a.dataset().synchronize(
            with: b.transport, options: Self.options)
        #expect(result.pushed == Self.keyCount)
        try expectText(b, 0..<Self.keyCount, "three")
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
        let again = try await a.dataset().synchronize(
            with: b.transport, options: Self.options)
        #expect(again.pushed == 0 && again.pulled == 0)
    }

    /// No more travel than may, whatever was read ahead.
    @Test func aBoundToTheRecordsHolds() async throws {
        let (a, b) = try TestReplica.two()
        try Self.fillThreeTimes(a)
        var options = Self.options
        options.recordsPerRunMax = 35
        for pushed in [35, 35, 35, 15] {
            let result = try await a.dataset().synchronize(with: b.transport, options: options)
            #expect(result.pushed == pushed && result.isComplete == (pushed == 15))
        }
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    /// What was merged lies behind all that it was merged with.
    @Test func whatWasMergedIsPushed() async throws {
        let (a, b) = try TestReplica.two()
        for text in ["uno", "due", "tre"] { try fill(b, 0..<Self.keyCount, text) }
        try Self.fillThreeTimes(a)
        b.clock.putForward(bySeconds: 2)
        try fill(b, Self.keyCount / 2..<Self.keyCount, "four")
        var options = Self.options
        options.sweepsFrom = 0
        let result = try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(result.conflicts == Self.keyCount && result.pushed == Self.keyCount)
        try expectText(b, Self.keyCount / 2..<Self.keyCount, "four")
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    /// Both sides write and delete all the while, one of them is compacted, and answers get lost.
    @Test func whatIsOverwrittenMeanwhileIsLostNowhere() async throws {
        print("whatIsOverwrittenMeanwhileIsLostNowhere: TIDEMARK_SEED=\(baseSeed)")
        for seed in baseSeed..<baseSeed + 8 {
            let (a, b) = try TestReplica.two()
            try Self.fillThreeTimes(a)
            let (ours, theirs) = (try a.dataset(), try b.dataset())
            let random = Mutex(SeededGenerator(seed: seed))
            let transport = InterposedTransport(b.responder) { point in
                guard point.kind == "push" else { return }
                try random.withLock { random in
                    for _ in 0..<Int.random(in: 0..<4, using: &random) {
                        let key = "key \(Int.random(in: 0..<Self.keyCount + 20, using: &random))"
                        let side = Int.random(in: 0..<8, using: &random) > 0 ? ours : theirs
                        if Int.random(in: 0..<4, using: &random) == 0 {
                            try side.delete(key)
                        } else {
                            try side.put("\(UInt8.random(in: 0...255, using: &random))", for: key)
                        }
                    }
                    if Int.random(in: 0..<20, using: &random) == 0 { try ours.store.compact() }
                    if Int.random(in: 0..<20, using: &random) == 0 {
                        throw SyncError(.unreachable, "the test lost a message; repeat")
                    }
                }
            }
            var options = Self.options
            options.attemptsMax = 50
            for _ in 0..<20 {
                do throws(SyncError) {
                    try await ours.synchronize(with: transport, options: options)
                    break
                } catch {
                    #expect(
                        error.code == .unreachable || error.code == .contended,
                        "seed \(seed): \(error)")
                }
            }
            for _ in 0..<2 {
                try await ours.synchronize(with: b.transport, options: Self.options)
            }
            try expectEqual([a, b], "seed \(seed)")
            #expect(try ours.vector == theirs.vector, "seed \(seed)")
        }
    }
}
