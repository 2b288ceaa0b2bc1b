import TestSupport
import Testing
import Tidemark

/// The kernel may let go of a page that it could not write, and then reads an older one from the
/// disk: whoever looks at the mapped log sees what was there before.
@Suite("A log of which the kernel has let go")
struct FailedWritebackTests {
    let storage = SimulatedStorage(seed: Seed(26))
    let options = StoreOptions(
        durability: .process, segmentBytes: 1 << 20, compactsAutomatically: false)
    let store: Store
    let records: Dataset

    init() throws {
        store = try openSimulated(storage, options)
        records = try store.dataset("main")
        for number in 0..<50 { try records.put("old \(number)", for: "key \(number)") }
        try store.sync()
        for number in 0..<50 { try records.put("new \(number)", for: "key \(number)") }
    }

    private var log: String {
        get throws {
            let names = try storage.listDirectory(simulatedPath)
            let name = try #require(names.filter { $0.hasSuffix(".log") }.sorted().first)
            return "\(simulatedPath)/\(name)"
        }
    }

    @Test("is not read after the sync that failed")
    func reading() throws {
        let path = try log
        storage.observe(
            before: { [storage] call in
                if call.kind == .syncMapping { storage.forgetUndurablePages(of: path) }
            }, after: { _ in })
        storage.faults = [StorageFault(.inputOutput, of: [.syncMapping])]
        expectError(.inputOutput) { try store.sync() }
        storage.observe(nil)
        for number in 0..<50 {
            expectError(.corruption) { try records.get("key \(number)") }
        }
        expectError(.corruption) { try records.records().collect() }
        expectError(.corruption) { try store.snapshot() }
        try? store.close()
        try checkDurable()
    }

    @Test("is read on after a sync that failed without letting go of anything")
    func readingOn() throws {
        storage.faults = [StorageFault(.inputOutput, of: [.syncMapping])]
        expectError(.inputOutput) { try store.sync() }
        #expect(try records.text("key 7") == "new 7")
        #expect(try records.records().collect().count == 50)
        expectError(.writerStopped) { try records.put("3", for: "key 7") }
    }

    @Test("is not sealed")
    func sealing() throws {
        storage.forgetUndurablePages(of: try log)
        expectError(.corruption) { try store.sealAll() }
        try? store.close()
        try checkDurable()
    }

    /// After the process has ended: what was synced is there, and nothing else was made of it.
    private func checkDurable() throws {
        var random = SeededGenerator(Seed(1))
        let disk = storage.afterPowerLoss(.nothing, using: &random)
        let again = try openSimulated(disk, options)
        #expect(try again.verify().damages.isEmpty)
        for number in 0..<50 {
            #expect(try again.dataset("main").text("key \(number)") == "old \(number)")
        }
        try again.close()
    }
}
