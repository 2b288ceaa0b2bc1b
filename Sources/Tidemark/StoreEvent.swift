/// Something that happened in a store, and how much of it.
///
/// Later versions may add cases; have a `default` where you switch over it.
public enum StoreEvent: Hashable, Sendable {
    /// The first event of each opening that succeeded.
    case opened(Opening)
    /// A full log became a sealed segment.
    case logSealed(Sealing)
    case mergeStarted(MergeStart)
    case mergeEnded(Merge)
    /// A merge was given up: with `closed` since the store is being closed, with `corruption` since
    /// a segment is damaged, with `inputOutput` since the disk cannot read it, or with what stops
    /// the writer. The segments that were to be merged are as they were.
    case mergeFailed(StoreError)
    /// Records that had expired were deleted, or looked for.
    case expirySwept(Sweep)
    /// One sync took at least as long as ``StoreObserver/slowness``.
    case syncWasSlow(Duration)
    /// A writer waited at least as long as ``StoreObserver/slowness`` because sealing was behind.
    case writerWaited(Duration)
    /// A write or sync failed: nothing more is written until the store is opened again.
    case writerStopped(StoreError)
    /// Bytes that must be whole are damaged, or the disk cannot read them. Told once for each
    /// place and opening, whoever came upon it; who needs what lies there gets the error each time.
    case damageFound(StoreError)
    case backupEnded(Duration, BackupReport)
    case restoreEnded(Duration, BackupReport)
    case verificationEnded(Duration, VerificationReport)
    case repairEnded(Duration, RepairReport)
    /// So many events were not told because the observer was too slow.
    case eventsLost(Int)
    /// The last event, with what the closing failed with, if it did.
    case closed(StoreError?)
}

extension StoreEvent {
    /// How a store was found when it was opened, and what it took to bring it back.
    public struct Opening: Hashable, Sendable {
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// There was none, and it was made.
            case created
            /// It had been closed, and was as that had left it.
            case closed
            /// It had not been closed: its process ended, or the machine did.
            case recovered
            /// For reading alone; how it was left was not looked at.
            case readOnly
        }

        public package(set) var kind: Kind
        /// From the call to the moment at which the store could be used.
        public package(set) var duration: Duration
        /// Logs that were not sealed, and were read to bring back what they hold.
        public package(set) var logsReplayed = 0
        /// Bytes of whole blocks in them.
        public package(set) var bytesReplayed: UInt64 = 0
        /// Versions of records in them.
        public package(set) var entriesReplayed = 0
        /// Whether whole blocks were left out because they lay behind a hole: later writes than
        /// what counts, none of which was ever durable.
        public package(set) var leavesOutBlocks = false
        public package(set) var segmentCount = 0
        public package(set) var segmentBytes: UInt64 = 0

        package init(_ kind: Kind, _ duration: Duration) {
            self.kind = kind
            self.duration = duration
        }
    }

    public struct Sealing: Hashable, Sendable {
        /// The number in the log's name.
        public let log: UInt64
        public let duration: Duration
        /// Versions of records that the log held.
        public let entryCount: Int
        /// Bytes of the log, and of the files of the segments that it became.
        public let bytesIn: UInt64
        public let bytesOut: UInt64

        package init(
            log: UInt64, duration: Duration, entryCount: Int, bytesIn: UInt64, bytesOut: UInt64
        ) {
            self.log = log
            self.duration = duration
            self.entryCount = entryCount
            self.bytesIn = bytesIn
            self.bytesOut = bytesOut
        }
    }

    public struct MergeStart: Hashable, Sendable {
        /// Runs that become one.
        public let runCount: Int
        /// Bytes of their files.
        public let bytesIn: UInt64

        package init(runCount: Int, bytesIn: UInt64) {
            self.runCount = runCount
            self.bytesIn = bytesIn
        }
    }

    public struct Merge: Hashable, Sendable {
        public let runCount: Int
        public let duration: Duration
        /// Bytes of the files that went, and of those that took their place.
        public let bytesIn: UInt64
        public let bytesOut: UInt64
        /// Versions of records in them, and what the store notes of its datasets.
        public let entriesIn: Int
        public let entriesOut: Int

        /// Superseded versions, tombstones and records of deleted datasets that went.
        public var entriesDropped: Int { entriesIn - entriesOut }

        package init(
            runCount: Int, duration: Duration, bytesIn: UInt64, bytesOut: UInt64, entriesIn: Int,
            entriesOut: Int
        ) {
            self.runCount = runCount
            self.duration = duration
            self.bytesIn = bytesIn
            self.bytesOut = bytesOut
            self.entriesIn = entriesIn
            self.entriesOut = entriesOut
        }
    }

    public struct Sweep: Hashable, Sendable {
        public let duration: Duration
        /// Datasets that were walked over, since one of their records was due.
        public let datasetCount: Int
        /// Records that were deleted.
        public let recordCount: Int

        package init(duration: Duration, datasetCount: Int, recordCount: Int) {
            self.duration = duration
            self.datasetCount = datasetCount
            self.recordCount = recordCount
        }
    }
}
