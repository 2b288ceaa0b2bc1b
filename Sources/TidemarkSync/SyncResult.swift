public import Tidemark

/// What an exchange of one dataset did.
public struct SyncResult: Hashable, Sendable {
    /// A conflict and what became of it.
    public struct Settlement: Hashable, Sendable {
        public enum Decision: String, Hashable, Sendable {
            case local, remote, merged, deleted
        }

        public let key: [UInt8]
        public let decision: Decision
    }

    public let dataset: String
    /// Records of the other side that changed something here, ``adopted`` included.
    public internal(set) var pulled = 0
    /// Records taken over as they lie in the other side's sealed segments; one that lies in several
    /// of them counts in each.
    public internal(set) var adopted = 0
    /// Records of this side that changed something there.
    public internal(set) var pushed = 0
    /// Conflicts settled.
    public internal(set) var conflicts = 0
    /// Records of the other side that are held here because of their dates: see
    /// ``QuarantinedWrite``.
    public internal(set) var quarantined = 0
    /// Keys of which the two sides held something else although both had seen the same writes, and
    /// which were settled anew: see <doc:SyncProtocol>. Anything but 0 means that a store went back
    /// in time or was copied, and was not known for it.
    public internal(set) var overlooked = 0
    /// The first ``SyncLimits/settlementsMax`` conflicts, in the order in which they were settled.
    public internal(set) var settled: [Settlement] = []
    /// What merges lost, in the order in which they were made: as many as show
    /// ``SyncLimits/reportedFieldsMax`` things lost.
    public internal(set) var reports: [MergeReport] = []
    /// Reports that came after those.
    public internal(set) var reportsLeftOut = 0
    /// Keys of conflicts that wait, the first ``SyncLimits/settlementsMax``.
    public internal(set) var pending: [[UInt8]] = []
    /// Conflicts that wait, and because of which nothing was pushed.
    public internal(set) var pendingCount = 0
    /// Keys of records that failed in this exchange and were left out, the first
    /// ``SyncLimits/settlementsMax``.
    public internal(set) var failed: [[UInt8]] = []
    /// Records that failed in this exchange.
    public internal(set) var failedCount = 0
    public internal(set) var pagesSent = 0
    public internal(set) var pagesReceived = 0
    /// Bytes of all messages about this dataset.
    public internal(set) var bytesSent = 0
    public internal(set) var bytesReceived = 0
    /// Whether both sides now hold what both held: false if ``SyncOptions/recordsPerRunMax`` or an
    /// error ended the exchange before, as long as a record is left out that failed, and as long as
    /// the other side lacks what was moved from here into another dataset. Where both keep a part,
    /// it says that this side has what the other one had, which was handed nothing.
    public internal(set) var isComplete = false
    /// Whether everything was exchanged but records that failed, in this exchange or before, and
    /// were left out: then it is not complete, and to repeat it changes nothing.
    public internal(set) var lacksOnlyFailed = false
    /// Rounds of pull and push.
    public internal(set) var attempts = 0
    /// This side's count of the dataset when the exchange ended.
    public internal(set) var localSyncCount: SyncCount = .zero
    /// The other side's count when it last answered.
    public internal(set) var remoteSyncCount: SyncCount = .zero
    public internal(set) var remoteReplica: ReplicaID

    init(dataset: String, remoteReplica: ReplicaID) {
        self.dataset = dataset
        self.remoteReplica = remoteReplica
    }

    mutating func note(_ report: MergeReport) {
        let shown = reports.reduce(report.lost.count) { $0 + $1.lost.count }
        if reportsLeftOut == 0, shown <= SyncLimits.reportedFieldsMax {
            reports.append(report)
        } else {
            reportsLeftOut += 1
        }
    }

    mutating func noteWaiting(_ key: [UInt8]) {
        pendingCount += 1
        if pending.count < SyncLimits.settlementsMax { pending.append(key) }
    }

    mutating func noteFailed(_ key: [UInt8]) {
        failedCount += 1
        if failed.count < SyncLimits.settlementsMax { failed.append(key) }
    }

    mutating func forgetPending() {
        pending = []
        pendingCount = 0
    }

    mutating func note(_ settlement: Settlement) {
        note([settlement], of: 1)
    }

    /// - Parameters:
    ///   - settlements: the first of some conflicts, as many as there is room for or more.
    ///   - count: of these conflicts.
    mutating func note(_ settlements: [Settlement], of count: Int) {
        conflicts += count
        settled.append(contentsOf: settlements.prefix(settlementsLeft))
    }

    /// How many more of the conflicts that are settled it can show.
    var settlementsLeft: Int { max(0, SyncLimits.settlementsMax - settled.count) }
}
