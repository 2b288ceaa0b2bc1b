import Tidemark
import TidemarkSync

/// Where the figures of the live view come from.
protocol TopSource {
    func sample() async throws -> TopSample
    func close() async
}

extension TopSample {
    private static let counterNames: [(TopFigure, String)] = [
        (.requests, "tidemark_hub_requests_total"), (.refusals, "tidemark_hub_refusals_total"),
        (.puts, "tidemark_store_puts"), (.deletes, "tidemark_store_deletes"),
        (.commits, "tidemark_store_commits"), (.messages, "tidemark_hub_messages"),
        (.bytesReceived, "tidemark_hub_received_bytes"),
        (.bytesSent, "tidemark_hub_sent_bytes"), (.merging, "tidemark_store_merge_seconds"),
        (.mergedIn, "tidemark_store_merged_in_bytes"),
        (.mergedOut, "tidemark_store_merged_out_bytes"), (.seals, "tidemark_store_seals"),
        (.writerWaiting, "tidemark_store_writer_wait_seconds"),
        (.bytesLogged, "tidemark_store_logged_bytes"),
        (.syncTime, "tidemark_store_sync_seconds"), (.syncs, "tidemark_store_syncs"),
    ]
    private static let gaugeNames: [(TopFigure, String)] = [
        (.inFlight, "tidemark_hub_in_flight"), (.waiting, "tidemark_hub_waiting"),
        (.connections, "tidemark_hub_connections"), (.devices, "tidemark_hub_push_connections"),
        (.waitingForStreams, "tidemark_hub_outbox_entries"),
        (.fileBytes, "tidemark_store_segment_bytes"), (.segments, "tidemark_store_segments"),
        (.runs, "tidemark_store_runs"), (.logBytes, "tidemark_store_log_bytes"),
    ]

    init(_ page: MetricsPage) {
        for (figure, name) in Self.counterNames { counters[figure] = page.sum(name) }
        for (figure, name) in Self.gaugeNames { gauges[figure] = page.sum(name) }
        counters[.failures] = page.sum("tidemark_hub_messages", ["outcome": "failure"])
        durations[.requestTime] = page.histogram("tidemark_hub_request_duration_seconds")
        durations[.messageTime] = page.histogram("tidemark_hub_message_duration_seconds")
    }
}

/// A store that some other process may be writing, opened anew for each sample: a reader sees one
/// moment.
final class StoreTopSource: TopSource {
    /// What is looked at of a store of very many datasets.
    private static let datasetsMax = 1_000
    private static let changesMax = 100_000

    private let target: StoreArgument
    /// All segments that were ever seen, and of these the ones that are gone.
    private var segments: Set<String> = []
    private var madeCount = 0
    private var goneCount = 0
    private var bytesMade: UInt64 = 0
    private var isFirst = true

    init(_ target: StoreArgument) {
        self.target = target
    }

    func close() async {}

    func sample() async throws -> TopSample {
        let store = try target.openExisting(StoreOptions(isReadOnly: true, blockCacheBytes: 0))
        var sample = TopSample()
        try addSpace(of: store, to: &sample)
        try addDatasets(of: store, to: &sample)
        try addPeers(of: store, to: &sample)
        try store.close()
        return sample
    }

    private func addSpace(of store: Store, to sample: inout TopSample) throws {
        let usage = try store.usage()
        let sealed = usage.segments.filter(\.isSealed)
        let names = Set(sealed.map(\.file))
        if !isFirst {
            let made = sealed.filter { !segments.contains($0.file) }
            madeCount += made.count
            bytesMade += made.reduce(0) { $0 + $1.fileBytes }
            goneCount += segments.subtracting(names).count
        }
        segments = names
        isFirst = false
        sample.counters[.segmentsMade] = Double(madeCount)
        sample.counters[.segmentsGone] = Double(goneCount)
        sample.counters[.bytesMade] = Double(bytesMade)
        sample.gauges[.fileBytes] = Double(usage.fileBytes)
        sample.gauges[.segments] = Double(sealed.count)
        sample.gauges[.logBytes] = Double(
            usage.segments.reduce(0) { $0 + ($1.isSealed ? 0 : $1.storedBytes) })
    }

    private func addDatasets(of store: Store, to sample: inout TopSample) throws {
        var changeCount: UInt64 = 0
        for name in try store.datasetNames().prefix(Self.datasetsMax) {
            guard let dataset = try store.existingDataset(name) else { continue }
            let count = try dataset.syncCount.rawValue
            sample.datasets[name] = count
            changeCount += count
        }
        sample.counters[.operations] = Double(changeCount)
    }

    private func addPeers(of store: Store, to sample: inout TopSample) throws {
        let (peers, _) = try store.peerLags(
            datasetsMax: Self.datasetsMax, changesMax: Self.changesMax)
        let waitedFor = peers.filter { $0.retiredCount < $0.datasetCount }
        sample.peerLags = waitedFor.map { (peer: $0.replica.shortDescription, lag: $0.lag) }
            .sorted { ($1.lag, $0.peer) < ($0.lag, $1.peer) }
        sample.gauges[.peers] = Double(waitedFor.count)
        sample.gauges[.largestLag] = Double(waitedFor.map(\.lag).max() ?? 0)
        sample.gauges[.deletionsHeld] = Double(waitedFor.map(\.tombstonesHeld).max() ?? 0)
    }
}
