/// What was measured of a store or a hub at one moment.
struct TopSample {
    /// Figures that only grow, by names of our own.
    var counters: [TopFigure: Double] = [:]
    /// Figures as they stand.
    var gauges: [TopFigure: Double] = [:]
    /// Seconds that something took.
    var durations: [TopFigure: MetricsPage.Histogram] = [:]
    /// Changes of each dataset so far; of a hub none.
    var datasets: [String: UInt64] = [:]
    /// Who lacks how many changes, by the first digits of the id.
    var peerLags: [(peer: String, lag: UInt64)] = []
}

/// What a frame shows, by its name in JSON.
enum TopFigure: String, CaseIterable {
    // Operations.
    case operations, requests, refusals, puts, deletes, commits, inFlight, waiting, connections
    // Sync.
    case messages, failures, bytesReceived, bytesSent, devices, waitingForStreams
    case peers, largestLag, deletionsHeld
    // Compaction.
    case merging, mergedIn, mergedOut, seals, segmentsMade, segmentsGone, writerWaiting
    case fileBytes, segments, runs, logBytes, bytesLogged, bytesMade
    // Latency.
    case requestTime, messageTime, syncTime, syncs

    enum Unit {
        case count
        case perSecond
        case bytes
        case bytesPerSecond
        /// Seconds spent in a second.
        case share
        case seconds
    }
}
