import TestSupport
import Testing
import Tidemark

/// Where the time of sealing goes.
@Suite("Phases of sealing")
struct SealPhaseTests {
    @Test("The time that sealing takes is counted where it is spent")
    func phases() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        var options = quickOptions()
        options.runsInline = true
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        storage.observe(
            before: { [storage] call in
                if call.kind == .sync, call.path.hasSuffix(".seg") {
                    storage.clockMilliseconds += 1_000
                } else if call.kind == .rename, call.path.hasSuffix(".new") {
                    storage.clockMilliseconds += 50
                }
            }, after: { _ in })
        let value = [UInt8](repeating: 7, count: 2_000)
        for number in 0..<2_500 { try dataset.put(value, for: bytes("\(number)")) }
        let counters = store.counters()
        storage.observe(nil)
        let count = counters.logsSealed
        #expect(count > 0)
        #expect(counters.sealSyncTime == .seconds(count))
        #expect(counters.sealInstallTime == .milliseconds(50 * count))
        #expect(counters.sealTime == counters.sealSyncTime + counters.sealInstallTime)
        #expect(counters.sealSortTime + counters.sealWriteTime == .zero)
        #expect(counters.sealIndexTime == .zero)
        // Who runs inline seals while it waits for a log, be it to be sealed or to be made.
        #expect(counters.newLogWaits > 0)
        #expect(counters.writerWaitTime + counters.newLogWaitTime == counters.sealTime)
        try store.close()
    }
}
