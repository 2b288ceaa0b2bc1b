import InMemoryLogging
import Logging
import Metrics
import MetricsTestKit
import TestSupport
import Testing
import Tidemark

@testable import TidemarkObservability

/// A store that is observed, with all that is logged and measured.
private struct Observed {
    let storage = SimulatedStorage(seed: Seed(21))
    let entries = InMemoryLogHandler()
    let metrics = TestMetrics()
    let telemetry: StoreTelemetry

    init() {
        var logger = Logger(label: "test", factory: { [entries] _ in entries })
        logger.logLevel = .debug
        telemetry = StoreTelemetry(name: "shop", logger: logger, factory: metrics)
    }

    func open() throws -> Store {
        try Store.open(
            at: "/store",
            options: StoreOptions(segmentBytes: 1 << 20, compactsAutomatically: false),
            storage: storage, observer: telemetry)
    }

    /// The entries with that message.
    func logged(_ message: String) -> [InMemoryLogHandler.Entry] {
        entries.entries.filter { "\($0.message)" == message }
    }

    func counter(_ name: String) -> Int64 {
        metrics.counterTotal(label: "tidemark_store_\(name)", dimensions: [("store", "shop")])
    }

    func gauge(_ name: String) throws -> Double {
        let gauge = try metrics.expectGauge("tidemark_store_\(name)", [("store", "shop")])
        return gauge.lastValue ?? .nan
    }
}

@Suite("Telemetry of a store")
struct StoreTelemetryTests {
    @Test("Events are logged with what is known of them as metadata")
    func log() throws {
        let observed = Observed()
        let store = try observed.open()
        let dataset = try store.dataset("main")
        try dataset.put("1", for: "a")
        try dataset.put("2", for: "a")
        try store.compact()
        _ = try store.verify(threads: 1)
        try store.close()
        let opened = try #require(observed.logged("the store was opened").first)
        #expect(opened.level == .info && opened.metadata["kind"] == "created")
        #expect(opened.metadata["store"] == "shop" && opened.metadata["path"] == "/store")
        #expect(opened.metadata["seconds"] == "0.000000")
        let sealed = try #require(observed.logged("a log was sealed").first)
        #expect(sealed.level == .debug && sealed.metadata["entries"] == "2")
        let merged = try #require(observed.logged("a merge ended").first)
        #expect(merged.metadata["runs"] == "1")
        let verified = try #require(observed.logged("a verification ended").first)
        #expect(verified.level == .info && verified.metadata["damages"] == "0")
        #expect(observed.logged("the store was closed").map(\.level) == [.info])
    }

    @Test("What somebody must look at is logged as such")
    func alarms() throws {
        let observed = Observed()
        let store = try observed.open()
        let dataset = try store.dataset("main")
        observed.storage.faults = [
            StorageFault(.inputOutput, of: [.sync, .syncMapping], isLasting: true)
        ]
        #expect(throws: StoreError.self) { try dataset.put("1", for: "a", durability: .disk) }
        observed.storage.faults = []
        observed.telemetry.sample(store)
        #expect(try observed.gauge("writer_stopped") == 1)
        try? store.close()
        let stopped = try #require(observed.logged("the store takes no more writes").first)
        #expect(stopped.level == .critical && stopped.metadata["code"] == "inputOutput")
        #expect(stopped.metadata["errno"] == "5" && stopped.metadata["file"] != nil)

        let error = StoreError(
            .corruption, "a block is damaged", location: .init(path: "/store/1.seg", offset: 64))
        observed.telemetry.observe(.damageFound(error), of: "/store")
        observed.telemetry.observe(.syncWasSlow(.milliseconds(1_234)), of: "/store")
        let damaged = try #require(observed.logged("damage was found").first)
        #expect(damaged.level == .error && damaged.metadata["offset"] == "64")
        let slow = try #require(observed.logged("a sync was slow").first)
        #expect(slow.level == .warning && slow.metadata["seconds"] == "1.234000")
        let timer = try observed.metrics.expectTimer(
            "tidemark_store_slow_sync", [("store", "shop")])
        #expect(timer.values == [1_234_000_000])
    }

    @Test("Counters grow by what is new with each sample, also over openings")
    func counters() throws {
        let observed = Observed()
        var store = try observed.open()
        let dataset = try store.dataset("main")
        for index in 0..<10 { try dataset.put("1", for: "\(index)") }
        observed.telemetry.sample(store)
        #expect(observed.counter("puts") == 10 && observed.counter("deletes") == 0)
        observed.telemetry.sample(store)
        #expect(observed.counter("puts") == 10)
        try dataset.delete("1")
        try store.compact()
        observed.telemetry.sample(store)
        #expect(observed.counter("deletes") == 1 && observed.counter("merges") == 1)
        #expect(try observed.gauge("runs") == 1 && observed.gauge("log_entries") == 0)
        #expect(try observed.gauge("segment_bytes") > 0)
        try store.close()
        observed.telemetry.sample(store)

        observed.storage.clockMilliseconds += 5
        store = try observed.open()
        for index in 0..<20 { try store.dataset("main").put("2", for: "\(index)") }
        observed.telemetry.sample(store)
        #expect(observed.counter("puts") == 30)
        try store.close()
    }

    @Test("Running samples at once, after each interval, and when it is cancelled")
    func running() async throws {
        let observed = Observed()
        let store = try observed.open()
        let dataset = try store.dataset("main")
        let (telemetry, clock) = (observed.telemetry, ManualClock())
        try dataset.put("1", for: "a")
        let sampling = Task { await telemetry.run(store, every: .seconds(60), clock: clock) }
        try await eventually("sampled") { observed.counter("puts") == 1 }
        try dataset.put("2", for: "a")
        clock.ring()
        try await eventually("sampled again") { observed.counter("puts") == 2 }
        try dataset.put("3", for: "a")
        sampling.cancel()
        await sampling.value
        #expect(observed.counter("puts") == 3)
        try dataset.put("4", for: "a")
        #expect(observed.counter("puts") == 3)
        try store.close()
    }

    /// Names that a dashboard asks for are not to change by accident.
    @Test("The article lists every metric, and no other")
    func article() throws {
        let path =
            #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3)
            .joined(separator: "/") + "/Sources/Tidemark/Tidemark.docc/Observability.md"
        let text = String(decoding: try Files.read(path), as: UTF8.self)
        var listed: [String: String] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix("| `tidemark_store_") {
            let cells = line.split(separator: "|").map { $0.trimmed }
            #expect(cells.count == 4, "\(line)")
            listed[cells[0].replacing("`", with: "")] = cells[1]
        }
        var known: [String: String] = [:]
        for metric in StoreMetrics.counters { known[metric.name] = "counter" }
        for metric in StoreMetrics.times { known[metric.name] = "counter" }
        for metric in StoreMetrics.gauges { known[metric.name] = "gauge" }
        for timing in StoreMetrics.Timing.allCases { known[timing.rawValue] = "timer" }
        #expect(listed == known)
    }
}

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
