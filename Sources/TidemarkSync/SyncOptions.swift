public import Tidemark

/// How an exchange is carried out.
public struct SyncOptions: Sendable {
    /// How conflicts are settled, unless ``policies`` says otherwise.
    public var policy: MergePolicy
    /// How conflicts in the datasets of these names are settled.
    public var policies: [String: MergePolicy]
    /// How often pull and push are repeated if the peer changes meanwhile: 1...1,000.
    public var attemptsMax: Int
    /// About how many bytes of keys and values a page carries: 1...16 MiB. A larger record travels
    /// alone.
    public var pageBytesMax: Int
    /// How many records a page carries: 1...100,000.
    public var pageRecordsMax: Int
    /// What to do if the other side has deleted the dataset since the last exchange.
    public var onDatasetDeleted: DatasetDeletedAction
    /// Asked in place of ``onDatasetDeleted``, once for each deletion that is met, while no lock is
    /// held: it may read and write the store.
    public var deletedDatasetHandler: (@Sendable (DatasetDeletion) async -> DatasetDeletedAction)?
    /// Whether a dataset of which there is nothing here yet may be taken over as it lies in the
    /// peer's sealed segments, where the peer offers that: many times as fast as record by record.
    /// Not done where ``recordsPerRunMax`` is set, since such a dataset comes as a whole.
    public var adoptsSegments: Bool
    /// How many datasets are exchanged at the same time over one connection: 1...64.
    public var parallelDatasetsMax: Int
    /// How many records of one dataset an exchange takes in and hands out at most, from 1; nil for
    /// no bound. What is left comes with the next exchange, which goes on where this one ended;
    /// until then ``SyncResult/isComplete`` is false.
    public var recordsPerRunMax: Int?
    /// After how long the whole call is cancelled and ends with ``SyncError/Code/timedOut``; nil
    /// for no bound. What was applied until then stays, and the next exchange goes on from there.
    public var deadline: Duration?
    /// Asked when the other side tells of datasets that are to go into the one that is exchanged,
    /// once in each exchange, while no lock is held; they have been pulled by then. nil: they are
    /// exchanged as any others, and nothing is merged.
    public var mergedDatasetsHandler: (@Sendable (MergedDatasets) async -> MergedDatasetsAction)?
    /// Asked about each record of the other side that would change anything here, before it is
    /// compared and while no lock is held. If it throws, the record is refused: it is left out and
    /// listed by `Dataset.failedRecords`, and the rest goes on. Pages are then compared record by
    /// record, which takes several times as long, and nothing is taken over as it lies in segments.
    public var validate: (@Sendable (Record) async throws -> Void)?
    /// How often, at most, an exchange of a dataset that has changed ends by comparing all records
    /// of the two sides, and settles what differs although both have seen the same: that finds what
    /// a store that went back in time, or was copied, has left behind unnoticed. Counted for each
    /// peer from the first exchange after the store was opened. It takes one more message, and a
    /// sum over all records on both sides, after the first time in proportion to what has changed.
    /// A full exchange always does so; of a part of a dataset nothing is compared.
    public var comparesAllEvery: Duration = .seconds(3_600)
    /// What is kept of conflicts and exchanges when they are over.
    public var journal = SyncJournalOptions()
    /// Called for each conflict that waits because no policy settles it, once in each exchange, on
    /// the task that synchronises and while no lock is held. Settle it with `Dataset.settle`, then
    /// or later.
    public var onPending: (@Sendable (Conflict) -> Void)?
    /// Called after each page, on the task that synchronises the dataset: of several datasets at
    /// the same time.
    public var progress: (@Sendable (SyncProgress) -> Void)?
    /// Told what happens, on the task that synchronises the dataset, while no lock is held.
    var observer: (@Sendable (SyncEvent) -> Void)?
    /// Whether to go through everything again, whatever was exchanged before.
    var isFull = false
    /// Whether to look at each dataset of both sides, also if nothing has changed in it.
    package var looksAtAll = false
    /// Whether to ask as nobody, so that the peer plans what it would do and does nothing.
    var isDryRun = false
    /// Measures the deadline.
    package var clock: any Clock<Duration> = ContinuousClock()
    /// Replicas without a common checkpoint look for where they differ if both have counted so many
    /// changes of the dataset; 0: always.
    package var comparesFrom = SyncLimits.comparedChangesMin
    /// So many changes are pulled in the order of their keys; 0: always.
    package var sweepsFrom = SyncLimits.sweptChangesMin
    /// Of so many changes that are to be pushed those that were superseded are found out by a walk
    /// over all records, once many of them were met; 0: always, and at once.
    package var walksFrom = SyncLimits.walkedChangesMin
    /// A peer that has nothing is handed the sealed segments of a dataset as they lie if so many
    /// bytes are in them.
    package var segmentBytesMin = 1 << 20
    /// While a page of so many records is pushed the next one is read, and it leaves without a sync
    /// if all of it is known to be durable.
    package var readsAheadFrom = SyncLimits.readAheadRecordsMin
    /// Whether pages are compared record by record also where the store could do it at once: for
    /// the test that holds the two ways against each other.
    var comparesOneByOne = false

    public init(
        policy: MergePolicy = .lastWriterWins, policies: [String: MergePolicy] = [:],
        attemptsMax: Int = 5, pageBytesMax: Int = 1 << 20, pageRecordsMax: Int = 8_192,
        onDatasetDeleted: DatasetDeletedAction = .keepAndStop, adoptsSegments: Bool = true,
        parallelDatasetsMax: Int = 4, recordsPerRunMax: Int? = nil, deadline: Duration? = nil,
        onPending: (@Sendable (Conflict) -> Void)? = nil,
        progress: (@Sendable (SyncProgress) -> Void)? = nil
    ) {
        self.policy = policy
        self.policies = policies
        self.attemptsMax = attemptsMax
        self.pageBytesMax = pageBytesMax
        self.pageRecordsMax = pageRecordsMax
        self.onDatasetDeleted = onDatasetDeleted
        self.adoptsSegments = adoptsSegments
        self.parallelDatasetsMax = parallelDatasetsMax
        self.recordsPerRunMax = recordsPerRunMax
        self.deadline = deadline
        self.onPending = onPending
        self.progress = progress
    }

    /// The same options with each number moved into its bounds.
    var bounded: SyncOptions {
        var options = self
        options.attemptsMax = min(max(attemptsMax, 1), 1_000)
        options.pageBytesMax = min(max(pageBytesMax, 1), SyncLimits.pageBytesMax)
        options.pageRecordsMax = min(max(pageRecordsMax, 1), SyncLimits.pageRecordsMax)
        options.parallelDatasetsMax = min(
            max(parallelDatasetsMax, 1), SyncLimits.parallelDatasetsMax)
        options.recordsPerRunMax = recordsPerRunMax.map { max($0, 1) }
        options.journal = journal.bounded
        return options
    }
}

/// What to do with a dataset that lives here and was deleted on the other side.
public enum DatasetDeletedAction: Hashable, Sendable {
    /// Deletes it here too, with the changes that the other side never saw.
    case discardLocal
    /// Keeps every record here and brings the dataset back to life on the other side.
    case keepAndRecreate
    /// Ends the exchange with ``SyncError/Code/datasetDeleted`` and changes nothing.
    case keepAndStop
}

/// How far an exchange of one dataset has come.
public struct SyncProgress: Hashable, Sendable {
    public enum Phase: Hashable, Sendable {
        case pulling
        case pushing
    }

    public let dataset: String
    public let phase: Phase
    /// Records received so far, those already known included.
    public let recordsReceived: Int
    /// Records sent so far.
    public let recordsSent: Int
    /// Bytes of all messages received so far.
    public let bytesReceived: Int
    /// Bytes of all messages sent so far.
    public let bytesSent: Int
}
