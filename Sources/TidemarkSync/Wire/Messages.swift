import Tidemark

// What the two sides say to each other. Each request stands for itself: the responder keeps nothing
// between two of them but what is in its store.

/// What a peer knows of a dataset at one moment.
struct PeerKnowledge: Hashable, Sendable {
    var vector: VersionVector
    var syncCount: SyncCount
    var lifecycle: PeerLifecycle
    /// The newest known of each replica, in the order of the replicas.
    var batons: [Baton] = []
    /// Deletions of which nothing is left there.
    var forgotten = ForgottenDeletions()
}

/// A ``DatasetLifecycle`` as it travels.
struct PeerLifecycle: Hashable, Sendable {
    var isDeleted: Bool
    var wiped: VersionVector
    var time: HybridTime
    var replica: ReplicaID
}

/// Who speaks to whom about which dataset.
struct Address: Hashable, Sendable {
    var from: ReplicaID
    /// Whom the asker believes to speak to. If the responder has another id (it drew a new one, or
    /// another store stands behind the address now) what the asker remembers does not hold.
    var to: ReplicaID
    var dataset: String
    /// Datasets into which records went from this one as far as the asker knows, in the order of
    /// their names.
    var moved: [String] = []
}

/// Asks who is there and how the datasets stand.
struct HelloRequest: Hashable, Sendable {
    var versions: ClosedRange<UInt16>
    var from: ReplicaID
    /// The wanted datasets; nil for all of them, deleted ones included.
    var names: [String]?
    /// Only datasets after this one in the order of names; for all, page by page.
    var after: String?
    /// Tells the asker's store from a copy of it that has the same id: see `Store.incarnation`.
    var incarnation: UInt64 = 0
    /// Marks that were given to the asker, by whomever. If one of them is the responder's own, and
    /// all datasets are wanted, it lists only those that changed since.
    var marks: [StoreMark] = []
}

struct HelloAnswer: Hashable, Sendable {
    var version: UInt16
    var replica: ReplicaID
    var datasets: [DatasetGreeting]
    /// Whether there is nothing after the last of `datasets`.
    var isComplete: Bool
    /// Of a moment before the list was made; nil if the responder keeps none.
    var mark: StoreMark?
    /// The one of the asker's marks since when the datasets changed; nil if they are all there are.
    var changedSince: StoreMark?
}

/// How one dataset stands at the responder.
struct DatasetGreeting: Hashable, Sendable {
    var name: String
    /// nil if the responder never heard of it.
    var knowledge: PeerKnowledge?
    /// The responder's checkpoint about the asker.
    var pulledThrough: SyncCount
    var pushedThrough: SyncCount
    /// Ids under which two stores wrote, in their order, former ones of the responder and others:
    /// what it has of them is to be compared, and none of it counts as seen.
    var disputed: [ReplicaID] = []
    /// Datasets of the responder that are to go into this one, in the order of their names.
    var merged: [MergedDataset] = []
    /// Datasets into which records went from this one, in the order of their names.
    var moved: [String] = []
    /// Whether the responder keeps only a part of it.
    var isPart = false
}

/// Asks for changes.
struct PullRequest: Hashable, Sendable {
    var address: Address
    /// In the responder's order of change. The asker has applied everything up to here; whether
    /// durably, only its next push says.
    var since: SyncCount
    var recordsMax: Int
    var bytesMax: Int
    /// What the asker has seen, so that it is left out.
    var vector: VersionVector
    /// The newest known to the asker of each replica, in the order of the replicas.
    var batons: [Baton] = []
    /// The responder's disputed ids, as the asker knows of them.
    var disputed: [ReplicaID] = []
    /// Whether nothing is to be left out because the asker has seen it: the responder lacks
    /// deletions that the asker has forgotten, so all that it has is to be looked at.
    var isAfresh = false
}

struct PullAnswer: Hashable, Sendable {
    var page: RecordPage
}

/// Hands over changes.
struct PushRequest: Hashable, Sendable {
    var address: Address
    /// In the asker's order of change: the page follows on this.
    var since: SyncCount
    /// In the responder's order of change: the asker has durably applied everything up to here.
    var acknowledged: SyncCount
    var page: RecordPage
    /// The responder's disputed ids, of which the asker has compared all that the responder has.
    var disputed: [ReplicaID] = []
    /// What the asker had forgotten when it looked at all that the responder had up to
    /// `acknowledged`, and deleted there what is dead; empty if the responder lacked nothing.
    var settled = VersionVector()
    /// All that the asker has seen, if the page's vector leaves out some of it because that is
    /// held; else empty.
    var seen = VersionVector()
}

struct PushAnswer: Hashable, Sendable {
    enum Outcome: Hashable, Sendable {
        /// Everything is durably applied; so many records changed something.
        case accepted(changed: Int)
        /// Some records are concurrent with the responder's. The others are applied.
        case conflicts(keys: [[UInt8]], changed: Int)
        /// The responder has the asker's changes up to here only: push from here.
        case gap(SyncCount)
        /// One side lacks deletions that the other has forgotten, and nothing was applied: begin
        /// again, and start afresh.
        case late
    }

    var outcome: Outcome
    /// The responder's count before it applied the page, if nothing but the page was applied
    /// there since: then the asker need not pull what came of its own push.
    var appliedAfter: SyncCount?
    var knowledge: PeerKnowledge
}

/// Asks of which records of the asker's the responder holds nothing.
struct InquiryRequest: Hashable, Sendable {
    var address: Address
    /// Without values, as if all of them were tombstones.
    var page: RecordPage
}

struct InquiryAnswer: Hashable, Sendable {
    /// The numbers in the page, in rising order, of records whose keys the responder has no record
    /// of, or nothing but a deletion that counts as forgotten.
    var absent: [Int]
    /// Of the moment at which it looked.
    var knowledge: PeerKnowledge
}

/// Tells of records of the responder's that the asker has seen, deleted and forgotten.
struct BurialRequest: Hashable, Sendable {
    var address: Address
    /// The versions that are dead, without values.
    var page: RecordPage
}

struct BurialAnswer: Hashable, Sendable {
    /// How many of them were still there.
    var buried: Int
}

/// Why there is no answer.
struct Failure: Hashable, Sendable {
    /// On the wire as text; a code that the asker does not know counts as `peerFailed`.
    var code: String
    var message: String
}

enum SyncMessage: Hashable, Sendable {
    case hello(HelloRequest)
    case pull(PullRequest)
    case push(PushRequest)
    case reconcile(ReconcileRequest)
    case fetch(FetchRequest)
    case segments(SegmentsRequest)
    case segmentRange(SegmentRangeRequest)
    case watch(WatchRequest)
    case segmentsPush(SegmentsPushRequest)
    case segmentRangePush(SegmentRangePushRequest)
    case scopedPull(ScopedPullRequest)
    case lookup(LookupRequest)
    /// A push of one who keeps a part.
    case partPush(PushRequest)
    case records(RecordsRequest)
    case inquiry(InquiryRequest)
    case burial(BurialRequest)
    case sweep(SweepRequest)
    case helloAnswer(HelloAnswer)
    case pullAnswer(PullAnswer)
    case pushAnswer(PushAnswer)
    case reconcileAnswer(ReconcileAnswer)
    case fetchAnswer(FetchAnswer)
    case segmentsAnswer(SegmentsAnswer)
    case segmentRangeAnswer(SegmentRangeAnswer)
    case watchAnswer(WatchAnswer)
    case segmentsPushAnswer(SegmentsPushAnswer)
    case segmentRangePushAnswer(SegmentRangePushAnswer)
    case scopedPullAnswer(ScopedPullAnswer)
    case lookupAnswer(LookupAnswer)
    case recordsAnswer(RecordsAnswer)
    case inquiryAnswer(InquiryAnswer)
    case burialAnswer(BurialAnswer)
    case sweepAnswer(SweepAnswer)
    case failure(Failure)

    var kind: MessageKind {
        switch self {
        case .hello: .hello
        case .pull: .pull
        case .push: .push
        case .reconcile: .reconcile
        case .fetch: .fetch
        case .segments: .segments
        case .segmentRange: .segmentRange
        case .watch: .watch
        case .segmentsPush: .segmentsPush
        case .segmentRangePush: .segmentRangePush
        case .scopedPull: .scopedPull
        case .lookup: .lookup
        case .partPush: .partPush
        case .records: .records
        case .inquiry: .inquiry
        case .burial: .burial
        case .sweep: .sweep
        case .helloAnswer: .helloAnswer
        case .pullAnswer: .pullAnswer
        case .pushAnswer: .pushAnswer
        case .reconcileAnswer: .reconcileAnswer
        case .fetchAnswer: .fetchAnswer
        case .segmentsAnswer: .segmentsAnswer
        case .segmentRangeAnswer: .segmentRangeAnswer
        case .watchAnswer: .watchAnswer
        case .segmentsPushAnswer: .segmentsPushAnswer
        case .segmentRangePushAnswer: .segmentRangePushAnswer
        case .scopedPullAnswer: .scopedPullAnswer
        case .lookupAnswer: .lookupAnswer
        case .recordsAnswer: .recordsAnswer
        case .inquiryAnswer: .inquiryAnswer
        case .burialAnswer: .burialAnswer
        case .sweepAnswer: .sweepAnswer
        case .failure: .failure
        }
    }
}
